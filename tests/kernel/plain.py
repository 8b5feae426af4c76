"""A plain runner of physical plans: the exact numbers of each table, from the plan and the sources.

`Run` does what the docstrings of `dpframe.kernel.plan` say, one node after another. It holds every
frame in memory, looks at rows one by one and adds up Python's integers. It is slow and judges the
product's way, in tests. It is also the sketch of the product's own runner of plans.

It believes
- Polars, that it holds, selects and compares values as it says;
- each row-wise operation, and each aggregate of an individual's rows: the plan has its name,
  operands and constants, and the operation says itself what Polars computes for it;
- the plan's digests: the caller hands over keys and public frames by these;
- the hash and the salt by which a limit chooses among an individual's rows (`chosen_by_hash`), and
  the number of a time's window.

It shares nothing else with the code that lowers queries, or with the one that makes plans of them.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache
from math import ceil, floor, isqrt
from operator import mul
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl

from dpframe.core.dtypes import Domain, DType, domain_of_dtype
from dpframe.core.interval import Interval
from dpframe.core.tree import Literal, Operation
from dpframe.frames import group_by_individual
from dpframe.frames.definition import type_words
from dpframe.frames.group_by_individual import IndividualAggregate
from dpframe.frames.sampling import comparable, first_ranked
from dpframe.kernel import plan as p
from dpframe.rows.constants import listed, literal_domain, literal_lower
from dpframe.rows.layouts import grouped_type
from dpframe.rows.polars_dtypes import from_polars, since_epoch, to_polars
from dpframe.rows.registry import BY_NAME
from dpframe.rows.temporal import window_number

Number: TypeAlias = "int | float | Fraction"
Key: TypeAlias = "tuple[object, ...]"
Cell: TypeAlias = "int | None"
Counts: TypeAlias = "dict[tuple[Key, Cell], int]"
"""The numbers of a table that are not 0, by key and cell; the cell is None without cells."""

WHO, WINDOW = "\0who", "\0window"
"""Columns that no plan names: the person whose row it is, and the number of the row's window. With
rows as the unit each row is its own owner. A frame of which nothing is read has its rows by these.
"""
HIDDEN = (WHO, WINDOW)
PARTS = 4096
"""A whole row has so many parts where rows are weighed."""


class NotSaid(Exception):
    """The plan does not say what is computed."""


class Wrong(Exception):
    """The plan states something that does not hold of what it is run on."""


@dataclass(frozen=True)
class Rows:
    """The rows of a frame.

    Parameters
    ----------
    data
        Its columns, and with persons those of the owner.
    known
        What follows of each column from types and operations.
    person, time
        The names that the columns of the owner and of the time have.
    every
        The length of windows, if there are any.
    norm
        The most that an individual weighs.
    """

    data: pl.DataFrame
    known: dict[str, Domain]
    person: frozenset[str] = frozenset()
    time: frozenset[str] = frozenset()
    every: p.Every | None = None
    norm: Fraction | None = None

    def at(self, places: Sequence[int | None]) -> pl.DataFrame:
        """These rows, in this order; one of nulls for None."""
        return self.data.select(pl.all().gather(pl.Series(places, dtype=pl.UInt32)))

    def owners(self) -> list[object]:
        """The individual that each row belongs to."""
        if not self.person:
            raise Wrong("rows that belong to no person")
        return list(zip(plain(self.data[WHO]), self.data[WINDOW].to_list(), strict=True))


Keep: TypeAlias = Callable[[int, "p.KeepRows | p.KeepGroups", Rows], Sequence[int]]
"""The rows that a limit keeps, for the place of the limit, the limit, and the rows before it."""


@dataclass(frozen=True)
class Given:
    """What a plan is run on.

    Parameters
    ----------
    sources
        Frames by the names that `Scan` has for them.
    public
        Public frames and public keys by their digests.
    keep
        The choice of each limit.
    found
        The groups that each draw found.
    without
        The groups that rounds before found.
    """

    sources: Mapping[str, pl.DataFrame]
    public: Mapping[str, pl.DataFrame]
    keep: Keep
    found: Mapping[int, pl.DataFrame] = field(default_factory=dict)
    without: pl.DataFrame | None = None


# Limits


def chosen_by_hash(salt: int) -> Keep:
    """The choice of the product, for a salt: by rank, as `first_ranked` does it, for everybody."""

    def keep(_: int, limit: p.KeepRows | p.KeepGroups, rows: Rows) -> Sequence[int]:
        person, place = min(rows.person), "\0place"
        windows = [WINDOW] if rows.every is not None else []
        columns = [name for name in rows.data.columns if name not in HIDDEN]
        if isinstance(limit, p.KeepRows):
            columns = sorted(columns if limit.of is None else limit.of)
            types = {name: from_polars(rows.data.schema[name]) for name in [*columns, *windows]}
            within = [*dict.fromkeys([person, *windows, *limit.by])]
            marked = rows.data.with_row_index(place).lazy()
            kept = first_ranked(marked, limit.n, within, types, salt, pl, limit.first)
            return sorted(kept.collect()[place].to_list())
        names = [*dict.fromkeys([person, *windows, *limit.by])]
        types = {name: from_polars(rows.data.schema[name]) for name in names}
        pairs = rows.data.select(comparable(pl, name, types[name]) for name in names)
        types = {name: grouped_type(dtype) for name, dtype in types.items()}
        within = [person, *windows]
        each = pairs.unique().lazy()
        kept = first_ranked(each, limit.n, within, types, salt, pl, limit.first)
        stay = {*lines(kept.select(names).collect())}
        return [i for i, line in enumerate(lines(pairs)) if line in stay]

    return keep


# Values


def plain(column: pl.Series) -> list[Any]:
    """Values as Python's: equal ones are equal, and each can be looked up.

    Times are numbers of their units, categories are text, zeros have no sign.
    """
    dtype = column.dtype
    if dtype.is_temporal():
        return column.to_physical().to_list()
    if isinstance(dtype, pl.Categorical | pl.Enum):
        return column.cast(pl.String).to_list()
    if dtype.is_float():
        return ["nan" if v is not None and v != v else v + 0.0 if v else v for v in column]
    if dtype.is_nested():
        return [repr(value) for value in column.to_list()]
    return column.to_list()


def lines(data: pl.DataFrame) -> list[Key]:
    """The rows as tuples of such values."""
    if not data.width:
        return [()] * data.height
    return list(zip(*map(plain, data.iter_columns()), strict=True))


def numbers(column: pl.Series) -> list[Number | None]:
    """Values as numbers: whole ones where the type has no others, else floats; None for null and
    NaN. Times are numbers of their units.
    """
    dtype = column.dtype
    if dtype.is_temporal():
        return column.to_physical().cast(pl.Int64).to_list()
    if dtype == pl.Boolean:
        return [None if v is None else int(v) for v in column]
    if dtype.is_integer():
        return column.to_list()
    return column.cast(pl.Float64, strict=False).fill_nan(None).to_list()


def clamp(low: Any, number: Any, high: Any) -> Any:
    return low if number < low else high if number > high else number


def wrap(number: int) -> int:
    """A sum in 64 bits, as each engine has it."""
    return (number + 2**63) % 2**64 - 2**63


def place_on_grid(number: Number, grid: p.Grid) -> int:
    """The number of a value on a grid. A whole number gets the nearest one, the upper of two. A
    float is scaled, moved by half a step and cut off, in floats, so it may get either of two that
    are as near as floats distinguish.
    """
    if isinstance(number, int):
        nearest = floor((number - grid.centre) / grid.step + Fraction(1, 2))
        return int(clamp(grid.lo, nearest, grid.hi))
    shift, centre = Fraction(1, 2) - grid.lo, grid.centre
    if abs(centre) < 2**20 * grid.step * (grid.hi - grid.lo + 1):
        shift -= centre / grid.step
    else:
        number -= float(centre)
    steps = clamp(0.0, number * float(1 / grid.step) + float(shift), float(grid.hi - grid.lo))
    return int(steps) + grid.lo


def add_square(place: int, grid: p.Grid, shift: int) -> int:
    """What a row adds whose value has this number on a grid."""
    top = max(1, max(-grid.lo, grid.hi) ** 2 >> shift)
    if not shift:
        return 2 * place**2 - top
    return 2 * min(top, (place**2 >> shift) + 1) - top


def factor(number: float, grid: p.Grid) -> float:
    """The largest factor up to 1 that brings a number within a grid around 0."""
    low, high = float(grid.lo * grid.step), float(grid.hi * grid.step)
    if number > high:
        return high / number if high > 0 else 0.0
    if number < low:
        return low / number if low < 0 else 0.0
    return 1.0


def add_pair(number: Number | None, other: Number | None, adds: p.Paired) -> int:
    """What a row adds for two numbers, of which a missing one is 0."""
    far = 2.0**400
    mine, beside = (0.0 if n is None else clamp(-far, float(n), far) for n in (number, other))
    one = min(factor(mine, adds.grid), factor(beside, adds.other_grid))
    return place_on_grid(mine * one, adds.grid)


def total(values: Sequence[Number | None], ends: tuple[Fraction, Fraction], step: Fraction) -> Any:
    """The total of an individual's values in a group, for a grid with these ends and this step;
    None of none.

    Each value counts up to 65,536 times the larger end. Floats are first rounded to whole steps,
    of at least 2**-35 of that end. So the order of rows does not matter.
    """
    known = [value for value in values if value is not None]
    if not known:
        return None
    reach = max(map(abs, ends))
    if isinstance(known[0], int):
        most = min(int(reach * 65536) + 1, 2**62)
        return wrap(sum(int(clamp(-most, value, most)) for value in known))
    while step < reach / 2**35:
        step *= 2
    far = float(min(int(reach / step * 65536) + 1, 2**52))
    steps = (floor(clamp(-far, value * float(1 / step), far) + 0.5) for value in known)
    return float(clamp(-(2**52), wrap(sum(steps)), 2**52)) * float(step)


# Constants


def constant(said: Any) -> Any:
    """A constant of an operation, from its JSON."""
    if isinstance(said, list):
        return tuple(map(constant, said))
    if not isinstance(said, dict):
        return said
    match said:
        case {"type": "DType", **parts}:
            made = {name: constant(part) for name, part in parts.items()}
            return DType(**made)
        case {"type": "Listed", "values": values}:
            return constant(values)
    ((kind, text),) = said.items()
    return _KINDS[kind](text)


_KINDS: Mapping[str, Callable[[str], object]] = {
    "int": int,
    "float": float,
    "fraction": Fraction,
    "decimal": Decimal,
    "bytes": bytes.fromhex,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "microseconds": lambda text: timedelta(microseconds=int(text)),
}


def by_clocks(value: Any, zone: str | None) -> Any:
    """A constant with moments in a zone. A plan has the time on the zone's clocks, with the offset
    from UTC that Python has for it; Polars may have another one for times long ago.
    """
    if isinstance(value, tuple):
        return tuple(by_clocks(one, zone) for one in value)
    if not isinstance(value, datetime) or value.tzinfo is None or zone is None:
        return value
    clocks = (value.replace(tzinfo=ZoneInfo(zone), fold=fold) for fold in (0, 1))
    return next((at for at in clocks if at.utcoffset() == value.utcoffset()), value)


def _subclasses(kind: Any) -> Iterator[Any]:
    for one in kind.__subclasses__():
        yield one
        yield from _subclasses(one)


AGGREGATES: Mapping[str, Any] = {
    kind.name: kind
    for kind in _subclasses(IndividualAggregate)
    if getattr(kind, "name", None) in group_by_individual.AGGREGATES
}
"""Aggregates of an individual's rows, by name."""


