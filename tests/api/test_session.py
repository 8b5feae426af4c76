"""Budgets of sessions: exact, checked before data is read, and charged whatever happens then."""

from __future__ import annotations

import copy
import os
import pickle
import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.io.plugins import register_io_source

import dpframe as dp
from dpframe import lower, runner
from dpframe.api.frame import rows_of
from dpframe.api.payer import payer_of

FRAME = pl.DataFrame({"age": [1, 2, 3], "name": ["a", "b", "a"]})


class Source:
    """A frame that counts how often it is read, and may fail when it is."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.reads = 0
        self.error = error
        self.frame = register_io_source(self._read, schema=FRAME.schema)

    def _read(
        self,
        columns: list[str] | None,
        predicate: pl.Expr | None,
        rows: int | None,
        size: int | None,
    ) -> Iterator[pl.DataFrame]:
        self.reads += 1
        if self.error is not None:
            raise self.error
        made = FRAME if predicate is None else FRAME.filter(predicate)
        yield made if columns is None else made.select(columns)


def test_ten_spends_of_a_tenth_fit_and_the_eleventh_is_refused() -> None:
    source = Source()
    session = dp.Session(epsilon=1.0)
    query = session.protect(source.frame, dp.Rows()).dp_count()
    for _ in range(10):
        query.collect(epsilon=0.1)
    assert session.spent == dp.PureDP(1) == session.budget
    assert session.remaining == dp.PureDP(0)
    assert source.reads == 10
    with pytest.raises(
        dp.BudgetExceeded, match="the budget of epsilon 1 has epsilon 0 left"
    ) as refusal:
        query.collect(epsilon=0.1)
    assert "ask the data owner for more budget" in str(refusal.value)
    with pytest.raises(dp.BudgetExceeded):
        query.collect(epsilon="1e-12")
    assert source.reads == 10
    assert session.history.height == 10
    assert session.spent == dp.PureDP(1)


spends = st.lists(
    st.one_of(
        st.decimals("0.001", "0.6", places=3),
        st.fractions(Fraction(1, 97), Fraction(1, 2), max_denominator=97),
        st.sampled_from([0.1, 0.3, 1 / 3, "0.25", 1]),
    ),
    max_size=8,
)


@given(spends=spends)
def test_what_is_spent_is_the_exact_sum_of_what_fits(spends: list[Any]) -> None:
    session = dp.Session(epsilon=1)
    query = session.protect(FRAME, dp.Rows()).dp_count()
    total = Fraction(0)
    for spend in spends:
        amount = Fraction(str(spend))
        if total + amount > 1:
            with pytest.raises(dp.BudgetExceeded):
                query.collect(epsilon=spend)
            continue
        query.collect(epsilon=spend)
        total += amount
    assert session.spent == dp.PureDP(total)
    assert session.spent + session.remaining == session.budget


@pytest.mark.parametrize("spend", [0.3, "0.3", Decimal("0.3"), Fraction(3, 10)])
def test_a_spend_may_be_any_kind_of_number(spend: Any) -> None:
    session = dp.Session(epsilon=0.3)
    session.protect(FRAME, dp.Rows()).dp_count().collect(epsilon=spend)
    assert session.remaining == dp.PureDP(0)


@pytest.mark.parametrize(
    ("session", "spend", "cost"),
    [
        ({"epsilon": 1}, {"epsilon": "0.5"}, dp.PureDP("0.5")),
        ({"epsilon": 1, "delta": "1e-6"}, {"epsilon": "0.5"}, dp.ApproxDP("0.5", 0)),
        ({"epsilon": 1, "delta": "1e-6"}, {"epsilon": 1, "delta": "1e-7"}, dp.ApproxDP(1, 0)),
        ({"rho": 1}, {"rho": "0.5"}, dp.ZCDP("0.5")),
        ({"rho": 1, "delta": "1e-6"}, {"rho": "0.5", "delta": "1e-7"}, dp.ZCDP("0.5")),
        ({"budget": dp.ApproxDP(1, "1e-6")}, {"epsilon": 1}, dp.ApproxDP(1, 0)),
    ],
)
def test_a_plan_charges_what_it_uses_in_the_measure_of_its_session(
    session: Any, spend: Any, cost: Any
) -> None:
    opened = dp.Session(**session)
    opened.protect(FRAME, dp.Rows()).dp_count().collect(**spend)
    assert opened.spent == cost
    assert opened.remaining == opened.budget - cost


def test_a_delta_is_charged_where_it_is_used() -> None:
    session = dp.Session(epsilon=1, delta="1e-6")
    people = session.protect(FRAME, dp.Rows())
    query = people.agg(dp.count(mechanism="discrete_gaussian"), dp.sum("age", (0, 9)))
    query.collect(epsilon="0.5", delta="1e-7")
    assert session.spent == dp.ApproxDP("0.5", "1e-7")
    with pytest.raises(dp.BudgetExceeded, match="delta"):
        query.collect(epsilon="0.1", delta="1e-6")
    assert session.remaining == dp.ApproxDP("0.5", "9e-7")


def test_what_is_public_costs_nothing() -> None:
    session = dp.Session(epsilon=1)
    people = session.protect(FRAME, dp.Rows("change-one"))
    assert people.dp_count().collect(epsilon=1).item() == 3
    assert session.spent == dp.PureDP(0)
    assert session.history["epsilon"].to_list() == [0.0]


def test_history_says_what_was_charged_and_how_it_ended() -> None:
    session = dp.Session(epsilon=2)
    query = session.protect(FRAME, dp.Rows()).dp_count()
    assert session.history.is_empty()
    before = datetime.now(UTC)
    query.collect(epsilon=0.5)
    broken = session.protect(Source(ValueError("x")).frame, dp.Rows()).dp_count()
    with pytest.raises(dp.EngineError):
        broken.collect(epsilon=1)
    history = session.history
    assert dict(history.schema) == {
        "time": pl.Datetime("us", "UTC"),
        "fingerprint": pl.String,
        "epsilon": pl.Float64,
        "delta": pl.Float64,
        "rho": pl.Float64,
        "status": pl.String,
        "user": pl.String,
        "host": pl.String,
        "process": pl.Int64,
        "job": pl.String,
        "run": pl.String,
    }
    assert history.columns[:6] == ["time", "fingerprint", "epsilon", "delta", "rho", "status"]
    assert set(history["process"]) == {os.getpid()}
    assert set(history["host"]) == {socket.gethostname()}
    assert history["epsilon"].to_list() == [0.5, 1.0]
    assert history["delta"].to_list() == [0.0, 0.0]
    assert history["rho"].to_list() == [None, None]
    assert history["status"].to_list() == ["released", "failed"]
    assert history["fingerprint"][0] == query.plan(epsilon=0.5).fingerprint
    assert all(timedelta(0) <= t - before < timedelta(minutes=1) for t in history["time"])
    zcdp = dp.Session(rho=1)
    zcdp.protect(FRAME, dp.Rows()).dp_count().collect(rho=0.25)
    assert zcdp.history.select("epsilon", "rho").rows() == [(None, 0.25)]


def test_planning_charges_and_reads_nothing() -> None:
    source = Source()
    session = dp.Session(epsilon=1)
    people = session.protect(source.frame, dp.Rows())
    query = people.filter(pl.col("age") > 1).group_by("name", keys=["a"]).agg(dp.count())
    for _ in range(3):
        query.plan(epsilon=1)
        query.explain(details=True, epsilon=0.5, format="markdown")
        session.plan(query, epsilon=100).accuracy("len")
        repr(query), people.explain_unit(), people.schema
    assert source.reads == 0
    assert session.history.is_empty()


def test_each_collect_reads_once() -> None:
    source = Source()
    people = dp.Session(epsilon=9).protect(source.frame, dp.Rows())
    people.agg(dp.count(), dp.sum("age", (0, 9)).alias("sum"), dp.mean("age", (0, 9))).collect(
        epsilon=1
    )
    assert source.reads == 1


# -- failures ---------------------------------------------------------------------------------


def test_a_failed_rehearsal_charges_and_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise dp.UnsupportedOperation("not lowered")

    source = Source()
    session = dp.Session(epsilon=1)
    query = session.protect(source.frame, dp.Rows()).dp_count()
    monkeypatch.setattr(lower.Execution, "rehearse", refused)
    with pytest.raises(dp.UnsupportedOperation, match="not lowered"):
        query.collect(epsilon=0.5)
    assert session.history.is_empty()
    assert session.spent == dp.PureDP(0)
    assert source.reads == 0


def test_an_engine_that_refuses_the_query_is_found_before_the_charge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(*_: object) -> None:
        raise pl.exceptions.ComputeError("internal words")

    source = Source()
    session = dp.Session(epsilon=1)
    query = session.protect(source.frame, dp.Rows()).dp_count()
    monkeypatch.setattr(lower.execution, "lower_query", refused)
    with pytest.raises(dp.UnsupportedOperation, match="nothing was charged") as caught:
        query.collect(epsilon=0.5)
    assert "internal words" not in str(caught.value)
    assert session.history.is_empty()


@pytest.mark.parametrize(
    "error", [ValueError("row 918273"), pl.exceptions.ComputeError("row 918273"), MemoryError()]
)
def test_a_failed_run_keeps_its_charge_and_says_nothing_of_the_data(error: Exception) -> None:
    session = dp.Session(epsilon=1)
    query = session.protect(Source(error).frame, dp.Rows()).dp_count()
    with pytest.raises(dp.EngineError) as caught:
        query.collect(epsilon=0.5)
    found: BaseException | None = caught.value
    assert found is not None
    assert found.__cause__ is None
    assert found.__context__ is None
    assert "918273" not in f"{found} {found!r} {found.args} {vars(found)}"
    assert session.spent == dp.PureDP("0.5")
    assert session.history["status"].to_list() == ["failed"]
    query_again = session.protect(FRAME, dp.Rows()).dp_count()
    query_again.collect(epsilon=0.5)
    assert session.history["status"].to_list() == ["failed", "released"]


@pytest.mark.parametrize("kind", [RuntimeError, MemoryError, KeyboardInterrupt, SystemExit])
def test_a_failure_after_the_run_keeps_its_charge(
    monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    def broken(*_: object) -> None:
        raise kind("42 people")

    session = dp.Session(epsilon=1)
    query = session.protect(FRAME, dp.Rows()).dp_count()
    monkeypatch.setattr(runner, "draw", broken)
    expected = dp.EngineError if issubclass(kind, Exception) else kind
    with pytest.raises(expected) as caught:
        query.collect(epsilon=0.5)
    assert "42" not in str(caught.value)
    assert caught.value.__context__ is None
    assert session.history["status"].to_list() == ["failed"]
    assert session.spent == dp.PureDP("0.5")


# -- sessions cannot be got around ------------------------------------------------------------


def test_threads_never_spend_more_than_there_is() -> None:
    session = dp.Session(epsilon=1)
    query = session.protect(FRAME, dp.Rows()).dp_count()
    refused: list[dp.BudgetExceeded] = []

    def spend() -> None:
        for _ in range(5):
            try:
                query.collect(epsilon="0.1")
            except dp.BudgetExceeded as error:
                refused.append(error)

    threads = [threading.Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert session.spent == dp.PureDP(1)
    assert len(refused) == 10
    assert session.history.height == 10


def test_nothing_private_can_be_pickled_or_copied() -> None:
    session = dp.Session(epsilon=1)
    people = session.protect(FRAME, dp.Rows())
    grouped = people.group_by("name", keys=["a"])
    inside = payer_of(session), rows_of(people), rows_of(people).source
    public = session, people, grouped, people.dp_count(), dp.count()
    for kind, things in ((dp.UnsupportedOperation, public), (TypeError, inside)):
        for thing in things:
            for way in (pickle.dumps, copy.copy, copy.deepcopy):
                with pytest.raises(kind):
                    way(thing)


def test_budgets_and_units_can_be_pickled_and_copied() -> None:
    for value in (dp.PureDP("0.1"), dp.ApproxDP(1, "1e-6"), dp.ZCDP(1), dp.Rows(contributions=2)):
        assert pickle.loads(pickle.dumps(value)) == copy.deepcopy(value) == value


def test_the_budget_cannot_be_set() -> None:
    session = dp.Session(epsilon=1)
    for name in ("budget", "spent", "remaining", "history"):
        with pytest.raises(AttributeError):
            setattr(session, name, dp.PureDP(9))
    with pytest.raises((AttributeError, TypeError)):
        session.budget.epsilon = 9.0  # type: ignore[misc]
    with pytest.raises(AttributeError):
        session.budget.exact_epsilon = Fraction(9)  # type: ignore[misc]
    assert session.budget == dp.PureDP(1)


def test_a_session_runs_only_its_own_queries_and_one_kind_of_unit() -> None:
    session, other = dp.Session(epsilon=1), dp.Session(epsilon=1)
    query = session.protect(FRAME, dp.Rows()).dp_count()
    with pytest.raises(dp.InvalidBudget, match="another session"):
        other.collect(query, epsilon=1)
    with pytest.raises(dp.UnsupportedOperation, match="do not add up"):
        session.protect(FRAME, dp.Rows("change-one"))
    with pytest.raises(dp.UnsupportedOperation, match="do not add up"):
        session.collect(FRAME.dp_count(unit=dp.Rows("change-one")), epsilon=1)  # type: ignore[attr-defined]
    session.protect(FRAME, dp.Rows(contributions=2))
    assert session.history.is_empty()


def test_a_query_of_a_raw_frame_fixes_the_unit_of_its_session() -> None:
    session = dp.Session(epsilon=1)
    session.collect(FRAME.dp_count(unit=dp.Rows("change-one")), epsilon=1)  # type: ignore[attr-defined]
    with pytest.raises(dp.UnsupportedOperation, match="do not add up"):
        session.protect(FRAME, dp.Rows())


def test_sessions_show_what_remains() -> None:
    session = dp.Session(epsilon=1, name="census")
    session.protect(FRAME, dp.Rows()).dp_count().collect(epsilon="0.25")
    assert repr(session) == (
        "<Session 'census': epsilon 0.75 of epsilon 1 remains, kept in memory only>"
    )


HUGE = [
    ({"epsilon": "1e400"}, {"epsilon": "1e399"}),
    ({"epsilon": "1e400", "delta": "1e-7"}, {"epsilon": "1e399", "delta": "1e-9"}),
    ({"rho": "1e400"}, {"rho": "1e399"}),
]


@pytest.mark.parametrize(("budget", "spend"), HUGE, ids=str)
def test_budgets_beyond_floats_work(budget: dict[str, Any], spend: dict[str, Any]) -> None:
    session = dp.Session(**budget)
    query = session.protect(FRAME, dp.Rows()).agg(dp.count().alias("n"))
    assert "budget" in query.explain(details=True, **spend)
    assert query.collect(**spend)["n"].item() == FRAME.height
    currency = next(iter(budget))
    assert session.history[currency].item() <= getattr(session.budget, currency) == float("inf")
