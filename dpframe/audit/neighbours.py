"""Worst-case neighbours of a plan: searched for among made-up people, with no data at hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from hashlib import blake2b
from itertools import islice, product
from math import ceil
from typing import Any, TypeAlias, TypeVar

import numpy as np
import polars as pl

from dpframe import pipeline
from dpframe.aggregates.aggregate import Query
from dpframe.aggregates.measurement import CellCounts, Responses, Selection, Table
from dpframe.aggregates.quantile import (
    ChosenTogether,
    QuantileChoice,
    QuantilesAtOnce,
    QuantileTree,
)
from dpframe.aggregates.request import Request
from dpframe.aggregates.statistics import RowCount
from dpframe.audit.evidence import claims_of, expected_share
from dpframe.audit.likelihood import (
    Reach,
    choices_apart,
    is_noise_alone,
    reach_of,
    stated_loss,
)
from dpframe.core.budget import GDP
from dpframe.core.dtypes import Domain, DType, Scalar
from dpframe.core.tree import Call, Column, Named, Tree, column_names
from dpframe.core.units import Identifier, Rows
from dpframe.frames.relation import Relation, frames_of
from dpframe.frames.row_steps import Filter
from dpframe.frames.sampling import window_of
from dpframe.lower import Execution, find_keys
from dpframe.parse.outputs import polars_schema
from dpframe.rows.logic import And
from dpframe.simulate import Exact, ExactTables

# Values that may matter to a query: its own constants, what is next to them, and extremes.

MOST_VALUES = 160
"""The most values of one column: a usual query barely distinguishes more."""
_MOST_CONSTANTS = 60
_DAY = timedelta(days=1)
_TICK = timedelta(microseconds=1)
_NUMBERS = (int, float, Decimal, Fraction)
_PLAIN = (bool, int, float, str, bytes, Decimal, Fraction, date, time, timedelta)


@dataclass(frozen=True, slots=True)
class Constants:
    """The constants of a query."""

    every: tuple[object, ...]  # All of them: literals, bounds, keys, categories, candidates
    # The constants that appear with an expression of only one column, by column.
    near: Mapping[str, tuple[object, ...]]
    # Values that a column has in listed groups, a mapping for each key.
    keys: tuple[Mapping[str, object], ...]
    # Names that the query may mean a column by; values of no other column matter.
    columns: frozenset[str]


def constants_of(query: Query) -> Constants:
    """The constants of a query, found in all that it is made of."""
    every: dict[str, object] = {}
    near: dict[str, dict[str, object]] = {}
    used: set[str] = set()
    listed = _listed_values(query)
    for item in _items((query.relation, query.groups, query.requests), set()):
        if isinstance(item, (str, Column)):
            used.add(item if isinstance(item, str) else item.name)
        if isinstance(item, _PLAIN):
            if len(every) < 20 * _MOST_CONSTANTS:
                every.setdefault(_label(item), item)
        elif isinstance(item, (Call, Request)):
            tree = item if isinstance(item, Call) else item.tree
            names = () if tree is None else column_names(tree)
            if len(names) == 1:
                beside = near.setdefault(names[0], {})
                for value in (*_items(item, set()), *listed.get(tree, ())):
                    if isinstance(value, _PLAIN) and len(beside) < _MOST_CONSTANTS:
                        beside.setdefault(_label(value), value)
    near_values = {name: tuple(found.values()) for name, found in near.items()}
    return Constants(tuple(every.values()), near_values, _listed_keys(query), frozenset(used))


def _listed_keys(query: Query) -> tuple[Mapping[str, object], ...]:
    if query.groups is None or not query.groups.size:
        return ()
    plain = [(i, n.tree.name) for i, n in enumerate(query.groups.by) if isinstance(n.tree, Column)]
    rows = query.groups.keys.head(_MOST_CONSTANTS).rows()
    return tuple({name: row[i] for i, name in plain} for row in rows)


def _listed_values(query: Query) -> Mapping[Tree | None, list[object]]:
    """Values in listed groups of each expression that rows are grouped by."""
    if query.groups is None or not query.groups.size:
        return {}
    columns = query.groups.keys.head(_MOST_CONSTANTS // 4).get_columns()
    pairs = zip(query.groups.by, columns, strict=True)
    return {named.tree: values.to_list() for named, values in pairs}


def _label(value: object) -> str:
    return f"{type(value).__name__} {value!r}"


def _items(value: object, seen: set[int]) -> Iterator[object]:
    """All frozen values and plain ones in it; tables give their first rows."""
    if isinstance(value, _PLAIN):
        yield value
        return
    if value is None or isinstance(value, (type, DType)) or id(value) in seen:
        return
    seen.add(id(value))
    match value:
        case pl.DataFrame():
            inner: Iterable[object] = value.head(_MOST_CONSTANTS).rows()
        case pl.Series():
            inner = value.head(_MOST_CONSTANTS).to_list()
        case Relation():
            inner = (value.source.columns, value.steps)
        case Domain():
            inner = (value.interval.lo, value.interval.hi, value.categories)
        case Mapping():
            inner = value.values()
        case tuple() | list() | frozenset():
            inner = value
        case Column() | Rows() | Identifier():
            yield value
            return
        case Call():  # names of operations and of their constants are not values
            yield value
            inner = (value.args, [constant for _, constant in value.operation.constants])
        case Named():
            inner = (value.tree,)
        case Request():
            yield value
            inner = (value.tree, value.aggregate.arguments(), value.score, value.denominator)
        case _ if is_dataclass(value):
            yield value
            inner = (getattr(value, field.name) for field in fields(value))
        case _:
            return
    for item in inner:
        yield from _items(item, seen)


def values_for(dtype: DType, constants: Sequence[object]) -> list[object]:
    """Python values of a type, null first, each once; the query's own come before extremes."""
    made: dict[str, object] = {"null": None}
    for value in islice(_values(dtype, constants), 8 * MOST_VALUES):
        made.setdefault(_label(value), value)
        if len(made) == MOST_VALUES:
            break
    return list(made.values())


