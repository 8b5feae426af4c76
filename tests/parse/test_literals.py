"""Constants keep their value, whatever way Polars writes them."""

from __future__ import annotations

import warnings
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe.core.dtypes import (
    FLOAT32,
    DType,
    columns,
    datetime_type,
    domain_of_dtype,
    duration_type,
)
from dpframe.core.tree import Call, Literal
from dpframe.errors import UnsupportedOperation
from dpframe.parse.reader import read
from dpframe.rows.cast import Cast
from dpframe.rows.constants import (
    cast_literal,
    constant,
    from_physical,
    nearest_float32,
    to_physical,
)
from dpframe.rows.fold import lower
from dpframe.rows.lookup import IsIn, interval_labels
from dpframe.rows.polars_dtypes import from_polars, to_polars

PARIS = ZoneInfo("Europe/Paris")
VALUES = [
    *(True, 0, 1, -1, 255, 300, 2**31, -(2**40), 2**24 + 1, 1.0, 1.5, -0.5, 1e300, 0.1),
    *(float("inf"), "x", "1", Decimal("1.50"), Decimal("-2"), None),
    *(date(2020, 1, 2), date(1950, 1, 1), datetime(2020, 1, 2, 3, 4, 5, 6000)),
    *(datetime(1950, 1, 2, 3, 4, 5, 6), datetime(2020, 1, 2, 23, 30, tzinfo=UTC)),
    *(datetime(2020, 7, 2, 1, tzinfo=PARIS), timedelta(days=-1, microseconds=7)),
    *(timedelta(hours=5), time(1, 2, 3, 4)),
]
TYPES = [
    *(pl.Int8, pl.Int64, pl.UInt8, pl.UInt64, pl.Float32, pl.Float64, pl.String, pl.Boolean),
    *(pl.Date, pl.Time, pl.Datetime("us"), pl.Datetime("ms"), pl.Datetime("ns")),
    *(pl.Datetime("us", "UTC"), pl.Datetime("ms", "Europe/Paris"), pl.Duration("ms")),
    *(pl.Duration("ns"), pl.Decimal(10, 2), pl.Decimal(38, 0), pl.Enum(["x", "y"])),
    *(pl.Categorical(), pl.Int128),
]


def _value(expression: pl.Expr) -> Any:
    return pl.select(expression).item()


def _read(expression: pl.Expr) -> Any:
    [named] = read(expression, {})
    return named.tree


def _assert_same(expected: pl.Series, tree: Literal) -> None:
    if isinstance(expected.dtype, pl.Decimal) and expected.dtype.precision is None:
        assert expected.dtype.scale == tree.dtype.scale  # the oldest Polars has no precision
    else:
        assert expected.dtype == to_polars(tree.dtype)
    assert expected.item() == tree.value


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_cast_constant_is_what_polars_computes(value: Any, dtype: Any) -> None:
    tree = _read(pl.lit(value).cast(dtype, strict=False))
    if isinstance(tree, Call):
        assert isinstance(tree.operation, Cast)
        return
    try:
        expected = pl.select(pl.lit(value).cast(dtype, strict=False)).to_series()
    except pl.exceptions.PolarsError:
        pytest.skip("Polars does not cast these types")
    _assert_same(expected, tree)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_typed_constant_is_what_polars_computes(value: Any, dtype: Any) -> None:
    try:
        expression = pl.lit(value, dtype=dtype)
        expected = pl.select(expression).to_series()
    except (pl.exceptions.PolarsError, TypeError, OverflowError, ValueError):
        pytest.skip("Polars does not make this constant")
    refusal = None
    try:
        tree = _read(expression)
    except UnsupportedOperation as error:
        refusal = error.what
    if refusal is not None:
        assert "finer than" in refusal or "out of range" in refusal
    elif isinstance(tree, Literal):
        _assert_same(expected, tree)


scalars = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(),
    st.dates(),
    st.datetimes(),
    st.timedeltas(timedelta(days=-99_999), timedelta(days=99_999)),
    st.times(),
    st.decimals(
        allow_nan=False, allow_infinity=False, places=3, min_value=-(10**30), max_value=10**30
    ),
)


