"""Tables of which one alone says whose rows they are: refusals say how to bring that along."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dpframe as dp

ORDERS = pl.DataFrame({"order": [1, 2, 3], "customer": [7, 7, 8]})
ITEMS = pl.DataFrame({"order": [1, 1, 2, 3], "price": [5, 6, 7, 8]})


def test_a_table_without_the_identifier_is_told_to_bring_it_along() -> None:
    session = dp.Session(epsilon=1)
    with pytest.raises(dp.UnknownColumn) as refusal:
        session.protect(ITEMS, unit="customer")
    said = str(refusal.value)
    assert "through the table that has it: unit=dp.Through(other, on=...)" in said


def test_private_frames_do_not_join_by_what_is_no_identifier() -> None:
    session = dp.Session(epsilon=1)
    orders = session.protect(ORDERS, unit="customer", name="orders")
    lines = ITEMS.with_columns(customer=pl.lit(7, dtype=pl.Int64))
    items = session.protect(lines, unit="customer", name="items")
    with pytest.raises(dp.UnsupportedOperation) as refusal:
        items.join(orders, on="order")
    assert "write on=['customer', 'order']" in str(refusal.value)


def test_private_frames_join_on_the_identifier_and_keys() -> None:
    session = dp.Session(epsilon=10**6)
    orders = session.protect(ORDERS.with_columns(w=pl.Series([1, 2, 4])), "customer", name="orders")
    items = session.protect(ITEMS.join(ORDERS, on="order"), "customer", name="items")
    both = items.limit_rows(3, by="order").join(orders.limit_rows(2), on=["order", "customer"])
    query = both.agg(dp.count(), dp.sum("w", (0, 5)))
    assert (
        "join(orders.limit_rows(2), on the identifier and 'order', how='inner')"
        in query.explain(details=True, epsilon=1)
    )
    assert query.plan(epsilon=1).releases[0].sensitivity.l1 == 6  # 2 orders of 3 items each
    assert query.collect(epsilon=10**5).row(0) == (4, 1 + 1 + 2 + 4)
    once = orders.limit_rows(1, by="order")
    met = items.limit_rows(7).join(once, on=["order", "customer"], how="left")
    assert met.dp_count().plan(epsilon=1).releases[0].sensitivity.l1 == 7
    with pytest.raises(dp.UnknownColumn, match="'line'"):
        items.join(orders, on=["customer", "line"])
    wide = session.protect(ORDERS.with_columns(pl.col("order").cast(pl.Int8)), "customer")
    with pytest.raises(dp.UnsupportedOperation, match="has type"):
        items.join(wide, on=["customer", "order"])


def test_rows_of_nobody_do_not_join() -> None:
    session = dp.Session(epsilon=1)
    items = session.protect(ITEMS, unit=dp.Rows(), name="items")
    orders = session.protect(ORDERS, unit=dp.Rows(), name="orders")
    with pytest.raises(dp.UnsupportedOperation, match="protect this frame through the one"):
        items.join(orders, on="order")


def test_brought_along_before_protect_a_person_is_protected_with_all_items() -> None:
    brought = ITEMS.join(ORDERS, on="order", validate="m:1")
    frame = dp.Session(epsilon=10**6).protect(brought, unit="customer")
    found = frame.agg(
        people=dp.n_unique("customer"), paid=dp.sum("price", (0, 20), per="unit")
    ).collect(epsilon=10**5)
    assert found.row(0) == (2, 18 + 8)


# ----------------------------------------------------------------- protected through another frame


def shop(epsilon: int = 10**6) -> tuple[dp.Session, dp.PrivateFrame, dp.PrivateFrame]:
    session = dp.Session(epsilon=epsilon)
    orders = session.protect(ORDERS, unit="customer", name="orders")
    items = session.protect(ITEMS, unit=dp.Through(orders, on="order"), name="items")
    return session, orders, items


def test_items_are_of_the_customers_of_their_orders() -> None:
    _, _, items = shop()
    assert items.columns == ["order", "price", "customer"]
    found = items.agg(
        people=dp.n_unique("customer"), paid=dp.sum("price", (0, 20), per="unit")
    ).collect(epsilon=10**5)
    assert found.row(0) == (2, 18 + 8)


def test_they_join_by_the_key_that_says_whose_they_are() -> None:
    _, orders, items = shop()
    kept = items.filter(pl.col("price") > 5).with_columns(x=pl.col("price") * 2)
    both = kept.limit_rows(3, by="order").join(orders.limit_rows(2), on="order")
    plan = both.agg(dp.count(), dp.sum("x", (0, 99))).plan(epsilon=1)
    assert plan.releases[0].sensitivity.l1 == 6
    assert "on the identifier and 'order'" in plan.explain(details=True)
    assert any("have its 'order' in the frame 'orders'" in note for note in plan.notes)
    assert both.dp_count().collect(epsilon=10**5).item() == 3
    changed = items.with_columns(order=pl.col("order") + 1)
    for left, right in (
        (changed, orders),
        (items, orders.filter(pl.col("order") > 1).concat(orders)),
    ):
        with pytest.raises(dp.UnsupportedOperation, match="rows of different individuals"):
            left.join(right, on="order")


def test_a_chain_of_tables() -> None:
    session, _, items = shop()
    parts = pl.DataFrame({"price": [5, 8, 8, 100], "part": ["a", "b", "c", "d"]})
    inside = session.protect(parts, unit=dp.Through(items, left_on="price", right_on="price"))
    assert inside.columns == ["price", "part", "customer"]
    assert inside.limit_rows(5).dp_count().collect(epsilon=10**5).item() == 3


def test_rows_of_several_are_rows_of_each_and_those_of_nobody_are_dropped() -> None:
    session = dp.Session(epsilon=10**6)
    owners = pl.DataFrame(
        {"k": ["a", "a", "a", "b", None, "c"], "who": [1, 2, 2, 3, 4, None]},
        schema_overrides={"k": pl.Categorical},
    )
    knows = session.protect(owners, unit="who")
    rows = pl.DataFrame({"k": ["a", "b", "c", None, "d"]})
    frame = session.protect(rows, unit=dp.Through(knows, on="k"))
    counted = frame.limit_rows(9).group_by("who", keys=[1, 2, 3, 4]).agg(dp.count())
    assert counted.collect(epsilon=10**5)["len"].to_list() == [1, 1, 1, 0]
    said = frame.dp_n_unique("who").plan(epsilon=1).notes
    assert any(
        "in another protected frame; rows without an individual are dropped" in note
        for note in said
    )


def test_what_is_protected_through_a_frame_is_not_public() -> None:
    _, _, items = shop()
    query = items.limit_rows(2).dp_count()
    for private in (ITEMS, ITEMS.lazy()):
        with pytest.raises(dp.UnsupportedOperation, match="a simulation runs on public data"):
            query.simulate(private, epsilon=1)


D1, D2 = dt.date(2026, 1, 1), dt.date(2026, 1, 2)
PAIRS = pl.DataFrame({"order": [1, 2], "prev": [2, 1], "day": [D1, D2]})
OWNED = pl.DataFrame({"order": [1, 2], "who": ["ann", "bob"]})
Two = tuple[dp.PrivateFrame, dp.PrivateFrame]


def by_two_keys(session: dp.Session) -> Two:
    orders = session.protect(OWNED, unit="who", name="orders")
    ways = (dp.Through(orders, on="order"), dp.Through(orders, left_on="prev", right_on="order"))
    a, b = (session.protect(PAIRS, unit=way, name="items") for way in ways)
    return a, b


def by_two_frames(session: dp.Session) -> Two:
    turned = OWNED.with_columns(pl.col("who").reverse())
    owners = (
        session.protect(frame, unit="who", name=name)
        for frame, name in ((OWNED, "orders"), (turned, "others"))
    )
    a, b = (session.protect(PAIRS, unit=dp.Through(o, on="order"), name="items") for o in owners)
    return a, b


def of_a_name_that_others_have(session: dp.Session) -> Two:
    turned = OWNED.with_columns(pl.col("who").reverse())
    owners = (session.protect(frame, unit="who", name="orders") for frame in (OWNED, turned))
    a, b = (session.protect(PAIRS, unit=dp.Through(o, on="order"), name="items") for o in owners)
    return a, b


def of_no_name(session: dp.Session) -> Two:
    owners = (session.protect(frame, unit="who") for frame in (OWNED, OWNED))
    a, b = (session.protect(PAIRS, unit=dp.Through(o, on="order"), name="items") for o in owners)
    return a, b


SAME_ROWS_OF_OTHERS = [by_two_keys, by_two_frames, of_a_name_that_others_have, of_no_name]


@pytest.mark.parametrize("made", SAME_ROWS_OF_OTHERS)
@pytest.mark.parametrize("kept", [False, True])
def test_the_same_rows_of_other_individuals_share_no_division(
    made: Callable[[dp.Session], Two], kept: bool, tmp_path: Path
) -> None:
    ledger = {"ledger": tmp_path / "b.db"} if kept else {}
    session = dp.Session(epsilon=8, **ledger)
    parts = [
        session.partition(f.limit_groups(1, by="day", order_by="day"), "day", [D1, D2])
        for f in made(session)
    ]
    parts[0][D1].dp_n_unique("who").collect(epsilon=8)
    with pytest.raises(dp.BudgetExceeded):
        parts[1][D2].dp_n_unique("who").collect(epsilon=8)


@pytest.mark.parametrize("made", SAME_ROWS_OF_OTHERS)
@pytest.mark.parametrize("kept", [False, True])
def test_nor_a_stream(made: Callable[[dp.Session], Two], kept: bool, tmp_path: Path) -> None:
    ledger = {"ledger": tmp_path / "b.db"} if kept else {}
    session = dp.Session(epsilon=8, **ledger)
    a, b = (frame.limit_rows(1, order_by="day").agg(n=dp.count()) for frame in made(session))
    about: dict[str, Any] = {"by": "day", "start": D1, "periods": 2, "epsilon": 8}
    if kept and made is of_no_name:  # nor does a frame that nobody can name again open one there
        with pytest.raises(dp.UnsupportedOperation, match="a stream reads one frame"):
            session.stream("s", a, **about)
        return
    session.stream("s", a, **about)
    with pytest.raises((dp.UnsupportedOperation, dp.LedgerError)):
        session.stream("s", b, **about)


def test_other_keys_are_another_division_in_other_processes_too(tmp_path: Path) -> None:
    for frame, day in zip((0, 1), (D1, D2), strict=True):
        session = dp.Session(epsilon=16, ledger=tmp_path / "b.db")
        orders = session.protect(OWNED, unit="who", name="orders")
        keys = {"left_on": ("order", "prev")[frame], "right_on": "order"}
        items = session.protect(PAIRS, unit=dp.Through(orders, **keys), name="items")
        limited = items.limit_groups(1, by="day", order_by="day")
        session.partition(limited, "day", [day])[day].dp_n_unique("who").collect(epsilon=8)
    assert session.remaining == dp.PureDP(0)


def test_the_same_rows_through_the_same_frame_are_one_division() -> None:
    session = dp.Session(epsilon=8)
    orders = session.protect(OWNED, unit="who", name="orders")
    for day in (D1, D2):
        items = session.protect(PAIRS, unit=dp.Through(orders, on="order"), name="items")
        limited = items.limit_groups(1, by="day", order_by="day")
        session.partition(limited, "day", [D1, D2])[day].dp_n_unique("who").collect(epsilon=8)
    assert session.spent == dp.PureDP(8)


def test_the_identifier_itself_is_no_key() -> None:
    session = dp.Session(epsilon=1)
    orders = session.protect(OWNED, unit="who", name="orders")
    with pytest.raises(dp.UnsupportedOperation, match="the key 'who' is the identifier itself"):
        session.protect(ITEMS, unit=dp.Through(orders, left_on="price", right_on="who"))


def test_keys_come_in_pairs() -> None:
    session = dp.Session(epsilon=1)
    orders = session.protect(OWNED.with_columns(amt=1), unit="who", name="orders")
    items = session.protect(PAIRS, unit=dp.Through(orders, on="order"), name="items")
    with pytest.raises(dp.DPFrameError):
        items.join(orders, left_on="order", right_on=["order", "amt"])


def wrong_units() -> dict[str, Callable[[], object]]:
    session, orders, _ = shop()
    rows = dp.Session(epsilon=1).protect(ORDERS, unit=dp.Rows())
    other = dp.Session(epsilon=1)
    named = dp.Identifier("customer", window="1mo", time="at")
    monthly = dp.Session(epsilon=1).protect(
        pl.LazyFrame(schema={"customer": pl.Int64, "order": pl.Int64, "at": pl.Date}), unit=named
    )
    text = ITEMS.with_columns(pl.col("order").cast(pl.String))
    through = dp.Through(orders, on="order")
    return {
        "needs a private frame": lambda: dp.Through(ORDERS, on="order"),  # type: ignore[arg-type]
        "protects rows": lambda: dp.Through(rows, on="order"),
        "protects identifier per 1mo": lambda: dp.Through(monthly, on="order"),
        "has been changed since": lambda: dp.Through(orders.limit_rows(1), on="order"),
        "the key is one column": lambda: dp.Through(orders, left_on="order"),
        "another session": lambda: other.protect(ITEMS, unit=through),
        "already has a column 'customer'": lambda: session.protect(ORDERS, unit=through),
        "has no column 'order'": lambda: session.protect(ITEMS.drop("order"), unit=through),
        "has no column 'x'": lambda: session.protect(ITEMS, unit=dp.Through(orders, on="x")),
        "has type String here and Int64": lambda: session.protect(text, unit=through),
    }


@pytest.mark.parametrize("said", wrong_units())
def test_what_does_not_say_whose_rows_these_are_is_refused(said: str) -> None:
    with pytest.raises(dp.DPFrameError, match=said):
        wrong_units()[said]()
