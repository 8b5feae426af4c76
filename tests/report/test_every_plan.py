"""Every plan can be shown in every form, read back from its document, and its shares add up."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from fractions import Fraction
from typing import Any, Literal

import polars as pl
import pytest

import dpframe as dp
from dpframe.plan.several import blocks_of
from dpframe.report.first_page import first_page
from dpframe.report.story import Draws, chapters
from tests.html_reader import Reader
from tests.plan.documents import ALL, patients, plan_of, visits


def quantiles(number: int) -> dp.Plan:
    asked = dp.quantile("bill", [round(i / (number + 1), 3) for i in range(1, number + 1)])
    return patients(bounds={"bill": (0, 10**6)}).agg(asked).plan(epsilon="0.1")


def found_limit(**spend: Any) -> dp.Plan:
    grouped = visits().drop("tags").group_by("region", keys=["north", "south"])
    return grouped.agg(dp.count(), dp.mean("cost", (0, 9))).plan(limits="auto", **spend)


def found_limit_and_groups() -> dp.Plan:
    grouped = visits().drop("tags").group_by("region")
    return grouped.agg(dp.count()).plan(epsilon=1, delta="1e-7", limits="auto")


def nightly() -> dp.Plan:
    """With a parameter, a found limit and what it drops."""
    day = dp.parameter("day", pl.Date, default=date(2026, 11, 20))
    asked = visits().drop("tags").filter(pl.col("day") == day).group_by("region")
    return asked.agg(dp.count()).plan(epsilon=1, delta="1e-7", limits="auto")


MORE: dict[str, Callable[[], dp.Plan]] = {
    "four quantiles": lambda: quantiles(4),
    "nine quantiles": lambda: quantiles(9),
    "twelve quantiles": lambda: quantiles(12),
    "found limit": lambda: found_limit(epsilon=1),
    "found limit with delta": lambda: found_limit(epsilon=1, delta="1e-7"),
    "found limit and groups": found_limit_and_groups,
    "nightly": nightly,
}


@functools.cache
def every(name: str) -> dp.Plan:
    return MORE[name]() if name in MORE else plan_of(name)


each = pytest.mark.parametrize("name", [*ALL, *MORE])


@each
def test_every_plan_has_every_form_and_is_read_back(name: str) -> None:
    plan = every(name)
    for form in ("text", "markdown", "html", "mermaid"):
        assert plan.explain(form)
        assert plan.explain(form, details=True)
    Reader(plan.explain("html"))
    again = dp.Plan.from_json(plan.to_json())
    assert again.to_json() == plan.to_json()
    assert again.fingerprint == plan.fingerprint
    assert again.explain() == plan.explain()
    assert again._repr_html_() == plan._repr_html_()


@each
def test_html_says_what_text_says(name: str) -> None:
    """Of the page and of each section every line, whatever its title is."""
    plan = every(name)
    shown = words_of(re.sub(r"<[^>]*>", " ", plan.explain("html")))
    for chapter in chapters(plan):
        for section in chapter.sections:
            for item in section.items:
                lines = (item.head, *item.details)
                assert all(words_of(line) <= shown for line in lines), section.title
    for entry in first_page(plan):
        assert all(words_of(line) <= shown for line in entry.lines), entry.label


@each
def test_the_first_page_fits_on_a_screen(name: str) -> None:
    """30 lines for five outputs of one query; each more output has a line, each more query four."""
    plan = every(name)
    lines = plan.explain().splitlines()
    shown = sum(min(len(block.outputs), 13) for block in blocks_of(plan))
    more = max(0, shown - 5) + 4 * max(0, len(plan.blocks) - 1)
    assert len(lines) <= 30 + more
    assert lines[0].startswith("DECIDE ")
    assert sum(line.lstrip()[:2] in ("1.", "2.", "3.", "4.", "5.") for line in lines) <= 13
    assert len(plan.questions) <= 5
    for words in ("drawn together", "by itself", "nothing tells", "knows no", "how it comes"):
        assert words not in plan.explain(details=True)


@each
def test_every_output_has_an_error_first(name: str) -> None:
    plan = every(name)
    for entry in first_page(plan):
        for one in entry.outputs:
            assert one.error


def words_of(text: str) -> set[str]:
    import html

    return set(re.findall(r"[A-Za-z_]{3,}", html.unescape(text)))


@each
def test_shares_of_draws_are_those_of_the_plan(name: str) -> None:
    """A draw that several parts have counts once; the search for a limit is paid in the measure of
    the plan, whatever the rest is composed of.
    """
    plan = every(name)
    total = Fraction(0)
    blocks = list(blocks_of(plan))
    own = [chapter.draws for chapter in chapters(plan)]
    own = own[1:-1] if plan.blocks else own
    for block, draws in zip(blocks, own, strict=True):
        total += sum((draws.share(draw.cost) for draw in block.draws), Fraction(0))
    assert total == (1 if any(not draw.cost.is_zero for draw in plan.draws) else 0)
    if plan.found is not None:
        search = [own[0].share(draw.cost) for draw in blocks[0].draws]
        assert abs(sum(search) - plan.found.share) < Fraction(1, 100)


def test_costs_in_another_measure_are_no_sum() -> None:
    for one, other in ((dp.PureDP(1), dp.ZCDP(1)), (dp.ApproxDP(1, "1e-6"), dp.ZCDP(1))):
        with pytest.raises(TypeError):
            Draws(one).share(other)


def test_a_search_and_what_it_is_for_are_said_apart() -> None:
    text = every("found limit and groups").explain(details=True)
    assert "the search costs epsilon 0.05 and the query epsilon 0.95 and delta 1e-7" in text
    assert "5% of the plan" in text


def test_many_quantiles_have_sensitivities_that_documents_hold() -> None:
    plan = every("nine quantiles")
    (release,) = plan.releases
    assert release.mechanism == "joint_exponential"
    assert release.sensitivity.l0 > 2**150
    read = json.loads(plan.to_json())["plan"]["releases"][0]
    assert read["exact"]["l0"] == read["sensitivity"]["l0"] == release.exact.l0


def query_of(session: dict[str, Any]) -> dp.PrivateQuery:
    return patients(session).agg(dp.count())


def pairs() -> Iterator[tuple[dp.Plan, dp.Plan, str]]:
    pure, approximate = ({"epsilon": 9}, {"epsilon": 9, "delta": "1e-6"})
    zcdp = {**approximate, "composition": "zcdp"}
    one, other, third = (query_of(s).plan(epsilon="0.5") for s in (pure, approximate, zcdp))
    yield one, third, "the guarantee changes: epsilon 0.5 (pure DP) -> rho"
    counted = "requested spend epsilon 0.5, counted in"
    yield one, other, f"{counted} pure DP -> epsilon 0.5, counted in approximate DP"
    yield other, one, f"{counted} approximate DP -> epsilon 0.5, counted in pure DP"
    delta = replace(one, cost=dp.ApproxDP("0.5", "1e-7"))
    yield (
        one,
        delta,
        "weaker: epsilon 0.5 (pure DP) -> epsilon 0.5, delta 1e-7 (approximate DP)",
    )


def test_a_difference_of_measures_is_named() -> None:
    for before, after, words in pairs():
        assert words in before.diff(after)


def test_an_epsilon_without_a_delta_is_pure() -> None:
    plan = query_of({"epsilon": 9, "delta": "1e-6"}).plan(epsilon="0.5")
    formats: tuple[Literal["text", "markdown", "html"], ...] = ("text", "markdown", "html")
    for format in formats:
        shown = plan.explain(format, details=True)
        assert "(pure DP)" in shown.replace("\\", "")
        assert "approximate DP" not in shown


def test_the_day_of_a_nightly_job_is_shown() -> None:
    shown = every("nightly").explain("html")
    assert f":day = {date(2026, 11, 20)}" in shown or "2026-11-20" in shown
