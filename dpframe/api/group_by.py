"""Private frames that are grouped, and the way from dp expressions to a query."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import Any

import polars as pl

from dpframe import pipeline
from dpframe.aggregates.aggregate import OutputSpec
from dpframe.aggregates.argmax import Argmax
from dpframe.aggregates.keys import GroupKeys
from dpframe.api import functions
from dpframe.api.expressions import (
    DPExpr,
    IntoBins,
    IntoBounds,
    IntoColumn,
    dp_expressions,
    flat,
    make,
    output_of,
)
from dpframe.api.functions import argmax, count
from dpframe.api.limits import query_or_missing_limit
from dpframe.api.no_raw_access import GROUP_HINTS, GROUP_REASONS, NoRawAccess
from dpframe.api.payer import ProtectedRows
from dpframe.api.query import PrivateQuery
from dpframe.core.exact import Number, show_input
from dpframe.errors import DPFrameError, InvalidBudget, UnsupportedOperation
from dpframe.frames.groups import Groups
from dpframe.frames.relation import Relation
from dpframe.parse.size import shown
from dpframe.report.notebook import groups_html
from dpframe.sealed import all_sealed


def query_of(
    rows: ProtectedRows, groups: Groups | None, exprs: Sequence[object], named: Mapping[str, object]
) -> PrivateQuery:
    """The query of some dp expressions, by group if there are groups."""
    specs: list[OutputSpec] = []
    for alias, expression in [*((None, e) for e in flat(exprs)), *named.items()]:
        found = _dp_expressions(rows.relation, expression)
        if alias is not None and len(found) > 1:
            raise UnsupportedOperation(
                f"{len(found)} columns cannot all be named {alias!r}",
                where=shown(expression),
                remedy="name the columns one by one",
            )
        specs.extend(output_of(each, alias) for each in found)
    asked, missing = query_or_missing_limit(rows, groups, specs)
    return PrivateQuery(asked, rows.source, rows.payer, missing)


def _dp_expressions(relation: Relation, expression: object) -> list[DPExpr]:
    """The dp expressions that one argument is."""
    if isinstance(expression, DPExpr):
        return [expression]
    found: list[DPExpr] = []
    if isinstance(expression, pl.Expr):
        found = dp_expressions(expression, relation.facts.columns)
    if not found:
        columns = relation.facts.columns
        given = expression if isinstance(expression, Mapping) else [expression]
        names = [each for each in given if isinstance(each, str) and each in columns]
        raise UnsupportedOperation(
            "only aggregates can be released, and this is not an aggregate",
            where=shown(expression) if isinstance(expression, pl.Expr) else str(expression),
            remedy=_instead(relation, expression, names),
        )
    return found


def _instead(relation: Relation, expression: object, names: list[str]) -> str | tuple[str, str]:
    """The dp aggregate to write for one of Polars."""
    if isinstance(expression, (str, Mapping)):
        column = f'pl.col("{names[0]}")' if names else "pl.col(name)"
        method = next(iter(expression.values()), "") if isinstance(expression, Mapping) else ""
        method = method if method in ("sum", "median", "std", "var") else "mean"
        return f"write {column}.clip(low, high).{method}()", "write dp.count()"
    try:
        pipeline.read_rows([expression], {}, relation, "agg")
    except DPFrameError as refusal:
        if refusal.remedy is not None and "dp" in refusal.remedy:
            return refusal.remedy
    return "write for example pl.col(name).clip(low, high).mean()", "write dp.count()"


# -- Shortcuts ------------------------------------------------------------------------------------


_SPENDS = ("epsilon", "delta", "rho", "accuracy")


def _unspent(options: dict[str, object]) -> dict[str, Any]:
    """Options of a query; a spend is not allowed among them."""
    for name in _SPENDS:
        if name in options:
            raise InvalidBudget(
                "a query costs nothing until it is planned or collected",
                where=f"{name}=...",
                remedy=f"write .collect({name}=...) after it",
            )
    return options


@all_sealed
class Shortcuts(ABC):
    """`frame.dp_sum("x", ...)` for `frame.agg(pl.col("x").dp_sum(...))`, and so on."""

    __slots__ = ()

    @abstractmethod
    def agg(self, *exprs: pl.Expr, **named: pl.Expr) -> PrivateQuery:
        """A query of dp expressions."""

    def dp_count(self, column: IntoColumn | None = None, **options: object) -> PrivateQuery:
        """See `dpframe.count`; the column is named ``len``."""
        return self.agg(functions.count(column, **_unspent(options)))

    def dp_sum(
        self, column: IntoColumn, bounds: IntoBounds | None = None, **options: object
    ) -> PrivateQuery:
        """See `dpframe.sum`."""
        return self.agg(functions.sum(column, bounds, **_unspent(options)))

    def dp_mean(
        self, column: IntoColumn, bounds: IntoBounds | None = None, **options: object
    ) -> PrivateQuery:
        """See `dpframe.mean`."""
        return self.agg(functions.mean(column, bounds, **_unspent(options)))

    def dp_var(
        self, column: IntoColumn, bounds: IntoBounds | None = None, **options: object
    ) -> PrivateQuery:
        """See `dpframe.var`."""
        return self.agg(functions.var(column, bounds, **_unspent(options)))

    def dp_std(
        self, column: IntoColumn, bounds: IntoBounds | None = None, **options: object
    ) -> PrivateQuery:
        """See `dpframe.std`."""
        return self.agg(functions.std(column, bounds, **_unspent(options)))

    def dp_ratio(
        self,
        column: IntoColumn,
        denominator: IntoColumn,
        bounds: IntoBounds | None = None,
        **options: object,
    ) -> PrivateQuery:
        """See `dpframe.ratio`."""
        return self.agg(functions.ratio(column, denominator, bounds, **_unspent(options)))

    def dp_median(
        self,
        column: IntoColumn,
        bounds: IntoBounds | None = None,
        candidates: Iterable[object] | None = None,
        **options: object,
    ) -> PrivateQuery:
        """See `dpframe.median`."""
        return self.agg(functions.median(column, bounds, candidates, **_unspent(options)))

    def dp_quantile(
        self,
        column: IntoColumn,
        q: Number | Sequence[Number],
        bounds: IntoBounds | None = None,
        candidates: Iterable[object] | None = None,
        **options: object,
    ) -> PrivateQuery:
        """See `dpframe.quantile`."""
        return self.agg(functions.quantile(column, q, bounds, candidates, **_unspent(options)))

    def dp_bounds(self, column: IntoColumn, **options: object) -> PrivateQuery:
        """See `dpframe.bounds`."""
        return self.agg(functions.bounds(column, **_unspent(options)))

    def dp_n_unique(self, column: IntoColumn, **options: object) -> PrivateQuery:
        """See `dpframe.n_unique`."""
        return self.agg(functions.n_unique(column, **_unspent(options)))

    def dp_histogram(
        self, column: IntoColumn, bins: IntoBins = None, **options: object
    ) -> PrivateQuery:
        """See `dpframe.histogram`."""
        return self.agg(functions.histogram(column, bins, **_unspent(options)))

    def dp_cdf(self, column: IntoColumn, bins: IntoBins = None, **options: object) -> PrivateQuery:
        """See `dpframe.cdf`."""
        return self.agg(functions.cdf(column, bins, **_unspent(options)))

    def dp_argmax(
        self,
        column: IntoColumn | None = None,
        score: pl.Expr | None = None,
        candidates: Iterable[object] | pl.DataFrame | None = None,
        k: int = 1,
        **options: object,
    ) -> PrivateQuery:
        """See `dpframe.argmax`."""
        return self.agg(functions.argmax(column, score, candidates, k, **_unspent(options)))


# -- Groups ---------------------------------------------------------------------------------------


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

    def agg(self, *exprs: object, **named: object) -> PrivateQuery:
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
        spec = make(GroupKeys(rounds), None)._spec
        said = "" if rounds is None else f"rounds={show_input(rounds)}"
        keys = DPExpr(replace(spec, words=f"dp_groups({said})", alias=name))
        return query_of(self._rows, self._groups, [keys], {})

    def dp_argmax(
        self,
        column: IntoColumn | None = None,
        score: pl.Expr | None = None,
        candidates: Iterable[object] | pl.DataFrame | None = None,
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
        made = argmax(None, score, None, k, **options)._spec
        ((placeholder, spec),) = made.aggregates.items()
        assert isinstance(spec.aggregate, Argmax)
        best = replace(spec, aggregate=replace(spec.aggregate, best_group=True))
        group = DPExpr(OutputSpec({placeholder: best}, None, made.words, "argmax"))
        return query_of(self._rows, self._groups, [group], {})

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
        reduced: Callable[[Sequence[object], Mapping[str, object]], object],
        grouped: Callable[[], PrivateGroupBy],
        written: str,
    ) -> None:
        self._reduced = reduced
        self._refuse = grouped
        self._written_by = written

    def agg(self, *exprs: object, **named: object) -> Any:
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
        column: IntoColumn | None = None,
        score: pl.Expr | None = None,
        candidates: Iterable[object] | pl.DataFrame | None = None,
        k: int = 1,
        **options: object,
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
