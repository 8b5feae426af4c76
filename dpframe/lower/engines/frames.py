"""Frames of an engine behind Narwhals, with the methods that lowered steps call.

Columns have made-up names underneath: engines differ in which names they tell apart, and in which
characters they take for syntax.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from dpframe.lower.engines.expressions import Expression
from dpframe.lower.engines.made import GroupScope, Made, Scope

if TYPE_CHECKING:
    from dpframe.lower.engines.namespace import EngineNamespace


class Blueprint:
    """Stands for a Narwhals frame where expressions are only made, to see whether they can be."""

    def _same(self, *_: Any, **__: Any) -> Blueprint:
        return self

    select = with_columns = filter = group_by = agg = join = _same


class EngineFrame:
    """A lazy frame of an engine.

    Parameters
    ----------
    ns
        The namespace of its expressions.
    native
        The Narwhals frame.
    columns
        What is known of each column, by the name that plans use.
    names
        What each column is called underneath.
    """

    __slots__ = ("_native", "columns", "names", "ns")

    def __init__(
        self,
        ns: EngineNamespace,
        native: Any,
        columns: Mapping[str, Made],
        names: Mapping[str, str],
    ) -> None:
        self.ns = ns
        self._native = native
        self.columns = dict(columns)
        self.names = dict(names)

    @property
    def native(self) -> Any:
        """The engine's own frame, with the columns' names underneath."""
        return self._native.to_native()

    def __repr__(self) -> str:
        return f"<a frame of {self.ns.engine}>"

    # -- rows and columns -----------------------------------------------------------------------

    def _scope(self) -> Scope:
        return Scope(self.ns, self.columns, self.names)

    def _staged(self, scope: Scope) -> Any:
        """The Narwhals frame with the columns of all stages beside it."""
        frame = self._native
        for stage in scope.stages:
            if stage.columns:
                frame = frame.with_columns(*(e.alias(n) for n, e in stage.columns.items()))
            if self.ns.is_dry or not (stage.hashes or stage.positions):
                continue
            native = frame.to_native()
            for name, (parts, salt) in stage.hashes.items():
                native = self.ns.with_hash(native, name, parts, salt)
            for name, (within, order) in stage.positions.items():
                native = self.ns.with_position(native, name, within, order)
            frame = self.ns.nw.from_native(native)
        return frame

    def _built(
        self, frame: Any, columns: Mapping[str, Made], kept: Mapping[str, str]
    ) -> EngineFrame:
        """A frame of computed columns; those of `kept` are there under their names."""
        names = {name: kept.get(name) or self.ns.fresh() for name in columns}
        exprs = [
            self.ns.nw.col(names[name])
            if name in kept
            else _typed(self.ns, made).alias(names[name])
            for name, made in columns.items()
        ]
        return EngineFrame(
            self.ns,
            frame.select(*exprs),
            {name: _column(self.ns, names[name], made) for name, made in columns.items()},
            names,
        )

    def with_columns(self, *expressions: Expression) -> EngineFrame:
        scope = self._scope()
        made = {_name(e): scope.made(e) for e in expressions}
        kept = {name: found for name, found in self.names.items() if name not in made}
        return self._built(self._staged(scope), {**self.columns, **made}, kept)

    def select(self, *expressions: Expression | str) -> EngineFrame:
        if all(isinstance(e, str) for e in expressions):
            return self._only([e for e in expressions if isinstance(e, str)])
        asked = [self.ns.col(e) if isinstance(e, str) else e for e in expressions]
        if any(e.reduces for e in asked):
            return self._aggregated([], asked)
        scope = self._scope()
        made = {_name(e): scope.made(e) for e in asked}
        return self._built(self._staged(scope), made, {})

    def _only(self, names: Sequence[str]) -> EngineFrame:
        kept = {name: self.names[name] for name in names}
        frame = self._native.select(*kept.values())
        return EngineFrame(self.ns, frame, {n: self.columns[n] for n in names}, kept)

    def drop(self, *names: str) -> EngineFrame:
        return self._only([name for name in self.columns if name not in names])

    def rename(self, mapping: Mapping[str, str]) -> EngineFrame:
        columns = {mapping.get(name, name): made for name, made in self.columns.items()}
        names = {mapping.get(name, name): found for name, found in self.names.items()}
        return EngineFrame(self.ns, self._native, columns, names)

    def filter(self, *predicates: Expression) -> EngineFrame:
        if not predicates:
            return self
        scope = self._scope()
        made = [scope.made(p) for p in predicates]
        frame = self._staged(scope).filter(*(m.expr for m in made))
        return EngineFrame(self.ns, frame.select(*self.names.values()), self.columns, self.names)

    def unique(self) -> EngineFrame:
        return self.group_by(list(self.columns)).agg()

    # -- groups ---------------------------------------------------------------------------------

    def group_by(self, keys: Sequence[str] | str) -> Grouped:
        return Grouped(self, [keys] if isinstance(keys, str) else list(keys))

    def _aggregated(self, keys: Sequence[str], expressions: Sequence[Expression]) -> EngineFrame:
        rows = self._scope()
        kept = {key: self.names[key] for key in keys}
        groups = GroupScope(self.ns, rows, {key: self.columns[key] for key in keys}, kept)
        made = {_name(e): groups.made(e) for e in expressions}
        staged = self._staged(rows)
        exprs = [e.alias(n) for n, e in groups.aggregates.items()]
        by = list(kept.values())
        reduced = staged.group_by(*by).agg(*exprs) if by else staged.select(*exprs)
        beside = EngineFrame(self.ns, reduced, {}, {})
        every = {**{key: self.columns[key] for key in keys}, **made}
        return self._built(beside._staged(groups), every, kept)

    # -- joins ----------------------------------------------------------------------------------

    def join(
        self, other: EngineFrame, on: Sequence[str], how: str, nulls_equal: bool = False
    ) -> EngineFrame:
        """Rows that have the same values of columns of the same names."""
        left, right = (_keyed(frame, on, nulls_equal) for frame in (self, other))
        added = [] if how in ("semi", "anti") else [n for n in other.columns if n not in on]
        theirs = right.select(*right.columns)._copied()
        mine_on = [left.names[name] for name in left.columns if name not in self.columns]
        theirs_on = [theirs.names[name] for name in theirs.columns if name not in other.columns]
        plain = theirs._native.select(*theirs_on, *(theirs.names[n] for n in added))
        joined = left._native.join(plain, left_on=mine_on, right_on=theirs_on, how=how)
        names = {**self.names, **{name: theirs.names[name] for name in added}}
        columns = {**self.columns, **{name: theirs.columns[name] for name in added}}
        return EngineFrame(self.ns, joined.select(*names.values()), columns, names)

    def _copied(self) -> EngineFrame:
        """The same columns under new names, so that a frame can meet itself."""
        return self._built(self._native, self.columns, {})


class Grouped:
    """A frame's rows by the values of some columns; null is one of them."""

    __slots__ = ("_frame", "_keys")

    def __init__(self, frame: EngineFrame, keys: Sequence[str]) -> None:
        self._frame = frame
        self._keys = keys

    def agg(self, *expressions: Expression) -> EngineFrame:
        for key in self._keys:
            dtype = self._frame.columns[key].dtype
            if dtype.is_float:
                raise self._frame.ns.refused(f"grouping by {dtype}")
            self._frame.ns.require_comparable(dtype)
        return self._frame._aggregated(self._keys, expressions)


