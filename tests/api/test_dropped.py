"""Shares of rows that limits drop and bounds clamp, beside a result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpframe as dp
from dpframe.api.limits import with_dropped
from tests.laws.individuals import check_limits
from tests.laws.neighbours import Pair, query_of

NAN = float("nan")
DATA = pl.DataFrame(
    {
        "who": [n // 4 for n in range(20_000)],
        "city": ["AB"[n >= 12_000] for n in range(20_000)],
        "x": [n % 10 for n in range(20_000)],
        "f": [[None, NAN, 0.5, 3.0][n % 4] for n in range(20_000)],
    }
)


def people(data: pl.DataFrame = DATA) -> dp.PrivateFrame:
    return dp.Session(epsilon=10_000, delta=1e-6).protect(data, unit="who")


def by_city(frame: dp.PrivateFrame) -> Any:
    return frame.group_by("city", keys=["B", "A"])


ASKED: dict[str, tuple[Callable[[dp.PrivateFrame], dp.PrivateQuery], list[float]]] = {
    "a limit": (lambda f: f.limit_rows(1).dp_count(), [0.75]),
    "a limit in groups": (lambda f: by_city(f.limit_rows(2)).agg(dp.count()), [0.5, 0.5]),
    "no rows are dropped": (lambda f: f.limit_rows(4).dp_count(), [0.0]),
    "bounds": (lambda f: f.limit_rows(4).dp_sum("x", (0, 4)), [0.5]),
    "two bounds of one column": (
        lambda f: f.limit_rows(4).agg(s=dp.sum("x", (0, 4)), m=dp.mean("x", (2, 9))),
        [0.7],
    ),
    "null and NaN are not clamped": (lambda f: f.limit_rows(4).dp_sum("f", (0, 1)), [0.25]),
    "a norm": (lambda f: by_city(f.limit_norm(1)).agg(dp.count()), [0.75, 0.75]),
    "individuals": (lambda f: f.agg(pl.col("who").dp_n_unique()), [0.0]),
    "a table": (lambda f: f.limit_rows(2).dp_histogram("x", [0, 5, 10]), [0.5, 0.5]),
    "a filter is no limit": (
        lambda f: f.filter(pl.col("x") < 5).limit_rows(4).dp_sum("x", (0, 4)),
        [0.0],
    ),
}


@pytest.mark.parametrize("kind", ASKED)
def test_shares_are_those_of_the_rows(kind: str) -> None:
    asked, shares = ASKED[kind]
    found = asked(people()).collect(epsilon=500, report_dropped=True)
    assert found.columns[-1] == "dropped"
    assert found["dropped"].to_list() == pytest.approx(shares, abs=0.02)


def test_groups_that_are_found_have_the_share_of_all_rows() -> None:
    asked = people().limit_groups(1, by="city").limit_rows(3).group_by("city").agg(dp.count())
    found = asked.collect(epsilon=500, delta=1e-8, report_dropped=True)
    assert found["city"].to_list() == ["A", "B"]
    assert found["dropped"].to_list() == pytest.approx([0.25, 0.25], abs=0.02)


def test_rows_by_themselves() -> None:
    frame = dp.Session(epsilon=1000).protect(DATA, dp.Rows())
    asked = by_city(frame).agg(pl.col("x").dp_sum((0, 4)))
    found = asked.collect(epsilon=100, report_dropped=True, interval=0.95)
    assert found.columns == ["city", "x", "x_low", "x_high", "dropped"]
    assert found["dropped"].to_list() == pytest.approx([0.5, 0.5], abs=0.02)


few = st.dictionaries(st.integers(0, 3), st.integers(1, 6), max_size=3)


def rows(many: dict[int, int]) -> pl.DataFrame:
    found = [(who, n) for who, number in many.items() for n in range(number)]
    return pl.DataFrame(
        {
            "who": [who for who, _ in found],
            "city": ["AB"[n % 2] for _, n in found],
            "x": [n for _, n in found],
            "f": [[None, NAN, 0.5, 3.0][n % 4] for _, n in found],
        },
        schema=DATA.schema,
    )


@pytest.mark.parametrize("kind", ASKED)
@given(others=few, mine=st.integers(1, 30), salt=st.integers(0, 2**32))
@settings(max_examples=5)
def test_neighbours_move_both_counts_within_what_is_declared(
    kind: str, others: dict[int, int], mine: int, salt: int
) -> None:
    asked = query_of(ASKED[kind][0](people(DATA.clear())))
    pair = Pair(rows(others), rows({**others, 9: mine}))
    for query in with_dropped(asked).queries[1:]:
        check_limits(query, pair, salt)


def test_the_plan_shows_both_counts_and_what_they_cost() -> None:
    frame = people()
    asked = frame.limit_rows(2).dp_count()
    plan = asked.plan(epsilon=1, report_dropped=True)
    assert {"rows as they are", "rows before limits"} <= {o.name for o in plan.outputs}
    assert plan.cost == dp.PureDP(1) or plan.cost.covers(dp.ApproxDP(1, 0))
    last = next(r for r in plan.releases if "rows before limits" in r.users)
    assert last.sensitivity.l1 == 20
    released = asked.release(epsilon=1, report_dropped=True)
    assert released.plan.fingerprint == plan.fingerprint
    assert frame.session is not None
    assert frame.session.history.height == 1


def test_plans_say_what_the_share_tells() -> None:
    asked = (
        people().limit_rows(2).agg(dp.sum("x", (0, 4)), dp.sum("x", (0, 4), per="unit").alias("t"))
    )
    alone, told = (asked.plan(epsilon=1, report_dropped=also) for also in (False, True))
    assert any("does not show how many rows" in line for line in alone.warnings)
    of_limit = [line for line in told.warnings if "limit_rows(2)" in line]
    assert of_limit
    assert all("the column dropped is the noisy share" in line for line in of_limit)
    of_values = [line for line in told.warnings if "clamped to bounds" in line]
    (of_rows,) = [line for line in of_values if "individual's total" not in line]
    assert "the column dropped is the noisy share" in of_rows
    (of_totals,) = [line for line in of_values if "individual's total" in line]
    assert "does not show how many values" in of_totals


def test_what_is_refused() -> None:
    frame = people()
    named = frame.limit_rows(2).agg(dropped=dp.count())
    with pytest.raises(dp.UnsupportedOperation, match="alias"):
        named.plan(epsilon=1, report_dropped=True)
    with pytest.raises(dp.UnboundedSensitivity):
        frame.dp_count().plan(epsilon=1, report_dropped=True, limits=None)