@given(scalars)
@settings(max_examples=300, deadline=None)
def test_any_scalar_survives(value: Any) -> None:
    tree = _read(pl.lit(value))
    assert isinstance(tree, Literal)
    assert tree.value == value
    assert type(tree.value) is type(value)
    assert _value(pl.lit(tree.value, dtype=to_polars(tree.dtype))) == value


@given(st.lists(scalars, max_size=5), st.sampled_from([bool, int, float, str, date, datetime]))
@settings(max_examples=200, deadline=None)
def test_any_list_survives_as_a_set(values: list[Any], kind: type) -> None:
    chosen = [v for v in values if type(v) is kind]
    [named] = read(pl.col("a").is_in(chosen), {"a": pl.Int64()})
    assert isinstance(named.tree, Call)
    assert isinstance(named.tree.operation, IsIn)
    assert named.tree.operation.values == tuple(sorted(set(chosen)))


@pytest.mark.parametrize("zone", ["UTC", "Europe/Paris", "America/New_York", "Asia/Kolkata"])
@given(moment=st.datetimes(datetime(1950, 1, 1), datetime(2049, 1, 1)))
@settings(max_examples=60, deadline=None)
def test_any_zoned_instant_survives(zone: str, moment: datetime) -> None:
    value = moment.replace(tzinfo=UTC).astimezone(ZoneInfo(zone))
    tree = _read(pl.lit(value))
    assert isinstance(tree, Literal)
    assert tree.value == value
    assert tree.dtype.zone == zone


def test_what_is_finer_than_a_microsecond_is_refused() -> None:
    fine = pl.Series([1], dtype=pl.Int64).cast(pl.Datetime("ns"))
    with pytest.raises(UnsupportedOperation, match="finer than a microsecond"):
        _read(pl.lit(fine))
    with pytest.raises(UnsupportedOperation, match="finer than a microsecond"):
        read(pl.col("d").is_in(fine), {"d": pl.Datetime("ns")})


def test_instants_beyond_python_are_refused() -> None:
    far = pl.Series([10**6 * 86_400 * 10**7], dtype=pl.Int64).cast(pl.Datetime("us"))
    with pytest.raises(UnsupportedOperation, match="out of range"):
        _read(pl.lit(far))


@pytest.mark.parametrize("left_closed", [False, True])
@pytest.mark.parametrize(
    "breaks", [[1], [1, 2.5], [-0.1, 0.3], [1e-7, 1e21], [1e16, 1e17], [0, 1 / 3], [-1e300, 5e-324]]
)
def test_labels_that_cut_makes_up(breaks: list[float], left_closed: bool) -> None:
    ends = [float(b) for b in breaks]
    inside = [
        ends[0] - abs(ends[0]) - 1,
        *ends,
        *((a + b) / 2 for a, b in pairwise(ends)),
    ]
    values = pl.Series([*inside, float("inf")])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        used = set(values.cut(breaks, left_closed=left_closed).cast(pl.String))
    assert used <= set(interval_labels(ends, left_closed))
    assert len(used) == len(breaks) + 1


@pytest.mark.parametrize("number", [-(2**63), 2**63 - 1])
def test_durations_have_the_ends_of_their_type(number: int) -> None:
    """And times of day those of a day."""
    beyond = number - 1 if number < 0 else number + 1
    micros = duration_type("us")
    assert to_physical(from_physical(number, micros).value, micros) == number
    day = 86_400 * 10**9
    assert from_physical(day - 1_000 if number > 0 else 0, DType("Time")).value is not None
    for units, dtype in ((beyond, micros), (day if number > 0 else -1_000, DType("Time"))):
        with pytest.raises(UnsupportedOperation, match="out of range"):
            from_physical(units, dtype)


def test_moments_of_another_unit_are_rounded_down() -> None:
    for year in (1969, 2026):
        moment = datetime(year, 12, 31, 23, 59, 59, 999_999)
        found = cast_literal(Literal(moment, datetime_type("us")), datetime_type("ms"))
        assert found == Literal(moment.replace(microsecond=999_000), datetime_type("ms"))


