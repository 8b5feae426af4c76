"""Parts of physical plans as numbers. Two parts have one number where they mean the same.

A number stands for a step with all that comes before it. A column stands for the expression that
made it. So names of columns, columns that nothing reads and the places of items do not matter, and
the order of steps does.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from fractions import Fraction
from itertools import repeat
from math import prod
from operator import attrgetter

from dpframe.kernel import plan as kernel


@dataclass(frozen=True)
class RowsAfter:
    """The rows after some steps."""

    number: int  # Which rows they are
    columns: Mapping[str, int]  # The number of each column
    # The numbers of the column that identifies individuals, and of the one whose windows do.
    owner: int | None = None
    time: int | None = None
    are_weighed: bool = False  # Whether rows of an individual count in parts


class Terms:
    """The numbers of all parts that were seen. Each part that is new gets the next one."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._added: dict[int, dict[str, str]] = {}
        self._most: dict[int, int] = {}
        self.computed: set[int] = set()
        """What steps compute, each with the rows that it is computed of."""

    def number(self, *term: Hashable) -> int:
        """The number of a term."""
        return self._numbers.setdefault(term, len(self._numbers))

    def source(self, scan: kernel.Scan, columns: Iterable[str]) -> RowsAfter:
        """All rows of a source, with these of its columns."""
        rows = self.number("Scan", scan.name, scan.unit, scan.owners)
        numbers = {name: self.number("column", rows, name) for name in columns}
        if not isinstance(scan.unit, kernel.Person):
            return RowsAfter(rows, numbers)
        time = scan.unit.time
        whose = numbers.get(scan.unit.column), None if time is None else numbers.get(time)
        return RowsAfter(rows, numbers, *whose)

    def frames(self, plan: kernel.Plan) -> list[RowsAfter]:
        """The rows of each frame of a physical plan."""
        frames: list[RowsAfter] = []
        for frame in plan.frames:
            match frame:
                case kernel.Scan(columns=columns):
                    frames.append(self.source(frame, (name for name, _ in columns)))
                case kernel.Union(left, right) | kernel.Meet(left, right):
                    frames.append(self.both(frame, frames[left], frames[right]))
                case _:
                    frames.append(self.after(frame, frames[frame.input]))
        return frames

    def after(self, frame: kernel.Frame, before: RowsAfter) -> RowsAfter:
        """The rows after a step with one frame. What a public table adds is known of steps of the
        physical plan, and is the same after an equal step.
        """
        rows, columns = before.number, before.columns
        match frame:
            case kernel.Map(_, named):
                new = {name: self.row(row, before) for name, row in named}
                computed = (new[name] for name, row in named if not isinstance(row, kernel.Col))
                self.computed.update(self.number("computed", rows, one) for one in computed)
                return replace(before, columns=new)
            case kernel.Gather(_, by, new_columns, _, beside):  # a reading does not have bounds
                keys = {name: self.row(row, before) for name, row in by}
                about = rows, *keys.values()
                new = {
                    name: self.number("aggregate", about, self.row(call, before))
                    for name, call in new_columns
                }
                self.computed.update(new.values())
                if beside:
                    return replace(before, columns={**columns, **new})
                each = self.number("Gather", about)
                return replace(before, number=each, columns={**columns, **keys, **new})
            case kernel.Explode(_, column, most):
                step = self.number("Explode", rows, self.row(kernel.Col(column), before))
                most = self._most.setdefault(step, most) if most == 0 else most
                self._most.setdefault(step, most)
                rows = self.number("first", step, most)
                new = {column: self.number("element", rows)}
                return replace(before, number=rows, columns={**columns, **new})
            case kernel.Lookup(_, public, on, how, names):
                here = tuple((self.row(kernel.Col(a), before), b) for a, b in on)
                rows = self.number("Lookup", rows, public, here, how)
                added = self._added.setdefault(rows, {})
                added.update((name, name) for name in names)
                new = {name: self.number("public", rows, name) for name in added}
                return replace(before, number=rows, columns={**new, **columns})
            case kernel.OneEach(_, by_rows, listed):
                groups = tuple(self.row(row, before) for row in by_rows)
                rows = self.number("OneEach", rows, groups, listed)
                numbers = zip((frame.rows, frame.groups, frame.fullest), range(3), strict=True)
                new = {name: self.number("of individual", rows, which) for name, which in numbers}
                for end in frame.ends:
                    about = rows, self.row(end.row, before), end.total
                    new[end.least] = self.number("least", *about)
                    new[end.largest] = self.number("largest", *about)
                self.computed.update(new.values())
                columns = {**columns, **new}
                return replace(before, number=rows, columns=columns, are_weighed=False)
            case kernel.KeepRows(_, n, by, first) | kernel.KeepGroups(_, n, by, first):
                of = (*by,) if first is None else (*by, first)
                which = tuple(self.row(kernel.Col(name), before) for name in of)
                kind = type(frame).__name__
                return replace(before, number=self.number(kind, rows, n, len(by), which))
            case kernel.Part(_, by, key):  # a reading does not have the types of keys
                frame = replace(frame, key=tuple(replace(value, dtype="") for value in key))
        assert isinstance(frame, kernel.Filter | kernel.Part | kernel.Without | kernel.Weigh)
        number = self.node(replace(frame, input=rows), before)
        assert isinstance(number, int)
        are_weighed = before.are_weighed or isinstance(frame, kernel.Weigh)
        return replace(before, number=number, are_weighed=are_weighed)

    def both(
        self,
        frame: kernel.Union | kernel.Meet,
        left: RowsAfter,
        right: RowsAfter,
        suffix: str | None = None,
    ) -> RowsAfter:
        """The rows after a step with two frames. A reading has the suffix that columns of the right
        frame get, and no names.
        """
        if isinstance(frame, kernel.Union):
            rows = self.number("Union", left.number, right.number)
            columns = {
                name: self.number("either", column, right.columns[name])
                for name, column in left.columns.items()
                if name in right.columns
            }
            owner, time = (
                None if None in pair else self.number("either", *pair)
                for pair in ((left.owner, right.owner), (left.time, right.time))
            )
            return RowsAfter(rows, columns, owner, time)
        on = tuple(
            (self.row(kernel.Col(a), left), self.row(kernel.Col(b), right)) for a, b in frame.on
        )
        rows = self.number("Meet", left.number, right.number, on, frame.how)
        added = self._added.setdefault(rows, {})
        added.update((now, name) for name, now in frame.new)
        new = {
            now: self.number("met", rows, self.row(kernel.Col(name), right))
            for now, name in added.items()
            if suffix is None or now == (name + suffix if name in left.columns else name)
        }
        return replace(left, number=rows, columns={**left.columns, **new})

    def row(self, row: kernel.Row, rows: RowsAfter) -> int:
        """An expression of columns."""
        match row:
            case kernel.Col(name):
                number = rows.columns.get(name)
                return self.number("missing", name) if number is None else number
            case kernel.Lit(dtype, value, parameter):
                return self.number("Lit", dtype, value, parameter)
            case kernel.Call(operation, operands, constants):
                inner = tuple(self.row(one, rows) for one in operands)
                return self.number("Call", operation, inner, constants)

    def node(self, value: object, rows: RowsAfter) -> Hashable:
        """Any other part of a plan, whose expressions are of these rows."""
        match value:
            case kernel.Col() | kernel.Lit() | kernel.Call():
                return self.row(value, rows)
            case kernel.Listed(sizes=sizes) if len(sizes) > 1:  # a reading has their product
                return self.node(replace(value, sizes=(prod(sizes),)), rows)
            case tuple() if value and not isinstance(value[0], int | Fraction):
                return tuple(map(self.node, value, repeat(rows)))
        if not is_dataclass(value) or isinstance(value, type):
            assert isinstance(value, Hashable)
            return value
        names = map(attrgetter("name"), fields(value))
        parts = map(getattr, repeat(value), names)
        return self.number(type(value).__name__, *map(self.node, parts, repeat(rows)))
