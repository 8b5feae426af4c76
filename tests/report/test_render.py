"""Rendering: one line per fact, whatever names and constants analysts choose."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import dpframe as dp
from dpframe.report.story import chapters

ROWS = pl.LazyFrame(schema={"age": pl.Int64, "income": pl.Float64, "region": pl.String})


def plan(
    *outputs: pl.Expr, unit: dp.Rows | None = None, spend: Any = 1, **named: pl.Expr
) -> dp.Plan:
    people = dp.Session(epsilon=100).protect(ROWS, unit or dp.Rows())
    return people.agg(*outputs, **named).plan(epsilon=spend)


def line(of: dp.Plan, start: str) -> str:
    (found,) = (t for t in of.explain(details=True).splitlines() if t.strip().startswith(start))
    return found.strip()


@pytest.mark.parametrize(
    "hostile", ["n\nbudget\n  cost: epsilon 0", "a\tb", "\x1b[2J", "\u202egnp"]
)
def test_a_name_cannot_pass_for_a_line_of_the_plan(hostile: str) -> None:
    honest = plan(dp.count().alias("n")).explain(details=True).splitlines()
    text = plan(dp.count().alias(hostile)).explain(details=True)
    assert len(text.splitlines()) == len(honest)
    assert all(character.isprintable() or character == "\n" for character in text)


def test_a_constant_cannot_pass_for_a_line_of_the_plan() -> None:
    people = dp.Session(epsilon=1).protect(ROWS, dp.Rows())
    kept = people.filter(pl.col("region") == "x\nrisks\n  nothing")
    for format in ("text", "markdown"):
        lines = kept.dp_count().plan(epsilon=1).explain(format).splitlines()  # type: ignore[arg-type]
        assert not any(text.startswith(("Risks", "## Risks", "risks")) for text in lines)


@pytest.mark.parametrize("format", ["HTML", "TEXT", "", None])
def test_other_formats_are_refused(format: Any) -> None:
    with pytest.raises(dp.UnsupportedOperation, match="markdown"):
        plan(dp.count()).explain(format)


def test_sections_come_in_the_order_in_which_a_reviewer_asks() -> None:
    people = dp.Session(epsilon=100).protect(ROWS, dp.Rows(contributions=2))
    made = people.group_by("region", keys=["a"]).dp_count().plan(epsilon=11)
    (chapter,) = chapters(made)
    titles = [section.title for section in chapter.sections]
    assert titles == ["groups", "noise", "outputs", "budget", "notes"]


def test_error_bounds_are_rounded_up_for_people() -> None:
    made = plan(dp.sum("age", (0, 10**6)).alias("s"), spend="0.03")
    shown = line(made, "95%: ").split("within ")[1].split(" of")[0].replace(",", "")
    assert made.accuracy("s") <= float(shown) <= made.accuracy("s") * 1.001
    assert "e+" not in shown
    assert len(shown.rstrip("0")) <= 4


@pytest.mark.parametrize(("spend", "warned"), [(10, False), ("10.001", True)])
def test_a_large_epsilon_is_to_be_looked_at_twice(spend: Any, warned: bool) -> None:
    made = plan(dp.count(), spend=spend)
    assert ("it protects nobody" in " ".join(made.risks)) is warned
    assert ("it protects nobody" in made.explain()) is warned


def test_a_delta_that_is_not_small_is_to_be_looked_at_twice() -> None:
    people = dp.Session(epsilon=1, delta="0.1").protect(ROWS, dp.Rows())
    query = people.agg(dp.count(mechanism="discrete_gaussian"))
    assert not query.plan(epsilon=1, delta="1e-5").warnings
    (warning,) = query.plan(epsilon=1, delta="1.1e-5").warnings
    assert "far below one over the number of individuals" in warning


def test_several_rows_per_individual_are_said_to_be_a_promise() -> None:
    (warning,) = plan(dp.count(), unit=dp.Rows(contributions=3)).warnings
    assert "at most 3 rows" in warning
    assert "promise" in warning


def test_what_rows_are_rounded_to_is_said_where_they_are() -> None:
    floats, whole = plan(dp.sum("income", (0, 1))), plan(dp.sum("age", (0, 1)))
    assert "to which each value is rounded" in line(floats, "95%: ")
    assert "rounded" not in line(whole, "95%: ")


def test_what_a_choice_protects_by_can_be_checked_with_its_scale() -> None:
    two = dp.argmax("region", candidates=["a", "b"], k=2, mechanism="permute_and_flip")
    made = plan(two.alias("best"), spend="0.5")
    assert "the difference of two scores by at most 1" in line(made, "95%: ")
    assert "2 rounds that share the cost equally" in line(made, "1. permute-and-flip")
    assert "scale 4;" in line(made, "95%: ")  # 1 / (0.5 / 2)
    made = plan(dp.argmax("region", candidates=["a", "b"], k=2).alias("best"), spend="0.5")
    assert line(made, "1. noisy table").startswith(
        "1. noisy table, of discrete Laplace noise that is added once to every score: cost epsilon"
    )
    assert "scale 2;" in line(made, "95%: ")  # 1 / 0.5
    changed = plan(dp.median("age", (0, 9)), unit=dp.Rows("change-one"), spend="0.5")
    assert "the difference of two scores by at most 2" in line(changed, "95%: ")
    assert "scale 4;" in line(changed, "95%: ")


def test_shares_and_what_is_asked_for_are_shown() -> None:
    people = dp.Session(epsilon=1, delta="1e-6").protect(ROWS, dp.Rows())
    alone = dp.sum("age", (0, 1), weight=3, mechanism="discrete_laplace")
    made = people.agg(dp.count(), alone).plan(epsilon=1, delta="1e-7")
    text = made.explain(details=True)
    assert "cost epsilon 0.25, 25% of the plan" in text
    assert "cost epsilon 0.75, 75% of the plan" in text
    assert line(made, "cost: ") == (
        "cost: epsilon 1 (pure DP), of epsilon 1 and delta 1e-7 allowed"
    )


def test_a_public_count_is_said_to_be_exact() -> None:
    made = plan(dp.count(), unit=dp.Rows("change-one"))
    exact = "1. no noise, at no cost; public: no individual can change it"
    assert line(made, "1. no noise") == exact
    assert line(made, "len  exact")
    assert any("released exactly, without noise" in risk for risk in made.risks)
    assert line(made, "exact:") == "exact: no individual can change it"
    assert line(made, "cost: ").startswith("cost: epsilon 0 (pure DP), of epsilon 1 allowed")
