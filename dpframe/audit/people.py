"""Frames of made-up people, of the schemas that a plan was made for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from math import ceil
from typing import Any, TypeAlias, TypeVar

import polars as pl

from dpframe.aggregates.query import Query
from dpframe.audit.values import Constants, constants_of, name_of, series_of, values_for
from dpframe.core.dtypes import DType
from dpframe.core.units import Identifier, Rows
from dpframe.frames.binary import frames_of
from dpframe.frames.individuals import window_of
from dpframe.frames.relation import Relation
from dpframe.parse.outputs import polars_schema

Row: TypeAlias = "tuple[Any, ...]"
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
    schema: Mapping[str, Any]
    near: Mapping[str, Sequence[Any]]
    """Values of each column near the constants that it is used with."""
    far: Mapping[str, Sequence[Any]]
    """Values near any constant of the query."""
    used: frozenset[str]
    """The columns whose values may matter; all others have one value throughout."""

    @property
    def identifier(self) -> str | None:
        return self.relation.source.identifier

    def windows(self, times: Sequence[Any]) -> list[int]:
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

    def _row(self, frame: _Frame, key: Mapping[str, Any]) -> Row:
        return tuple(
            key[name] if name in key else self._value(frame, name) for name in frame.dtypes
        )

    def _value(self, frame: _Frame, name: str) -> Any:
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


def _word(value: Any) -> str:
    if value is None:
        return "null"
    return repr(value) if isinstance(value, (str, bytes)) else str(value)
