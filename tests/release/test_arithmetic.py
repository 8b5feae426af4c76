"""Arithmetic with results is what exact numbers of Python give, or is refused before the charge."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.aggregates.measurement import Selection
from dpframe.release import assemble
from tests.api.exactly import exactly, protected

INT64 = 2**63
ROWS = 2**32
"""Results of this many rows surely fit, as the documentation says."""
HOUR = timedelta(hours=1)
DAY = (datetime(2024, 1, 1), datetime(2024, 1, 2))
PEOPLE = pl.DataFrame(
    {
        "id": [1, 2, 2],
        "i": [1, -2, 3],
        "u": pl.Series([1, 2, 3], dtype=pl.UInt64),
        "x": [1.5, None, 2.5],
        "s": pl.Series([1.5, 2.5, 3.5], dtype=pl.Float32),
        "money": [Decimal("1.25"), Decimal("-1.25"), None],
        "member": [True, False, None],
        "spent": [HOUR, 2 * HOUR, None],
        "held": pl.Series([HOUR, 2 * HOUR, None], dtype=pl.Duration("ns")),
        "born": [date(2000, 1, 1)] * 3,
        "at": [datetime(2024, 1, 1, 5)] * 3,
        "late": pl.Series([datetime(2024, 1, 1, 7)] * 3, dtype=pl.Datetime("ms")),
    }
)
FRAME = dp.Session(epsilon=1).protect(PEOPLE, dp.Identifier("id")).limit_rows(2)

NUMBERS: Mapping[str, tuple[Callable[[], Any], int]] = {
    "count": (lambda: dp.count(), ROWS),
    "members": (lambda: dp.count("member", nonnegative=True), ROWS),
    "visits": (lambda: dp.count(per="unit", bounds=(0, 5)), ROWS),
    "people": (lambda: dp.n_unique("id"), ROWS),
    "total": (lambda: dp.sum("i", (-100, 10**6)), ROWS * 10**6),
    "capped": (lambda: dp.sum("i", (0, 9), per="unit"), ROWS * 9),
    "unsigned": (lambda: dp.sum("u", (0, 2**30)), ROWS * 2**30),
    "wide": (lambda: dp.sum("u", (0, 2**63)), ROWS * 2**63),
    "flags": (lambda: dp.sum("member"), ROWS),
    "middle": (lambda: dp.median("i", (-5, 10)), 10),
    "listed": (lambda: dp.quantile("i", 0.9, candidates=[-7, 3, 2**40]), 2**40),
    "choice": (lambda: dp.argmax("member"), 1),
}
"""Whole results, and how large they may be."""
REALS: Mapping[str, Callable[[], Any]] = {
    "weight": lambda: dp.sum("x", (0, 0.1)),
    "heavy": lambda: dp.sum("x", (-1e20, 1e25)),
    "narrow": lambda: dp.sum("s", (0, 3)),
    "money": lambda: dp.sum("money", (-5, 10**9)),
    "cents": lambda: dp.mean("money", (0, 10)),
    "mean": lambda: dp.mean("i", (-100, 100)),
    "spread": lambda: dp.std("x", (0, 1)),
    "third": lambda: dp.quantile("x", 0.3, (0, 1)),
    "chosen": lambda: dp.quantile("x", 0.3, candidates=[-0.5, 0.1, 1e9]),
}
TIMES: Mapping[str, tuple[Callable[[], Any], Fraction]] = {
    "spent": (
        lambda: dp.sum("spent", (timedelta(0), timedelta(milliseconds=1))),
        Fraction(ROWS, 1000),
    ),
    "spent long": (lambda: dp.sum("spent", (-HOUR, 500 * HOUR)), Fraction(ROWS * 500 * 3600)),
    "held": (lambda: dp.mean("held", (-HOUR, 9 * HOUR)), Fraction(9 * 3600)),
    "usual": (lambda: dp.median("spent", (-HOUR, 9 * HOUR)), Fraction(9 * 3600)),
    "born": (lambda: dp.mean("born", (date(1900, 1, 1), date(2025, 1, 1))), Fraction(2**32)),
    "at": (lambda: dp.mean("at", DAY), Fraction(2**32)),
    "late": (lambda: dp.quantile("late", 0.5, DAY), Fraction(2**32)),
}
"""Moments and durations, and how many seconds they may be, before 1970 or after."""
RESULTS: Mapping[str, Callable[[], Any]] = {
    **{name: made for name, (made, _) in NUMBERS.items()},
    **REALS,
    **{name: made for name, (made, _) in TIMES.items()},
}
SPANS = ("spent", "spent long", "held", "usual")


# -- what exact numbers give --------------------------------------------------------------------


class NoNumber(Exception):
    """A formula without a meaning."""


@dataclass(frozen=True)
class Exact:
    """A number, and the type that it has in Polars: a whole or real one, or units of a duration or
    a moment. Infinities and NaN are floats. None is null.
    """

    value: Fraction | float | None
    kind: str
    most: Fraction | None = None
    """How large a whole number or a duration may be; None where that is unknown."""

    @property
    def is_number(self) -> bool:
        return self.kind in ("whole", "real")

    @property
    def is_span(self) -> bool:
        return self.kind.startswith("span ")

    @property
    def unit(self) -> int:
        """Units in a second."""
        return {"ms": 10**3, "us": 10**6, "ns": 10**9}[self.kind.split()[1]]


def infinite(above: Fraction | int) -> float:
    return math.nan if above == 0 else math.copysign(math.inf, above)


def of_floats(rule: Callable[[Any, Any], Any], a: Any, b: Any) -> float:
    """What floats give where one is infinite or NaN."""
    try:
        with np.errstate(all="ignore"):
            return float(rule(np.float64(float(a)), np.float64(float(b))))
    except OverflowError:
        return math.nan


def combined(symbol: str, a: Exact, b: Exact) -> Exact:
    if not (a.is_number and b.is_number):
        return combined_times(symbol, a, b)
    whole = a.kind == b.kind == "whole" and symbol != "/"
    most = largest(symbol, a, b) if whole else None
    kind = "whole" if whole else "real"
    if a.value is None or b.value is None:
        return Exact(None, kind, most)
    x, y = a.value, b.value
    if isinstance(x, float) or isinstance(y, float):
        rules = {"//": lambda p, q: np.floor(p / q), "%": lambda p, q: p - q * np.floor(p / q)}
        rule = rules.get(symbol, OPERATORS[symbol])
        return Exact(as_exact(of_floats(rule, x, y)), kind, most)
    if symbol in ("/", "//", "%") and y == 0:
        if whole:
            return Exact(None, kind, most)
        return Exact(math.nan if symbol == "%" else infinite(x), kind)
    return Exact(Fraction(OPERATORS[symbol](x, y)), kind, most)


def as_exact(number: float) -> Fraction | float:
    return Fraction(number) if math.isfinite(number) else number


def largest(symbol: str, a: Exact, b: Exact) -> Fraction | None:
    if a.most is None or b.most is None or max(a.most, b.most) >= INT64:
        return None
    match symbol:
        case "+" | "-":
            return a.most + b.most
        case "*":
            return a.most * b.most
        case "//":
            return a.most
        case _:
            return b.most


OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
}


def combined_times(symbol: str, a: Exact, b: Exact) -> Exact:
    missing = a.value is None or b.value is None
    x, y = a.value or Fraction(0), b.value or Fraction(0)
    if a.is_span and b.is_span and symbol == "/":
        if missing:
            return Exact(None, "real")
        x, y = Fraction(x) / a.unit, Fraction(y) / b.unit
        return Exact(x / y if y else infinite(x), "real")
    if symbol in "+-" and not a.is_number and not b.is_number:
        return shifted(symbol, a, b, missing)
    if symbol == "*" and b.is_span and a.is_number:
        a, b, x, y = b, a, y, x
    if symbol in "*/" and a.is_span and b.is_number:
        if isinstance(x, float) or isinstance(y, float):
            raise NoNumber
        most = None
        if a.most is not None and b.most is not None:
            most = a.most * b.most if symbol == "*" else a.most
            if symbol == "/" and b.kind == "real":
                most = a.most / b.most if b.most else Fraction(0)
        if missing or (symbol == "/" and y == 0):
            return Exact(None, a.kind, most)
        found = Fraction(OPERATORS[symbol](x, y))
        cut = math.floor if symbol == "/" and b.kind == "whole" else math.trunc
        return Exact(Fraction(cut(found)), a.kind, most)
    raise NoNumber


def shifted(symbol: str, a: Exact, b: Exact, missing: bool) -> Exact:
    """Moments and durations, in the coarser unit; converted as Polars converts them."""
    sign = 1 if symbol == "+" else -1
    if sign > 0 and a.is_span and not b.is_span:
        a, b = b, a
    if not b.is_span and (a.is_span or sign > 0):
        raise NoNumber
    unit = min(a.unit, b.unit)
    if a.kind.startswith("day") and b.is_span:
        unit = b.unit

    def converted(v: Exact) -> Fraction:
        cut = math.trunc if v.is_span else math.floor
        return Fraction(cut(Fraction(v.value or 0) * unit / v.unit))

    most = None
    if a.most is not None and b.most is not None:
        most = a.most * unit / a.unit + b.most * unit / b.unit + 2
    total = converted(a) + sign * converted(b)
    name = {10**3: "ms", 10**6: "us", 10**9: "ns"}[unit]
    if a.is_span or not b.is_span:
        kind = f"span {name}"
    elif a.kind.startswith("day"):
        kind, total = a.kind, Fraction(total // (86_400 * unit) * 86_400 * a.unit)
    else:
        kind = f"moment {name}"
    return Exact(None if missing else total, kind, most)


def changed(method: str, arguments: tuple[Any, ...], a: Exact) -> Exact:
    if arguments == (None, None):
        return a
    if not a.is_number and not (a.is_span and method in ("neg", "abs")):
        raise NoNumber
    x: Any = a.value
    match method:
        case "neg":
            return Exact(None if x is None else -x, a.kind, a.most)
        case "abs":
            return Exact(None if x is None else abs(x), a.kind, a.most)
        case "round":
            if a.kind == "whole" or not isinstance(x, Fraction):
                return a
            rounded: Any = round(x, arguments[0])
            return Exact(Fraction(rounded), "real")
        case "sqrt":
            if x is None:
                return Exact(None, "real")
            f = nearest(x)
            return Exact(as_exact(math.sqrt(f) if f >= 0 else math.nan), "real")
        case "clip":
            lo, hi = arguments
            whole = a.kind == "whole" and all(isinstance(end, int | None) for end in arguments)
            kind = "whole" if whole else "real"
            if x is not None and x == x:
                x = x if lo is None else max(x, of_constant(lo).value)
                x = x if hi is None else min(x, of_constant(hi).value)
            return Exact(x, kind)
        case "**":
            return raised(a, arguments[0])
    raise AssertionError(method)


def raised(a: Exact, power: Any) -> Exact:
    exponent = of_constant(power)
    whole = a.kind == exponent.kind == "whole" and power >= 0
    kind = "whole" if whole else "real"
    most = None
    if whole and a.most is not None and a.most < INT64 and power <= 64:
        most = a.most**power
    x = a.value
    if x is None:
        return Exact(None, kind, most)
    assert isinstance(exponent.value, Fraction)
    if exponent.value.denominator != 1:
        with np.errstate(all="ignore"):
            return Exact(as_exact(float(np.float64(nearest(x)) ** np.float64(power))), kind)
    n = int(exponent.value)
    if not isinstance(x, Fraction):
        with np.errstate(all="ignore"):
            return Exact(as_exact(float(np.float64(x) ** float(n))), kind)
    if x == 0 and n < 0:
        return Exact(math.inf, kind)
    return Exact(Fraction(x**n), kind, most)


def of_constant(number: Any) -> Exact:
    """A float that is written means the decimal that it prints as."""
    if isinstance(number, float) and not math.isfinite(number):
        return Exact(number, "real")
    exact = Fraction(repr(number)) if isinstance(number, float) else Fraction(number)
    return Exact(exact, "whole" if isinstance(number, int) else "real", abs(exact))


def nearest(x: Fraction | float) -> float:
    try:
        return float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf


# -- formulas -----------------------------------------------------------------------------------

Formula = Any
"""The name of a result, or an operation of formulas: a tuple that begins with its name."""

WHOLE = st.one_of(
    st.integers(-9, 9),
    st.integers(-(2**70), 2**70),
    st.sampled_from([0, 1, 1000, 10**18, 2**31, 2**62, 2**63, -(2**63), 2**100]),
)
REAL = st.one_of(
    st.floats(),
    st.sampled_from([0.0, -0.0, 0.1, 0.3, -0.3, 1e18, 2.0**53 + 2, 1e300, -1e-300]),
    st.sampled_from([Decimal("0.1"), Decimal("19.99"), Decimal(3)]),
)
ENDS = st.one_of(st.none(), st.integers(-(2**62), 2**62), st.floats(-1e30, 1e30))


def in_order(ends: tuple[Any, Any]) -> tuple[Any, Any]:
    low, high = ends
    return (high, low) if None not in ends and low > high else ends


def formulas(leaves: st.SearchStrategy[Any], numbers: st.SearchStrategy[Any]) -> Any:
    symbols = st.sampled_from([*OPERATORS])
    pair = st.tuples(ENDS, ENDS).map(in_order)

    def larger(part: Any) -> Any:
        return st.one_of(
            st.tuples(symbols, part, part),
            st.tuples(symbols, part, st.tuples(st.just("constant"), numbers)),
            st.tuples(symbols, st.tuples(st.just("constant"), numbers), part),
            st.tuples(st.sampled_from(["neg", "abs", "sqrt"]), part),
            st.tuples(st.just("round"), part, st.integers(0, 6)),
            st.tuples(st.just("clip"), part, pair).map(lambda t: (t[0], t[1], *t[2])),
            st.tuples(st.just("**"), part, st.sampled_from([0, 1, 2, 3, -1, -2, 0.5, 2.0])),
        )

    return larger(st.recursive(leaves, larger, max_leaves=4))


def written(formula: Formula) -> Any:
    """A formula as an analyst writes it."""
    if isinstance(formula, str):
        return RESULTS[formula]()
    name, *parts = formula
    if name == "constant":
        return parts[0]
    if name in OPERATORS:
        return OPERATORS[name](*(written(part) for part in parts))
    of, *arguments = parts
    value = written(of)
    if name == "neg":
        return -value
    return value ** arguments[0] if name == "**" else getattr(value, name)(*arguments)


def meant(formula: Formula, released: Mapping[str, Exact]) -> Exact:
    """A formula of released numbers by the exact numbers of Python."""
    if isinstance(formula, str):
        return released[formula]
    name, *parts = formula
    if name == "constant":
        return of_constant(parts[0])
    if name in OPERATORS:
        return combined(name, *(meant(part, released) for part in parts))
    return changed(name, tuple(parts[1:]), meant(parts[0], released))


def names_in(formula: Formula) -> set[str]:
    if isinstance(formula, str):
        return {formula}
    return set() if formula[0] == "constant" else {n for p in formula[1:] if p for n in _names(p)}


def _names(part: Any) -> set[str]:
    return names_in(part) if isinstance(part, tuple | str) else set()


# -- released numbers ---------------------------------------------------------------------------

SIZES = st.one_of(
    st.integers(-5, 5), st.integers(-(2**32), 2**32), st.integers(-(2**62), 2**62 - 1)
)


def released(query: dp.PrivateQuery, numbers: Callable[[], int]) -> pl.DataFrame:
    """The result for noisy integers that somebody chose, one for each part."""
    inner = query._query
    groups = 1 if inner.groups is None else inner.groups.size
    noisy: dict[Any, Any] = {}
    for part, mechanism in (key for aggregate in inner.aggregates for key in aggregate.keys):
        shape = (groups, part.picks if isinstance(part, Selection) else 1)
        found = np.array([numbers() for _ in range(math.prod(shape))], dtype=np.int64)
        if isinstance(part, Selection):
            found %= part.candidates
        noisy[part, mechanism] = found.reshape(shape)
    return assemble(inner, noisy)


def exact_of(column: pl.Series, name: str) -> list[Exact]:
    dtype, most = column.dtype, None
    if name in NUMBERS:
        kind, most = "whole", Fraction(NUMBERS[name][1])
    elif name in REALS:
        kind = "real"
    else:
        unit = getattr(dtype, "time_unit", None)
        kind = f"{'span' if name in SPANS else 'moment'} {unit}" if unit else "day us"
        most = TIMES[name][1] * Exact(None, kind).unit
    physical = column.cast(pl.Int64) if name in TIMES or dtype == pl.Boolean else column
    values: list[Fraction | float | None]
    values = [None if v is None else Fraction(v) for v in physical.to_list()]
    if kind == "day us":
        values = [None if v is None else v * 86_400 * 10**6 for v in values]
    return [Exact(value, kind, most) for value in values]


def is_right(found: Any, dtype: pl.DataType, expected: Exact) -> bool:
    x = expected.value
    if found is None or x is None:
        return found is None and x is None
    if isinstance(dtype, pl.Float64):
        f = nearest(x)
        return bool(found == f or (math.isnan(found) and math.isnan(f)))
    return bool(x == found)


def drawn_from(data: st.DataObject | None) -> Callable[[], int]:
    return (lambda: 2) if data is None else (lambda: data.draw(SIZES))


@given(
    formulas(st.sampled_from([*NUMBERS, *REALS]), st.one_of(WHOLE, REAL)),
    st.data(),
)
@example(("*", "visits", ("constant", 1000)), None)
@example(("+", "listed", "listed"), None)
@example(("%", "heavy", ("constant", 0.3)), None)
@example(("//", "weight", ("constant", -0.0)), None)
@example(("//", ("*", "total", "total"), ("constant", 0)), None)
@example(("%", ("*", "total", "total"), "total"), None)
@example(("/", "count", ("constant", Decimal(3))), None)
@example(("+", "count", ("constant", 2**70)), None)
@example(("clip", "count", 0.5, 1.5), None)
@example(("-", ("*", "mean", ("constant", 1e20)), ("*", "mean", ("constant", 1e20))), None)
@example(("+", "choice", ("constant", 2**31 - 1)), None)
@example(("**", "count", -1), None)
def test_arithmetic_with_numbers_is_exact(formula: Formula, data: st.DataObject | None) -> None:
    frame, values = computed(formula, data)
    expected, found = meant(formula, values), frame["result"]
    assert found.dtype in ((pl.Float64, pl.Int64) if expected.kind == "whole" else (pl.Float64,))
    assert is_right(found.item(), found.dtype, expected), (found.item(), expected, values)
    if expected.most is not None and expected.most < INT64:
        assert found.dtype == pl.Int64 or not is_within_bounds(expected)


def computed(
    formula: Formula, data: st.DataObject | None
) -> tuple[pl.DataFrame, Mapping[str, Exact]]:
    """A result beside those that it is made of, and what these are."""
    used = sorted(names_in(formula))
    outputs = [RESULTS[name]().alias(name) for name in used]
    query = FRAME.agg(*outputs, written(formula).alias("result"))
    frame = released(query, drawn_from(data))
    return frame, {name: exact_of(frame[name], name)[0] for name in used}


@given(
    formulas(st.sampled_from([*TIMES, "count", "mean"]), st.one_of(WHOLE, REAL)),
    st.data(),
)
@example(("*", "spent", ("constant", 10**15)), None)
@example(("*", "spent long", ("constant", 2)), None)
@example(("*", "held", ("constant", 1e300)), None)
@example(("*", ("-", "late", "at"), ("constant", 3)), None)
@example(("/", "spent", ("constant", -2)), None)
@example(("/", "usual", ("constant", 0.0)), None)
@example(("/", "usual", "held"), None)
@example(("+", "born", "usual"), None)
@example(("sqrt", "usual"), None)
@example(("clip", "usual", 0, 5), None)
@example(("*", "spent", "mean"), None)
@example(("/", "spent", "count"), None)
def test_arithmetic_with_times_is_exact_or_refused(
    formula: Formula, data: st.DataObject | None
) -> None:
    """What is refused has no meaning, or may be beyond the longest duration."""
    try:
        frame, values = computed(formula, data)
    except dp.DPFrameError as error:
        assert_refused_rightly(error, formula)
        return
    assume(all(is_within_bounds(value) for value in values.values()))
    expected, found = meant(formula, values), frame["result"]
    x, unit = expected.value, getattr(found.dtype, "time_unit", None)
    if expected.is_number:
        assert is_right(found.item(), found.dtype, expected), (found.item(), expected, values)
        return
    if expected.kind == "day us":
        assert found.dtype == pl.Date
        x = None if x is None else Fraction(x) / (86_400 * 10**6)
    else:
        assert isinstance(found.dtype, pl.Duration if expected.is_span else pl.Datetime)
        own = expected.kind.split()[1]
        if expected.most is not None:
            assert unit == (own if expected.most < INT64 else "ms")
        if x is not None and unit != own:
            x = Fraction(math.trunc(Fraction(x) * 1000 / expected.unit))
    assert is_right(found.cast(pl.Int64).item(), pl.Int64(), Exact(x, "whole")), (
        found,
        expected,
    )


def is_within_bounds(number: Exact) -> bool:
    x: Any = number.value
    return number.most is None or x is None or bool(abs(x) <= number.most)


def assert_refused_rightly(refusal: dp.DPFrameError, formula: Formula) -> None:
    """It says what is wrong where; the formula has no meaning, or is perhaps too long."""
    assert refusal.where is not None
    assert refusal.remedy is not None
    frame = released(FRAME.agg(*(RESULTS[n]().alias(n) for n in TIMES)), lambda: 1)
    values = {name: exact_of(frame[name], name)[0] for name in TIMES}
    values["count"] = Exact(Fraction(1), "whole", Fraction(ROWS))
    values["mean"] = Exact(Fraction(1), "real")
    with pytest.raises(NoNumber):
        require_room(meant(formula, values))


def require_room(expected: Exact) -> None:
    """Refuse what may be longer than milliseconds of 64 bits hold."""
    if expected.is_span and (
        expected.most is None or expected.most * 1000 >= INT64 * expected.unit
    ):
        raise NoNumber


# -- lists, groups, and what is refused ---------------------------------------------------------


@given(
    st.sampled_from([*OPERATORS]),
    st.one_of(st.sampled_from(["quartiles", "heights", "count", "total", "mean"]), WHOLE, REAL),
    st.booleans(),
    st.data(),
)
@example("*", 2**62, False, None)
@example("+", "quartiles", False, None)
@example("//", 0, True, None)
def test_arithmetic_with_lists_is_exact(
    symbol: str, other: Any, mirrored: bool, data: st.DataObject | None
) -> None:
    quartiles = dp.quantile("i", [0.25, 0.5, 0.75], (-(2**40), 2**40))
    lists = {"quartiles": quartiles, "heights": dp.quantile("x", [0.1, 0.5, 0.9], (0, 0.1))}
    with_it = other
    if isinstance(other, str):
        with_it = lists[other] if other in lists else RESULTS[other]()
    pair = (with_it, quartiles) if mirrored else (quartiles, with_it)
    outputs = {"quartiles": quartiles, "result": OPERATORS[symbol](*pair)}
    if isinstance(other, str):
        outputs[other] = with_it
    frame = released(FRAME.agg(**outputs), drawn_from(data))

    def numbers(name: Any) -> list[Exact]:
        if not isinstance(name, str):
            return [of_constant(name)] * 3
        if name not in lists:
            return exact_of(frame[name], name) * 3
        kind = "whole" if name == "quartiles" else "real"
        return [Exact(Fraction(v), kind) for v in frame[name].item()]

    assert isinstance(frame["result"].dtype, pl.List)
    found = frame["result"].item()
    names = (other, "quartiles") if mirrored else ("quartiles", other)
    for value, a, b in zip(found, *map(numbers, names), strict=True):
        expected = combined(symbol, a, b)
        assert is_right(value, found.dtype, expected), (value, expected)


@pytest.mark.parametrize("epsilon", [1e-6, 0.001, 1, 10**6])
@pytest.mark.parametrize("by", ["nothing", "listed", "rollup", "no keys"])
def test_arithmetic_is_with_the_released_numbers(epsilon: float, by: str) -> None:
    """Noise that is larger than all data makes no difference, nor does where numbers come from."""
    rows = pl.DataFrame(
        {
            "g": ["a", "b", "a", "c"] * 50,
            "h": ["x", "y"] * 100,
            "i": range(200),
            "money": pl.Series([Decimal("1.25"), Decimal("7.00")] * 100),
        }
    )
    frame = dp.Session(epsilon=10**9).protect(rows, dp.Rows())
    outputs = {
        "n": dp.count(),
        "total": dp.sum("i", (0, 2**20)),
        "mean": dp.mean("i", (0, 200)),
        "money": dp.sum("money", (0, 10)),
        "scaled": dp.count() * 2**29,
        "product": dp.sum("i", (0, 2**20)) * dp.count() * dp.count(),
        "share": 100 * dp.sum("i", (0, 2**20)) / dp.count() - dp.mean("i", (0, 200)),
        "rest": dp.sum("i", (0, 2**20)) % dp.count() + dp.sum("i", (0, 2**20)) // dp.count(),
        "paid": dp.sum("money", (0, 10)) / 3,
    }
    keys = {"g": ["a", "b", "z"], "h": ["x", "y"]}
    groups: Mapping[str, Callable[[], Any]] = {
        "nothing": lambda: frame,
        "listed": lambda: frame.group_by("g", keys=keys["g"]),
        "rollup": lambda: frame.group_by(dp.rollup("g", "h"), keys=keys),
        "no keys": lambda: frame.group_by("g", keys=pl.Series([], dtype=pl.String)),
    }
    result = groups[by]().agg(**outputs).collect(epsilon=epsilon)
    assert result.schema["rest"] in (pl.Int64, pl.Float64)
    for row in result.iter_rows(named=True):
        n, total, money = (Fraction(row[name]) for name in ("n", "total", "money"))
        mean = None if row["mean"] is None else Fraction(row["mean"])
        expected = {
            "scaled": Exact(n * 2**29, "whole"),
            "product": Exact(total * n * n, "whole"),
            "share": Exact(
                None if mean is None else 100 * total / n - mean if n else infinite(total), "real"
            ),
            "rest": Exact(total % n + total // n if n else None, "whole"),
            "paid": Exact(money / 3, "real"),
        }
        for name, value in expected.items():
            assert is_right(row[name], result.schema[name], value), (name, row)


@pytest.mark.parametrize(
    "result",
    [
        dp.count(per="unit", bounds=(0, 5)) * 1000,
        dp.quantile("i", 0.5, candidates=[1, 2, 3]) * 10**6,
        dp.median("i", (0, 9)) + dp.count(),
        dp.n_unique("id") // 2,
        dp.argmax("member") + 1,
        dp.count() ** 1,
        dp.count() % dp.sum("i", (0, 9)),
    ],
    ids=str,
)
def test_whole_results_that_fit_are_int64(result: pl.Expr) -> None:
    assert released(FRAME.agg(r=result), lambda: 3)["r"].dtype == pl.Int64


def test_noise_that_may_pass_int64_makes_a_column_of_floats() -> None:
    frame = protected(pl.DataFrame({"x": [1]}))
    query = frame.agg(n=dp.count(), r=dp.count() * 2**29)
    assert exactly(query).row(0) == (1, 2**29)
    assert exactly(query)["r"].dtype == pl.Int64
    noisy = query.collect(epsilon=Fraction(1, 2**38))
    assert noisy["r"].dtype == pl.Float64
    assert noisy["r"].item() == float(noisy["n"].item() * 2**29)


def test_noise_that_may_pass_all_durations_is_refused_before_the_charge() -> None:
    session = dp.Session(epsilon=1)
    query = session.protect(pl.DataFrame({"d": [HOUR]}), dp.Rows()).agg(
        r=dp.sum("d", (timedelta(0), HOUR)) * 400
    )
    with pytest.raises(dp.UnsupportedOperation, match="beyond the type Duration") as caught:
        query.collect(epsilon=Fraction(1, 2**26))
    assert caught.value.where is not None
    assert "dt.total_seconds()" in str(caught.value)
    assert session.history.is_empty()
    assert query.collect(epsilon=1)["r"].dtype == pl.Duration("ms")


@pytest.mark.parametrize(
    ("result", "match"),
    [
        (lambda: dp.count().clip(5, 1), "reversed"),
        (lambda: dp.mean("i", (0, 9)).round(1, mode="half_away_from_zero"), "mode"),
        (lambda: dp.mean("spent", (HOUR, 2 * HOUR)) + 1, "add is not possible"),
        (lambda: dp.mean("spent", (HOUR, 2 * HOUR)) ** 2, "pow is not possible"),
        (lambda: dp.mean("born", (date(2000, 1, 1), date(2001, 1, 1))).sqrt(), "not possible"),
        (lambda: dp.mean("spent", (HOUR, 2 * HOUR)).clip(0, 5), "cannot be clamped"),
        (lambda: dp.sum("spent", (timedelta(0), 500 * HOUR)) * 10**6, "beyond the type"),
        (lambda: dp.sum("spent", (timedelta(0), HOUR)) / dp.mean("i", (0, 9)), "beyond the type"),
        (lambda: dp.quantile("i", [0.1, 0.9], (0, 9)).abs(), "abs of a list"),
        (
            lambda: dp.quantile("i", [0.1, 0.9], (0, 9)) + dp.quantile("i", [0.5], (0, 9)),
            "different lengths",
        ),
    ],
)
def test_arithmetic_without_a_right_result_is_refused_when_it_is_built(
    result: Callable[[], pl.Expr], match: str
) -> None:
    with pytest.raises(dp.DPFrameError, match=match) as caught:
        FRAME.agg(r=result())
    assert caught.value.where is not None
    assert "dp_" in caught.value.where or "dp." in caught.value.where
    assert caught.value.remedy


def test_powers_of_many_digits_are_computed_in_floats() -> None:
    frame = released(
        FRAME.agg(n=dp.count(), r=dp.count() ** 3000, s=(dp.count() ** 50) ** 50), lambda: 3
    )
    assert frame.row(0) == (3, math.inf, math.inf)
    assert released(FRAME.agg(r=(dp.count() / 2) ** 3000 * 0), lambda: 1)["r"].item() == 0.0


def test_a_float_means_the_decimal_that_it_prints_as() -> None:
    frame = released(
        FRAME.agg(q=dp.count() // 0.1, r=dp.count() % 0.1, s=dp.count() * 0.1), lambda: 7
    )
    assert frame.row(0) == (70.0, 0.0, 0.7)


def test_durations_are_clipped_to_durations() -> None:
    query = FRAME.agg(r=dp.median("spent", (-HOUR, 9 * HOUR)).clip(timedelta(0), HOUR) * 2)
    assert released(query, lambda: 2**19)["r"].to_list() == [2 * HOUR]
    assert released(query, lambda: 0)["r"].to_list() == [timedelta(0)]


def test_intervals_hold_results_of_rounded_decimals() -> None:
    """The Decimal is right to its last digit, where the interval of the sum is narrower."""
    rows = pl.DataFrame({"money": [Decimal("1.25")] * 205})
    private = dp.Session(epsilon=10**9).protect(rows, dp.Rows())
    money = dp.sum("money", (-5, 10))
    query = private.agg(total=money, more=dp.count() + money, less=money - 0.3)
    result = query.collect(epsilon=10**6, interval=0.95).row(0, named=True)
    assert result["total"] == Decimal("256.25")
    assert (result["more"], result["less"]) == (461.25, 255.95)
    for name in ("total", "more", "less"):
        assert result[f"{name}_low"] <= result[name] <= result[f"{name}_high"]


@pytest.mark.parametrize("symbol", [*OPERATORS])
@pytest.mark.parametrize("number", [np.float64(2.5), np.int64(7), np.float32(0.5), np.uint8(3)])
def test_numbers_of_numpy_may_come_first(symbol: str, number: Any) -> None:
    rule, plain = OPERATORS[symbol], number.item()
    query = FRAME.agg(a=rule(number, dp.count()), b=rule(plain, dp.count()), c=number ** dp.count())
    a, b, c = released(query, lambda: 2).row(0)
    assert a == b == rule(plain, 2)
    assert c == plain**2


@pytest.mark.parametrize(
    "use",
    [
        lambda n: np.log(n),
        lambda n: np.add(n, 1, dtype=float),
        lambda n: np.add.outer(n, 1),
        lambda n: np.array([1, 2]) * n,
    ],
)
def test_functions_of_numpy_are_refused(use: Callable[[Any], Any]) -> None:
    with pytest.raises(dp.UnsupportedOperation) as caught:
        use(dp.count())
    assert "dp.count()" in str(caught.value)
    assert caught.value.remedy
