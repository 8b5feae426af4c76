"""Public keys of exact results: by array or by join, to the same end."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpframe.lower.pairs import _among_whole_numbers, number_rows

ENDS = [-(2**63), -(2**63) + 1, 2**63 - 1]
WHOLE = st.none() | st.integers(-3, 40) | st.sampled_from(ENDS)


def by_hand(keys: list[Any], given: list[Any]) -> list[tuple[Any, int]]:
    return sorted(((g, keys.index(g)) for g in given if g in keys), key=repr)


def check(keys: list[Any], given: list[Any], dtype: Any) -> None:
    frame = pl.DataFrame({"any name": pl.Series(keys, dtype=dtype)})
    result = pl.DataFrame({"g0": pl.Series(given, dtype=dtype)})
    kept, numbers = number_rows(frame, result, ["g0"])
    found = zip(kept["g0"].to_list(), numbers.tolist(), strict=True)
    assert sorted(found, key=repr) == by_hand(keys, given)


@given(
    keys=st.lists(WHOLE, unique=True, max_size=30), given=st.lists(WHOLE, unique=True, max_size=30)
)
def test_whole_numbers_get_the_numbers_of_their_keys(keys: list[Any], given: list[Any]) -> None:
    check(keys, given, pl.Int64)


@pytest.mark.parametrize("dtype", [pl.Int8, pl.UInt8, pl.Int32, pl.UInt64, pl.String])
@pytest.mark.parametrize("keys", [[3, 1, 2], [7], [], [None, 0], [100, 0, 50]])
def test_other_types_too(dtype: Any, keys: list[Any]) -> None:
    given: list[Any] = [2, None, 0, 100, 1, 7, 50, 99]
    if dtype == pl.String:
        keys, given = ([None if v is None else str(v) for v in vs] for vs in (keys, given))
    check(keys, given, dtype)


@pytest.mark.parametrize("lo", [*ENDS[:2], -3, 0, 2**63 - 6])
@pytest.mark.parametrize("order", [1, -1])
def test_neighbouring_numbers_in_order_are_their_own_places(lo: int, order: int) -> None:
    keys = list(range(lo, lo + 6))[::order]
    given = [lo + 3, lo, lo + 5, lo + 1]
    far = [n for n in (lo - 1, lo + 6, *ENDS) if -(2**63) <= n < 2**63 and n not in keys]
    for more in ([], far, [None], [*far, None]):
        check(keys, given + more, pl.Int64)
        check(keys, more + given, pl.Int64)
    for missing in range(6):
        check(keys[:missing] + keys[missing + 1 :], [*given, *far, None], pl.Int64)
    check(keys[1:] + keys[:1], given, pl.Int64)


def test_arrays_are_for_whole_numbers_close_together() -> None:
    given = pl.Series([1, 2])
    assert _among_whole_numbers(pl.DataFrame({"k": [2, 1, 5]}), given) is not None
    for keys in ([0, 2**40], [None, 1], ["a"], [1.5]):
        assert _among_whole_numbers(pl.DataFrame({"k": keys}), given) is None
    assert _among_whole_numbers(pl.DataFrame({"k": [1]}), given.cast(pl.Int32)) is None


def test_several_key_columns_are_joined() -> None:
    keys = pl.DataFrame({"a": [1, 1, None], "b": ["x", None, "x"]})
    result = pl.DataFrame({"g0": [None, 1, 1, 2], "g1": ["x", None, "y", "x"]})
    kept, numbers = number_rows(keys, result, ["g0", "g1"])
    assert sorted(zip(kept["g0"].to_list(), numbers.tolist(), strict=True), key=repr) == [
        (1, 1),
        (None, 2),
    ]
