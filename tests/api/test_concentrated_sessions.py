"""Sessions with an (epsilon, delta) that add up rho."""

from __future__ import annotations

import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.accounting import RenyiAccountant
from dpframe.accounting.events import AnyEvent
from dpframe.charge import rho_within
from dpframe.ledger.amounts import pure_epsilon
from tests.api.test_session import FRAME, Source

WHOLE = dp.ApproxDP(1, "1e-8")
RHO = rho_within(WHOLE)


def opened(ledger: Path | None = None) -> dp.Session:
    return dp.Session(epsilon=1, delta="1e-8", composition="zcdp", ledger=ledger)


def count(session: dp.Session, frame: Any = FRAME) -> dp.PrivateQuery:
    return session.protect(frame, dp.Rows()).dp_count()


def spends_that_fit(session: dp.Session, **spend: Any) -> int:
    source = Source()
    query, done = count(session, source.frame), 0
    while True:
        try:
            query.collect(**spend)
        except dp.BudgetExceeded:
            assert source.reads == done
            return done
        done += 1


def test_more_small_spends_fit_than_in_sums() -> None:
    assert spends_that_fit(dp.Session(epsilon=1, delta="1e-8"), epsilon="0.01") == 100
    session = opened()
    assert spends_that_fit(session, epsilon="0.01") == RHO // Fraction(1, 20000) == 344
    assert session.spent == dp.ZCDP(Fraction(344, 20000))
    assert session.remaining == dp.ZCDP(RHO - Fraction(344, 20000))


def test_spends_of_rho_fit_as_well() -> None:
    session = opened()
    assert spends_that_fit(session, rho="0.001") == RHO // Fraction(1, 1000) == 17
    count(session).collect(rho=session.remaining.exact_rho)
    assert session.spent == dp.ZCDP(RHO)
    with pytest.raises(dp.BudgetExceeded, match="ask the data owner for more"):
        count(session).collect(rho="1e-30")


def test_one_large_spend_is_dearer_than_in_sums() -> None:
    session = opened()
    with pytest.raises(dp.BudgetExceeded) as refusal:
        count(session).collect(epsilon=1)
    assert str(refusal.value) == (
        "the plan costs rho 0.46211715726000976, which is rho 0.44491183926000976 too much\n"
        "  why: the budget of rho 0.017205318 (for epsilon 1 and delta 1e-8) has rho 0.017205318 "
        "left\n"
        "  instead: spend at most rho 0.017205318\n"
        "       or: spend epsilon 0.18550104042834908 and no delta"
    )
    assert session.spent == dp.ZCDP(0)
    count(session).collect(epsilon="0.18550104042834908")


@given(rho=st.fractions(Fraction(1, 10**9), 40, max_denominator=10**40))
def test_the_epsilon_that_is_said_to_fit_fits(rho: Fraction) -> None:
    epsilon = pure_epsilon(rho)
    asked = count(opened()).plan(epsilon=epsilon)
    assert asked.cost.main <= rho
    more = epsilon * Fraction(10**12 + 1, 10**12)
    assert more * more / 2 > rho


def test_amounts_are_of_rho_and_the_budget_is_what_was_given() -> None:
    session = opened()
    assert session.budget == WHOLE
    assert session.remaining == dp.ZCDP(RHO)
    plan = count(session).plan(epsilon="0.1", delta="1e-9")
    assert plan.requested == dp.ApproxDP("0.1", "1e-9")
    assert plan.cost == dp.ZCDP("0.005")
    assert plan.remaining == session.remaining
    release = count(session).release(epsilon="0.1")
    assert release.cost == session.spent == dp.ZCDP("0.005")
    row = session.history.row(0, named=True)
    row = {k: row[k] for k in ("epsilon", "delta", "rho", "status")}
    assert row == {"epsilon": None, "delta": 0.0, "rho": 0.005, "status": "released"}
    assert repr(session) == (
        "<Session: rho 0.0122053 of rho 0.0172053 (for epsilon 1, delta 1e-8, added up in rho) "
        "remains, kept in memory only>"
    )


