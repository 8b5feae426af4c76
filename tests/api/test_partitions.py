"""Disjoint parts of a frame: the session pays for the most expensive, and nobody gets more out of
it.
"""

from __future__ import annotations

import copy
import json
import pickle
import threading
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.core.budget import Budget
from dpframe.ledger.place import open_ledger
from tests.api.test_session import Source

FRAME = pl.DataFrame(
    {
        "age": [20, 30, 40, 50, None, 30],
        "sex": ["f", "m", "f", None, "m", "x"],
        "level": pl.Series(["a", "b", "b", "a", None, "b"], dtype=pl.Enum(["a", "b", "c"])),
    }
)
SESSIONS: list[dict[str, Any]] = [
    {"epsilon": 1},
    {"epsilon": 1, "delta": "1e-6"},
    {"rho": 1},
    {"epsilon": 1, "delta": "1e-6", "composition": "zcdp"},
]


def people(session: dp.Session, unit: dp.Rows | None = None, frame: Any = FRAME) -> dp.PrivateFrame:
    return session.protect(frame, dp.Rows() if unit is None else unit)


def by_sex(session: dp.Session, unit: dp.Rows | None = None) -> dict[Any, dp.PrivateFrame]:
    return session.partition(people(session, unit), "sex", ["f", "m", None])


def spend(session: dp.Session, share: str) -> dict[str, Any]:
    return {session.remaining.currency: session.remaining.main * Fraction(share)}


def session_of(part: dp.PrivateFrame) -> dp.Session:
    assert part.session is not None
    return part.session


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("budget", SESSIONS, ids=str)
def test_parts_cost_what_the_dearest_costs(
    tmp_path: Path, budget: dict[str, Any], stored: bool
) -> None:
    place = {"ledger": tmp_path / "budget.db"} if stored else {}
    session = dp.Session(**budget, **place)
    whole, currency = session.remaining, session.remaining.currency
    parts = by_sex(session)
    costs = [whole.main * share / 10 for share in (2, 3, 1)]
    for part, cost in zip(parts.values(), costs, strict=True):
        part.dp_count().collect(**{currency: cost})
    assert session.spent == whole.of(costs[1])  # noise without Gaussian needs no delta
    assert [session_of(part).spent.main for part in parts.values()] == costs
    assert session.history.height == 3
    parts["f"].dp_count().collect(**{currency: costs[0]})
    assert session.spent == whole.of(2 * costs[0])
    left = session_of(parts["m"]).remaining
    assert left == whole.of(whole.main - costs[1], whole.slack)
    parts["m"].dp_count().collect(**{currency: left.main})
    assert session.remaining.main == 0
    with pytest.raises(dp.BudgetExceeded, match="for this part"):
        parts["m"].dp_count().collect(**{currency: whole.main / 10**6})
    with pytest.raises(dp.BudgetExceeded):
        people(session).dp_count().collect(**{currency: whole.main / 10**6})
    parts["f"].dp_count().collect(**{currency: session_of(parts["f"]).remaining.main})
    if stored:
        again = dp.Session(**budget, **place)
        assert again.spent == session.spent == whole.of(whole.main)
        assert again.history["status"].to_list() == ["released"] * 6


@pytest.mark.parametrize(
    ("unit", "dearest"),
    [
        (dp.Rows(), ["0.3"]),
        (dp.Rows(contributions=2), ["0.3", "0.2"]),
        (dp.Rows(contributions=9), ["0.3", "0.2", "0.1"]),
        (dp.Rows("change-one"), ["0.3", "0.2"]),
        (dp.Rows("change-one", contributions=2), ["0.3", "0.2", "0.1"]),
    ],
    ids=str,
)
def test_as_many_parts_are_paid_for_as_an_individual_is_in(
    unit: dp.Rows, dearest: list[str]
) -> None:
    session = dp.Session(epsilon=1)
    parts = by_sex(session, unit)
    for part, cost in zip(parts.values(), ("0.1", "0.3", "0.2"), strict=True):
        part.dp_count().collect(epsilon=cost)
    assert session.spent == dp.PureDP(sum(map(Fraction, dearest)))


def test_ledgers_name_a_part_by_its_values_or_by_their_digest() -> None:
    """For good: a part with another name would begin at zero."""
    session = dp.Session(epsilon=1)
    long = "x" * 200
    parts = session.partition(people(session), "sex", ["f", long])
    named = [session_of(part)._payer.ledger.scope.levels[-1].key for part in parts.values()]
    digest = sha256(json.dumps([long]).encode()).hexdigest()
    assert named == ['["f"]', f"sha256:{digest}"]


