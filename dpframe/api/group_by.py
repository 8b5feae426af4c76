"""Private frames that are grouped, and the way from dp expressions to a query."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import Any

import polars as pl

from dpframe.aggregates.argmax import Argmax
from dpframe.aggregates.keys import GroupKeys
from dpframe.api.arguments import flat
from dpframe.api.asking import query_of
from dpframe.api.expressions import DPExpr
from dpframe.api.functions import argmax, count
from dpframe.api.make import make
from dpframe.api.no_raw_access import GROUP_HINTS, GROUP_REASONS, NoRawAccess
from dpframe.api.protected_rows import ProtectedRows
from dpframe.api.query import PrivateQuery
from dpframe.api.shortcuts import Shortcuts
from dpframe.core.exact import as_given
from dpframe.frames.groups import Groups
from dpframe.report.notebook import groups_html
from dpframe.sealed import all_sealed


@all_sealed
class PrivateGroupBy(NoRawAccess, Shortcuts):
    """A private frame in groups. Their keys are public, or a query finds them privately."""

    __slots__ = ("_groups", "_rows")
    _noun = "a private group-by"
    _written = "group_by(...)"
    _hints = GROUP_HINTS
    _reasons = GROUP_REASONS
    _otherwise = "use .agg(...) with dp expressions\nuse a dp_* method, such as .dp_count()"

    def __init__(self, rows: ProtectedRows, groups: Groups) -> None:
        self._rows = rows
        self._groups = groups

    def agg(self, *exprs: Any, **named: Any) -> PrivateQuery:
        """A query with one row per key, in the order of the keys. Groups that the query finds are
        sorted.

        Raises
        ------
        UnsupportedOperation
            For an expression that is not a dp expression; the message names the one to use.
        UnboundedSensitivity
            When one individual could change a result by any amount.
        """
        return query_of(self._rows, self._groups, exprs, named)

    def len(self, name: str = "len") -> PrivateQuery:
        """The number of rows in each group, as in Polars: ``agg(dp.count())``."""
        return self.agg(count().alias(name))

    def dp_groups(self, rounds: int | None = None) -> PrivateQuery:
        """Choose groups privately and release only their keys, sorted, as `keys=` of another
        group-by takes them.

        All of the spend goes to finding them, and none to numbers. If people may be in any number
        of groups, groups are found in rounds. The first round, at a ninth of the cost, finds the
        largest. The next leaves these out, so that people weigh more in the remaining groups
        (Swanberg, Desfontaines and Haney 2023).

        Parameters
        ----------
        rounds
            The number of rounds, at most 4; each costs eight times as much as the one before. By
            default two if people may be in any number of groups, and one if limits bound it.

        Raises
        ------
        UnsupportedOperation
            When the groups are listed, or when `rounds` is set although rows are protected or
            limits are written.

        Examples
        --------
        >>> import polars as pl, dpframe as dp
        >>> visits = pl.DataFrame({"who": range(3000), "shop": ["north", "south", "sea"] * 1000})
        >>> session = dp.Session(epsilon=1.0, delta="1e-6")
        >>> shops = session.protect(visits, unit="who").group_by("shop").dp_groups()
        >>> shops.collect(epsilon=1, delta="1e-6")["shop"].to_list()
        ['north', 'sea', 'south']
        """
        name = "groups"
        while name in self._groups.names:
            name += "_"
        return query_of(self._rows, self._groups, [_keys_alone(rounds, name)], {})

    def dp_argmax(
        self,
        column: Any = None,
        score: pl.Expr | None = None,
        candidates: Any = None,
        k: int = 1,
        **options: Any,
    ) -> PrivateQuery:
        """Without a column: the key of the best group. With one: the winner in each group.

        See `dpframe.argmax` for the parameters.

        Raises
        ------
        MissingKeys
            When the groups to choose among are not listed.
        """
        if column is not None or candidates is not None:
            return super().dp_argmax(column, score, candidates, k, **options)
        return query_of(self._rows, self._groups, [_best_group(score, k, **options)], {})

    def __repr__(self) -> str:
        return f"<PrivateGroupBy {self._groups.words()}: {self._groups.origin}>"

    def _repr_html_(self) -> str:
        return groups_html(self._rows.relation, self._groups)


@all_sealed
class PrivateGroupByIndividual(PrivateGroupBy):
    """A private frame in groups of one individual's rows each, or of one individual's rows with the
    same values of further keys.
    """

    __slots__ = ("_reduced", "_refuse", "_written_by")

    def __init__(
        self,
        reduced: Callable[[Sequence[Any], Mapping[str, Any]], Any],
        grouped: Callable[[], PrivateGroupBy],
        written: str,
    ) -> None:
        self._reduced = reduced
        self._refuse = grouped
        self._written_by = written

    def agg(self, *exprs: Any, **named: Any) -> Any:
        """A `PrivateFrame` with one row for each individual, and each value of further keys.

        Write aggregates of Polars, such as ``pl.len()``, ``pl.col("x").clip(0, 100).sum()`` or
        ``pl.col("at").max() - pl.col("at").min()``, with arithmetic, conditions and ``filter``.
        This charges nothing and releases nothing: aggregate the returned frame with dp expressions.

        Raises
        ------
        MissingKeys
            For dp expressions, which would be about one individual each.
        UnsupportedOperation
            For an aggregate that depends on the order of rows, or is not known.
        UnboundedSensitivity
            For a sum or mean of values without known bounds.
        """
        if any(isinstance(e, DPExpr) for e in [*flat(exprs), *named.values()]):
            return self._refuse().agg(*exprs, **named)
        return self._reduced(flat(exprs), named)

    def len(self, name: str = "len") -> Any:
        """A `PrivateFrame` with the number of rows of each individual."""
        return self.agg(pl.len().alias(name))

    def dp_groups(self, rounds: int | None = None) -> PrivateQuery:
        """Refused: each group would be one individual."""
        return self._refuse().dp_groups(rounds)

    def dp_argmax(
        self,
        column: Any = None,
        score: pl.Expr | None = None,
        candidates: Any = None,
        k: int = 1,
        **options: Any,
    ) -> PrivateQuery:
        """Refused: each group would be one individual."""
        return self._refuse().dp_argmax(column, score, candidates, k, **options)

    def __repr__(self) -> str:
        return f"<PrivateGroupBy {self._written_by}: one group for each individual>"

    def _repr_html_(self) -> str:
        return escape(repr(self))


def is_discovered(grouped: PrivateGroupBy) -> bool:
    """Whether the query finds its groups privately when it runs."""
    return grouped._groups.discovered


def group_names(grouped: PrivateGroupBy) -> list[str]:
    """The names of the grouping columns."""
    return list(grouped._groups.names)


def public_keys(grouped: PrivateGroupBy) -> pl.DataFrame | None:
    """Its keys, where they are public."""
    return None if grouped._groups.discovered else grouped._groups.keys


def _keys_alone(rounds: int | None, name: str) -> DPExpr:
    """Which groups there are, as a dp expression."""
    spec = make(GroupKeys(rounds), None)._spec
    said = "" if rounds is None else f"rounds={as_given(rounds)}"
    return DPExpr(replace(spec, words=f"dp_groups({said})", alias=name))


def _best_group(score: pl.Expr | None, k: int, **options: Any) -> DPExpr:
    """The argmax over groups as a dp expression."""
    made = argmax(None, score, None, k, **options)
    ((placeholder, spec),) = made._spec.aggregates.items()
    assert isinstance(spec.aggregate, Argmax)
    best = replace(spec, aggregate=replace(spec.aggregate, best_group=True))
    return DPExpr(type(made._spec)({placeholder: best}, None, made._spec.words, "argmax"))
