"""Sessions that protect people within calendar windows, and whose budget is for each of them."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.cli import main
from dpframe.core.windows import Every, Windows
from dpframe.ledger.place import store_at
from tests.api.exactly import ENOUGH
from tests.laws.amounts import examples

AT = pl.col("at")
FRAME = pl.DataFrame(
    {
        "user": [1, 1, 1, 2, 2, 3, 3, None],
        "at": [
            datetime(2026, 10, 3),
            datetime(2026, 10, 31, 23, 59),
            datetime(2026, 11, 1),
            datetime(2026, 10, 9),
            datetime(2026, 12, 1),
            datetime(2026, 11, 30, 23, 59),
            None,
            datetime(2026, 10, 9),
        ],
        "paid": [20, 5, 8, 30, 12, 7, 9, 100],
    }
)
MONTHLY = dp.Identifier("user", window="1mo", time="at")


def session(**more: Any) -> dp.Session:
    return dp.Session(**{"epsilon": 1, "per": "1mo", **more})


def people(of: dp.Session, unit: Any = MONTHLY) -> dp.PrivateFrame:
    return of.protect(FRAME, unit=unit, name="orders")


def month(frame: dp.PrivateFrame, year: int, number: int) -> dp.PrivateQuery:
    inside = (AT.dt.year() == year) & (AT.dt.month() == number)
    return frame.filter(inside).agg(n=pl.col("user").dp_n_unique())


# ------------------------------------------------------------------------------- the unit


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (("user", "1h", "at"), "'1h' is not a length of windows"),
        (("user", 7, "at"), "7 is not a length of windows"),
        (("user", "1mo"), "both window= and time="),
        (("user", None, "at"), "both window= and time="),
        (("user", "1mo", 3), "both window= and time="),
        (("user", "1mo", "user"), "both as the identifier and as the time"),
    ],
)
def test_windows_that_make_no_sense(arguments: Any, match: str) -> None:
    with pytest.raises(dp.UnsupportedOperation, match=match):
        dp.Identifier(*arguments)


def test_what_is_no_time_is_refused() -> None:
    plain = dp.Session(epsilon=1)
    for time, error, match in (
        ("when", dp.UnknownColumn, "no column 'when'"),
        ("paid", dp.UnsupportedOperation, "Int64 are not dates or times"),
    ):
        with pytest.raises(error, match=match):
            plain.protect(FRAME, unit=dp.Identifier("user", window="1d", time=time))


def test_units_of_one_session_have_one_window() -> None:
    plain = dp.Session(epsilon=1)
    people(plain)
    for unit in ("user", dp.Identifier("user", window="1w", time="at"), dp.Rows()):
        with pytest.raises(dp.UnsupportedOperation, match="their costs do not add up"):
            people(plain, unit)


def test_people_are_counted_in_each_window() -> None:
    frame = people(dp.Session(epsilon=ENOUGH * 9))
    count = pl.col("user").dp_n_unique()
    assert frame.agg(n=count).collect(epsilon=ENOUGH).item() == 6
    assert month(frame, 2026, 10).collect(epsilon=ENOUGH).item() == 2
    late = frame.filter(AT.is_null()).agg(n=count)
    assert late.collect(epsilon=ENOUGH).item() == 1
    once = frame.limit_rows(1).dp_sum("paid", (0, 50)).collect(epsilon=ENOUGH).item()
    assert once in (8 + 30 + 12 + 7 + 9 + 20, 8 + 30 + 12 + 7 + 9 + 5)


def test_joins_within_windows() -> None:
    of = dp.Session(epsilon=ENOUGH * 9)
    frame = people(of)
    other = frame.select("user", when="at", twice=pl.col("paid") * 2)
    both = frame.join(other, on="user").limit_rows(9)
    assert both.dp_count().collect(epsilon=ENOUGH).item() == 4 + 1 + 1 + 1 + 1 + 1
    assert "within each calendar month" in both.dp_count().explain(details=True, epsilon=1)
    moved = other.select("user", at=pl.col("when").dt.offset_by("1d"), x="when")
    with pytest.raises(dp.UnsupportedOperation, match="windows of 'at' and 'x'"):
        frame.select("user", "at", x="at").concat(moved)


def test_plans_say_what_they_read_and_whom_they_protect() -> None:
    query = people(dp.Session(epsilon=1)).filter(
        datetime(2026, 10, 1) <= AT, datetime(2026, 12, 1) > AT
    )
    plan = query.agg(n=pl.col("user").dp_n_unique()).plan(epsilon=1)
    assert plan.windows == Windows("1mo", 2026 * 12 + 9, 2026 * 12 + 10, without=False)
    text = plan.explain(details=True)
    for words in (
        "in one calendar month of at",
        "reads 2026-10 and 2026-11; all other rows are dropped first",
        "a person present in n months is n individuals",
        "counts a person once in each month",
    ):
        assert words in text
        assert all(word in plan.explain("html") for word in words.split('"'))
    read = dp.Plan.from_json(plan.to_json())
    assert (read.windows, read.unit, read.fingerprint) == (
        plan.windows,
        plan.unit,
        plan.fingerprint,
    )
    other = json.loads(plan.to_json())
    other["plan"]["windows"]["first"] = None
    with pytest.raises(dp.PlanMismatch):
        dp.Plan.from_json(json.dumps(other))
    assert (
        dp.Session(epsilon=1)
        .protect(FRAME, "user")
        .limit_rows(1)
        .dp_count()
        .plan(epsilon=1)
        .windows
        is None
    )


def test_several_queries_read_the_windows_of_all() -> None:
    of = session()
    frame = people(of)
    both = of.plan([month(frame, 2026, 10), month(frame, 2026, 12)], epsilon=0.5)
    assert both.windows is not None
    assert both.windows.words() == "2026-10 to 2026-12"
    of.collect([month(frame, 2026, 10), month(frame, 2026, 12)], epsilon=0.5)
    left = [of.remaining_in(date(2026, m, 1)).main for m in (9, 10, 11, 12)]
    assert left == [1, Fraction(1, 2), Fraction(1, 2), Fraction(1, 2)]


# ------------------------------------------------------------------------ a budget for each


def test_each_month_has_a_budget() -> None:
    of = session()
    frame = people(of)
    for number in (8, 9, 10, 11):
        month(frame, 2026, number).collect(epsilon=1)
    assert of.spent == dp.PureDP(1)
    assert of.remaining == of.remaining_in(date(2026, 10, 31)) == dp.PureDP(0)
    assert of.remaining_in(date(2026, 12, 1)) == of.remaining_in(None) == dp.PureDP(1)
    with pytest.raises(dp.BudgetExceeded, match="budget of epsilon 1 for 2026-10 has "):
        month(frame, 2026, 10).collect(epsilon="0.01")
    month(frame, 2026, 12).collect(epsilon="0.25")
    found = of.history
    assert found["windows"].to_list() == ["2026-08", "2026-09", "2026-10", "2026-11", "2026-12"]
    assert found["in_each"].to_list() == [1, 1, 1, 1, 0.25]
    assert found["epsilon"].to_list() == [1, 0, 0, 0, 0]


def test_a_query_of_several_months_is_charged_to_each() -> None:
    of = session()
    frame = people(of)
    month(frame, 2026, 11).collect(epsilon="0.7")
    both = frame.filter(datetime(2026, 10, 1) <= AT, datetime(2026, 12, 1) > AT)
    query = both.agg(n=pl.col("user").dp_n_unique())
    with pytest.raises(dp.BudgetExceeded, match=r"2026-10 and 2026-11 \(least in 2026-11\)"):
        query.collect(epsilon="0.4")
    plan = query.plan(epsilon="0.3")
    words = "charged to 2026-10 and 2026-11, the month with the least left: epsilon 0.3 before"
    assert words in plan.explain(details=True)
    assert plan.remaining == dp.PureDP("0.3")
    query.collect(epsilon="0.3")
    assert of.remaining_in(date(2026, 10, 5)) == dp.PureDP("0.7")
    assert of.remaining_in(date(2026, 11, 5)) == dp.PureDP(0)


def test_rows_without_a_time_have_a_budget_of_their_own() -> None:
    of = session()
    frame = people(of)
    frame.filter(AT.is_null()).agg(n=pl.col("user").dp_n_unique()).collect(epsilon=1)
    month(frame, 2026, 10).collect(epsilon=1)
    assert of.remaining_in(None) == dp.PureDP(0)
    with pytest.raises(dp.BudgetExceeded, match="all months and rows without a time"):
        frame.agg(n=pl.col("user").dp_n_unique()).collect(epsilon="0.1")


@pytest.mark.parametrize(
    "unit", [dp.Rows(), "user", dp.Identifier("user", window="1w", time="at")], ids=str
)
def test_other_units_do_not_go_with_it(unit: Any) -> None:
    with pytest.raises(dp.InvalidBudget, match="the budget is for each month"):
        people(session(), unit)


def test_nor_do_queries_of_other_units() -> None:
    unbound = FRAME.lazy().dp_count(unit=dp.Rows())  # type: ignore[attr-defined]
    with pytest.raises(dp.InvalidBudget, match="the budget is for each month"):
        session().collect(unbound, epsilon=1)


def test_what_makes_no_sense_with_windows() -> None:
    with pytest.raises(dp.InvalidBudget, match="'1h' is not a length of windows"):
        session(per="1h")
    of = session()
    frame = people(of).limit_groups(1, by="paid")
    with pytest.raises(dp.UnsupportedOperation, match="cannot be divided"):
        of.partition(frame, "paid", keys=[20, 5])
    with pytest.raises(dp.InvalidBudget, match="one budget for all time"):
        dp.Session(epsilon=1).remaining_in(date(2026, 1, 1))
    with pytest.raises(dp.InvalidBudget, match="is not a day"):
        of.remaining_in("2026-10")  # type: ignore[arg-type]
    assert of.remaining_in(datetime(2026, 10, 1, 12, tzinfo=UTC)) == dp.PureDP(1)


def test_a_unit_with_windows_may_have_one_budget_for_all_time() -> None:
    of = dp.Session(epsilon=1)
    frame = people(of)
    month(frame, 2026, 10).collect(epsilon="0.5")
    month(frame, 2026, 11).collect(epsilon="0.5")
    assert of.remaining == dp.PureDP(0)
    assert "charged to" not in month(frame, 2026, 12).explain(details=True, epsilon="0.5")


@pytest.mark.parametrize("composition", ["sum", "zcdp", "gdp"])
def test_every_way_to_add_up(composition: Any) -> None:
    of = session(epsilon=1, delta="1e-6", composition=composition)
    frame = people(of)
    for number in range(1, 7):
        month(frame, 2025, number).collect(epsilon="0.1", delta=0)
    once = of.spent
    assert once.main > 0
    month(frame, 2025, 3).collect(epsilon="0.1", delta=0)
    assert of.spent == once + once


MONTHS = st.lists(
    st.tuples(st.integers(1, 6), st.integers(1, 6), st.sampled_from(["0.1", "0.25", "0.4", "0.9"])),
    max_size=12,
)


@examples(15, 200)
@given(MONTHS)
def test_no_month_spends_more_than_its_budget(asked: list[tuple[int, int, str]]) -> None:
    """Whatever is asked in whatever order, against plain sums; a month that no plan reads is
    charged nothing."""
    of = session()
    frame = people(of)
    spent = dict.fromkeys(range(1, 7), Fraction(0))
    for first, last, cost in asked:
        days = AT.dt.date().is_between(date(2025, first, 1), date(2025, last, 28))
        query = frame.filter(days).agg(n=pl.col("user").dp_n_unique())
        months = range(first, last + 1)
        fits = all(spent[m] + Fraction(cost) <= 1 for m in months)
        if fits:
            query.collect(epsilon=cost)
            spent |= {m: spent[m] + Fraction(cost) for m in months}
        else:
            with pytest.raises(dp.BudgetExceeded):
                query.collect(epsilon=cost)
        assert of.spent.main == max(spent.values())
        for m in spent:
            assert of.remaining_in(date(2025, m, 9)).main == 1 - spent[m]


# ------------------------------------------------------------------------------- in ledgers


def test_ledgers_keep_it(place: Path | str, capsys: pytest.CaptureFixture[str]) -> None:
    place = str(place)
    create = ["ledger", "create", "--ledger", place, "--epsilon", "1", "--per", "1mo"]
    assert main([*create, "--by", "ann"]) == 0
    for number in (10, 11):
        month(people(session(ledger=place, must_exist=True)), 2026, number).collect(epsilon="0.8")
    again = session(ledger=place)
    assert again.remaining_in(date(2026, 10, 1)) == dp.PureDP("0.2")
    assert again.remaining_in(date(2026, 12, 1)) == dp.PureDP(1)
    with pytest.raises(
        dp.LedgerError, match="opened for each month, and this session opens it for all time"
    ):
        dp.Session(epsilon=1, ledger=place)
    with pytest.raises(
        dp.LedgerError, match="opened for each month, and this session opens it for each day"
    ):
        session(ledger=place, per="1d")
    capsys.readouterr()
    assert main(["ledger", "show", "--ledger", place]) == 0
    shown = capsys.readouterr().out
    for words in (
        "epsilon 1 for each month",
        "2026-10: epsilon 0.8 spent, epsilon 0.2 left",
        "2026-11: epsilon 0.8 spent, epsilon 0.2 left",
        "  protects   the rows of a person in one month; a person present in n months is n indiv",
        "windows are those of 'at' of 'orders', without a time zone",
    ):
        assert words in shown
    assert main(["ledger", "show", "--ledger", place, "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out).values()
    asked = ["ledger", "check", "--ledger", place, "--at-least", "0.5"]
    assert main(asked) == main([*asked, "--day", "2026-10-31"]) == 3
    assert main([*asked, "--day", "2026-12-01"]) == 0
    assert main([*asked, "--day", "december"]) == 5
    assert found["per"] == "1mo"
    assert found["protects"].startswith("the rows of a person in one month; a person present in n")
    assert [w["words"] for w in found["windows"]] == ["2026-10", "2026-11"]
    store_at(place).verify()


def test_two_sessions_of_a_ledger_spend_one_budget_of_a_month(place: Path | str) -> None:
    first, second = (people(session(ledger=str(place))) for _ in range(2))
    month(first, 2026, 10).collect(epsilon="0.75")
    with pytest.raises(
        dp.BudgetExceeded, match=r"budget of epsilon 1 for 2026-10 has epsilon 0\.25 left"
    ):
        month(second, 2026, 10).collect(epsilon="0.5")
    month(second, 2026, 11).collect(epsilon=1)
    month(second, 2026, 10).collect(epsilon="0.25")
    assert first.session.remaining_in(date(2026, 10, 1)).is_zero
    assert first.session.remaining_in(date(2026, 11, 1)).is_zero
    assert second.session.history["windows"].to_list() == ["2026-10", "2026-11", "2026-10"]


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_engines_read_the_windows_that_are_charged(engine: str) -> None:
    of = session(epsilon=ENOUGH)
    data: Any = FRAME
    if engine == "duckdb":
        data = pytest.importorskip("duckdb").from_arrow(FRAME.to_arrow())
    orders = of.protect(data, unit=MONTHLY, name="orders")
    for number, persons, paid in ((10, 2, 55), (11, 2, 15), (12, 1, 12)):
        inside = (AT.dt.year() == 2026) & (AT.dt.month() == number)
        asked = (
            orders.filter(inside)
            .limit_rows(2)
            .agg(n=pl.col("user").dp_n_unique(), paid=pl.col("paid").dp_sum((0, 99)))
        )
        cost = asked.plan(epsilon=ENOUGH).cost
        assert of.remaining_in(date(2026, number, 1)) == dp.PureDP(ENOUGH)
        assert asked.collect(epsilon=ENOUGH).rows() == [(persons, paid)]
        assert of.remaining_in(date(2026, number, 1)) == dp.PureDP(ENOUGH) - cost
        assert of.spent == cost


def test_the_command_refuses_rows_with_windows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = str(tmp_path / "budget.db")
    given = ["ledger", "create", "--ledger", place, "--epsilon", "1", "--per", "1d", "--by", "ann"]
    assert main([*given, "--unit", "rows"]) == 5
    assert "protects individuals, not rows" in capsys.readouterr().err


JOB = """
output = "october.csv"
[session]
epsilon = 1
per = "1mo"
ledger = "budget.db"
create = true
[source]
path = "orders.parquet"
unit = {identifier = "user", window = "1mo", time = "at"}
[query]
filter = "at >= DATE '2026-10-01' AND at < DATE '2026-11-01'"
[query.outputs.n]
aggregate = "n_unique"
of = '"user"'
[spend]
epsilon = 0.75
"""


def test_jobs_in_toml(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    FRAME.write_parquet(tmp_path / "orders.parquet")
    job = tmp_path / "job.toml"
    job.write_text(JOB)
    assert main(["run", str(job)]) == 0, capsys.readouterr().err
    of = session(ledger=str(tmp_path / "budget.db"))
    assert of.remaining_in(date(2026, 10, 1)) == dp.PureDP("0.25")
    assert main(["run", str(job)]) == 3
    job.write_text(JOB.replace("2026-1", "2025-1"))
    assert main(["run", str(job)]) == 0
    job.write_text(JOB.replace('identifier = "user", ', 'identifier = "user", by = "x", '))
    assert main(["run", str(job)]) == 5


def test_approvals_of_any_day_are_for_the_windows_of_that_day(tmp_path: Path) -> None:
    place = str(tmp_path / "budget.db")
    frame = people(session(ledger=place, require_approval=True))

    def of_day(day: date) -> dp.PrivateQuery:
        wanted = dp.parameter("day", pl.Date, day)
        return frame.filter(AT.dt.date() == wanted).agg(n=pl.col("user").dp_n_unique())

    plan = tmp_path / "plan.json"
    plan.write_text(of_day(date(2026, 10, 3)).plan(epsilon="0.2").to_json())
    approve = ["approve", str(plan), "--by", "ann", "--ledger", place]
    assert main([*approve, "--param", "day=2026-10-01..2026-12-31"]) == 0
    of_day(date(2026, 11, 1)).collect(epsilon="0.2")
    with pytest.raises(dp.PlanMismatch):
        of_day(date(2027, 1, 1)).collect(epsilon="0.2")


def test_approvals_name_the_windows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = str(tmp_path / "budget.db")
    frame = people(session(ledger=place, require_approval=True))
    october, november = month(frame, 2026, 10), month(frame, 2026, 11)
    plan = tmp_path / "plan.json"
    plan.write_text(october.plan(epsilon="0.2").to_json())
    capsys.readouterr()
    assert main(["approve", str(plan), "--by", "ann", "--ledger", place]) == 0
    said = capsys.readouterr().out
    assert "an individual here is a person in one month\n" in said
    assert "for the whole of that person epsilon is n times as large" in said
    assert main(["approve", str(plan), "--by", "ann", "--ledger", place, "--json"]) == 0
    assert "reads 2026-10" in json.loads(capsys.readouterr().out)["protects"][1]
    october.collect(epsilon="0.2")
    with pytest.raises(dp.PlanMismatch, match="reads 2026-10 -> 2026-11"):
        november.collect(epsilon="0.2")


EVERY: list[tuple[Every, str]] = [
    ("1d", "2026-10-09"),
    ("1w", "week of 2026-10-05"),
    ("1mo", "2026-10"),
    ("1q", "2026-Q4"),
    ("1y", "2026"),
]


@pytest.mark.parametrize(("every", "words"), EVERY)
def test_every_length(every: Every, words: str) -> None:
    of = session(per=every)
    frame = people(of, dp.Identifier("user", window=every, time="at"))
    query = frame.filter(AT.dt.date() == date(2026, 10, 9)).agg(n=pl.col("user").dp_n_unique())
    assert f"charged to {words}:" in query.explain(details=True, epsilon=1)
    query.collect(epsilon=1)
    with pytest.raises(dp.BudgetExceeded, match=f"for {words} has "):
        query.collect(epsilon="0.1")