def test_what_a_part_counts_is_its_rows() -> None:
    session = dp.Session(epsilon=10**7)
    parts = by_sex(session)
    counts = {key: part.dp_count().collect(epsilon=10**5).item() for key, part in parts.items()}
    assert counts == {"f": 2, "m": 2, None: 1}
    assert [parts["f"].agg(dp.sum("age", (0, 99))).collect(epsilon=10**5).item()] == [60]


def test_deltas_are_shared_each_for_itself() -> None:
    """The part with most epsilon need not be the one with most delta."""
    session = dp.Session(epsilon=1, delta="1e-6")
    parts = by_sex(session)
    parts["f"].dp_count().collect(epsilon="0.5")
    gaussian = parts["m"].agg(dp.count(mechanism="discrete_gaussian"))
    gaussian.collect(epsilon="0.2", delta="1e-7")
    assert session.spent == dp.ApproxDP("0.5", "1e-7")
    parts["f"].agg(dp.count(mechanism="discrete_gaussian")).collect(epsilon="0.1", delta="1e-7")
    assert session.spent == dp.ApproxDP("0.6", "1e-7")


def test_the_plan_of_a_part_says_so() -> None:
    session = dp.Session(epsilon=1)
    parts = by_sex(session)
    parts["f"].dp_count().collect(epsilon="0.5")
    query = parts["m"].filter(pl.col("age") > 20).dp_count()
    plan = query.plan(epsilon="0.7")
    assert plan.cost == dp.PureDP("0.7")
    assert plan.remaining == dp.PureDP(1)
    assert plan.share is not None
    assert plan.share.charged == dp.PureDP("0.2")
    text = plan.explain(details=True)
    assert (
        '    1. part(col("sex") == "m")\n         1-stable: each row is in one part at most' in text
    )
    pays = "one of 3 parts: the session pays for the most expensive, now epsilon 0.2 more\n"
    assert pays in text
    assert text.endswith(
        "  budget\n"
        "    cost: epsilon 0.7 (pure DP)\n"
        "    charged to a part\n"
        "      one of 3 disjoint parts, and one individual is in at most 1 of them: the session "
        "pays for the most expensive part, which is now epsilon 0.2 more, and never more than this "
        "cost\n"
        "    part: epsilon 1 before; epsilon 0.3 after"
    )
    both = by_sex(dp.Session(epsilon=1), dp.Rows(contributions=2))["f"].dp_count()
    assert "the 2 most expensive parts" in both.explain(details=True, epsilon=1)
    assert "the session pays for the 2 most expensive, now epsilon 1 more\n" in both.explain(
        epsilon=1
    )
    assert 'part(col("sex") is null)' in parts[None].dp_count().explain(details=True, epsilon="0.1")
    assert session.spent == dp.PureDP("0.5")


def test_fingerprints_tell_parts_apart() -> None:
    session = dp.Session(epsilon=1)
    frame = people(session)
    parts = session.partition(frame, "sex", ["f", "m", "null", None])
    frames = [frame, frame.filter(pl.col("sex") == "f"), *parts.values()]
    prints = [frame.dp_count().plan(epsilon="0.1").fingerprint for frame in frames]
    assert len(set(prints)) == 6
    again = session.partition(frame, pl.col("sex"), pl.Series(["m", "f"]))["f"]
    assert again.dp_count().plan(epsilon="0.1").fingerprint == prints[2]
    again.dp_count().collect(epsilon="0.1")
    assert again.dp_count().plan(epsilon="0.1").fingerprint == prints[2]  # whatever was spent


def test_a_session_runs_queries_of_its_parts_at_their_cost() -> None:
    session = dp.Session(epsilon=1)
    parts = by_sex(session)
    for part in parts.values():
        session.collect(part.dp_count(), epsilon="0.4")
        assert session.plan(part.dp_count(), epsilon="0.4").share is not None
    assert session.spent == dp.PureDP("0.4")
    nested = session.partition(parts["f"], "level", ["a", "b"])
    for part in nested.values():
        session.collect(part.dp_count(), epsilon="0.5")
        session_of(parts["f"]).collect(part.dp_count(), epsilon="0.1")
    assert session.spent == session_of(parts["f"]).spent == dp.PureDP(1)
    assert session_of(parts["m"]).remaining == dp.PureDP("0.6")
    assert repr(session_of(nested["a"])) == (
        "<Session: epsilon 0 of epsilon 0.6 remains, for one of 2 parts, for one of 3 parts, kept "
        "in memory only>"
    )


