"""Released numbers as text: rounded to their error, and never to another number."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.report.numbers import _with_error

ROWS = pl.DataFrame({"x": [20.0, 70.0] * 500, "g": ["a", "b"] * 500, "year": [2020, 2021] * 500})


def people() -> dp.PrivateFrame:
    return dp.Session(epsilon=1000).protect(ROWS, unit=dp.Rows())


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (50.0123, 0.68, "50.0 ± 0.7"),
        (50.0123, 0.234, "50.01 ± 0.24"),
        (1520, 27.0, "1,520 ± 27"),
        (31027, 680.0, "31,027 ± 680"),
        (85027594.95, 12287.0, "85,027,595 ± 13,000"),
        (3.0, 0.0, "3"),
        (85027594.95, None, "85,027,595"),
        (1e-7, None, "1e-7"),
        (None, None, None),
    ],
)
def test_numbers_are_rounded_to_their_error(
    value: float | None, error: float | None, text: str | None
) -> None:
    assert _with_error(value, error, True) == text


@given(st.floats(-1e14, 1e14), st.floats(1e-6, 1e14))
def test_the_error_shown_holds_the_error_and_the_rounding_is_within_it(
    value: float, error: float
) -> None:
    number, wide = (
        float(part.replace(",", "")) for part in _with_error(value, error, True).split(" ± ")
    )
    assert error * (1 - 1e-6) <= wide <= error * 1.51 + 1
    assert abs(number - value) <= max(0.5, error) * (1 + 1e-9)


def test_a_release_prints_errors_that_are_asked_for_or_planned() -> None:
    query = people().group_by("year", keys=[2020, 2021]).agg(n=dp.count(), m=dp.mean("x", (0, 99)))
    printed = repr(query.release(epsilon=1))
    assert "2020" in printed, "keys are no amounts"
    assert len(re.findall(r"\d ± \d", printed)) == 2
    assert "± is the 95% error by privacy noise" in printed
    with_interval = query.release(epsilon=1, interval=0.9)
    assert len(re.findall(r"\d ± \d", repr(with_interval))) == 4
    assert "m_low" not in repr(with_interval)
    assert "m_low" in with_interval.frame.columns


PERSONS = pl.DataFrame({"who": [i % 900 for i in range(1800)], "x": [20.0, 70.0] * 900})


def test_a_release_under_a_limit_that_was_found_prints_the_error_under_it() -> None:
    persons = dp.Session(epsilon=1000).protect(PERSONS, unit="who")
    query = persons.agg(dp.count().alias("n"), dp.sum("x", (0, 99)))
    release = query.release(epsilon=4)
    found = release.plan.found
    assert found is not None
    (n,) = (c.n for c in found.choices if f"chose {found.words(c.n)}," in release.remark)
    limited = persons.limit_rows(n).agg(dp.count().alias("n"), dp.sum("x", (0, 99)))
    plan = limited.plan(epsilon=Fraction(95, 100) * 4)
    for name in ("n", "x"):
        assert release.accuracy(name) == plan.accuracy(name)
        assert release.accuracy(name, 0.5) == plan.accuracy(name, 0.5)
    assert len(re.findall(r"\d ± \d", repr(release))) == 2
    assert len(re.findall(r"\d (±|&#177;) \d", release.to_html())) == 2
    with pytest.raises(dp.UnsupportedOperation, match="depends on the limit"):
        release.plan.accuracy("n", query=2)


def test_several_queries_may_find_one_limit_for_one_frame() -> None:
    session = dp.Session(epsilon=1000)
    persons = session.protect(PERSONS, unit="who")
    asked = [persons.dp_count(), persons.dp_sum("x", (0, 99)), persons.dp_histogram("x", [0, 50])]
    releases = session.release(asked, epsilon=4)
    count, total, histogram = releases
    assert abs(count.frame.item() - 1800) < 100
    assert abs(total.frame.item() - 81_000) < 9_000
    assert histogram.accuracy("count") == histogram.accuracy("x")
    assert [len(re.findall(r"\d ± \d", repr(release))) for release in releases] == [1, 1, 1]
    assert dp.Plan.from_json(releases.plan.to_json()).fingerprint == releases.plan.fingerprint


def test_counts_of_a_table_go_by_the_name_of_their_column() -> None:
    query = people().dp_histogram("x", [0, 50, 100])
    plan = query.plan(accuracy={"count": 9})
    assert plan.accuracy("count") == plan.accuracy("x") <= 9
    assert plan.cost == query.plan(accuracy={"x": 9}).cost
    with pytest.raises(dp.UnknownColumn):
        people().dp_sum("x", (0, 9)).plan(epsilon=1).accuracy("count")


def test_one_row_of_many_columns_is_printed_with_a_row_for_each() -> None:
    query = people().agg(*(dp.count().alias(f"n{i}") for i in range(9)))
    release = query.release(epsilon=1)
    printed = repr(release)
    for name, value in release.frame.row(0, named=True).items():
        assert re.search(rf"│ {name} +┆ +{value:,} ± \d", printed)
    short = people().agg(*(dp.count().alias(f"n{i}") for i in range(8)))
    assert len(re.findall(r"n\d", repr(short.release(epsilon=1)).split("\n")[3])) == 8


def test_a_page_holds_all_that_it_needs(tmp_path: Path) -> None:
    release = people().group_by("g", keys=["a", "b"]).agg(n=dp.count()).release(epsilon=1)
    place = tmp_path / "release.html"
    page = release.to_html(place)
    assert place.read_text() == page
    assert page.startswith("<!DOCTYPE html>")
    assert "<script" not in page
    assert "src=" not in page
    assert release.to_html() in page
    assert re.search(r"\d ± \d", page) or "&#177;" in page
    with pytest.raises(dp.UnsupportedOperation):
        release.to_html(tmp_path)