def concatenated(ns: EngineNamespace, frames: Sequence[EngineFrame]) -> EngineFrame:
    """The rows of several frames with the same columns."""
    first = frames[0]
    names = {name: ns.fresh() for name in first.columns}
    parts = []
    for frame in frames:
        exprs = [frame.columns[name].expr.alias(names[name]) for name in names]
        parts.append(frame._native.select(*exprs))
    columns = {}
    for name, physical in names.items():
        ends = [(f.columns[name].lo, f.columns[name].hi) for f in frames]
        made = _column(ns, physical, first.columns[name])
        known = all(lo is not None and hi is not None for lo, hi in ends)
        lo = min(e[0] for e in ends) if known else None  # type: ignore[type-var]
        hi = max(e[1] for e in ends) if known else None  # type: ignore[type-var]
        columns[name] = replace(made, lo=lo, hi=hi)
    both = parts[0] if ns.is_dry else ns.nw.concat(parts, how="vertical")
    return EngineFrame(ns, both, columns, names)


def _keyed(frame: EngineFrame, on: Sequence[str], nulls_equal: bool) -> EngineFrame:
    """The frame with the columns that a join compares; with `nulls_equal`, a null is a value."""
    made = []
    for i, name in enumerate(on):
        frame.ns.require_comparable(frame.columns[name].dtype)
        column = frame.ns.col(name)
        if not nulls_equal:
            made.append(column.alias(f"\0on{i}"))
            continue
        made.append(column.fill_null(_some_value(frame, name)).alias(f"\0on{i}"))
        made.append(column.is_null().alias(f"\0null{i}"))
    return frame.with_columns(*made)


def _some_value(frame: EngineFrame, name: str) -> Any:
    dtype = frame.columns[name].dtype
    if dtype.is_text:
        return ""
    if dtype.is_boolean:
        return False
    if dtype.name == "Date":
        return date(1970, 1, 1)
    return datetime(1970, 1, 1) if dtype.name == "Datetime" else 0


def _column(ns: EngineNamespace, name: str, made: Made) -> Made:
    """What is known of a column once it is computed."""
    if made.dtype.name == "Null":
        return ns.python(None)
    return Made(ns.nw.col(name), made.dtype, made.lo, made.hi, is_plain=True)


def _typed(ns: EngineNamespace, made: Made) -> Any:
    """An expression as a column, which has a type also where it holds nothing."""
    return ns.nw.lit(None, ns.nw.Boolean) if made.dtype.name == "Null" else made.expr


def _name(expression: Expression) -> str:
    assert expression.name is not None, "columns are named"
    return expression.name