def test_a_second_partition_is_paid_for_in_full() -> None:
    session = dp.Session(epsilon=1)
    frame = people(session)
    for _ in range(2):
        for part in session.partition(frame, "sex", ["f", "m"]).values():
            part.dp_count().collect(epsilon="0.3")
    people(session).dp_count().collect(epsilon="0.1")
    assert session.spent == dp.PureDP("0.7")


DAYS = pl.DataFrame({"day": [date(2026, 11, 20 + n % 3) for n in range(9)], "x": range(9)})
FIRST, SECOND, THIRD = (date(2026, 11, 20 + n) for n in range(3))


def nightly(path: Path, day: date, cost: str, **changed: Any) -> dp.Session:
    """One run of a job, in a process of its own as far as budgets can tell."""
    session = dp.Session(epsilon=1, ledger=path)
    unit = changed.get("unit", dp.Rows())
    days = session.protect(changed.get("frame", DAYS), unit, name=changed.get("name", "visits"))
    days = changed.get("before", lambda frame: frame)(days)
    (part,) = session.partition(days, changed.get("by", "day"), [day]).values()
    part.dp_count().collect(epsilon=cost)
    return session


def test_each_night_is_a_part_without_listing_it_before(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    for day in (FIRST, SECOND, THIRD):
        assert nightly(path, day, "0.4").spent == dp.PureDP("0.4")
    assert nightly(path, SECOND, "0.3").spent == dp.PureDP("0.7")
    session = nightly(path, FIRST, "0.2")
    assert session.spent == dp.PureDP("0.7")
    assert session.history.height == 5
    with pytest.raises(dp.BudgetExceeded, match="for this part"):
        nightly(path, SECOND, "0.5")
    grown = pl.concat([DAYS, DAYS.with_columns(x=pl.col("x") + 9)])
    assert nightly(path, THIRD, "0.3", frame=grown).spent == dp.PureDP("0.7")
    expression = pl.col("day").dt.truncate("1mo")
    month = FIRST.replace(day=1)
    assert nightly(path, month, "0.1", by=expression).spent == dp.PureDP("0.8")


@pytest.mark.parametrize(
    "changed",
    [
        {"name": None},
        {"name": "others"},
        {"by": pl.col("day").dt.offset_by("0d")},
        {"by": pl.col("day").dt.truncate("1d")},
        {"unit": dp.Rows(contributions=2)},
        {"before": lambda frame: frame.with_columns(day=pl.col("day").dt.offset_by("1d"))},
        {"before": lambda frame: frame.with_columns(day=pl.lit(SECOND))},
        {"before": lambda frame: frame.filter(pl.col("x") > 3)},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_parts_made_in_another_way_are_charged_in_full(
    tmp_path: Path, changed: dict[str, Any]
) -> None:
    """Whatever could put a row into a second part begins with nothing that is paid for."""
    path = tmp_path / "budget.db"
    nightly(path, FIRST, "0.3")
    assert nightly(path, SECOND, "0.3", **changed).spent == dp.PureDP("0.6")
    assert nightly(path, SECOND, "0.3").spent == dp.PureDP("0.6")


def test_as_many_parts_of_all_that_ever_were_are_paid_for(tmp_path: Path) -> None:
    path, unit = tmp_path / "budget.db", dp.Rows("change-one")
    for day, cost, spent in (
        (FIRST, "0.2", "0.2"),
        (SECOND, "0.3", "0.5"),
        (THIRD, "0.2", "0.5"),
        (THIRD, "0.2", "0.7"),
    ):
        assert nightly(path, day, cost, unit=unit).spent == dp.PureDP(spent)


def test_individuals_whose_days_are_limited_are_in_new_parts_each_time(tmp_path: Path) -> None:
    """Rows that are added could change which of an individual's days are kept."""
    frame = DAYS.with_columns(user=pl.col("x") % 4)
    for spent in ("0.3", "0.6"):
        session = dp.Session(epsilon=1, ledger=tmp_path / "budget.db")
        days = session.protect(frame, "user", name="visits").limit_groups(1, by="day")
        (part,) = session.partition(days.limit_rows(1), "day", [FIRST]).values()
        part.dp_count().collect(epsilon="0.3")
        assert session.spent == dp.PureDP(spent)


GROWING = pl.DataFrame(
    {
        "user": [1, 1, 2, 2, 2, 3],
        "day": [FIRST, SECOND, FIRST, SECOND, THIRD, THIRD],
    }
)


def first_days(path: Path | None, frame: pl.DataFrame, day: date, cost: str, n: int = 2) -> Any:
    session = dp.Session(epsilon=10, ledger=path)
    days = session.protect(frame, "user", name="visits").limit_groups(n, by="day", order_by="day")
    (part,) = session.partition(days.limit_rows(1, by="day"), "day", [day]).values()
    part.dp_count().collect(epsilon=cost)
    return session


def test_the_first_days_of_individuals_go_on_in_other_processes(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    for day, cost, spent in (
        (FIRST, "0.3", "0.3"),
        (SECOND, "0.2", "0.5"),
        (SECOND, "0.2", "0.7"),
        (THIRD, "0.3", "0.7"),
        (THIRD, "0.2", "0.9"),
    ):
        session = first_days(path, GROWING.filter(pl.col("day") <= day), day, cost)
        assert session.spent == dp.PureDP(spent)
    with pytest.raises(dp.LedgerError, match="a later part of the frame was charged"):
        first_days(path, GROWING, SECOND, "0.1")
    assert session.spent == dp.PureDP("0.9")
    other = first_days(path, GROWING, FIRST, "0.3", n=1)  # another limit is another division
    assert other.spent == dp.PureDP("1.2")
    open_ledger(path, None, dp.PureDP(10)).verify()


@pytest.mark.parametrize(
    "limited",
    [
        lambda f: f.limit_rows(2).limit_groups(2, by="day", order_by="day"),
        lambda f: f.limit_groups(2, by="day"),
        lambda f: f.limit_rows(2),
        lambda f: f.limit_groups(2, by="day").limit_rows(2, by="day", order_by="day"),
        lambda f: f.limit_groups(2, by=["day", "user"], order_by="day").limit_groups(2, by="day"),
        lambda f: (
            f.limit_groups(2, by="day", order_by="day")
            .with_columns(day=pl.col("day").dt.offset_by("1d"))
            .limit_groups(2, by="day")
        ),
    ],
)
def test_other_limits_begin_with_nothing_each_time(tmp_path: Path, limited: Any) -> None:
    for spent in ("0.3", "0.6"):
        session = dp.Session(epsilon=10, ledger=tmp_path / "budget.db")
        days = limited(session.protect(GROWING, "user", name="visits"))
        (part,) = session.partition(days, "day", [FIRST]).values()
        part.agg(pl.col("user").dp_n_unique()).collect(epsilon="0.3")
        assert session.spent == dp.PureDP(spent)


def plan_of_first(frame: Any, keys: Any = (FIRST,)) -> dp.Plan:
    session = dp.Session(epsilon=10)
    days = frame(session.protect(GROWING, "user", name="visits"))
    found = next(iter(session.partition(days, "day", keys).values()))
    return found.dp_count().plan(epsilon=1)  # type: ignore[no-any-return]


def test_plans_of_first_days_name_what_must_not_change() -> None:
    def first(frame: Any) -> Any:
        return frame.limit_groups(2, by="day", order_by="day").limit_rows(1, by="day")

    def promises(frame: Any, keys: Any = (FIRST,)) -> list[str]:
        return [x for x in plan_of_first(frame, keys).warnings if x.startswith("parts of visits")]

    positive = pl.col("user") > 0
    (alone,) = promises(first)
    assert "promised where protect was called" in alone
    assert "makes of them" not in alone
    (steady,) = promises(lambda f: first(f.filter(positive).with_columns(x=1)))
    assert 'nor may what filter(col("user") > 0), with_columns(x=1) makes of them change' in steady
    assert promises(lambda f: first(f).filter(positive)) == [alone]
    assert not promises(lambda f: f.limit_groups(2, by="day").limit_rows(1, by="day"))
    assert not promises(first, [None])  # a part that does not last
    session = dp.Session(epsilon=1)
    rows = first(session.protect(GROWING, "user", name="visits"))
    assert not any("parts of" in x for x in rows.dp_count().plan(epsilon=1).warnings)


@given(data=st.data())
def test_growing_frames_differ_in_as_many_parts_as_are_paid_for(data: st.DataObject) -> None:
    """Rows of one individual come in any order, late ones too; each night reads one part."""
    n = data.draw(st.integers(1, 3))
    nights = data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=7).map(sorted))
    days: list[int] = []
    touched = set()
    for night in nights:
        days += data.draw(st.lists(st.integers(0, 6), max_size=3))
        frame = pl.DataFrame(
            {"user": [1] * len(days), "day": days}, schema_overrides={"day": pl.Int64}
        )
        session = dp.Session(epsilon=10**9)
        first = session.protect(frame, "user", name="visits").limit_groups(
            n, by="day", order_by="day"
        )
        (part,) = session.partition(first, "day", [night]).values()
        asked = part.agg(pl.col("user").dp_n_unique().alias("n"))
        if asked.collect(epsilon=10**8)["n"].item():
            touched.add(night)
    assert len(touched) <= n


def test_a_second_frame_of_one_name_is_not_taken_for_the_first() -> None:
    session = dp.Session(epsilon=1)
    for spent in ("0.3", "0.6"):
        frame = session.protect(DAYS, dp.Rows(), name="visits")
        (part,) = session.partition(frame, "day", [FIRST]).values()
        part.dp_count().collect(epsilon="0.3")
        assert session.spent == dp.PureDP(spent)


def test_long_keys_are_told_apart(tmp_path: Path) -> None:
    path, names = tmp_path / "budget.db", ["n" * 1000 + end for end in "ab"]
    frame = pl.DataFrame({"name": names})
    for name, spent in zip([*names, names[0]], ("0.3", "0.3", "0.6"), strict=True):
        session = dp.Session(epsilon=1, ledger=path)
        parts = session.partition(session.protect(frame, dp.Rows(), name="x"), "name", [name])
        parts[name].dp_count().collect(epsilon="0.3")
        assert session.spent == dp.PureDP(spent)


def test_an_accuracy_is_charged_to_the_part() -> None:
    session = dp.Session(epsilon=1, delta="1e-8", composition="zcdp")
    for part in by_sex(session).values():
        part.dp_count().collect(accuracy={"len": 60})
    assert session.spent == people(session).dp_count().plan(accuracy={"len": 60}).cost


def test_a_release_that_fails_stays_charged_in_its_part() -> None:
    broken = Source(ValueError("x"))
    session = dp.Session(epsilon=1)
    parts = session.partition(people(session, frame=broken.frame), "name", ["a", "b"])
    with pytest.raises(dp.EngineError):
        parts["a"].dp_count().collect(epsilon="0.4")
    assert session.spent == session_of(parts["a"]).spent == dp.PureDP("0.4")
    assert session.history["status"].to_list() == ["failed"]
    assert session_of(parts["a"]).history["status"].to_list() == ["failed"]
    with pytest.raises(dp.EngineError):
        parts["b"].dp_count().collect(epsilon="0.5")
    assert session.spent == dp.PureDP("0.5")


def test_what_does_not_fit_reads_nothing() -> None:
    source = Source()
    session = dp.Session(epsilon=1)
    parts = session.partition(people(session, frame=source.frame), "name", ["a", "b"])
    with pytest.raises(dp.BudgetExceeded):
        parts["a"].dp_count().collect(epsilon="1.1")
    assert source.reads == 0
    assert session.history.is_empty()


# -- attempts to pay less -------------------------------------------------------------------------


def refused(kind: type[dp.DPFrameError], match: str, use: Callable[[], object]) -> None:
    with pytest.raises(kind, match=match):
        use()


def test_the_session_of_a_part_pays_for_nothing_else() -> None:
    session, other = dp.Session(epsilon=1), dp.Session(epsilon=1)
    frame = people(session)
    parts = by_sex(session)
    f, m = session_of(parts["f"]), parts["m"]
    belongs = "belongs to another session"
    refused(dp.UnsupportedOperation, "pays for that part only", lambda: f.protect(FRAME, dp.Rows()))
    refused(dp.UnsupportedOperation, "pays for that part", lambda: FRAME.dp_protect(f, dp.Rows()))  # type: ignore[attr-defined]
    unbound = FRAME.dp_count(unit=dp.Rows())  # type: ignore[attr-defined]
    refused(dp.InvalidBudget, "belongs to no session", lambda: f.collect(unbound, epsilon="0.1"))
    refused(dp.InvalidBudget, belongs, lambda: f.collect(frame.dp_count(), epsilon="0.1"))
    refused(dp.InvalidBudget, belongs, lambda: f.plan(m.dp_count(), epsilon="0.1"))
    refused(dp.InvalidBudget, belongs, lambda: other.collect(m.dp_count(), epsilon="0.1"))
    refused(dp.InvalidBudget, belongs, lambda: other.partition(frame, "sex", ["f"]))
    refused(dp.InvalidBudget, belongs, lambda: other.partition(m, "sex", ["f"]))
    refused(dp.InvalidBudget, belongs, lambda: f.partition(frame, "sex", ["f"]))
    refused(dp.InvalidBudget, belongs, lambda: f.partition(m, "sex", ["f"]))
    refused(dp.UnsupportedOperation, "private frames", lambda: session.partition(FRAME, "sex", []))  # type: ignore[arg-type]
    refused(dp.DPFrameError, "pickled", lambda: pickle.dumps(m))
    refused(dp.DPFrameError, "pickled", lambda: copy.copy(f))
    assert session.spent == dp.PureDP(0)


def test_parts_are_not_put_together_again() -> None:
    parts = by_sex(dp.Session(epsilon=1))
    for verb in ("join", "concat", "vstack", "extend", "hstack", "join_asof", "merge_sorted"):
        refused(dp.UnsupportedOperation, verb, lambda v=verb: getattr(parts["f"], v)(parts["m"]))  # type: ignore[misc]
    refused(dp.DPFrameError, "private", lambda: parts["f"].filter(parts["m"]))
    refused(dp.DPFrameError, "private", lambda: parts["f"].dp_argmax("sex", candidates=parts["m"]))
    refused(dp.DPFrameError, "private", lambda: parts["f"].group_by("sex", keys=parts["m"]))


def test_frames_made_of_a_part_stay_with_it() -> None:
    session = dp.Session(epsilon=1)
    parts = by_sex(session)
    made = parts["f"].with_columns(b=pl.col("age") + 1).filter(pl.col("b") > 3).select("b", "age")
    assert made.session is parts["f"].session
    made.rename({"b": "c"}).dp_count().collect(epsilon="0.2")
    made.group_by("age", keys=[1, 2]).agg(dp.count()).collect(epsilon="0.2")
    parts["m"].dp_count().collect(epsilon="0.4")
    assert session.spent == dp.PureDP("0.4")


AMSTERDAM = ZoneInfo("Europe/Amsterdam")
SUMMER = datetime(2024, 10, 27, 0, 30, tzinfo=ZoneInfo("UTC"))
EDGES = pl.Series([-62135596800000000, 253402300799999999], dtype=pl.Datetime("us", "UTC"))
KEYED = pl.LazyFrame(
    schema={
        "i": pl.Int64,
        "u": pl.UInt64,
        "b": pl.Boolean,
        "f": pl.Float64,
        "s": pl.String,
        "e": pl.Enum(["a", "b"]),
        "c": pl.Categorical(),
        "d": pl.Date,
        "t": pl.Datetime("us"),
        "z": pl.Datetime("us", "Europe/Amsterdam"),
        "y": pl.Datetime("us", "America/New_York"),
        "n": pl.Datetime("ns"),
        "m": pl.Decimal(10, 2),
        "l": pl.List(pl.Int64),
    }
)


def keys_of(by: Any, keys: Any) -> list[Any]:
    session = dp.Session(epsilon=1)
    return list(session.partition(session.protect(KEYED, dp.Rows()), by, keys))


@pytest.mark.parametrize(
    ("by", "keys", "found"),
    [
        ("i", [1, 2, 1], [1, 2]),
        ("i", [3, None, None], [3, None]),
        ("i", [-(2**63), 2**63 - 1], [-(2**63), 2**63 - 1]),
        ("u", [2**64 - 1, 0], [2**64 - 1, 0]),
        ("b", None, [False, True]),
        ("b", [True, None, True], [True, None]),
        ("e", None, ["a", "b"]),
        ("e", ["b", "b"], ["b"]),
        ("c", ["q", "q", None], ["q", None]),
        ("s", ["", None, "é", "e\u0301"], ["", None, "é", "e\u0301"]),
        ("d", [date(2024, 1, 1), date(2024, 1, 1)], [date(2024, 1, 1)]),
        ("t", [date(2024, 1, 1), datetime(2024, 1, 1)], [datetime(2024, 1, 1)]),
        ("z", [SUMMER.astimezone(AMSTERDAM)] * 2, [SUMMER.astimezone(AMSTERDAM)]),
        ("z", pl.Series([SUMMER, SUMMER]), [SUMMER.astimezone(AMSTERDAM)]),
        ("m", [Decimal("1.50"), Decimal("1.5")], [Decimal("1.5")]),
        (["i", "s"], [(1, "a"), (1, "a"), (1, None)], [(1, "a"), (1, None)]),
        (["i", "b"], {"i": [1], "b": [True, False]}, [(1, True), (1, False)]),
        (pl.col("f").cast(pl.Int64), [1, 2], [1, 2]),
        (pl.col("f") > 0, [True, False, None], [True, False, None]),
        ("i", [], []),
    ],
    ids=str,
)
def test_each_key_is_there_once(by: Any, keys: Any, found: list[Any]) -> None:
    assert keys_of(by, keys) == found


@pytest.mark.parametrize(
    ("by", "keys", "match"),
    [
        ("i", [1, 1.0], "not values of type Int64"),
        ("i", [1, True], "not values of type Int64"),
        ("i", [1.5], "not values of type Int64"),
        ("i", ["1"], "not values of type Int64"),
        ("b", [1, 0], "not values of type Boolean"),
        ("i", None, "not known without reading private data"),
        ("i", "abc", "not the text"),
        ("f", [0.0, -0.0], "cannot be grouped by values of type Float64"),
        ("f", [float("nan")], "cannot be grouped by values of type Float64"),
        ("l", [[1]], "cannot be grouped"),
        ("e", ["z"], "not values of type Enum"),
        ("z", [datetime(2024, 1, 1)], "not values of type"),
        ("z", [SUMMER, SUMMER.astimezone(AMSTERDAM)], "not values of type"),
        (["i", "b"], {"i": [1]}, "do not cover"),
        ([], [1], "at least one column"),
        ("nope", [1], "no column 'nope'"),
        (pl.col("i").shuffle(), [1], "[a-z]"),
        (pl.col("i").sample(fraction=1.0, shuffle=True), [1], "[a-z]"),
        (pl.col("i").map_elements(hash, return_dtype=pl.Int64), [1], "[a-z]"),
        (pl.col("i") - pl.col("i").mean(), [1], "[a-z]"),
        (pl.int_range(pl.len()), [1], "[a-z]"),
        (pl.col("i").rank(), [1], "[a-z]"),
        (pl.col("i").dp_sum((0, 1)), [1], "works on rows"),  # type: ignore[attr-defined]
        ("i", range(10_001), "more than 10000"),
        ("n", pl.Series([1, 2], dtype=pl.Datetime("ns")), "more precise"),
        ("n", pl.Series([1001], dtype=pl.Datetime("ns")), "more precise"),
        ("t", pl.Series([2**62], dtype=pl.Datetime("us")), "more precise"),
        ("z", EDGES[1:].dt.convert_time_zone("Europe/Amsterdam"), "more precise"),
        ("y", EDGES[:1].dt.convert_time_zone("America/New_York"), "more precise"),
        (
            "z",
            pl.Series([SUMMER, SUMMER + timedelta(hours=1)]).dt.convert_time_zone(
                "Europe/Amsterdam"
            ),
            "more precise",
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_other_keys_are_refused(by: Any, keys: Any, match: str) -> None:
    with pytest.raises(dp.DPFrameError, match=match) as refusal:
        keys_of(by, keys)
    assert "group_by(" not in str(refusal.value)


def test_the_hour_that_comes_twice_is_two_hours() -> None:
    moments = pl.Series([SUMMER, SUMMER + timedelta(hours=1)]).dt.convert_time_zone(
        "Europe/Amsterdam"
    )
    session = dp.Session(epsilon=10**7)
    frame = session.protect(pl.DataFrame({"z": moments}), dp.Rows())
    for moment in moments:
        (part,) = session.partition(frame, "z", [moment]).values()
        assert part.dp_count().collect(epsilon=10**5).item() == 1


def test_a_moment_of_the_first_year_is_a_key() -> None:
    """Where the zone's year is still one of Python's, the moment is held exactly."""
    first = EDGES[:1].dt.convert_time_zone("Europe/Amsterdam")
    moments = pl.concat(
        [first, first, first.dt.offset_by("1us"), pl.Series([None], dtype=first.dtype)]
    )
    frame = pl.DataFrame({"z": moments})
    session = dp.Session(epsilon=10**7)
    people = session.protect(frame, dp.Rows())
    ((key, part),) = session.partition(people, "z", first).items()
    assert key == first.item()
    for equal in (part, people.filter(pl.col("z") == key), people.filter(pl.col("z").is_in(first))):
        assert equal.dp_count().collect(epsilon=10**5).item() == 2


def test_threads_on_many_parts() -> None:
    session = dp.Session(epsilon=1)
    frame = session.protect(pl.DataFrame({"i": [1, 2, 3, 4] * 5}), dp.Rows(contributions=2))
    parts = session.partition(frame, "i", [1, 2, 3, 4])
    over = []

    def spend(key: int) -> None:
        for _ in range(30):
            try:
                parts[key].dp_count().collect(epsilon="0.02")
            except dp.BudgetExceeded:
                over.append(key)

    threads = [threading.Thread(target=spend, args=(1 + i % 4,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    totals: list[Budget] = [session_of(part).spent for part in parts.values()]
    first, second = sorted((t.main for t in totals), reverse=True)[:2]
    assert session.spent == dp.PureDP(first + second)
    assert first + second == 1
    assert over


@pytest.mark.parametrize("kind", ["limit", "own number", "over"])
def test_rows_added_to_a_file_bring_nobody_into_a_part_that_is_free(
    kind: str, tmp_path: Path
) -> None:
    """A limit may then choose other groups of an individual, whose own numbers change, too."""
    file = tmp_path / "visits.csv"
    file.write_text("who,s\n1,k0\n")
    schema = {"who": pl.Int64, "s": pl.String}

    def parts(data: Any, session: dp.Session) -> dict[Any, dp.PrivateFrame]:
        visits = session.protect(data, unit="who", schema=schema if data is file else None)
        numbers = [1, 2, 3, 4]
        match kind:
            case "limit":
                texts = [f"k{n}" for n in range(4)]
                return session.partition(visits.limit_groups(1, by="s"), "s", texts)
            case "own number":
                return session.partition(visits.group_by("who").agg(n=pl.len()), "n", numbers)
            case _:
                each = visits.with_columns(n=pl.len().over("who")).limit_groups(1, by="n")
                return session.partition(each, "n", numbers)

    rows = pl.read_csv(file, schema=schema)
    for data, factor in ((file, 4), (pl.scan_csv(file, schema=schema), 4), (rows, 1)):
        session = dp.Session(epsilon=10)
        made = parts(data, session)
        counted = []
        for number, part in enumerate(made.values()):
            if data is not rows:
                with file.open("a") as grows:
                    grows.write(f"1,k{number}\n")
            counted.append(part.agg(n=dp.n_unique("who")).collect(epsilon=1))
        assert session.spent == dp.PureDP(factor)
        assert len(counted) == 4


def test_only_rows_in_memory_stay_as_they_are(tmp_path: Path) -> None:
    """Only then may an individual's parts be counted once and for all."""
    duckdb, dataset = pytest.importorskip("duckdb"), pytest.importorskip("pyarrow.dataset")
    rows, file = pl.DataFrame({"who": [1], "s": ["a"]}), tmp_path / "rows.parquet"
    rows.write_parquet(file)
    scan = pl.scan_parquet(file)
    grows = {
        "path": file,
        "folder": tmp_path,
        "scan": scan,
        "join with a scan": rows.lazy().join(scan, on="who"),
        "dataset": dataset.dataset(file),
        "scan of a dataset": pl.scan_pyarrow_dataset(dataset.dataset(file)),
        "relation": duckdb.connect().read_parquet(str(file)),
    }
    stays = {"frame": rows, "lazy frame": rows.lazy(), "table": rows.to_arrow()}
    for name, data in (grows | stays).items():
        visits = dp.Session(epsilon=1).protect(data, unit="who").limit_groups(1, by="s")
        part = visits.session.partition(visits, "s", ["a", "b", "c"])["a"]
        share = part.dp_n_unique("who").plan(epsilon=1).share
        assert share is not None
        assert share.touched == (1 if name in stays else 3), name
