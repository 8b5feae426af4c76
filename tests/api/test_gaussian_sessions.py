"""Sessions with an (epsilon, delta) that add up mu squared."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpframe as dp
from dpframe.accounting.gaussian_noise import log_delta_normal
from dpframe.charge import mu_squared_within, rho_within
from dpframe.cli import main
from dpframe.core.exact import digits_up
from dpframe.kernel.trade_offs import pure_mu_squared
from dpframe.ledger.amounts import exact_amount, pure_epsilon_of_mu
from tests.api.test_session import FRAME, Source

WHOLE = dp.ApproxDP(1, "1e-8")
ROOM = mu_squared_within(WHOLE)
GIVEN: dict[str, Any] = {"epsilon": 1, "delta": "1e-8"}


def opened(ledger: Any = None, composition: Any = "gdp", name: str | None = None) -> dp.Session:
    return dp.Session(**GIVEN, composition=composition, ledger=ledger, name=name)


def count(session: dp.Session, frame: Any = FRAME, mechanism: Any = "auto") -> dp.PrivateQuery:
    return session.protect(frame, dp.Rows()).agg(dp.count(mechanism=mechanism).alias("n"))


def fitting(session: dp.Session, **spend: Any) -> int:
    """How many Gaussian counts come out before the session refuses, without reading data."""
    source, done = Source(), 0
    query = count(session, source.frame, "discrete_gaussian")
    while True:
        try:
            query.collect(**spend)
        except dp.BudgetExceeded:
            assert source.reads == done
            return done
        done += 1


def test_an_eighth_more_gaussian_noise_fits_than_through_rho() -> None:
    """123 and a bit fit by rho."""
    spend = {"rho": rho_within(WHOLE) / Fraction("123.9")}
    assert fitting(opened(composition="zcdp"), **spend) == 123
    session = opened()
    assert fitting(session, **spend) == 138
    assert session.remaining.main < session.spent.main / 138


def test_what_was_spent_together_is_within_the_budget() -> None:
    session = opened()
    fitting(session, rho="0.0005")
    assert isinstance(session.spent, dp.GDP)
    assert log_delta_normal(session.spent.mu, 1.0) <= -18.42068
    assert session.spent.exact_mu_squared <= ROOM == dp.GDP(ROOM).main
    assert log_delta_normal(float(ROOM * Fraction("1.000001")) ** 0.5, 1.0) > -18.420681


def test_amounts_are_of_mu_squared_and_the_budget_is_what_was_given() -> None:
    session = opened()
    assert session.budget == WHOLE
    assert session.remaining == dp.GDP(ROOM)
    plan = count(session).plan(epsilon="0.1", delta="1e-9")
    assert plan.requested == dp.ApproxDP("0.1", "1e-9")
    assert plan.cost == dp.GDP(digits_up(pure_mu_squared(Fraction(1, 10)), 14))
    release = count(session).release(epsilon="0.1")
    assert release.cost == session.spent == plan.cost
    amounts = session.history.select("epsilon", "delta", "rho", "status", "mu_squared")
    row = amounts.row(0, named=True)
    assert row == {
        "epsilon": None,
        "delta": 0.0,
        "rho": None,
        "status": "released",
        "mu_squared": float(plan.cost.main),
    }
    assert "added up in mu_squared) remains" in repr(session)
    text = count(session).explain(details=True, epsilon="0.1")
    assert "the session adds up mu_squared, which implies its epsilon and delta as a whole" in text
    read = dp.Plan.from_json(plan.to_json())
    assert (read.fingerprint, read.cost) == (plan.fingerprint, plan.cost)


def test_noise_is_that_of_other_sessions() -> None:
    frame = pl.LazyFrame(schema={"a": pl.Int64, "c": pl.Enum(["x", "y"])})
    plans = []
    for composition in ("sum", "zcdp", "gdp"):
        people = opened(composition=composition).protect(frame, dp.Rows(contributions=2))
        query = people.group_by("c").agg(
            dp.count().alias("n"),
            dp.mean("a", (0, 9)).alias("m"),
            dp.median("a", (0, 99)).alias("q"),
            dp.argmax("a", candidates=[1, 2, 3], k=2).alias("w"),
        )
        plans.append(query.plan(epsilon="0.5", delta="1e-9"))
    assert len({tuple(r.law for r in plan.releases) for plan in plans}) == 1
    assert len({plan.fingerprint for plan in plans}) == 3
    assert isinstance(plans[-1].cost, dp.GDP)
    assert sum(draw.cost.main for draw in plans[-1].draws) <= plans[-1].cost.main


def test_a_large_spend_is_refused_with_one_that_fits() -> None:
    session = opened()
    with pytest.raises(dp.BudgetExceeded) as refusal:
        count(session).collect(epsilon=1)
    fits = exact_amount(pure_epsilon_of_mu(ROOM))
    assert f"instead: spend epsilon {fits} and no delta" in str(refusal.value)
    count(session).collect(epsilon=fits)


@settings(max_examples=60, deadline=None)
@given(st.fractions(Fraction(1, 10**9), 100, max_denominator=10**12), st.integers(1, 4))
def test_the_epsilon_that_is_said_to_fit_fits(room: Fraction, parts: int) -> None:
    epsilon = pure_epsilon_of_mu(room)
    assert parts * pure_mu_squared(epsilon / parts) <= room
    assert pure_mu_squared(epsilon * Fraction(1001, 1000)) > room


def test_groups_that_are_discovered_have_no_mu() -> None:
    frame = pl.LazyFrame(schema={"a": pl.String})
    query = opened().protect(frame, dp.Rows()).group_by("a").agg(dp.count())
    with pytest.raises(dp.UnsupportedOperation, match="Gaussian differential privacy is not known"):
        query.plan(epsilon="0.1", delta="1e-9")


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (
            lambda: dp.Session(epsilon=1, composition="gdp"),
            "mu gives no guarantee with epsilon alone",
        ),
        (lambda: dp.Session(rho=1, composition="gdp"), "added up in rho already"),
        (lambda: dp.Session(dp.GDP(1)), "does not take an amount of mu squared"),
        (lambda: dp.GDP(-1), "mu_squared must not be negative"),
    ],
)
def test_what_makes_no_sense_is_refused(make: Any, match: str) -> None:
    with pytest.raises(dp.InvalidBudget, match=match):
        make()


def test_a_ledger_keeps_the_room_and_the_composition(place: Path | str) -> None:
    count(opened(place)).collect(epsilon="0.1")
    again = opened(place)
    assert again.spent == dp.GDP(digits_up(pure_mu_squared(Fraction(1, 10)), 14))
    assert again.budget == WHOLE
    for composition in ("sum", "zcdp"):
        with pytest.raises(dp.LedgerError, match='approximate DP, composition="gdp"'):
            opened(place, composition)
    opened(place, "zcdp", "other")
    with pytest.raises(dp.LedgerError, match='approximate DP, composition="zcdp"'):
        opened(place, name="other")


def test_a_ledger_is_spent_to_the_end_and_no_further(place: Path | str) -> None:
    """By several sessions, each of which would fit by itself."""
    spend = {"rho": rho_within(WHOLE) / 3}
    sessions = [opened(place) for _ in range(3)]
    done = [fitting(session, **spend) for session in sessions]
    assert sum(done) == fitting(opened(), **spend) > 0
    assert len(sessions[0].history) == sum(done)
    assert main(["ledger", "verify", "--ledger", str(place)]) == 0


def test_a_grant_adds_what_the_new_whole_implies(
    place: Path | str, capsys: pytest.CaptureFixture[str]
) -> None:
    session = opened(place)
    where = ["--ledger", str(place), "--name", "default"]
    grant = ["ledger", "grant", *where, "--epsilon", "0.5", "--by", "me", "--reason", "more"]
    assert main(grant) == 0
    assert session.remaining == dp.GDP(mu_squared_within(dp.ApproxDP("1.5", "1e-8")))
    capsys.readouterr()
    assert main(["ledger", "show", *where]) == 0
    assert "approximate DP through Gaussian DP" in capsys.readouterr().out


def test_parts_share_the_room() -> None:
    session = opened()
    people = session.protect(pl.DataFrame({"s": ["a", "b", "a"]}), dp.Rows())
    for part in session.partition(people, "s", keys=["a", "b"]).values():
        part.dp_count().collect(epsilon="0.1")
    assert session.spent == dp.GDP(digits_up(pure_mu_squared(Fraction(1, 10)), 14))