def test_a_nanosecond_type_holds_fewer_years_than_python() -> None:
    """What Python could hold is out of range all the same."""
    for number in (-(2**63) - 192, 2**63 + 192):
        with pytest.raises(UnsupportedOperation, match="out of range"):
            from_physical(number, duration_type("ns"))


def test_decimals_have_as_many_digits_as_their_type() -> None:
    price = DType("Decimal", precision=10, scale=2)
    for most in (10**8 - 1, Decimal("99999999.99"), -Decimal("99999999.99")):
        made = cast_literal(Literal(most, constant(most).dtype), price)
        assert made == Literal(Decimal(most).quantize(Decimal("0.01")), price)
    for beyond in (10**8, -(10**8), Decimal("1e8"), Decimal("0.001")):
        assert cast_literal(Literal(beyond, constant(beyond).dtype), price) is None


_SINGLES = [0.1, 0.2, 0.3, None, 1 / 3, 16_777_216.0, -0.0, float("inf"), float("nan"), 1e-45]


@pytest.mark.parametrize("number", [0.1, 1 / 3, 16_777_217, 1e300, 1e-300, -0.0, 2, 0.5])
def test_a_number_without_a_type_is_compared_with_float32_as_in_polars(number: float) -> None:
    f, typed = pl.col("f"), pl.lit(number, dtype=pl.Float64)
    for expression in (
        *(f == number, f != number, f < number, f <= number, f > number, f >= number),
        *(f.eq_missing(number), f.ne_missing(number), f.is_between(number, 0.3), f == typed),
        *(f.is_between(number, 0.3, closed="none"), pl.lit(number) == f, pl.lit(number) < f),
        *(f.cast(pl.Float64) <= number, pl.col("d").cast(pl.Float32) <= number, pl.col("d") == f),
    ):
        data = pl.DataFrame({"f": _SINGLES, "d": _SINGLES}, schema_overrides={"f": pl.Float32})
        expected = data.select(x=expression)["x"].to_list()
        [named] = read(expression, data.schema)
        types = {name: domain_of_dtype(from_polars(dtype)) for name, dtype in data.schema.items()}
        assert data.select(x=lower(named.tree, columns(types)))["x"].to_list() == expected


def test_the_rounded_number_is_what_conditions_are_derived_from() -> None:
    [named] = read(pl.col("f") <= 0.1, {"f": pl.Float32()})
    assert isinstance(named.tree, Call)
    assert named.tree.args[1] == Literal(nearest_float32(0.1), FLOAT32)
    assert nearest_float32(0.1) > 0.1


@pytest.mark.parametrize("old", [0.1, float("nan"), 0.5, 2])
def test_replacing_a_number_that_is_no_float32_is_refused(old: float) -> None:
    """Polars rounds it; replacing nothing would be wrong without a word."""
    data = pl.DataFrame({"f": _SINGLES}, schema={"f": pl.Float32})
    types = columns({"f": domain_of_dtype(from_polars(data["f"].dtype))})
    f = pl.col("f")
    for expression in (f.replace(old, 0.5), f.replace_strict([old], [1], default=0)):
        [named] = read(expression, data.schema)
        if old == 0.1:
            with pytest.raises(UnsupportedOperation, match=r"0\.1 is not a Float32"):
                lower(named.tree, types)
            continue
        found = data.select(x=lower(named.tree, types))["x"]
        assert found.eq_missing(data.select(x=expression)["x"]).all()


@given(
    st.floats() | st.integers(-(2**40), 2**40),
    st.lists(st.none() | st.floats(width=32), max_size=6),
    st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge", "eq_missing", "ne_missing"]),
)
def test_comparisons_of_float32_are_those_of_polars(
    number: float, values: list[float | None], method: str
) -> None:
    """With any numbers, among them the values themselves and their decimals."""
    data = pl.DataFrame({"f": values}, schema={"f": pl.Float32})
    types = columns({"f": domain_of_dtype(from_polars(data["f"].dtype))})
    for other in (number, *(v if v is None else float(f"{v:.7g}") for v in values)):
        if other is None:
            continue
        expression = getattr(pl.col("f"), method)(other)
        [named] = read(expression, data.schema)
        found = data.select(x=lower(named.tree, types))["x"]
        assert found.to_list() == data.select(x=expression)["x"].to_list(), other
