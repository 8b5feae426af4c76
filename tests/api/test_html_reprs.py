"""What notebooks show: everything public, nothing private, whatever state things are in."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from tests.golden.queries import SECRET, unreadable
from tests.html_reader import Reader
from tests.report.test_html import HOSTILE

DATA = pl.DataFrame(
    {
        "who": [SECRET, "b"],
        "age": [918273, 40],
        "city": pl.Series(["Bern", SECRET], dtype=pl.Categorical),
        "tags": [[SECRET], ["x"]],
    }
)


def said(thing: Any) -> str:
    """The text of what a notebook shows."""
    html = thing._repr_html_()
    assert html.isascii()
    return Reader(html).text


def session_of(**budget: Any) -> tuple[dp.Session, dp.PrivateFrame]:
    session = dp.Session(**(budget or {"epsilon": 1}), name="books")
    return session, session.protect(DATA, dp.Rows(), name="people", bounds={"age": (0, 99)})


def things() -> list[Any]:
    session, people = session_of(epsilon=9, delta="1e-6")
    grouped = people.filter(pl.col("age") > 3).group_by("who", keys=["a"])
    query = grouped.agg(dp.sum("age"), dp.count().alias("n"))
    part = session.partition(people, "who", keys=["a", "b"])["a"]
    found = people.group_by("who")
    joined = people.concat(session.protect(DATA, dp.Rows(), name="more"))
    shown = [session, people, grouped, query, query.plan(epsilon=1), query.release(epsilon=1)]
    return [*shown, part, part.session, found, found.dp_count(), joined, joined.dp_count()]


def test_nothing_private_is_shown() -> None:
    for thing in things():
        for text in (thing._repr_html_(), repr(thing), str(thing)):
            assert SECRET not in text
            assert "918273" not in text
            assert "Bern" not in text


def test_nothing_is_read_to_show_things() -> None:
    people = dp.Session(epsilon=1).protect(unreadable(), dp.Rows(), name="people")
    grouped = people.group_by("sex")
    for thing in (people, grouped, grouped.dp_count(), grouped.dp_count().plan(epsilon=1)):
        assert "people" in said(thing)


def test_showing_things_charges_nothing() -> None:
    session, people = session_of()
    for thing in (session, people, people.dp_count(), people.dp_count().plan(epsilon=1)):
        said(thing)
    assert session.spent.is_zero
    assert session.history.is_empty()


@pytest.mark.parametrize("hostile", HOSTILE)
def test_names_of_columns_do_nothing(hostile: str) -> None:
    name = hostile.replace("\ud800", "?")  # which Polars has not in names
    frame = pl.DataFrame({name: [1], "k": ["a"]})
    session = dp.Session(epsilon=9, name=name)
    people = session.protect(frame, dp.Rows(), name=name, categories={"k": [name]})
    kept = people.filter(pl.col(name) > 1)
    query = kept.group_by("k").agg(dp.sum(name, (0, 1)))
    for thing in (kept, kept.group_by("k"), query, query.release(epsilon=1), session):
        said(thing)  # reads strictly


def test_a_frame_shows_its_unit_columns_and_steps() -> None:
    _, people = session_of()
    text = said(people.filter(pl.col("age") >= 18).drop("tags"))
    assert "people" in text
    assert "protects one row of one person" in text
    for part in ("who", "String", "age", "in [18, 99], not null", 'filter(col("age") >= 18)'):
        assert part in text
    assert "List" not in text  # the type of tags
    assert "drop('tags')" in text


def test_a_group_by_shows_its_keys() -> None:
    _, people = session_of()
    text = said(people.group_by("who", keys=["x", "y"]))
    assert 'group_by(col("who"))' in text
    assert "'x', 'y'" in text
    assert "chosen privately" in said(session_of(epsilon=1, delta="1e-9")[1].group_by("who"))


def test_a_query_shows_what_is_asked_and_that_nothing_ran() -> None:
    _, people = session_of()
    text = said(people.agg(dp.sum("age").alias("total")))
    assert "total" in text
    assert 'col("age").dp_sum()' in text
    assert "Nothing has run. .explain(epsilon=...)" in text
    unbound = DATA.lazy().dp_count(unit=dp.Rows())  # type: ignore[attr-defined]
    assert "session.plan(query, epsilon=...)" in said(unbound)


def test_a_session_shows_its_budget_and_its_last_charges() -> None:
    session, people = session_of()
    assert "Nothing was charged so far." in said(session)
    people.dp_count().collect(epsilon="0.25")
    read = Reader(session._repr_html_())
    assert read.widths == ["width:25.0%"]
    assert read.labels == ["25% of the budget is spent"]
    for part in ("books", "kept in memory only", "epsilon 0.25", "epsilon 0.75", "released"):
        assert part in read.text
    assert session.history["fingerprint"][0][:12] in read.text
    for _ in range(6):
        people.dp_count().collect(epsilon="0.05")
    text = said(session)
    assert "Last 5 of 7 charges" in text
    assert text.count("released") == 5


@pytest.mark.parametrize(
    ("budget", "spend", "words"),
    [
        ({"rho": 1}, {"rho": "0.5"}, ["rho 0.5", "zCDP"]),
        ({"epsilon": 1, "delta": "1e-6"}, {"epsilon": "0.1"}, ["epsilon 0.9, delta 1e-6"]),
        (
            {"epsilon": 1, "delta": "1e-6", "composition": "zcdp"},
            {"epsilon": "0.1"},
            ["epsilon 1, delta 1e-6", "rho 0.005"],
        ),
    ],
)
def test_every_measure_is_shown(
    budget: dict[str, Any], spend: dict[str, Any], words: list[str]
) -> None:
    session, people = session_of(**budget)
    people.dp_count().collect(**spend)
    text = said(session)
    assert all(part in text for part in words)


def test_a_ledger_is_named_and_one_that_is_broken_says_so(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    session, people = session_of(epsilon=1, ledger=path)
    people.dp_count().collect(epsilon="0.5")
    assert "budget.db" in said(session)
    path.unlink()
    text = said(session)
    assert "Session books" in text
    assert "ledger" in text
    assert "spent" not in text


def test_a_release_shows_its_result_and_where_it_came_from() -> None:
    _, people = session_of()
    keys = [None, "<b>", *(f"k{i}." for i in range(30))]
    release = people.group_by("who", keys=keys).agg(dp.sum("age")).release(epsilon="0.5")
    text = said(release)
    assert f"fingerprint {release.plan.fingerprint[:12]}" in text
    assert "cost epsilon 0.5 (pure DP)" in text
    shown = release.frame["age"].head(20).to_list()
    assert all(str(value) in text for value in shown)
    assert "and 12 more rows" in text
    assert "<b>" in text
    assert "null" in text
    assert "k17." in text
    assert "k18." not in text
    assert "all rows of people" in text  # the plan below
    assert repr(release).startswith("<Release of 'people' for epsilon 0.5>\nshape: (32, 2)")


def test_results_of_every_type_are_shown() -> None:
    _, people = session_of(epsilon=99)
    query = people.agg(
        dp.histogram("who", ["a", "b"]).alias("h"),
        dp.mean("age").alias("m"),
        dp.argmax("who", candidates=["a"]).alias("best"),
    )
    assert re.search(r"h\s*m\s*best", said(query.release(epsilon=9)))


@pytest.mark.parametrize("make", [lambda p: p, lambda p: p.group_by("who", keys=["a"])])
def test_other_ways_to_be_shown_are_refused_as_before(make: Callable[[Any], Any]) -> None:
    _, people = session_of()
    for name in ("_repr_png_", "_repr_mimebundle_", "_ipython_display_", "_repr_markdown_"):
        assert not hasattr(make(people), name)
