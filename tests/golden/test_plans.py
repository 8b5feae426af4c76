"""Plans of whole queries are pinned as text, so that a change of wording or of a number is seen."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import dpframe as dp
from tests.golden.queries import (
    FINGERPRINTS,
    PLANS,
    PURE,
    QUERIES,
    SECRET,
    Golden,
    UnreadableError,
    fingerprints,
    unreadable,
)

each = pytest.mark.parametrize("golden", QUERIES, ids=lambda golden: golden.name)


@each
def test_the_plan_is_as_kept(golden: Golden) -> None:
    assert golden.plan().explain() + "\n" == golden.path.read_text(), (
        "a plan reads differently; if that is meant: python -m tests.golden.update"
    )


def test_fingerprints_are_as_kept() -> None:
    assert fingerprints() == FINGERPRINTS.read_text(), (
        "a fingerprint changed; if that is meant: python -m tests.golden.update"
    )


@pytest.mark.parametrize(
    "seed", ["0", *(pytest.param(s, marks=pytest.mark.slow) for s in ("1", "4711"))]
)
def test_plans_and_fingerprints_are_the_same_in_every_process(seed: str) -> None:
    code = (
        "from tests.golden.queries import QUERIES, fingerprints\n"
        "print(fingerprints())\n"
        "print(*(golden.plan().explain() for golden in QUERIES), sep='\\n')"
    )
    environment = {
        **os.environ,
        "PYTHONHASHSEED": seed,
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    kept_plans = "".join(golden.path.read_text() for golden in QUERIES)
    assert done.stdout == FINGERPRINTS.read_text() + "\n" + kept_plans


def test_every_kept_plan_has_its_query() -> None:
    assert {path.name for path in PLANS.iterdir()} == {golden.path.name for golden in QUERIES}


@each
def test_the_plan_answers_what_a_reviewer_asks(golden: Golden) -> None:
    plan = golden.plan()
    labels = [line[:10].strip() for line in plan.explain().splitlines() if line[:1].isalpha()]
    asked = ["DECIDE", "Protects", "Spends", "Publishes", "Reads", "Details"]
    assert [label for label in labels if label in asked] == asked
    text = plan.explain(details=True)
    assert text.count("1-stable:") == len(plan.steps)
    assert text.count("public because") == (0 if plan.groups is None else 1)
    noisy = [release for release in plan.releases if release.mechanism != "none"]
    for part in ("sensitivity ", "95%: "):
        assert text.count(part) == len(noisy)
    assert text.count("of the plan") == len([d for d in plan.draws if d.mechanism != "none"])
    assert re.search(r"^    cost: \w+ [\d.e-]+", text, re.MULTILINE)
    assert re.search(r"^    session: .* before; .* after$", text, re.MULTILINE)


@each
def test_no_plan_holds_or_reads_data(golden: Golden) -> None:
    plan = golden.plan()
    for text in (plan.explain(details=True), plan.explain("html"), repr(plan)):
        assert SECRET not in text


def test_the_frame_of_these_queries_fails_when_it_is_read() -> None:
    with pytest.raises((UnreadableError, pl.exceptions.PolarsError)):
        unreadable().collect()
    session = dp.Session(epsilon=1)
    with pytest.raises(dp.EngineError):
        session.protect(unreadable(), dp.Rows()).dp_count().collect(epsilon=1)


def kept(name: str) -> str:
    return (PLANS / f"{name}.txt").read_text()


def unescaped(markdown: str) -> str:
    return re.sub(r"\\([^A-Za-z0-9\s])", r"\1", markdown)


@pytest.mark.parametrize("name", ["grouped", "long_chain", "look_twice"])
def test_markdown_says_the_same(name: str) -> None:
    (golden,) = (golden for golden in QUERIES if golden.name == name)
    markdown = re.sub(r"\\([^A-Za-z0-9\s])", r"\1", golden.plan().explain("markdown", details=True))
    words = set(re.findall(r"[\w.]+", markdown.lower()))
    assert set(re.findall(r"[\w.]+", golden.plan().explain(details=True).lower())) <= words


def test_markdown_shows_names_and_constants_as_they_are() -> None:
    hostile = "*a* _b_ `c` <d> [e](f) | g ~h~ $i$ &lt; \n# j"
    rows = pl.LazyFrame(schema={hostile: pl.Boolean, "x~y": pl.Boolean})
    people = dp.Session(**PURE).protect(rows, dp.Rows())
    kept_rows = people.filter(~pl.col(hostile), ~pl.col("x~y"))
    markdown = kept_rows.dp_histogram(hostile).plan(epsilon=1).explain("markdown")
    assert not re.search(r"(?<!\\)[*_`<>\[\]|~$&]", _without_form(markdown))
    assert not any(line.startswith("# j") for line in markdown.splitlines())


def _without_form(markdown: str) -> str:
    """Without labels and the rules of tables."""
    text = re.sub(r"^\*\*[A-Za-z]+\*\*|^\|.*\|$", "", markdown, flags=re.MULTILINE)
    return text.replace("NaN", "")


def test_a_plan_over_budget_says_that_it_will_be_refused() -> None:
    people = dp.Session(epsilon=1).protect(unreadable(), dp.Rows())
    text = people.dp_count().explain(epsilon=2)
    assert text.startswith("DECIDE     cannot run: it costs more than the budget has left; ")
    assert "only epsilon 1 is left: the plan will be refused" in text


def test_winners_of_groups_still_say_that_every_key_appears() -> None:
    people = dp.Session(epsilon=1).protect(unreadable(), dp.Rows())
    hours = pl.DataFrame({"hour": [1, 2]})
    score = (pl.col("visits") - pl.col("hour")).clip(0, 3)
    grouped = people.group_by("smoker").agg(dp.argmax(score=score, candidates=hours))
    assert "every key appears" in grouped.explain(epsilon=1, details=True)
    best = people.group_by("smoker").dp_argmax()
    assert "every key appears" not in best.explain(epsilon=1, details=True)
