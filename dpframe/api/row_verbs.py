"""Polars' verbs on private frames where each row stays on its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import polars as pl

from dpframe import pipeline
from dpframe.api.arguments import constant, equality, fills, flat, require_rows
from dpframe.api.expressions import DPExpr
from dpframe.api.plain import is_plain_aggregate
from dpframe.core.dtypes import DType
from dpframe.core.tree import Call, Column, Literal, Named
from dpframe.errors import UnsupportedOperation
from dpframe.frames.filter import DropNulls, Filter
from dpframe.frames.group_by_individual import with_aggregates
from dpframe.frames.relation import Relation
from dpframe.frames.step import Step
from dpframe.frames.with_columns import Drop, Rename, Select, WithColumns
from dpframe.parse.size import shown
from dpframe.rows.cast import Cast
from dpframe.rows.nulls import FillNan, FillNull
from dpframe.rows.polars_dtypes import from_polars
from dpframe.rows.suggest import unknown_column
from dpframe.sealed import all_sealed


@all_sealed
class RowVerbs(ABC):
    """Verbs after which each row is one that was there before, computed from itself alone."""

    __slots__ = ()
    _relation: Relation

    @abstractmethod
    def _then(self, step: Step) -> Self:
        """The rows after one more step."""

    @abstractmethod
    def agg(self, *exprs: Any, **named: Any) -> Any:
        """A query of dp expressions."""

    def filter(self, *predicates: Any, **constraints: Any) -> Self:
        """Keep rows for which all predicates are true; keywords compare for equality.

        With a unit that names an identifier, an aggregate of a person's own rows may stand in a
        predicate: ``pl.len().over("user_id") >= 3`` keeps the rows of people with three or more.

        Raises
        ------
        UnsupportedOperation
            For an expression that is not a condition, mixes rows, or has no known rule.
        UnknownColumn
            When the frame does not have the column.
        """
        given = flat(predicates)
        given += [equality(name, value) for name, value in constraints.items()]
        if not given:
            return self
        require_rows(given, "filter")
        named = pipeline.read_rows_of_individuals(given, {}, self._relation, "filter")
        return self._then(with_aggregates(Filter(tuple(n.tree for n in named))))

    def with_columns(self, *exprs: Any, **named_exprs: Any) -> Self:
        """Add or replace columns, each computed from its own row.

        With a unit that names an identifier, an aggregate of a person's own rows may stand in an
        expression: ``first=pl.col("at").min().over("user_id")``.

        Raises
        ------
        UnsupportedOperation
            For expressions that mix rows or have no known rule; the message shows what to write
            instead.
        UnknownColumn
            When the frame does not have the column.
        UnitDropped
            When the identifier would get other values.
        """
        given = flat(exprs)
        require_rows([*given, *named_exprs.values()], "with_columns")
        read = pipeline.read_rows_of_individuals
        named = read(given, named_exprs, self._relation, "with_columns")
        return self._then(with_aggregates(WithColumns(named))) if named else self

    def select(self, *exprs: Any, **named_exprs: Any) -> Any:
        """Row-wise expressions give a `PrivateFrame`; dp expressions a `PrivateQuery` of one row.

        Raises
        ------
        UnsupportedOperation
            When both kinds are mixed, or no column would be left; else as for `with_columns`.
        UnitDropped
            When the identifier is not among row-wise columns.
        """
        unnamed = flat(exprs)
        given = [*unnamed, *named_exprs.values()]
        columns = self._relation.facts.columns
        dp = [isinstance(e, DPExpr) or is_plain_aggregate(e, columns) for e in given]
        if given and all(dp):
            return self.agg(*unnamed, **named_exprs)
        if any(dp):
            mixed = next(e for e, is_dp in zip(given, dp, strict=True) if is_dp)
            raise UnsupportedOperation(
                "row-wise and dp expressions cannot be selected together",
                where=mixed._words() if isinstance(mixed, DPExpr) else shown(mixed),
                remedy="compute columns with with_columns(...) first, then aggregate",
            )
        read = pipeline.read_rows_of_individuals
        return self._then(
            with_aggregates(Select(read(unnamed, named_exprs, self._relation, "select")))
        )

    def sort(
        self,
        by: Any,
        *more_by: Any,
        descending: bool | Sequence[bool] = False,
        nulls_last: bool | Sequence[bool] = False,
        maintain_order: bool = False,
        multithreaded: bool = True,
    ) -> Self:
        """The same rows, unsorted: aggregates do not depend on the order of rows.

        Raises
        ------
        UnsupportedOperation
            For values without an order, or an expression that mixes rows.
        UnknownColumn
            When the frame does not have the column.
        """
        given = flat([by, *more_by])
        require_rows(given, "sort")
        pipeline.read_rows(given, {}, self._relation, "sort")
        return self

    def rename(self, mapping: Mapping[str, str], *, strict: bool = True) -> Self:
        """Give columns other names; the identifier is followed.

        Parameters
        ----------
        mapping
            ``{"old": "new"}``.
        strict
            Whether names that the frame does not have are refused; otherwise they are left out.

        Raises
        ------
        UnknownColumn
            When the frame does not have the column.
        UnsupportedOperation
            When names would not differ, or a function is given.
        """
        if not isinstance(mapping, Mapping):
            raise UnsupportedOperation(
                "rename takes a mapping of names, not a function",
                where="rename(...)",
                remedy='write rename({"old": "new"})',
            )
        if not strict:
            columns = self._relation.facts.columns
            mapping = {old: new for old, new in mapping.items() if old in columns}
        self._known(mapping, "rename")
        return self._then(Rename(tuple((str(a), str(b)) for a, b in mapping.items())))

    def drop(self, *columns: Any, strict: bool = True) -> Self:
        """Forget columns.

        Parameters
        ----------
        columns
            Names or selectors.
        strict
            Whether names that the frame does not have are refused; otherwise they are left out.

        Raises
        ------
        UnknownColumn
            When the frame does not have the column.
        UnitDropped
            When the identifier is among them.
        """
        given = flat(columns)
        if not strict:
            known = self._relation.facts.columns
            given = [c for c in given if not isinstance(c, str) or c.startswith("^") or c in known]
        names = self._selected(given, "drop")
        return self._then(Drop(names)) if names else self

    def cast(self, dtypes: Any, *, strict: bool = False) -> Self:
        """Change types; values that do not fit become null, so `strict` makes no difference.

        Parameters
        ----------
        dtypes
            A type for all columns, or a mapping of columns or selectors to types.

        Raises
        ------
        UnsupportedOperation
            For casts whose result may depend on other rows or on the version of Polars.
        UnitDropped
            When the identifier is cast.
        """
        wanted: dict[str, DType] = {}
        if isinstance(dtypes, Mapping):
            for key, dtype in dtypes.items():
                for name in self._selected([key], "cast"):
                    wanted[name] = from_polars(dtype)
        else:
            wanted = dict.fromkeys(self._relation.facts.columns, from_polars(dtypes))
        return self._with({n: Call(Cast(t), (Column(n),)) for n, t in wanted.items()})

    def fill_null(self, value: Any = None, strategy: Any = None, **_: Any) -> Self:
        """Replace nulls with a constant, in the columns whose type it has.

        Raises
        ------
        UnsupportedOperation
            With a strategy, which would look at other rows.
        """
        if strategy is not None or value is None:
            raise UnsupportedOperation(
                "fill_null with a strategy looks at other rows",
                where=f"fill_null(strategy={strategy!r})",
                remedy="fill with a constant: fill_null(0)",
            )
        return self._fill(FillNull(), value)

    def fill_nan(self, value: Any) -> Self:
        """Replace NaN with a constant, in all float columns."""
        return self._fill(FillNan(), value)

    def drop_nulls(self, subset: Any = None) -> Self:
        """Drop rows with a null in `subset`, or in any column.

        Raises
        ------
        UnknownColumn
            When the frame does not have the column.
        """
        given = [] if subset is None else subset if isinstance(subset, (list, tuple)) else [subset]
        names = (
            self._selected(given, "drop_nulls") if given else tuple(self._relation.facts.columns)
        )
        return self._then(DropNulls(names))

    def _with(self, trees: Mapping[str, Any]) -> Self:
        return self._then(WithColumns(tuple(Named(n, t) for n, t in trees.items())))

    def _fill(self, operation: FillNull | FillNan, value: Any) -> Self:
        op = operation.name
        given = value if isinstance(value, pl.Expr) else constant(value, op)
        (read, *_) = (*pipeline.read_rows([given], {}, self._relation, op), None)
        if read is None or not isinstance(read.tree, Literal):
            raise UnsupportedOperation(
                f"{op} of a whole frame takes a constant",
                where=f"{op}({given})",
                remedy=f"write with_columns(pl.col(...).{op}(...))",
            )
        chosen = {
            name: Call(operation, (Column(name), read.tree))
            for name, found in self._relation.facts.columns.items()
            if name != self._relation.facts.identifier and fills(op, found.dtype, read.tree.dtype)
        }
        return self._with(chosen) if chosen else self

    def _known(self, names: Iterable[str], what: str) -> None:
        for name in names:
            if name not in self._relation.facts.columns:
                raise unknown_column(name, self._relation.facts.columns, f"{what}({name!r})")

    def _selected(self, columns: Sequence[Any], what: str) -> tuple[str, ...]:
        names: list[str] = []
        for item in flat(columns):
            if isinstance(item, str) and not item.startswith("^"):
                self._known([item], what)
                names.append(item)
            else:
                found = pipeline.read_rows([item], {}, self._relation, what)
                names.extend(n.tree.name for n in found if isinstance(n.tree, Column))
        return tuple(dict.fromkeys(names))
