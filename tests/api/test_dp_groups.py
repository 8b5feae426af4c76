"""`group_by(...).dp_groups()`: which groups there are, in rounds, as one plan and one charge."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.errors import BudgetExceeded, DPFrameError, NoGroups
from dpframe.lower import execution
from dpframe.release.draws import KeyChoice

APPROX: dict[str, Any] = {"epsilon": 1, "delta": "1e-6"}
SURE: dict[str, Any] = {"epsilon": 10**5, "delta": "1e-3"}
"""With hardly any noise: groups of two or three appear, those of one do not."""
SCHEMA: dict[str, Any] = {
    "who": pl.Int64,
    "g": pl.String,
    "c": pl.Categorical,
    "d": pl.Date,
    "b": pl.Boolean,
    "n": pl.Int16,
    "x": pl.Float64,
}


def table() -> pl.DataFrame:
    """One group of 400 people, fifty of 30 people, null among them, and some of one."""
    rows: list[tuple[Any, ...]] = []
    for who in range(400):
        rows.append((who, "all", "z", date(2026, 1, 1), True, 0, 0.5))
        own = who % 50
        for group in (own, (own * 7 + 1) % 50, (own * 3 + 2) % 50):
            key = f"g{group:02}" if group else None
            day = date(2026, 1, 1 + group // 2)
            rows.append((who, key, f"c{group}", day, group % 2 == 0, group, 1.0))
    rows += [(1000 + i, f"alone{i}", "q", None, None, None, 2.0) for i in range(5)]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def visits(data: pl.DataFrame | None = None, unit: Any = "who", **session: Any) -> Any:
    frame = pl.LazyFrame(schema=SCHEMA) if data is None else data
    budget = session or {"epsilon": 10**6, "delta": "1e-1"}
    return dp.Session(**budget).protect(frame, unit, name="visits")


def refused(make: Callable[[], Any]) -> str:
    with pytest.raises(DPFrameError) as caught:
        make()
    return str(caught.value)


def test_what_comes_out_are_the_keys_in_their_order() -> None:
    grouped = visits(table()).group_by("g")
    found = grouped.dp_groups().collect(**SURE)
    assert found.schema == {"g": pl.String}
    shared = [None, "all", *(f"g{i:02}" for i in range(1, 50))]
    assert found["g"].to_list() == shared
    counted = visits(table()).limit_groups(4, by="g").group_by("g", keys=found)
    assert counted.agg(n=dp.n_unique("who")).collect(epsilon=1000).height == 51


@pytest.mark.parametrize("rounds", [1, 2, 3, 4])
def test_any_number_of_rounds_finds_them(rounds: int) -> None:
    grouped = visits(table()).group_by("c", (pl.col("n") % 5).alias("m"))
    found = grouped.dp_groups(rounds=rounds).collect(**SURE)
    assert found.n_unique() == found.height
    exact = table().group_by("c", (pl.col("n") % 5).alias("m")).agg(pl.col("who").n_unique())
    sure = exact.filter(pl.col("who") > 1)
    assert set(found.cast({"c": pl.String}).rows()) == set(
        sure.select(pl.col("c").cast(pl.String), "m").rows()
    )


def test_each_round_weighs_what_was_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the sums that come to each round's choice, here of two, the largest first."""
    seen = list[list[int]]()

    def largest_two(self: KeyChoice, counts: Any) -> Any:
        seen.append(sorted(counts.tolist()))
        least = np.sort(counts)[-2:].min() if counts.size else 0
        return counts >= least, None

    monkeypatch.setattr(KeyChoice, "keep", largest_two)
    rows = [(who, g) for who in range(9) for g in "abcdef"[: 1 + who // 2]]
    data = pl.DataFrame(rows, schema={"who": pl.Int64, "g": pl.String}, orient="row")
    found = visits(data).group_by("g").dp_groups(rounds=3).collect(**APPROX)
    assert found["g"].to_list() == ["a", "b", "c", "d", "e"]
    assert [len(sums) for sums in seen] == [5, 3, 1]
    first = sum(int((2**24 // (1 + who // 2)) ** 0.5) for who in range(9))
    assert seen[0][-1] == first
    assert seen[1][-1] == sum(int((2**24 // (who // 2 - 1)) ** 0.5) for who in range(4, 9))
    assert seen[2] == [2**12]  # one person, for whom one group is left


def test_one_plan_says_the_rounds_and_one_charge_pays_for_them(tmp_path: Path) -> None:
    session = dp.Session(epsilon=2, delta="2e-6", ledger=str(tmp_path / "ledger"))
    query = session.protect(table(), "who", name="visits").group_by("g").dp_groups(rounds=3)
    plan = query.plan(**APPROX)
    (release,) = plan.releases
    law: Any = release.law
    assert release.mechanism == "weighed_rounds"
    assert law.shares == (1, 8, 64)
    assert [rule.slack for rule in law.in_rounds] == [Fraction(1, 6 * 10**6)] * 3
    told = plan.explain(details=True)
    assert "in 3 rounds, by noisy sums of the weights of individuals" in told
    assert "1.4% of the cost of noise" in told
    assert 'leave out groups of col("g") that rounds before found' in told
    assert "numbers are too small" not in told
    again = dp.Plan.from_json(plan.to_json())
    assert again.fingerprint == plan.fingerprint
    assert again.explain(details=True) == told
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        query.collect(**APPROX)
    assert session.spent == dp.ApproxDP(1, "1e-6")
    with pytest.raises(BudgetExceeded):
        query.collect(epsilon="1.1", delta="1e-6")
    (row,) = session.history.rows(named=True)
    assert row["status"] == "released"


def test_plans_of_other_rounds_are_other_plans() -> None:
    """An approval of one is none of the other."""
    plans = [visits().group_by("g").dp_groups(rounds=n).plan(**APPROX) for n in (1, 2, 3)]
    assert len({plan.fingerprint for plan in plans}) == 3
    assert plans[1].steps[0].definition["rounds"] == 2  # type: ignore[index,call-overload]


def test_accuracy_is_the_size_of_groups_that_appear() -> None:
    query = visits().group_by("g").dp_groups()
    plan = query.plan(**APPROX)
    (release,) = plan.releases
    law: Any = release.law
    sure = law.in_rounds[-1].size_at(Fraction(19, 20))
    assert plan.accuracy("groups") == release.accuracy() == sure
    assert f"one of {sure} in 95% of cases" in plan.explain(details=True)
    bought = query.plan(accuracy={"groups": 100}, delta="1e-6")
    assert 80 < bought.accuracy("groups") <= 100
    assert bought.cost.main < 1
    assert "may well be missing" in plan.explain(size=20)


def test_rounds_find_smaller_groups_than_numbers_do() -> None:
    rng = np.random.default_rng(5)
    upto = np.cumsum(1 / np.arange(1, 3001) ** 1.2)
    who = np.repeat(np.arange(6000), 12)
    group = np.searchsorted(upto / upto[-1], rng.random(who.size))
    data = pl.DataFrame({"who": who, "g": group})
    grouped = visits(data).group_by("g")
    one, two = (grouped.dp_groups(rounds=n).collect(**APPROX).height for n in (1, 2))
    assert two > one * 1.1


def test_without_rounds_where_limits_or_rows_say_in_how_many_groups() -> None:
    for frame in (
        visits().limit_groups(3, by="g"),
        visits().limit_rows(3),
        visits().limit_norm(2),
        visits(unit=dp.Rows()),
    ):
        plan = frame.group_by("g").dp_groups().plan(**APPROX)
        (release,) = plan.releases
        assert release.mechanism != "weighed_rounds"
        assert release.cost.main == plan.cost.main
        (one,) = frame.group_by("g").dp_groups(rounds=1).plan(**APPROX).releases
        assert one == release
        text = refused(lambda frame=frame: frame.group_by("g").dp_groups(rounds=2))
        assert "dp_groups()" in text
        assert "limit_groups" in text
    data = table().filter(pl.col("g") != "all")
    rows = visits(data, unit=dp.Rows()).group_by("g").dp_groups().collect(**SURE)
    assert rows["g"].to_list() == [f"g{i:02}" for i in range(1, 50)]
    floats = visits().group_by(r=pl.col("x").floor().cast(pl.Int64)).dp_groups()
    assert "limit_rows" in refused(lambda: floats.plan(**APPROX, limits=None))
    assert "limit_rows(n)" in floats.explain(details=True, **APPROX)  # found


def test_what_makes_no_sense_is_refused_in_words() -> None:
    grouped = visits(table()).group_by("g")
    for rounds in (0, 5, -1, True, "2", 2.0):
        text = refused(lambda rounds=rounds: grouped.dp_groups(rounds=rounds))
        assert "1 to 4 rounds" in text
    assert "already lists the groups" in refused(
        lambda: visits().group_by("g", keys=["a"]).dp_groups()
    )
    query = grouped.dp_groups()
    assert "interval" in refused(lambda: query.collect(**SURE, interval="0.9"))
    assert "no number" in refused(lambda: query.collect(**SURE, report_dropped=True))
    assert "no number" in refused(lambda: query.simulate(pl.DataFrame(schema=SCHEMA), **SURE))
    assert "rounds=1" in refused(lambda: query.audit(**SURE, runs=100))
    assert "delta" in refused(lambda: query.plan(epsilon=1))
    concentrated = visits(epsilon=10, delta="1e-3", composition="zcdp").group_by("g").dp_groups()
    assert "leave composition= out" in refused(lambda: concentrated.plan(**APPROX))


def test_zcdp_pays_in_rho() -> None:
    plan = visits(rho=5, delta="1e-3").group_by("g").dp_groups().plan(rho="0.1", delta="1e-6")
    assert plan.cost == dp.ZCDP("0.1", "1e-6")
    (release,) = plan.releases
    assert release.law.rho_cost(release.exposure) == Fraction("0.1")


def test_nothing_to_find_is_told() -> None:
    with pytest.warns(NoGroups, match="no group of"):
        found = visits(table().head(0)).group_by("g").dp_groups().collect(**APPROX)
    assert found.height == 0


def test_several_queries_share_one_plan() -> None:
    session = dp.Session(epsilon=10**6, delta="0.1")
    frame = session.protect(table(), "who", name="visits")
    by_g, by_b = frame.group_by("g").dp_groups(), frame.group_by("b", "d").dp_groups(rounds=3)
    count = frame.limit_rows(4).dp_count()
    plan = session.plan([by_g, count], **APPROX)
    shares = {release.name: release.cost.main for release in plan.releases}
    assert shares == {"g": Fraction(1, 2), "len": Fraction(1, 2)}
    assert dp.Plan.from_json(plan.to_json()).fingerprint == plan.fingerprint
    found = session.collect([by_g, count, by_b, by_g], epsilon=10**5, delta="1e-3")
    assert found[0].equals(found[3])
    assert found[0].height == 51
    assert found[2].columns == ["b", "d"]
    assert found[2].n_unique() == found[2].height > 20
    assert session.spent.main <= 10**5


def test_a_key_that_is_called_groups_keeps_its_name() -> None:
    query = visits(table().rename({"g": "groups"})).group_by("groups").dp_groups()
    assert [output.name for output in query.plan(**APPROX).outputs] == ["groups_"]
    assert query.collect(**SURE).columns == ["groups"]


def test_results_are_kept_and_handed_out_again() -> None:
    session = dp.Session(epsilon=10**6, delta="1e-1", keep_releases=True)
    query = session.protect(table(), "who", name="visits").group_by("g", "b").dp_groups()
    first = query.collect(**SURE, reuse="same")
    spent = session.spent
    assert query.collect(**SURE, reuse="same").equals(first)
    assert session.spent == spent


def test_people_in_windows_are_found_in_rounds() -> None:
    month = dp.Identifier("who", window="1mo", time="d")
    query = visits(table(), month).group_by("g").dp_groups(rounds=3)
    assert query.plan(**APPROX).releases[0].mechanism == "weighed_rounds"
    assert "all" in query.collect(**SURE)["g"].to_list()


def test_parts_pay_for_themselves() -> None:
    session = dp.Session(epsilon=10**6, delta="1e-1")
    frame = session.protect(table(), "who", name="visits")
    found = [
        part.group_by("g").dp_groups().collect(**SURE).height
        for part in session.partition(frame.limit_groups(1, by="b"), "b", [True, False]).values()
    ]
    assert min(found) > 3


BY: dict[str, list[Any]] = {
    "text": ["g"],
    "two": ["g", "b"],
    "dates": ["d"],
    "small": ["n"],
    "computed": [(pl.col("n") // 3).alias("third"), pl.col("d").dt.weekday().alias("day")],
}


@pytest.mark.parametrize("place", ["lowered", "chosen"])
def test_a_failure_in_a_later_round_is_charged_once(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, session = [0], dp.Session(epsilon=10, delta="1e-3")
    query = session.protect(table(), "who").group_by("g").dp_groups()
    of, name = (execution, "without") if place == "lowered" else (KeyChoice, "keep")
    before: Any = getattr(of, name)

    def failing(*given: Any) -> Any:
        calls[0] += 1
        if place == "lowered" or calls[0] == 2:
            raise ZeroDivisionError
        return before(*given)

    monkeypatch.setattr(of, name, failing)
    assert "after it was charged" in refused(lambda: query.collect(**APPROX))
    assert session.spent == dp.ApproxDP(1, "1e-6")


def test_keys_come_sorted_whatever_round_found_them() -> None:
    keys = pl.DataFrame({"a": ["b", None, "a", "b"], "n": [2, 1, 3, 1]})
    assert keys[execution.order_of(keys)].rows() == [(None, 1), ("a", 3), ("b", 1), ("b", 2)]


def test_an_audit_of_one_round_moves_weights_as_far_as_they_may() -> None:
    """In parts of weights, which its sensitivity is in as well."""
    found = visits().group_by("g").dp_groups(rounds=1).audit(epsilon=1, delta="0.2", runs=100)
    ((_, _, l2),) = found.reach.rows()
    assert 0.99 < l2 <= 1


def test_plans_speak_of_no_numbers_where_there_are_none() -> None:
    grouped = visits().group_by("g")
    assert "sums and counts" not in grouped.dp_groups().explain(details=True, **APPROX)
    weighed = visits().limit_norm(1).group_by("g")
    assert "sums and counts" not in weighed.dp_groups().explain(details=True, **APPROX)
    numbers = weighed.agg(dp.n_unique("who").alias("n")).explain(details=True, **APPROX)
    assert "sums and counts towards 0" in numbers