def _values(dtype: DType, constants: Sequence[object]) -> Iterable[object]:
    match dtype.name:
        case "Boolean":
            return (True, False)
        case "Enum":
            return dtype.categories or ()
        case "String" | "Categorical":
            return _texts(constants)
        case "Binary":
            return (b"", b"a", *(c for c in constants if isinstance(c, bytes)))
        case "Decimal":
            return _decimals(dtype, constants)
        case "Date":
            return _dates(constants)
        case "Datetime":
            return _datetimes(constants)
        case "Duration":
            own = [c for c in constants if isinstance(c, timedelta)]
            return (x for c in [*own, timedelta(0), _DAY] for x in (c, c + _TICK, -c, 2 * c))
        case "Time":
            own_times = [c for c in constants if isinstance(c, time)]
            return (*own_times, time(0), time(12), time(23, 59, 59, 999_999))
        case "List" | "Array":
            return _lists(dtype, constants)
        case "Struct":
            return _structs(dtype, constants)
        case _ if dtype.is_float:
            return _floats(constants)
        case _ if dtype.is_integer:
            return _integers(dtype, constants)
        case _:
            return ()


def _numbers(constants: Sequence[object]) -> list[Fraction]:
    """Finite numbers among constants, sums and products of pairs after them."""
    numbers = (c for c in constants if isinstance(c, _NUMBERS) and not isinstance(c, bool))
    finite = (Fraction(c) for c in numbers if math.isfinite(c))
    own = [c for c in finite if abs(c) < 10**25][:_MOST_CONSTANTS]
    few = own[:12]
    pairs = [x for a, b in product(few, few) for x in (a * b, a + b)]
    return list(dict.fromkeys([*own, Fraction(0), Fraction(1), Fraction(-1), *pairs]))


def _integers(dtype: DType, constants: Sequence[object]) -> Iterator[int]:
    low, high = dtype.limits or (0, 1)
    numbers = _numbers(constants)
    first = (x for n in numbers for x in (math.floor(n), math.floor(n) - 1, math.floor(n) + 1))
    powers = (sign * 10**e for e in range(1, 7) for sign in (1, -1))
    ends = (low, high, low + 1, high - 1)
    return (x for part in (ends, first, powers) for x in part if low <= x <= high)


def _floats(constants: Sequence[object]) -> Iterator[float]:
    yield from (float("nan"), float("inf"), -float("inf"), -0.0, 1e300, -1e300, 5e-324)
    for number in _numbers(constants):
        x = float(number)
        yield from (x, math.nextafter(x, math.inf), math.nextafter(x, -math.inf), x + 1, x - 1)


def _decimals(dtype: DType, constants: Sequence[object]) -> Iterator[Decimal]:
    scale, precision = dtype.scale or 0, dtype.precision or 38
    for number in _numbers(constants):
        units = math.floor(number * 10**scale)
        for near in (units, units + 1, units - 1):
            if abs(near) < 10 ** min(precision, 36):
                yield Decimal(near).scaleb(-scale)


def _texts(constants: Sequence[object]) -> Iterator[str]:
    own = [c for c in constants if isinstance(c, str)]
    yield from own
    yield from ("", "a", "ÿ", "zz")
    for text in own[:_MOST_CONSTANTS]:
        yield from (f"{text}a", f"a{text}", text.upper(), text[:1])


def _dates(constants: Sequence[object]) -> Iterator[date]:
    for found in constants:
        if isinstance(found, date):
            day = date(found.year, found.month, found.day)
            yield day
            if date.min < day < date.max:
                yield from (day + _DAY, day - _DAY)
    yield from (date(1970, 1, 1), date(1, 1, 1), date(9999, 12, 31), date(2000, 2, 29))
    yield from (date(2026, month, 15) for month in range(1, 13))


def _datetimes(constants: Sequence[object]) -> Iterator[datetime]:
    for found in constants:
        if isinstance(found, datetime):
            yield from (found.replace(tzinfo=None) + n * _TICK for n in (0, 1, -1))
    for day in _dates(constants):
        if 1700 < day.year < 2250:  # nanoseconds hold no more
            yield datetime(day.year, day.month, day.day)
            yield datetime(day.year, day.month, day.day, 13, 45, 10)


