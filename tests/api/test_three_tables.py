"""Tables of which one alone says whose rows they are: refusals say how to bring that along."""

from __future__ import annotations

import polars as pl
import pytest

import dpframe as dp

ORDERS = pl.DataFrame({"order": [1, 2, 3], "customer": [7, 7, 8]})
ITEMS = pl.DataFrame({"order": [1, 1, 2, 3], "price": [5, 6, 7, 8]})


def test_a_table_without_the_identifier_is_told_to_bring_it_along() -> None:
    session = dp.Session(epsilon=1)
    with pytest.raises(dp.UnknownColumn) as refusal:
        session.protect(ITEMS, unit="customer")
    assert "bring 'customer' along before protect: frame.join(other, on=..., " in str(refusal.value)


def test_private_frames_do_not_join_by_what_is_no_identifier() -> None:
    session = dp.Session(epsilon=1)
    orders = session.protect(ORDERS, unit="customer", name="orders")
    lines = ITEMS.with_columns(customer=pl.lit(7, dtype=pl.Int64))
    items = session.protect(lines, unit="customer", name="items")
    with pytest.raises(dp.UnsupportedOperation) as refusal:
        items.join(orders, on="order")
    assert "write on=['customer', 'order'], and rows of the same individual meet" in str(
        refusal.value
    )


def test_private_frames_join_on_the_identifier_and_keys() -> None:
    session = dp.Session(epsilon=10**6)
    orders = session.protect(ORDERS.with_columns(w=pl.Series([1, 2, 4])), "customer", name="orders")
    items = session.protect(ITEMS.join(ORDERS, on="order"), "customer", name="items")
    both = items.limit_rows(3, by="order").join(orders.limit_rows(2), on=["order", "customer"])
    query = both.agg(dp.count(), dp.sum("w", (0, 5)))
    assert (
        "join(orders.limit_rows(2), on the identifier and 'order', how='inner')"
        in query.explain(epsilon=1)
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
    with pytest.raises(dp.UnsupportedOperation, match="join it to the other before protect"):
        items.join(orders, on="order")


def test_brought_along_before_protect_a_person_is_protected_with_all_items() -> None:
    brought = ITEMS.join(ORDERS, on="order", validate="m:1")
    frame = dp.Session(epsilon=10**6).protect(brought, unit="customer")
    found = frame.agg(
        people=dp.n_unique("customer"), paid=dp.sum("price", (0, 20), per="unit")
    ).collect(epsilon=10**5)
    assert found.row(0) == (2, 18 + 8)