def operation(call: p.Call, zone: str | None = None) -> Any:
    """The operation that a call names, with its constants, for operands of a zone."""
    kind: Any = AGGREGATES.get(call.operation) or BY_NAME[call.operation]
    if isinstance(kind, Operation):
        return kind
    return kind(**dict(by_clocks(constant(json.loads(call.constants)), zone)))


def _types_in(dtype: DType) -> Iterator[DType]:
    yield dtype
    inner = [] if dtype.inner is None else [dtype.inner]
    for part in [*inner, *(one for _, one in dtype.fields or ())]:
        yield from _types_in(part)


@dataclass
class Run:
    """A plan, and what it is run on."""

    plan: p.Plan
    given: Given
    _frames: dict[int, Rows] = field(default_factory=dict)

    def tables(self) -> list[Counts]:
        """The numbers of each table of the plan."""
        return [self.table(place) for place in range(len(self.plan.tables))]

    # Rows

    def frame(self, place: int) -> Rows:
        """The rows of a frame."""
        if place not in self._frames:
            self._frames[place] = self._frame(place, self.plan.frames[place])
        return self._frames[place]

    def _frame(self, place: int, frame: p.Frame) -> Rows:
        match frame:
            case p.Scan():
                return self._scan(frame)
            case p.Map(input, columns):
                return self._map(self.frame(input), columns)
            case p.Filter(input, conditions):
                rows = self.frame(input)
                true = [self.column(rows, row)[0].to_list() for row in conditions]
                return _keep(
                    rows, [all(v is True for v in line) for line in zip(*true, strict=True)]
                )
            case p.Part(input, by, key):
                rows = self.frame(input)
                wanted = tuple(map(self._value, key))
                found = self._keys(rows, by)
                return _keep(rows, [line == wanted for line in found])
            case p.Without(input, by):
                rows, gone = self.frame(input), self.given.without
                left_out = set[Key]() if gone is None else {*lines(gone)}
                return _keep(rows, [key not in left_out for key in self._keys(rows, by)])
            case p.Explode():
                return _explode(self.frame(frame.input), frame)
            case p.Lookup():
                return self._look_up(self.frame(frame.input), frame)
            case p.Union(left, right):
                return _unite(self.frame(left), self.frame(right))
            case p.Meet():
                return _meet(self.frame(frame.left), self.frame(frame.right), frame)
            case p.KeepRows(input) | p.KeepGroups(input):
                rows = self.frame(input)
                return replace(rows, data=rows.at(self.given.keep(place, frame, rows)))
            case p.Weigh(input, norm):
                rows = self.frame(input)
                return replace(rows, norm=norm if rows.norm is None else min(norm, rows.norm))
            case p.OneEach():
                return self._one_each(self.frame(frame.input), frame)
            case p.Gather():
                return self._gather(self.frame(frame.input), frame)

    def _scan(self, scan: p.Scan) -> Rows:
        data = self.given.sources[scan.name]
        if scan.owners is not None and isinstance(scan.unit, p.Person):
            data = self._with_owners(data, scan.owners, scan.unit.column)
        for name, words in scan.columns:
            if type_words(from_polars(data.schema[name])) != words:
                raise Wrong(f"{name!r} has another type")
        known = {name: domain_of_dtype(from_polars(data.schema[name])) for name, _ in scan.columns}
        number = pl.lit(0, dtype=pl.Int64)
        if isinstance(scan.unit, p.Rows):
            owned = data.select(*known, pl.int_range(pl.len()).alias(WHO), number.alias(WINDOW))
            return Rows(owned, known)
        column, every, at = scan.unit.column, scan.unit.every, scan.unit.time
        if every is not None and at is not None:
            number = window_number(pl, pl.col(at), known[at].dtype, every)
        owned = data.filter(pl.col(column).is_not_null())
        owned = owned.select(*known, pl.col(column).alias(WHO), number.alias(WINDOW))
        times = frozenset() if at is None else frozenset({at})
        return Rows(owned, known, frozenset({column}), times, every)

    def _with_owners(self, data: pl.DataFrame, owners: p.Owners, person: str) -> pl.DataFrame:
        """Rows with the person that the row of another source has; as they are if they have it."""
        if person in data.columns:
            return data
        there = self.given.sources[owners.source]
        pairs = there.select(owners.there, person).drop_nulls().unique()
        return data.join(pairs, left_on=owners.here, right_on=owners.there, how="inner")

    def column(self, rows: Rows, row: p.Row) -> tuple[pl.Series, Domain]:
        """An expression of each row, and what follows of it. Each operation is done on its own."""
        match row:
            case p.Col(name):
                return rows.data[name], rows.known[name]
            case p.Lit():
                literal = self._literal(row)
                return _evaluate(rows.data, _constant(literal)), literal_domain(literal)
            case p.Call():
                given, domains = [], []
                data = rows.data
                for i, operand in enumerate(row.operands):
                    if isinstance(operand, p.Lit):
                        literal = self._literal(operand)
                        given.append(_constant(literal))
                        domains.append(literal_domain(literal))
                    else:
                        values, known = self.column(rows, operand)
                        data = data.with_columns(values.alias(f"\0{i}"))
                        given.append(pl.col(f"\0{i}"))
                        domains.append(known)
                zone = next((d.dtype.zone for d in domains if d.dtype.zone), None)
                done = operation(row, zone)
                lowered = done.lower(pl, given, domains)
                return _evaluate(data, lowered), done.domain(domains)

    def _value(self, lit: p.Lit) -> object:
        """A constant as a value of a row."""
        row = pl.DataFrame({WHO: [0]})
        return plain(_evaluate(row, _constant(self._literal(lit))))[0]

    def _literal(self, lit: p.Lit) -> Literal:
        return Literal(constant(json.loads(lit.value)), self._type(lit.dtype))

    def _type(self, words: str) -> DType:
        """The type that a plan writes so. Of types with parts it has a digest; the sources have the
        types themselves.
        """
        found = re.fullmatch(r"(\w+)(?:\(([^()]*)\))?", words)
        if found is None:
            columns = (t for data in self.given.sources.values() for t in data.dtypes)
            types = (one for t in columns for one in _types_in(from_polars(t)))
            for dtype in types:
                if type_words(dtype) == words:
                    return dtype
            raise NotSaid(f"the type {words}")
        name = found[1]
        parts: list[Any] = [] if found[2] is None else found[2].split(", ")
        if name == "Decimal":
            return DType(name, precision=int(parts[0]), scale=int(parts[1]))
        return DType(name, *parts)

    def _keys(self, rows: Rows, by: Iterable[p.Row]) -> list[Key]:
        """The values of some expressions in each row."""
        found = [plain(self.column(rows, row)[0]) for row in by]
        return list(zip(*found, strict=True)) if found else [()] * rows.data.height

    def _map(self, rows: Rows, columns: Sequence[tuple[str, p.Row]]) -> Rows:
        made = {name: self.column(rows, row) for name, row in columns}
        new = (column.alias(name) for name, (column, _) in made.items())
        data = rows.data.select(HIDDEN).with_columns(new)

        def now(before: frozenset[str]) -> frozenset[str]:
            same = ((name, row.name) for name, row in columns if isinstance(row, p.Col))
            return frozenset(name for name, old in same if old in before)

        known = {name: domain for name, (_, domain) in made.items()}
        return replace(rows, data=data, known=known, person=now(rows.person), time=now(rows.time))

    def _look_up(self, rows: Rows, join: p.Lookup) -> Rows:
        public = self.given.public[join.public]
        here = lines(rows.data.select(name for name, _ in join.on))
        there = lines(public.select(name for _, name in join.on))
        matches = _matches(here, there)
        if max(map(len, matches), default=0) > join.most and join.how in ("inner", "left"):
            raise Wrong("a row becomes more rows than the plan says")
        others = [name for name in public.columns if name not in {name for _, name in join.on}]
        new = dict(zip(others, join.new, strict=True)) if join.new else {}
        known = {name: domain_of_dtype(from_polars(public.schema[name])) for name in others}
        return _join(rows, Rows(public, known), matches, join.how, new)

    def _one_each(self, rows: Rows, each: p.OneEach) -> Rows:
        keys, owners = self._keys(rows, each.by), rows.owners()
        public = None if each.listed is None else {*lines(self.given.public[each.listed])}
        of = defaultdict[object, dict[Key, list[int]]](dict)
        for i, (owner, key) in enumerate(zip(owners, keys, strict=True)):
            if public is None or key in public:
                of[owner].setdefault(key, []).append(i)
        groups = [[*found.values()] for found in of.values()]
        heads = rows.at([mine[0][0] for mine in groups])
        made: dict[str, pl.Series] = {name: heads[name] for name in (*HIDDEN, *rows.person)}
        for name in rows.time:
            latest = [rows.data[name].gather([i for g in mine for i in g]).max() for mine in groups]
            made[name] = pl.Series(latest, dtype=rows.data.schema[name])
        counted = {
            each.rows: [sum(map(len, mine)) for mine in groups],
            each.groups: [len(mine) for mine in groups],
            each.fullest: [max(map(len, mine)) for mine in groups],
        }
        made |= {name: pl.Series(some, dtype=pl.Int64) for name, some in counted.items()}
        for ends in each.ends:
            values = numbers(self.column(rows, ends.row)[0])
            found = [_numbers_of(values, mine, ends.total) for mine in groups]
            pairs = ((ends.least, min), (ends.largest, max))
            for name, end in pairs:
                made[name] = pl.Series([end(f, default=None) for f in found], dtype=pl.Float64)
        whose = {name: rows.known[name] for name in (*rows.person, *rows.time)}
        new = {n: domain_of_dtype(from_polars(s.dtype)) for n, s in made.items() if n not in HIDDEN}
        return replace(rows, data=pl.DataFrame(made), known=new | whose, norm=None)

    def _gather(self, rows: Rows, gather: p.Gather) -> Rows:
        data, groups = rows.data, defaultdict[Key, list[int]](list)
        keys = {name: self.column(rows, row) for name, row in gather.by}
        by = [plain(column) for column, _ in keys.values()]
        owners = rows.owners()
        for i in range(data.height):
            groups[(owners[i], *(values[i] for values in by))].append(i)
        number = {i: n for n, places in enumerate(groups.values()) for i in places}
        at, found = pl.col("\0group"), dict[str, pl.Series]()
        known = dict[str, Domain]()
        for (name, call), bounds in zip(gather.new, gather.bounds, strict=True):
            aggregate = operation(call)
            of = [self.column(rows, row) for row in call.operands]
            if bounds is not None:  # all that it takes from the domain, but for types and NaN
                of = [(column, replace(d, interval=Interval(*bounds))) for column, d in of]
            value, domain = (None, None) if not of else (pl.col("\0value"), of[0][1])
            each = aggregate.rows(pl, value, domain)
            marked = pl.DataFrame(
                {"\0group": [number[i] for i in range(data.height)]}, schema={"\0group": pl.Int64}
            ).with_columns(column.alias("\0value") for column, _ in of)
            marked = marked.select(at, *(e.alias(f"{i}") for i, e in enumerate(each)))
            reduced = aggregate.reduce([pl.col(f"{i}") for i in range(len(each))], pl)
            counted = marked.group_by("\0group").agg(
                e.alias(f"found {i}") for i, e in enumerate(reduced)
            )
            results = [pl.col(f"found {i}") for i in range(len(reduced))]
            result = aggregate.result(pl, results, domain).alias(name)
            found[name] = counted.sort("\0group").select(result)[name]
            known[name] = aggregate.domain([domain for _, domain in of])
        if gather.beside:
            order = pl.Series([number[i] for i in range(data.height)], dtype=pl.UInt32)
            new = [column.gather(order).alias(name) for name, column in found.items()]
            return replace(rows, data=data.with_columns(*new), known=rows.known | known)
        first = rows.at([places[0] for places in groups.values()])
        owner = {name: first[name] for name in rows.person}
        heads = pl.Series([places[0] for places in groups.values()], dtype=pl.UInt32)
        values = {name: column.gather(heads) for name, (column, _) in keys.items()}
        made = pl.DataFrame({WHO: first[WHO], WINDOW: first[WINDOW], **owner, **values, **found})
        names = {name: rows.known[name] for name in rows.person}
        names |= {name: domain for name, (_, domain) in keys.items()} | known
        same = (name for name, row in gather.by if isinstance(row, p.Col) and row.name in rows.time)
        return replace(rows, data=made, known=names, time=frozenset(same))

    # Tables

    def table(self, place: int) -> Counts:
        """The numbers of a table."""
        table = self.plan.tables[place]
        rows = self.frame(table.frame)
        keys = self._keys(rows, () if table.keys is None else [row for _, row in table.keys.by])
        counted = self._keys_that_count(place, table.keys)
        within = [i for i, key in enumerate(keys) if counted is None or key in counted]
        groups = defaultdict[tuple[Key, Cell], list[int]](list)
        if isinstance(table.cells, p.OfPeople):
            return self._of_people(rows, table.cells, keys, within)
        cells = self._cells(rows, table.cells)
        for i in within:
            if table.cells is None or cells[i] is not None:
                groups[keys[i], cells[i]].append(i)
        number = self._adder(rows, table.adds, keys, within)
        return _some({group: wrap(number(members)) for group, members in groups.items()})

    def numbers(self, what: p.Vector | p.Running) -> list[int]:
        """The numbers of a vector before noise: of each group in the order of keys, of each run of
        its cells one for each row of the matrix.
        """
        places = what.tables if isinstance(what, p.Vector) else (what.table,)
        table = self.plan.tables[places[0]]
        size = 1 if table.cells is None else _size(table.cells)
        keys = self._in_order(table.keys)
        counted = [self.table(place) for place in places]
        if isinstance(what, p.Running):
            factors = what.column
            return [
                sum(factors[k] * counted[0].get((key, i - k), 0) for k in range(i + 1))
                for key in keys
                for i in range(size)
            ]
        run = what.run or size
        rows = [
            ((tuple(key[i] for i in what.kept), (cell or 0) // run), row, at)
            for key in keys
            for cell in ([None] if table.cells is None else range(size))
            for at in [(key, cell)]
            for row in range(len(what.matrix))
        ]
        found = dict.fromkeys(((group, row) for group, row, _ in rows), 0)
        for group, row, at in rows:
            numbers_there = (one.get(at, 0) for one in counted)
            found[group, row] += sum(map(mul, what.matrix[row], numbers_there))
        numbers_in_order = [wrap(number) for number in found.values()]
        return [*numbers_in_order, wrap(sum(numbers_in_order))] if what.total else numbers_in_order

    def _in_order(self, keys: p.Keys | None) -> list[Key]:
        """The keys of a table, as the plan lists them or a draw found them."""
        match keys:
            case p.Listed(_, _, digest):
                return lines(self.given.public[digest])
            case p.Found(_, draw):
                return lines(self.given.found[draw])
        return [()]

    def _keys_that_count(self, place: int, keys: p.Keys | None) -> set[Key] | None:
        """The keys whose rows count; None for all."""
        match keys:
            case p.Listed(by, sizes, digest):
                listed_keys = self.given.public[digest]
                if listed_keys.height != math.prod(sizes) or listed_keys.width != len(by):
                    raise Wrong("other keys than the plan says")
                return {*lines(listed_keys)}
            case p.Found(_, draw):
                what = self.plan.draws[draw].what
                if isinstance(what, p.Appear) and what.table == place:
                    return None
                return {*lines(self.given.found[draw])}
        return None

    def _adder(
        self, rows: Rows, adds: p.Adds, keys: Sequence[Key], within: Sequence[int]
    ) -> Callable[[list[int]], int]:
        """What some rows of a group and cell add up to."""
        each = self._of_rows(rows, adds)
        if isinstance(adds, p.Distinct):
            values = plain(self.column(rows, adds.row)[0])
            return lambda members: len({values[i] for i in members} - {None, "nan"})
        if isinstance(adds, p.DistinctPersons):
            persons = plain(rows.data[WHO])
            return lambda members: len({persons[i] for i in members})
        if each is not None and rows.norm is None:
            return lambda members: sum(each[i] for i in members)
        owners = rows.owners()
        person = self._of_person(rows, adds) if each is None else None

        def of(members: list[int]) -> int:
            if each is not None:
                return sum(each[i] for i in members)
            assert person is not None
            return person(members)

        weight = _weights(rows.norm, [(owners[i], keys[i]) for i in within], each is not None)

        def number(members: list[int]) -> int:
            parts = defaultdict[object, list[int]](list)
            for i in members:
                parts[owners[i]].append(i)
            return sum(weight(owner) * of(own) for owner, own in parts.items())

        return number

    def _of_rows(self, rows: Rows, adds: p.Adds) -> list[int] | None:
        """What each row adds; None where rows do not add on their own."""
        match adds:
            case p.One():
                return [1] * rows.data.height
            case p.Valued(row):
                return [int(v not in (None, "nan")) for v in plain(self.column(rows, row)[0])]
            case p.Placed() | p.Squared() | p.Paired():
                values, others = self._values(rows, adds)
                return [_one(v, o, adds) for v, o in zip(values, others, strict=True)]
        return None

    def _values(
        self, rows: Rows, adds: p.Placed | p.Squared | p.Paired
    ) -> tuple[list[Number | None], list[Number | None]]:
        """The number in each row, and the one next to it."""
        values = numbers(self.column(rows, adds.row)[0])
        if isinstance(adds, p.Paired):
            return values, numbers(self.column(rows, adds.other)[0])
        return values, [None] * len(values)

    def _of_person(self, rows: Rows, adds: p.Adds) -> Callable[[list[int]], int]:
        """What the rows of one individual in a group and cell add."""
        match adds:
            case p.People():
                return lambda members: 1
            case p.PersonRows(None, most):
                return lambda members: min(most, len(members))
            case p.PersonRows(row, most) if row is not None:
                there = [v not in (None, "nan") for v in plain(self.column(rows, row)[0])]
                return lambda members: min(most, sum(there[i] for i in members))
            case p.PersonTotal(of):
                values, others = self._values(rows, of)

                def number(members: list[int]) -> int:
                    mine = total([values[i] for i in members], *_ends(of.grid))
                    beside = None
                    if isinstance(of, p.Paired):
                        beside = total([others[i] for i in members], *_ends(of.other_grid))
                    return _one(mine, beside, of)

                return number
        raise Wrong(f"what an individual adds to {type(adds).__name__}")

    def _of_people(
        self, rows: Rows, cells: p.OfPeople, keys: Sequence[Key], within: Sequence[int]
    ) -> Counts:
        """How many individuals have their total in each cell."""
        inner = cells.cells.cells if isinstance(cells.cells, p.Whole) else cells.cells
        if isinstance(inner, p.Values):
            raise Wrong("totals that are no numbers")
        values, owners = numbers(self.column(rows, inner.row)[0]), rows.owners()
        of = defaultdict[tuple[Key, object], list[int]](list)
        for i in within:
            of[keys[i], owners[i]].append(i)
        found = Counter[tuple[Key, Cell]]()
        for (key, _), members in of.items():
            number = total([values[i] for i in members], *_ends(cells.grid))
            cell = _cell(number, inner)
            if cell is None and isinstance(cells.cells, p.Whole):
                cell = _size(inner)
            if cell is not None:
                found[key, cell] += 1
        return dict(found)

    def _cells(self, rows: Rows, cells: p.Cells | None) -> Sequence[Cell]:
        """The cell of each row."""
        match cells:
            case None:
                return [None] * rows.data.height
            case p.Whole(some):
                last = _size(some)
                return [last if cell is None else cell for cell in self._cells(rows, some)]
            case p.Values(row, listed_texts, other):
                return self._cells_of_values(rows, row, listed_texts, other)
            case p.OfPeople():
                raise Wrong("the cell of a row, where individuals are in cells")
            case p.UpTo(row) if rows.data.height and (
                isinstance(self.column(rows, row)[0].dtype, pl.Decimal)
            ):
                decimals = self.column(rows, row)[0].to_list()
                return [_cell(None if d is None else Fraction(d), cells) for d in decimals]
            case p.UpTo(row, edges) if self.column(rows, row)[0].dtype == pl.Float32:
                most = float(np.finfo(np.float32).max)
                short = pl.Series(
                    [clamp(-most, float(edge), most) for edge in each_of(edges)], dtype=pl.Float32
                )
                cells = replace(cells, edges=tuple(map(Fraction, short.to_list())))
        column = self.column(rows, cells.row)[0]
        return [_cell(number, cells) for number in numbers(column)]

    def _cells_of_values(
        self, rows: Rows, row: p.Row, texts: Sequence[str], other: bool
    ) -> Sequence[Cell]:
        column = self.column(rows, row)[0]
        categories = [constant(json.loads(text)) for text in texts]
        there = [c for c in categories if c is not None]
        dtype = from_polars(column.dtype)
        made = listed("", there, dtype) if there else column.clear()
        if made is None or len({*plain(made)}) != len(made):
            raise Wrong("listed values that are not different values of the type")
        codes = [i for i, c in enumerate(categories) if c is not None]
        cell: dict[object, int] = dict(zip(plain(made), codes, strict=True))
        if None in categories:
            cell[None] = categories.index(None)
        rest = len(categories) if other else None
        return [cell.get(value, rest) for value in plain(column)]


def _constant(literal: Literal) -> pl.Expr:
    """A constant in Polars."""
    value, dtype = by_clocks(literal.value, literal.dtype.zone), literal.dtype
    if not isinstance(value, datetime) or not dtype.zone:
        return literal_lower(literal, pl)
    number = pl.lit(since_epoch(value), dtype=pl.Int64)
    return number.cast(pl.Datetime("us", dtype.zone)).cast(to_polars(dtype))


def _evaluate(data: pl.DataFrame, expression: pl.Expr) -> pl.Series:
    """An expression in each row."""
    return data.with_columns(expression.alias("\0made"))["\0made"]


def _keep(rows: Rows, stays: Sequence[bool]) -> Rows:
    return replace(rows, data=rows.at([i for i, stay in enumerate(stays) if stay]))


def _explode(rows: Rows, explode: p.Explode) -> Rows:
    column = rows.data[explode.column]
    lists = column.arr.to_list() if isinstance(column.dtype, pl.Array) else column
    sizes = [min(size or 0, explode.most) for size in lists.list.len()]
    places = [(i, j) for i, size in enumerate(sizes) for j in range(max(1, size))]
    data = rows.at([i for i, _ in places])
    elements = pl.Series([j for _, j in places], dtype=pl.Int64)
    repeated = lists.gather(pl.Series([i for i, _ in places], dtype=pl.UInt32))
    made = pl.DataFrame({"lists": repeated, "at": elements}).select(
        pl.col("lists").list.get(pl.col("at"), null_on_oob=True).alias(explode.column)
    )
    inner = rows.known[explode.column].inner
    assert inner is not None
    known = rows.known | {explode.column: inner.with_null()}
    return replace(rows, data=data.with_columns(made.to_series()), known=known)


def _numbers_of(
    values: Sequence[Number | None], groups: Sequence[list[int]], total: bool
) -> list[float]:
    """The values in some rows, or the total of each group."""
    if not total:
        return [float(v) + 0.0 for group in groups for i in group if (v := values[i]) is not None]
    return [
        sum(
            floor(clamp(-(2.0**40), float(v), 2.0**40) * 1024 + 0.5)
            for i in group
            if (v := values[i]) is not None
        )
        / 1024
        for group in groups
    ]


def _unite(left: Rows, right: Rows) -> Rows:
    names = left.data.columns
    frames = [left.data, right.data.select(names)]
    texts = [name for name in names if isinstance(left.data.schema[name], pl.Categorical)]
    data = pl.concat([frame.with_columns(pl.col(texts).cast(pl.String)) for frame in frames])
    known = {name: domain_of_dtype(from_polars(data.schema[name])) for name in left.known}
    return replace(left, data=data, known=known)


def _matches(here: Sequence[Key], there: Sequence[Key]) -> list[list[int]]:
    """The rows of another frame that each row meets; a null meets nothing."""
    places = defaultdict[Key, list[int]](list)
    for i, key in enumerate(there):
        if None not in key:
            places[key].append(i)
    return [places.get(key, []) for key in here]


def _meet(left: Rows, right: Rows, meet: p.Meet) -> Rows:
    here = lines(left.data.select(WHO, WINDOW, *(f"{name}" for name, _ in meet.on)))
    there = lines(right.data.select(WHO, WINDOW, *(f"{name}" for _, name in meet.on)))
    return _join(left, right, _matches(here, there), meet.how, dict(meet.new))


def _join(
    left: Rows, right: Rows, matches: Sequence[list[int]], how: str, new: Mapping[str, str]
) -> Rows:
    """The join of two frames, for the rows of the right one that each row of the left one meets."""
    if how in ("semi", "anti"):
        return _keep(left, [bool(found) == (how == "semi") for found in matches])
    pairs: list[tuple[int, int | None]] = []
    for i, found in enumerate(matches):
        pairs += [(i, j) for j in found] or ([(i, None)] if how == "left" else [])
    data = left.at([i for i, _ in pairs])
    others = right.at([j for _, j in pairs]) if new else right.data
    data = data.with_columns(others[old].alias(name) for old, name in new.items())
    known = {name: right.known[old].with_null() for old, name in new.items()}
    return replace(left, data=data, known=left.known | known)


def _one(value: Number | None, other: Number | None, adds: p.Placed | p.Squared | p.Paired) -> int:
    """What one row adds, or one individual."""
    if isinstance(adds, p.Paired):
        return add_pair(value, other, adds)
    if value is None:
        return 0
    place = place_on_grid(value, adds.grid)
    return place if isinstance(adds, p.Placed) else add_square(place, adds.grid, adds.shift)


def _ends(grid: p.Grid) -> tuple[tuple[Fraction, Fraction], Fraction]:
    """The values at the ends of a grid, and its step."""
    return (grid.centre + grid.lo * grid.step, grid.centre + grid.hi * grid.step), grid.step


def _weights(
    norm: Fraction | None, pairs: Iterable[tuple[object, Key]], of_rows: bool
) -> Callable[[object], int]:
    """The parts that each individual's rows count, k, the largest up to 4096 for which k times the
    norm of what it has in all groups is at most the limit. What counts once in each group has a
    norm of its own.
    """
    if norm is None:
        return lambda _: 1
    most = floor(norm * PARTS)
    squares = Counter[object]()
    for (owner, _), rows in Counter(pairs).items():
        squares[owner] += min(rows, most + 1) ** 2 if of_rows else 1
    return lambda owner: min(PARTS, isqrt(most**2 // squares[owner]))


def _some(counts: Counts) -> Counts:
    return {group: number for group, number in counts.items() if number}


@cache
def each_of(edges: p.Numbers) -> Sequence[Fraction]:
    """Edges or candidates, each by itself."""
    match edges:
        case p.Progression(first, step, count):
            return [first + step * place for place in range(count)]
        case p.Ratios(numerators, denominator):
            return [Fraction(number, denominator) for number in numerators]
    return edges


_Numbered: TypeAlias = p.Edges | p.Points | p.Between | p.UpTo


def _size(cells: p.Cells) -> int:
    """How many cells there are."""
    match cells:
        case p.Whole(some):
            return _size(some) + 1
        case p.OfPeople(some, _):
            return _size(some)
        case p.Edges(_, edges, other):
            return len(each_of(edges)) - 1 + other
        case p.Values(_, texts, other):
            return len(texts) + other
        case p.Points(_, _, _, count):
            return count
        case p.Between(_, candidates):
            return 2 * len(each_of(candidates)) + 1
        case p.UpTo(_, edges, above):
            return len(each_of(edges)) + above


def _cell(number: Number | None, cells: _Numbered) -> Cell:
    """The cell of a number. Floats are compared with the nearest float of an edge."""
    match cells:
        case p.Points():
            return None if number is None else _point(number, cells)
        case p.Edges(_, edges, other):
            rest = len(each_of(edges)) - 1 if other else None
            if number is None:
                return rest
            number, limits = _comparable(number, each_of(edges))
            if not limits[0] <= number <= limits[-1]:
                return rest
            return sum(limit <= number for limit in limits[:-1]) - 1
        case p.Between(_, candidates):
            if number is None:
                return None
            number, limits = _comparable(number, each_of(candidates))
            return sum(limit <= number for limit in limits) + sum(
                limit < number for limit in limits
            )
        case p.UpTo(_, edges, above):
            if number is None:
                return None
            upper = each_of(edges)
            number, limits = _comparable(number, upper if above else upper[:-1])
            return sum(limit < number for limit in limits)


def _comparable(number: Number, edges: Sequence[Fraction]) -> tuple[Number, Sequence[Number]]:
    """A number and edges in one type: whole if all are, else floats."""
    if isinstance(number, Fraction):
        return number, edges
    if isinstance(number, int) and all(edge.denominator == 1 for edge in edges):
        return number, [int(edge) for edge in edges]
    return float(number), [float(edge) for edge in edges]


def _point(number: Number, cells: p.Points) -> int:
    """The nearest point, in floats; whole numbers that floats do not distinguish are first moved
    near 0.
    """
    high, origin = cells.low + (cells.count - 1) * cells.step, 0
    far = max(abs(cells.low), abs(high)) > 2**52 and high - cells.low <= 2**61
    if isinstance(number, int) and far:
        origin = floor(cells.low)
        number = clamp(origin, number, ceil(high)) - origin
    scaled, scale = float(number) - float(cells.low - origin), 1 / cells.step
    if scale > 2**1000:
        scaled, scale = scaled * 2.0**512, scale / 2**512
    scaled *= float(scale)
    return floor(clamp(0.0, scaled + 0.5, cells.count - 0.5))
