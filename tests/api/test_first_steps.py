"""Frames of other libraries as data and as keys, checked joins, and sessions in a `with` block."""

from __future__ import annotations

from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

import dpframe as dp

ROWS = {"who": [*range(300)], "g": ["a", "b", "c"] * 100, "x": [1.0, 2.0, 3.0] * 100}
DATA: dict[str, Any] = {
    "pandas": lambda: pd.DataFrame(ROWS),
    "pandas with an index": lambda: pd.DataFrame(ROWS).set_index(pd.Index(range(5, 305), name="i")),
    "pyarrow": lambda: pa.table(ROWS),
    "Polars": lambda: pl.DataFrame(ROWS),
}
KEYS: dict[str, Any] = {
    "list": ["a", "b"],
    "pandas Series": pd.Series(["a", "b"], name="another name"),
    "pandas DataFrame": pd.DataFrame({"g": ["a", "b"]}),
    "pandas Index": pd.Index(["a", "b"]),
    "pyarrow array": pa.array(["a", "b"]),
    "pyarrow chunked array": pa.chunked_array([["a"], ["b"]]),
    "pyarrow Table": pa.table({"g": ["a", "b"]}),
    "Polars Series": pl.Series(["a", "b"]),
    "Polars DataFrame": pl.DataFrame({"g": ["a", "b"]}),
}


def people(data: Any) -> dp.PrivateFrame:
    return dp.Session(epsilon=10_000).protect(data, unit=dp.Rows())


@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
def test_data_of_other_libraries_are_protected(data: Any) -> None:
    found = people(data()).agg(dp.count(), dp.mean("x", (0, 4))).collect(epsilon=1000)
    assert found["len"].item() == 300
    assert found["x"].item() == pytest.approx(2, abs=0.1)


@pytest.mark.parametrize("keys", KEYS.values(), ids=KEYS)
def test_keys_of_other_libraries_are_public_keys(keys: Any) -> None:
    grouped = people(DATA["pandas"]()).group_by("g", keys=keys)
    found = grouped.agg(dp.count().alias("n")).collect(epsilon=1000)
    assert found.rows() == [("a", 100), ("b", 100)]


def test_other_keys_of_pyarrow_are_refused() -> None:
    for keys in (pa.table({"h": ["a"]}), pa.array([1, 2]), pa.schema([])):
        with pytest.raises(dp.DPFrameError):
            people(DATA["Polars"]()).group_by("g", keys=keys)


def test_a_series_is_no_table() -> None:
    for series in (pd.Series([1, 2]), pl.Series([1, 2]), pa.array([1, 2])):
        with pytest.raises(dp.UnsupportedOperation, match="cannot be protected"):
            people(series)


def test_a_join_may_state_that_public_keys_are_unique() -> None:
    names = pl.DataFrame({"g": ["a", "b", "c"], "name": ["A", "B", "C"]})
    frame = people(DATA["Polars"]())
    for other in (names, names.lazy()):
        joined = frame.join(other, on="g", validate="m:1")
        found = joined.group_by("name", keys=["A", "B"]).agg(dp.count()).collect(epsilon=1000)
        assert found["len"].to_list() == [100, 100]
    with pytest.raises(dp.UnsupportedOperation, match="more than once"):
        frame.join(pl.concat([names, names]), on="g", validate="m:1")
    for check in ("1:1", "1:m"):
        with pytest.raises(dp.UnsupportedOperation, match="would reveal"):
            frame.join(names, on="g", validate=check)


NAMES = {"g": ["a", "b", "c"], "name": ["A", "B", "C"]}


@pytest.mark.parametrize("other", [pd.DataFrame(NAMES), pa.table(NAMES), pl.LazyFrame(NAMES)])
def test_public_tables_of_other_libraries_are_joined(other: Any) -> None:
    for check in ("m:m", "m:1"):
        joined = people(DATA["Polars"]()).join(other, on="g", validate=check)
        found = joined.group_by("name", keys=["A", "B"]).agg(dp.count()).collect(epsilon=1000)
        assert found["len"].to_list() == [100, 100]


def test_a_table_that_polars_cannot_hold_is_refused() -> None:
    mixed = pd.DataFrame({"g": [1, "b", b"c"]})
    for use in (
        lambda: people(DATA["Polars"]()).join(mixed, on="g"),
        lambda: people(DATA["Polars"]()).group_by("g", keys=mixed),
    ):
        with pytest.raises(dp.UnsupportedOperation, match="convert the DataFrame of pandas"):
            use()


def test_a_session_may_stand_in_a_with_block() -> None:
    with dp.Session(epsilon=2) as session:
        frame = session.protect(DATA["pandas"](), unit=dp.Rows())
        frame.dp_count().collect(epsilon=1)
    assert session.remaining == dp.PureDP(1)


def test_tables_show_money_with_separators_and_no_powers_of_ten() -> None:
    frame = pl.DataFrame({"g": ["a", "b"] * 2000, "x": [42_513.975, 1_250.5] * 2000})
    frame = frame.with_columns(d=pl.col("x").cast(pl.Decimal(12, 2)))
    rows = dp.Session(epsilon=100).protect(frame, unit=dp.Rows())
    asked = [dp.sum("x", (0, 50_000)), dp.sum("d", (0, 50_000)), dp.count().alias("n")]
    release = rows.group_by("g", keys=["a", "b"]).agg(asked).release(epsilon=1)
    for text in (repr(release), release._repr_html_().split("<details")[0], release.to_html()):
        assert "85,0" in text
        assert text.count(" ± ") + text.count(" &#177; ") >= 6
        assert "e7" not in text.split("plan it came from")[0].replace("&#", "")