def test_a_plan_says_what_it_satisfies_and_what_it_costs() -> None:
    text = count(opened()).explain(details=True, epsilon="0.1", delta="1e-9")
    assert text.endswith(
        "  budget\n"
        "    cost: rho 0.005 (zCDP), for a spend of epsilon 0.1 and delta 1e-9\n"
        "      the plan alone satisfies the spend; the session adds up rho, which implies its "
        "epsilon and delta as a whole\n"
        "    session: rho 0.0172053 before; rho 0.0122053 after"
    )
    by_rho = count(opened()).explain(details=True, rho="0.005")
    assert by_rho.endswith(
        "  budget\n"
        "    cost: rho 0.005 (zCDP)\n"
        "    session: rho 0.0172053 before; rho 0.0122053 after"
    )
    assert "it protects nobody" in count(opened()).explain(details=True, epsilon=11)


def test_fingerprints_tell_what_is_charged() -> None:
    plans = [
        count(dp.Session(epsilon=1, delta="1e-8")).plan(epsilon="0.1"),
        count(opened()).plan(epsilon="0.1"),
        count(opened()).plan(epsilon="0.2"),
    ]
    assert len({plan.fingerprint for plan in plans}) == 3
    assert count(opened()).plan(epsilon="0.1").fingerprint == plans[1].fingerprint


def test_an_accuracy_costs_the_least_rho_or_the_least_epsilon_beside_a_delta() -> None:
    session = opened()
    by_rho = count(session).plan(accuracy={"len": 50})
    assert isinstance(by_rho.requested, dp.ZCDP)
    assert by_rho.accuracy("len") <= 50
    by_epsilon = count(session).plan(accuracy={"len": 50}, delta="1e-9")
    assert by_epsilon.requested.slack == Fraction(1, 10**9)
    assert by_epsilon.accuracy("len") <= 50
    assert by_rho.cost.main < by_epsilon.cost.main
    count(session).collect(accuracy={"len": 50})
    assert session.spent == by_rho.cost
    with pytest.raises(dp.InvalidBudget, match="an amount or an accuracy"):
        count(session).plan(accuracy={"len": 50}, rho=1)


def test_public_counts_cost_nothing() -> None:
    session = opened()
    people = session.protect(FRAME, dp.Rows("change-one"))
    assert people.dp_count().collect(epsilon=50).item() == 3
    assert session.spent == dp.ZCDP(0)


def many_plans(session: dp.Session) -> list[tuple[dp.PrivateQuery, dict[str, Any]]]:
    frame = pl.DataFrame({"a": [1, 2, 3], "c": ["x", "y", "x"]})
    people = session.protect(frame, dp.Rows())
    groups = people.group_by("c", keys=["x", "y"])
    return [
        (people.dp_count(), {"epsilon": "0.02"}),
        (people.dp_count(), {"rho": "0.0004"}),
        (people.agg(dp.count(mechanism="discrete_gaussian")), {"epsilon": "0.1", "delta": "1e-9"}),
        (people.dp_argmax("c", candidates=["x", "y"]), {"epsilon": "0.03"}),
        (people.dp_median("a", (0, 99)), {"epsilon": "0.05"}),
        (groups.agg(dp.mean("a", (0, 9)), dp.std("a", (0, 9)).alias("s")), {"epsilon": "0.07"}),
        (
            people.agg(*(dp.sum("a", (0, i + 1)).alias(f"s{i}") for i in range(30))),
            {"epsilon": "0.2", "delta": "1e-9"},
        ),
        (people.dp_count(), {"accuracy": {"len": 90}}),
    ]


@given(order=st.lists(st.integers(0, 7), min_size=1, max_size=40))
def test_the_whole_stays_within_the_budget_as_an_accountant_sees_it(order: list[int]) -> None:
    """Whatever ran, its events are counted again by an accountant."""
    session = opened()
    queries, cost = many_plans(session), Fraction(0)
    events: tuple[AnyEvent, ...] = ()
    for i in order:
        query, spend = queries[i]
        plan = query.plan(**spend)
        if not session.remaining.covers(plan.cost):
            with pytest.raises(dp.BudgetExceeded):
                query.collect(**spend)
            continue
        query.collect(**spend)
        cost += plan.cost.main
        events += plan.events
    assert session.spent == dp.ZCDP(cost)
    accountant = RenyiAccountant(events)
    orders = 1.0 + np.geomspace(1e-2, 1e6, 200)
    assert np.all(accountant.curve(orders) <= float(cost) * orders * (1 + 1e-9))
    assert cost <= RHO
    assert accountant.epsilon(1e-8) <= 1 + 1e-9