def _lists(dtype: DType, constants: Sequence[object]) -> Iterator[list[object]]:
    assert dtype.inner is not None
    if dtype.inner.is_nested or dtype.inner.name == "Datetime":
        return
    inner = values_for(dtype.inner, constants)[:40]
    lengths = (dtype.width,) if dtype.width is not None else (0, 1, 2, 7)
    for length in lengths:
        for start in range(len(inner) if length else 1):
            yield [inner[(start + i) % len(inner)] for i in range(length)]
    if dtype.width is None:
        yield from ([value] * 20 for value in inner[:10])


def _structs(dtype: DType, constants: Sequence[object]) -> Iterator[dict[str, object]]:
    parts = {name: values_for(inner, constants) for name, inner in dtype.fields or ()}
    if any(inner.name == "Datetime" for _, inner in dtype.fields or ()):
        return
    for i in range(MOST_VALUES):
        yield {n: found[(i * (k + 1)) % len(found)] for k, (n, found) in enumerate(parts.items())}


def name_of(dtype: DType, number: int) -> Scalar:
    """The identifier of an individual by number, or None where the type has no more."""
    low, high = dtype.limits or (0, 0)
    match dtype.name:
        case "String" | "Categorical":
            return f"person {number}"
        case "Binary":
            return f"person {number}".encode()
        case "Enum":
            return dict(enumerate(dtype.categories or ())).get(number)
        case "Boolean":
            return bool(number) if number < 2 else None
        case "Date":
            return date(2000, 1, 1) + number * _DAY
        case "Datetime":
            return datetime(2000, 1, 1) + number * _DAY
        case "Duration":
            return number * _DAY
        case "Time":
            return time(number // 60, number % 60) if number < 24 * 60 else None
        case "Decimal":
            return Decimal(number).scaleb(-(dtype.scale or 0))
        case _ if dtype.is_integer:
            return number if low <= number <= high else None
        case _:
            return None


def series_of(name: str, values: Sequence[object], dtype: DType, polars: Any) -> pl.Series:
    """A column of Python values; moments of a zone are given in UTC."""
    if dtype.name == "Datetime":
        naive = pl.Series(name, values, dtype=pl.Datetime(polars.time_unit))
        if dtype.zone is None:
            return naive
        return naive.dt.replace_time_zone("UTC").dt.convert_time_zone(dtype.zone)
    return pl.Series(name, values, dtype=polars, strict=False)


# Frames of made-up people, of the schemas that a plan was made for.

Row: TypeAlias = "tuple[object, ...]"
Frames: TypeAlias = "dict[int, pl.LazyFrame]"
T = TypeVar("T")
_MOST_ROWS = 24
"""The most rows of one individual, where limits allow more."""


class Picks:
    """A fixed sequence of choices, the same each time: which neighbours are tried is no secret."""

    def __init__(self) -> None:
        self._number = 0

    def below(self, most: int) -> int:
        """A whole number from 0 to `most` - 1."""
        self._number += 1
        digest = blake2b(self._number.to_bytes(8, "big"), digest_size=8).digest()
        return int.from_bytes(digest, "big") % most

    def of(self, items: Sequence[T]) -> T:
        """One of some items."""
        return items[self.below(len(items))]


@dataclass(frozen=True, slots=True)
class Person:
    """The rows of one individual, by the token of the frame that they are in."""

    rows: Mapping[int, tuple[Row, ...]]

    def __repr__(self) -> str:
        return repr(sorted(self.rows.items()))


@dataclass(frozen=True, slots=True, eq=False)
class _Frame:
    relation: Relation
    dtypes: Mapping[str, DType]
    schema: Mapping[str, pl.DataType]
    near: Mapping[str, Sequence[object]]
    """Values of each column near the constants that it is used with."""
    far: Mapping[str, Sequence[object]]
    """Values near any constant of the query."""
    used: frozenset[str]
    """The columns whose values may matter; all others have one value throughout."""

    @property
    def identifier(self) -> str | None:
        return self.relation.source.identifier

    def windows(self, times: Sequence[object]) -> list[int]:
        """The calendar window of each time, where windows identify individuals."""
        source = self.relation.source
        assert source.time is not None
        dtype = self.dtypes[source.time]
        column = series_of(source.time, times, dtype, self.schema[source.time])
        number = window_of(source, pl)
        assert number is not None
        return pl.DataFrame([column]).select(number).to_series().to_list()


class People:
    """Makes individuals, and frames of them.

    Parameters
    ----------
    query
        What they are made for: values come from its constants, and numbers of rows from its limits.
    """

    def __init__(self, query: Query) -> None:
        found = constants_of(query)
        frames = {r.token: r for r in frames_of(query.relation)}
        self._frames = {token: _frame(relation, found) for token, relation in frames.items()}
        self._keys = found.keys
        self._unit = query.relation.source.unit
        self._sizes = _sizes(query)
        self._picks = Picks()

    @property
    def changes(self) -> bool:
        """Whether neighbours differ in the values of rows, whose number is the same."""
        return self._unit.adjacency == "change-one"

    def names(self) -> int:
        """How many individuals a frame can hold."""
        few = [f.dtypes[f.identifier] for f in self._frames.values() if f.identifier is not None]
        counts = [next((i for i in range(200) if name_of(d, i) is None), 10**6) for d in few]
        return min(counts, default=10**6)

    def anybody(self) -> Person:
        """An individual with values that are likely to matter."""
        size = self._picks.of(self._sizes)
        alike = self._picks.below(2) == 0
        rows: dict[int, tuple[Row, ...]] = {}
        keys = [self._picks.of(self._keys)] * size if self._keys else [{}] * size
        if self._keys and not alike:
            first = self._picks.below(len(self._keys))
            keys = [self._keys[(first + i) % len(self._keys)] for i in range(size)]
        for token, frame in self._frames.items():
            if alike:
                rows[token] = (self._row(frame, keys[0]),) * size
            else:
                rows[token] = tuple(self._row(frame, key) for key in keys)
        return self._in_one_window(Person(rows))

    def changed(self, person: Person) -> Person:
        """The same individual with other values in one column, or with more or fewer rows."""
        token = self._picks.of(list(self._frames))
        frame, rows = self._frames[token], person.rows[token]
        names = [name for name in frame.dtypes if name in frame.used]
        if not rows or not names or self._picks.below(6) == 0:
            size = self._picks.of(self._sizes)
            if len(self._frames) == 1 or not rows:
                more = rows or (self._row(frame, {}),)
                made = tuple(more[i % len(more)] for i in range(size))
                return self._in_one_window(Person({**person.rows, token: made}))
        place = list(frame.dtypes).index(self._picks.of(names or list(frame.dtypes)))
        value = self._value(frame, list(frame.dtypes)[place])
        every = self._picks.below(2) == 0
        chosen = self._picks.below(len(rows))
        made = tuple(
            (*row[:place], value, *row[place + 1 :]) if every or i == chosen else row
            for i, row in enumerate(rows)
        )
        return self._in_one_window(Person({**person.rows, token: made}))

    def elsewhere(self, person: Person) -> Person | None:
        """Rows that the same individual has in another calendar window, where individuals are
        distinguished by windows; None where they are not, or values have no other.
        """
        for token, frame in self._frames.items():
            time = frame.relation.source.time
            if time is None or not person.rows[token]:
                continue
            place = list(frame.dtypes).index(time)
            times = [*frame.near[time], *frame.far[time], None]
            (own,) = frame.windows([person.rows[token][0][place]])
            others = [
                value
                for value, number in zip(times, frame.windows(times), strict=True)
                if number != own
            ]
            if others:
                chosen, anybody = self._picks.of(others), self.anybody()
                rows = anybody.rows[token] or person.rows[token]
                moved = tuple((*row[:place], chosen, *row[place + 1 :]) for row in rows)
                return self._in_one_window(Person({token: moved, **_without(anybody, token)}))
        return None

    def _in_one_window(self, person: Person) -> Person:
        """The same rows in the window of the first of them, if windows identify individuals; rows
        without a time are left out.
        """
        window: int | None = None
        found = dict(person.rows)
        for token, frame in self._frames.items():
            time = frame.relation.source.time
            if time is None or not found[token]:
                continue
            place = list(frame.dtypes).index(time)
            times = list(dict.fromkeys([*frame.near[time], *frame.far[time], None]))
            known = dict(zip(times, frame.windows(times), strict=True))
            own = [row[place] for row in found[token]]
            numbers = frame.windows(own)
            window = numbers[0] if window is None else window
            here = [value for value, number in known.items() if number == window]
            here += [value for value, number in zip(own, numbers, strict=True) if number == window]
            found[token] = tuple(
                row if number == window else (*row[:place], here[i % len(here)], *row[place + 1 :])
                for i, (row, number) in enumerate(zip(found[token], numbers, strict=True))
                if here
            )
        return Person(found)

    def frames(self, people: Sequence[Person]) -> Frames:
        """The frames that hold just these individuals, each under a name of its own."""
        made: Frames = {}
        for token, frame in self._frames.items():
            rows: list[Row] = []
            owners: list[int] = []
            for number, person in enumerate(people):
                rows += person.rows[token]
                owners += [number] * len(person.rows[token])
            made[token] = _table(frame, rows, owners).lazy()
        return made

    def words(self, person: Person) -> str:
        """The rows of an individual, in the columns that the query may distinguish."""
        lines = []
        for token, frame in self._frames.items():
            rows = person.rows[token]
            where = f" of {frame.relation.name}" if len(self._frames) > 1 else ""
            shown = [_shown(frame, row) for row in dict.fromkeys(map(_hashable, rows))]
            count = f"{len(rows)} rows" if len(rows) != 1 else "1 row"
            lines.append(f"{count}{where}: {'; '.join(shown[:6])}{'; ...' * (len(shown) > 6)}")
        return "\n".join(lines)

    def _row(self, frame: _Frame, key: Mapping[str, object]) -> Row:
        return tuple(
            key[name] if name in key else self._value(frame, name) for name in frame.dtypes
        )

    def _value(self, frame: _Frame, name: str) -> object:
        if name == frame.identifier:
            return None  # given when the frame is made
        if name not in frame.used:
            return frame.far[name][-1]  # one that is not null, for steps that drop nulls
        near = frame.near[name]
        return self._picks.of(near if near and self._picks.below(4) else frame.far[name])


def together(person: Person, other: Person | None) -> Person:
    """The rows of both, as those of one individual."""
    if other is None:
        return person
    return Person({token: (*rows, *other.rows[token]) for token, rows in person.rows.items()})


def _without(person: Person, token: int) -> dict[int, tuple[Row, ...]]:
    return {other: rows for other, rows in person.rows.items() if other != token}


def _frame(relation: Relation, found: Constants) -> _Frame:
    table = relation.source.columns
    dtypes = {name: domain.dtype for name, domain in table.items()}
    declared = {
        name: [*(domain.categories or ()), *(domain.bounds or ())] for name, domain in table.items()
    }
    near = {
        name: values_for(dtype, [*found.near.get(name, ()), *declared[name]])
        for name, dtype in dtypes.items()
    }
    far = {name: values_for(dtype, found.every) for name, dtype in dtypes.items()}
    used = frozenset(table) & found.columns - {relation.source.identifier or ""}
    return _Frame(relation, dtypes, polars_schema(table), near, far, used)


def _sizes(query: Query) -> list[int]:
    """Numbers of rows that individuals may have: those around limits, and one."""
    unit = query.relation.source.unit
    if isinstance(unit, Rows):
        return sorted({1, min(unit.contributions, _MOST_ROWS)})
    assert isinstance(unit, Identifier)
    bounds = {1, 2, 5, _MOST_ROWS}
    if query.scope.norm is not None:
        bounds |= {ceil(query.scope.norm), 2 * ceil(query.scope.norm)}
    for limit in query.relation.facts.limits:
        bounds |= {limit.n, limit.n + 1, 2 * limit.n}
    return sorted(n for n in bounds if n <= _MOST_ROWS)


def _table(frame: _Frame, rows: Sequence[Row], owners: Sequence[int]) -> pl.DataFrame:
    made = []
    for place, (name, dtype) in enumerate(frame.dtypes.items()):
        values = [row[place] for row in rows]
        if name == frame.identifier:
            values = [name_of(dtype, owner) for owner in owners]
        made.append(series_of(name, values, dtype, frame.schema[name]))
    return pl.DataFrame(made)


def _hashable(row: Row) -> Row:
    return tuple(str(v) if isinstance(v, (list, dict)) else v for v in row)


def _shown(frame: _Frame, row: Row) -> str:
    pairs = zip(frame.dtypes, row, strict=True)
    return ", ".join(f"{name}={_word(value)}" for name, value in pairs if name in frame.used)


def _word(value: object) -> str:
    if value is None:
        return "null"
    return repr(value) if isinstance(value, (str, bytes)) else str(value)


# The conditions that rows have to meet before a query counts them, one by one.

_ROWS = Table(RowCount())


class Conditions:
    """All filters of a query, condition by condition, and its groups.

    A row that meets one condition more is nearer to being counted, which the query itself does
    not show as long as another is not met.

    Parameters
    ----------
    query
        The query.
    """

    def __init__(self, query: Query) -> None:
        self._groups = query.groups
        self._alone = tuple(_alone(query.relation))
        self._free = _without_filters(query.relation)

    def met(self, frames: Frames) -> int:
        """How many are met by any row."""
        found = sum(_rows(relation, frames) > 0 for relation in self._alone)
        if self._groups is None or self._groups.discovered:
            return found
        counted = Execution.of_public(frames).run(self._free, self._groups, [_ROWS])
        return found + int(bool(counted[_ROWS].values.any()))


def _rows(relation: Relation, frames: Frames) -> int:
    counted = Execution.of_public(frames).run(relation, None, [_ROWS])
    return int(counted[_ROWS].values.sum())


def _alone(relation: Relation) -> Iterator[Relation]:
    """The frame with each of the conditions alone, at its place."""
    before = _start(relation)
    for step, _ in relation.steps:
        if not isinstance(step, Filter):
            before = before.then(step)
            continue
        for predicate in step.predicates:
            for condition in _conjuncts(predicate):
                yield before.then(Filter((condition,)))


def _without_filters(relation: Relation) -> Relation:
    free = _start(relation)
    for step, _ in relation.steps:
        free = free if isinstance(step, Filter) else free.then(step)
    return free


def _start(relation: Relation) -> Relation:
    return replace(relation, steps=(), facts=relation.source)


def _conjuncts(predicate: Tree) -> Iterator[Tree]:
    if isinstance(predicate, Call) and isinstance(predicate.operation, And):
        for arg in predicate.args:
            yield from _conjuncts(arg)
    else:
        yield predicate


# The other people next to whom an individual is easiest to distinguish, for several quantiles
# chosen jointly, at once or nested.
#
# The movement of scores is not enough for such a choice: what it reveals depends on which tuples
# are about as likely as others. Its law is known, so frames are ranked by what it would prove, and
# none is drawn.

Counting = Callable[[Sequence[Person]], ExactTables]
_TRIES_OUTSIDE = 480
"""Over how many quantiles there are: laws of more take longer."""
_TRIES_INSIDE = 2400
"""The same of quantiles one inside the other, whose laws take less."""
_RUNS = 10_000
"""Frames are ranked by what this many runs prove."""
_MOST = 60
"""The most people of one kind."""
_FEW = 10
"""The same of quantiles one inside the other: points with many rows are known less well."""
_KEPT = 3


@dataclass(frozen=True, slots=True)
class Crowd:
    """An individual by its number, and how many others of each kind there are."""

    individual: int
    others: tuple[int, ...]


def at_once(prepared: pipeline.Prepared) -> list[QuantilesAtOnce | QuantileTree]:
    """The choices of several quantiles of a plan."""
    parts = (one.measurement for one in prepared.draws)
    return [part for part in parts if isinstance(part, (QuantilesAtOnce, QuantileTree))]


def rows_in(prepared: pipeline.Prepared, counted: ExactTables) -> tuple[tuple[int, ...], ...]:
    """Where rows are for these choices, and how many."""
    found = []
    for part in at_once(prepared):
        (one,) = counted.of(part)
        found += [tuple(e.tolist()) for e in (one.groups, one.cells, one.values) if e is not None]
    return tuple(found)


def expected_of(prepared: pipeline.Prepared, one: ExactTables, other: ExactTables) -> float:
    """About how much of a plan's claim its choices of several quantiles prove, by their laws."""
    claims = claims_of(prepared.plan)
    shares = (
        expected_share(*apart.masses, _RUNS, claims)
        for _, _, apart in choices_apart(prepared, (one, other))
    )
    return max(shares, default=0.0)


def worst_crowds(
    prepared: pipeline.Prepared,  # The plan
    # Individuals, and who may be there instead of each, under change-one adjacency.
    individuals: Sequence[tuple[Person, Person | None]],
    kinds: Sequence[Person],  # Others that may be there
    counted: Counting,  # The exact tables of some people
) -> list[Crowd]:
    """The crowds that reveal most, the best one first.

    Exact tables are taken to add up, which they do but for limits: frames that come out are counted
    again, as any other.
    """
    picks = Picks()
    tables = [counted([kind]) for kind in kinds]
    sides = [
        (counted([person]), counted([] if instead is None else [instead]))
        for person, instead in individuals
    ]
    known: dict[Crowd, float] = {}

    def tried(crowd: Crowd) -> None:
        if crowd not in known and any(crowd.others):
            beside = [(table, count) for table, count in zip(tables, crowd.others, strict=True)]
            pair = (_added([(side, 1), *beside]) for side in sides[crowd.individual])
            known[crowd] = expected_of(prepared, *pair)

    inside = all(isinstance(one, QuantileTree) for one in at_once(prepared))
    each = _TRIES_INSIDE if inside else _TRIES_OUTSIDE
    tries, most = each // max(one.picks for one in at_once(prepared)), _FEW if inside else _MOST
    for number in range(tries):
        if number < tries // 4 or not known:
            some = tuple(picks.below(most) * (picks.below(3) > 0) for _ in kinds)
            tried(Crowd(picks.below(len(sides)), some))
        else:
            few = sorted(known, key=lambda crowd: known[crowd], reverse=True)[:_KEPT]
            tried(_near(picks, few[number % len(few)], len(sides), most))
    return sorted(known, key=lambda crowd: known[crowd], reverse=True)[:_KEPT]


def _near(picks: Picks, crowd: Crowd, individuals: int, most: int) -> Crowd:
    """Another individual, or another number of one or two kinds."""
    if not picks.below(6):
        return replace(crowd, individual=picks.below(individuals))
    others = list(crowd.others)
    for _ in range(1 + picks.below(2)):
        place = picks.below(len(others))
        change = picks.below(13) - 6
        others[place] = picks.below(most) if not change else max(0, others[place] + change)
    return Crowd(crowd.individual, tuple(others))


def _added(tables: Sequence[tuple[ExactTables, int]]) -> ExactTables:
    """Sums of exact tables, each this many times."""
    found: dict[int, CellCounts] = {}
    for table, first in tables[0][0].tables.items():
        if first.groups is None or first.cells is None:
            found[table] = first
            continue
        some = [(each.tables[table], times) for each, times in tables if times]
        groups = np.concatenate([one.groups for one, _ in some if one.groups is not None])
        cells = np.concatenate([one.cells for one, _ in some if one.cells is not None])
        values = np.concatenate([one.values * times for one, times in some])
        found[table] = CellCounts.of_cells(groups, cells, values, first.size)
    return replace(tables[0][0], tables=found)


_SALT = 1
"""No secret is needed where nothing is private."""
_TRIES = 120
_CLIMBS, _MOST_CLIMBS = 160, 640
_SHOWN = 5
_MANY, _KINDS = 24, 8
"""This many pairs and kinds of others are tried, where laws of choices are known."""
_BEST = 3
"""This many pairs are kept, whose noise decides."""
_ELSEWHERE = 4
"""This many kinds of rows in another window are tried with each of these."""
_OTHERS = (0, 1, 3, 12, 30, 90)
"""How many other people there are."""
_OF_REACH = 1e-3
"""The weight of a part's reach relative to the loss."""


@dataclass(frozen=True, slots=True, eq=False)
class Neighbours:
    """Two frames that differ in one individual, and what the plan's tables are on each."""

    query: Query  # The query, with the groups that either frame has
    # The exact tables of the frame with the individual, and of that without (or with other values).
    # Limits choose the same rows of everybody else on both: the guarantee holds for each choice.
    counted: tuple[ExactTables, ExactTables]
    reach: tuple[Reach, ...]  # How far each part moves
    moved: float  # How far all that is drawn does, in one number
    words: str  # Who differs, and who is there as well


@dataclass(frozen=True, slots=True)
class _Pair:
    """An individual, and another who takes the place under change-one adjacency."""

    person: Person
    instead: Person | None
    elsewhere: Person | None = None
    """What the individual has in another window of time, in both frames."""


@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """A plan, its exact tables, and the people that are made up for it."""

    prepared: pipeline.Prepared
    exact: Exact
    people: People


def worst_neighbours(prepared: pipeline.Prepared) -> list[Neighbours]:
    """Pairs of frames with the largest movement of a plan's parts that a search finds, the
    largest first, each with several numbers of other people. Where an individual is a person in a
    window of time, some of them have rows in another window too, in both frames.

    The search tries values from the query and their neighbours, then changes the best a little
    again and again. It is the same search each time.
    """
    people = People(prepared.query)
    search = _Search(prepared, Exact.of(prepared, _SALT), people)
    conditions = Conditions(prepared.query)
    found: dict[str, tuple[float, _Pair]] = {}

    def tried(pair: _Pair) -> None:
        if repr(pair) not in found:
            moved = _placed(search, pair, ()).moved
            if not moved:  # then the number of conditions that are met ranks the pairs
                moved = conditions.met(people.frames([pair.person])) / 1000
            found[repr(pair)] = (moved, pair)

    def best(most: int) -> list[_Pair]:
        ordered = sorted(found.values(), key=lambda item: item[0], reverse=True)
        return [pair for _, pair in ordered[:most]]

    for _ in range(_TRIES):
        person = people.anybody()
        tried(_Pair(person, _like(people, person) if people.changes else None))
    for step in range(_MOST_CLIMBS):
        if step >= _CLIMBS and _is_worst(prepared, max(moved for moved, _ in found.values())):
            break
        few = best(_BEST + 2)
        tried(_neighbour_of(people, few[step % len(few)], step))
    chosen = _with_elsewhere(search, best(_BEST))
    if is_noise_alone(prepared):
        made = [_placed(search, pair, ()) for pair in chosen]
        return sorted(made, key=lambda n: n.moved, reverse=True)
    if at_once(prepared):
        made = _in_crowds(search, best(_MANY))
        return sorted(made, key=lambda n: expected_of(prepared, *n.counted), reverse=True)
    others = [n for n in _OTHERS if n + 2 <= people.names()]
    ranks = any(isinstance(use.part, (QuantileChoice, ChosenTogether)) for use in prepared.parts)
    made = [
        _placed(search, pair, beside)
        for pair in chosen
        for number in others
        for beside in _besides(people, pair, number, three=ranks)
    ]
    return sorted(made, key=lambda n: n.moved, reverse=True)


def _in_crowds(search: _Search, pairs: Sequence[_Pair]) -> list[Neighbours]:
    """Pairs together with the people next to whom they are distinguished best."""
    prepared, people = search.prepared, search.people
    kinds = [pair.person for pair in pairs]
    kinds += [pair.instead for pair in pairs if pair.instead is not None]
    kinds = list({repr(kind): kind for kind in kinds}.values())
    kinds = sorted(kinds, key=lambda kind: max(map(len, kind.rows.values())))

    def counted(some: Sequence[Person]) -> ExactTables:
        return search.exact.count(people.frames(some))

    different = {rows_in(prepared, counted([kind])): kind for kind in reversed(kinds)}
    kinds = list(reversed(different.values()))[:_KINDS]
    individuals = [(pair.person, pair.instead) for pair in pairs]
    found = worst_crowds(prepared, individuals, kinds, counted)
    made = []
    for crowd in found:
        named = zip(kinds, crowd.others, strict=True)
        beside = tuple(kind for kind, number in named for _ in range(number))
        beside = beside[: max(0, people.names() - 2)]
        made.append(_placed(search, pairs[crowd.individual], beside))
    return made


def _with_elsewhere(search: _Search, pairs: Sequence[_Pair]) -> list[_Pair]:
    """The same, and where there are windows each once more with rows in another one: of some that
    are tried those which move most.
    """
    found = list(pairs)
    for pair in pairs:
        tried = [search.people.elsewhere(pair.person) for _ in range(_ELSEWHERE)]
        made = [replace(pair, elsewhere=rows) for rows in tried if rows is not None]
        if made:
            found.append(max(made, key=lambda one: _placed(search, one, ()).moved))
    return found


def _is_worst(prepared: pipeline.Prepared, moved: float) -> bool:
    """Whether none could be found that moves more."""
    used = sum(not use.sensitivity.is_zero for use in prepared.parts)
    whole, cost = 2.0 * used * _OF_REACH, prepared.plan.cost
    if is_noise_alone(prepared):  # (epsilon, delta) does not bound how far noise alone is moved
        whole += math.inf if cost.slack else float(cost.main) / (2 if isinstance(cost, GDP) else 1)
    else:
        whole += used
    return moved >= 0.98 * whole


def _neighbour_of(people: People, pair: _Pair, step: int) -> _Pair:
    if pair.instead is not None and step % 2:
        return replace(pair, instead=_fitting(people.changed(pair.instead), pair.person))
    person = people.changed(pair.person)
    return _Pair(person, None if pair.instead is None else _fitting(pair.instead, person))


def _like(people: People, person: Person) -> Person:
    return _fitting(people.anybody(), person)


def _fitting(person: Person, model: Person) -> Person:
    """The individual with as many rows as another, if the number of rows is public."""
    return Person(
        {
            token: tuple((rows * len(model.rows[token]))[: len(model.rows[token])])
            for token, rows in person.rows.items()
        }
    )


def _besides(people: People, pair: _Pair, number: int, *, three: bool) -> list[tuple[Person, ...]]:
    """Other people: like the individual, unlike, some of both, or all different. Also of three
    kinds, most of them of one: a rank among these moves scores on both of its sides.
    """
    if not number:
        return [()]
    unlike = pair.instead or people.changed(people.changed(pair.person))
    half = (pair.person,) * (number // 2) + (unlike,) * (number - number // 2)
    different = tuple(people.anybody() for _ in range(number))
    found = [(pair.person,) * number, (unlike,) * number, half, different]
    if three:
        for most in (0, 1, 2, 2, 2):
            kinds = (pair.person, unlike, people.anybody())
            few = (kind for place, kind in enumerate(kinds) if place != most)
            rest = tuple(kind for kind in few for _ in range(number // 6))
            found.append((*rest, *(kinds[most],) * (number - len(rest))))
    return found


def _placed(search: _Search, pair: _Pair, beside: tuple[Person, ...]) -> Neighbours:
    """Both frames, the individual first, and what the parts are on each. Limits keep the same rows
    each time.
    """
    prepared, people = search.prepared, search.people
    nobody = Person(dict.fromkeys(pair.person.rows, ()))
    one = people.frames([together(pair.person, pair.elsewhere), *beside])
    other = people.frames([together(pair.instead or nobody, pair.elsewhere), *beside])
    query = _with_groups(prepared.query, one, other)
    keys = None if query.groups is None else query.groups.keys
    counted = [search.exact.count(frames, keys) for frames in (one, other)]
    reach = tuple(reach_of(prepared.parts, query, *counted))
    moved = _how_far(prepared, reach, *counted)
    return Neighbours(query, (counted[0], counted[1]), reach, moved, _words(people, pair, beside))


def _with_groups(query: Query, one: Frames, other: Frames) -> Query:
    """The query with every group of either frame, where groups are to be found."""
    if query.groups is None or not query.groups.discovered:
        return query
    found = [find_keys(query.relation, query.groups, frames) for frames in (one, other)]
    keys = pl.concat(found).unique(maintain_order=True)
    return replace(query, groups=query.groups.with_keys(keys))


def _how_far(
    prepared: pipeline.Prepared, reach: Sequence[Reach], one: ExactTables, other: ExactTables
) -> float:
    """One number for the movement of all draws by a pair: the loss by the stated noise, and the
    shares of choices. Among pairs with the same loss those that move more parts come first.
    """
    used = [use for use in prepared.parts if not use.sensitivity.is_zero]
    found = stated_loss(prepared, one, other)
    for use, far in zip(used, reach, strict=True):
        found += _OF_REACH * (far.l1 + far.l2)
        if isinstance(use.part, (Selection, Responses)):
            found += far.l1
    return found


def _words(people: People, pair: _Pair, beside: Sequence[Person]) -> str:
    lines = ["One individual, who is in one frame and not in the other:"]
    if pair.instead is not None:
        lines = ["One individual, with other values in the other frame:"]
    lines += [f"  {line}" for line in people.words(pair.person).splitlines()]
    if pair.instead is not None:
        lines += [f"  {line}" for line in people.words(pair.instead).splitlines()]
    if pair.elsewhere is not None:
        lines.append("It has in another window, in both frames:")
        lines += [f"  {line}" for line in people.words(pair.elsewhere).splitlines()]
    if not beside:
        return "\n".join([*lines, "There are no other individuals."])
    lines.append(f"{len(beside)} others, in both frames, such as:")
    different = list({repr(p): p for p in beside}.values())
    for person in different[:_SHOWN]:
        lines += [f"  {line}" for line in people.words(person).splitlines()]
    if len(different) > _SHOWN:
        lines.append("  ...")
    return "\n".join(lines)