def test_adaptive_spends_never_exceed_the_budget() -> None:
    """Each spend is chosen after the result before it."""
    session = opened()
    query = count(session)
    for _ in range(200):
        noisy = query.plan(rho="1e-7") and session.remaining.exact_rho
        if not noisy:
            break
        result = count(session, FRAME).collect(rho=min(noisy, Fraction(1, 10**4)))
        spend = Fraction(1 + abs(int(result.item())) % 7, 100)
        if session.remaining.covers(query.plan(epsilon=spend).cost):
            query.collect(epsilon=spend)
        else:
            with pytest.raises(dp.BudgetExceeded):
                query.collect(epsilon=spend)
    assert session.spent.exact_rho <= RHO
    assert session.spent + session.remaining == dp.ZCDP(RHO)


@pytest.mark.always
def test_threads_share_the_budget() -> None:
    session = opened()
    query, refused = count(session), []

    def spend() -> None:
        for _ in range(50):
            try:
                query.collect(epsilon="0.01")
            except dp.BudgetExceeded:
                refused.append(1)

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 400 - 344
    assert session.spent == dp.ZCDP(Fraction(344, 20000))


def test_a_file_keeps_what_was_spent(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    for _ in range(3):
        count(opened(path)).collect(epsilon="0.1")
    session = opened(path)
    assert session.budget == WHOLE
    assert session.spent == dp.ZCDP("0.015")
    assert session.remaining == dp.ZCDP(RHO - Fraction(15, 1000))
    with pytest.raises(dp.BudgetExceeded, match=r"or: spend epsilon 0\.0664126\d* and no delta"):
        count(session).collect(epsilon="0.1")


OTHERS: list[tuple[dict[str, Any], str]] = [
    ({"epsilon": 1, "delta": "1e-8"}, "opens it with epsilon 1 and delta 1e-8 in approximate DP"),
    (
        {"epsilon": 2, "delta": "1e-8", "composition": "zcdp"},
        "opens it with epsilon 2 and delta 1e-8",
    ),
    (
        {"epsilon": 1, "delta": "1e-7", "composition": "zcdp"},
        "opens it with epsilon 1 and delta 1e-7",
    ),
    ({"rho": RHO}, "opens it with rho 0.017205318 in zCDP"),
    ({"epsilon": 1}, "opens it with epsilon 1 in pure DP"),
]


@pytest.mark.parametrize(("other", "match"), OTHERS, ids=lambda value: str(value)[:40])
def test_the_same_name_has_one_budget_and_one_composition(
    tmp_path: Path, other: dict[str, Any], match: str
) -> None:
    path = tmp_path / "budget.db"
    opened(path)
    with pytest.raises(dp.LedgerError, match=match) as refusal:
        dp.Session(**other, ledger=path)
    assert 'opened with epsilon 1 and delta 1e-8 in approximate DP, composition="zcdp"' in str(
        refusal.value
    )
    second = tmp_path / "second.db"
    dp.Session(**other, ledger=second)
    with pytest.raises(dp.LedgerError, match='approximate DP, composition="zcdp"'):
        opened(second)


def refuse(build: Callable[[], object], match: str) -> None:
    with pytest.raises(dp.InvalidBudget, match=match):
        build()


def test_spends_in_no_measure_or_in_both_are_refused() -> None:
    query = count(opened())
    refuse(lambda: query.plan(), "the spend is empty; rho 0.017205318 remains")
    refuse(lambda: query.plan(epsilon=1, rho=1), "cannot be combined with epsilon")
    refuse(lambda: query.plan(rho=1, delta="1e-9"), "cannot be combined with delta")
    refuse(lambda: query.plan(epsilon=-1), "must not be negative")
