"""Sessions: one budget, one kind of unit, and the frames it protects."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import polars as pl

from dpframe import pipeline
from dpframe.aggregates.histogram import listed_categories
from dpframe.aggregates.values import pair
from dpframe.api.frame import PrivateFrame
from dpframe.api.query import PrivateQuery, Release, parts, prepare
from dpframe.api.source import Source, protected_source
from dpframe.charge import budget_of, slack_beside_accuracy, spend_in
from dpframe.cheapest import cheapest
from dpframe.core.budget import Budget
from dpframe.core.domain import Domain, columns, domain_of_dtype
from dpframe.core.exact import Number, nearest
from dpframe.core.interval import Interval
from dpframe.core.units import Rows, Unit, as_unit
from dpframe.errors import (
    InvalidBounds,
    InvalidBudget,
    LedgerError,
    UnknownColumn,
    UnsupportedOperation,
)
from dpframe.frames.facts import FrameFacts
from dpframe.frames.relation import Relation
from dpframe.ledger.place import open_ledger
from dpframe.plan import Plan
from dpframe.rows.polars_dtypes import schema_from_polars
from dpframe.rows.suggest import did_you_mean


class Session:
    """A privacy budget and the frames whose release it pays for.

    Parameters
    ----------
    budget
        `PureDP`, `ApproxDP` or `ZCDP`; its kind is the measure in which the session counts.
    epsilon, delta, rho
        Short for a budget: epsilon alone is `PureDP`, with delta `ApproxDP`, rho is `ZCDP`.
    ledger
        Where the budget is kept: None for memory, which forgets it with the process; a path or
        ``sqlite:///`` URL for a file, a ``postgresql://`` URL for a database. In it each `name` has
        one budget that is created once.
    name
        What plans call the session, and the name of its budget in the ledger, where it is
        ``"default"`` if left out.

    Raises
    ------
    InvalidBudget
        When there is no budget, or one that is not positive and finite.
    LedgerError
        When the ledger cannot be opened, does not verify, or has another budget by that name.

    Guarantee
    ---------
    All results of `collect` and `release` together are differentially private at `budget` for the
    unit of `protect`, even when each query is chosen after seeing earlier results: a plan runs only
    if the sum of all costs stays within the budget, which is a valid privacy filter (Rogers, Roth,
    Ullman & Vadhan 2016; for zCDP Feldman & Zrnic 2021). With a ledger this holds of all sessions
    together that use the same name in it, now or earlier, in this process or another.

    Examples
    --------
    >>> import dpframe as dp
    >>> session = dp.Session(epsilon=1.0)
    >>> session.remaining
    PureDP(epsilon=1)
    """

    def __init__(
        self,
        budget: Budget | None = None,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        ledger: str | os.PathLike[str] | None = None,
        name: str | None = None,
    ) -> None:
        opened = budget_of(budget, epsilon, delta, rho)
        self._measure = type(opened)
        self._ledger = open_ledger(ledger, name, opened)
        self._name = name
        self._unit: Unit | None = None
        self._frames = 0

    # -- frames ---------------------------------------------------------------------------------

    def protect(
        self,
        frame: object,
        unit: Unit | str,
        *,
        name: str | None = None,
        bounds: Mapping[str, Sequence[Any]] | None = None,
        categories: Mapping[str, Sequence[Any]] | None = None,
    ) -> PrivateFrame:
        """Put a frame under the session's protection: the trust boundary.

        Parameters
        ----------
        frame
            A Polars DataFrame or LazyFrame, or a pyarrow Table, batch reader or dataset. What was
            done to it before is the data owner's; everything after is checked.
        unit
            Whom to protect.
        name
            What plans call the frame.
        bounds
            Declared bounds of columns, {column: (lo, hi)}. Used for tightness; aggregates clamp
            again.
        categories
            Declared values of columns, {column: [values]}; public.

        Raises
        ------
        UnsupportedOperation
            For another kind of frame, or a unit unlike that of the session's other frames.
        UnknownColumn, InvalidBounds
            When a declaration is wrong.
        """
        who = as_unit(unit)
        if not isinstance(who, Rows):
            raise UnsupportedOperation(
                "identifiers with several rows per person are not supported yet",
                where=f"unit={unit!r}",
                remedy="protect a frame with one row per person and unit=dp.Rows()",
            )
        if self._unit is not None and self._unit.kind != who.kind:
            raise UnsupportedOperation(
                f"the session protects {self._unit.kind}, and this frame would be protected as "
                f"{who.kind}: their costs do not add up",
                where=f"unit={unit!r}",
                remedy="open another session for another kind of unit",
            )
        source = protected_source(frame)
        facts = FrameFacts(_declared(source, bounds or {}, categories or {}), who)
        self._unit = who
        self._frames += 1
        label = name or self._name or ("data" if self._frames == 1 else f"data {self._frames}")
        return PrivateFrame(Relation.of(label, facts), source, self)

    # -- queries --------------------------------------------------------------------------------

    def plan(
        self,
        query: PrivateQuery,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        accuracy: Mapping[str, Number] | None = None,
    ) -> Plan:
        """The plan of a query at a spend; touches no data and charges nothing."""
        return self._prepared(query, epsilon, delta, rho, accuracy).plan

    def collect(
        self,
        query: PrivateQuery,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        accuracy: Mapping[str, Number] | None = None,
        interval: Number | None = None,
    ) -> pl.DataFrame:
        """Charge, run and release a query, also one that was made without a session.

        See `PrivateQuery.collect` for the parameters.
        """
        return self.release(
            query, epsilon=epsilon, delta=delta, rho=rho, accuracy=accuracy, interval=interval
        ).frame

    def release(
        self,
        query: PrivateQuery,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        accuracy: Mapping[str, Number] | None = None,
        interval: Number | None = None,
    ) -> Release:
        """As `collect`, with plan and cost beside the result."""
        prepared = self._prepared(query, epsilon, delta, rho, accuracy)
        _, source, _ = parts(query)
        result = pipeline.run(prepared, source._frame, source.schema, self._ledger, interval)
        self._unit = prepared.query.relation.facts.unit
        return Release(result, prepared.plan, prepared.plan.cost)

    def _prepared(
        self,
        query: PrivateQuery,
        epsilon: Number | None,
        delta: Number | None,
        rho: Number | None,
        accuracy: Mapping[str, Number] | None,
    ) -> pipeline.Prepared:
        if not isinstance(query, PrivateQuery):
            raise UnsupportedOperation(
                f"a session runs private queries, not a {type(query).__name__}",
                remedy="make one with frame.agg(...) or frame.dp_count()",
            )
        asked, _, owner = parts(query)
        if owner is not None and owner is not self:
            raise InvalidBudget(
                "the query belongs to another session",
                remedy="collect it there, or protect the frame in this session",
            )
        unit = asked.relation.facts.unit
        if self._unit is not None and self._unit.kind != unit.kind:
            raise UnsupportedOperation(
                f"the session protects {self._unit.kind}, and the query {unit.kind}: their costs "
                "do not add up",
                remedy="open another session for another kind of unit",
            )
        self._ledger.require_unit(unit.kind)
        remaining = self.remaining
        if accuracy is None:
            return prepare(
                query, spend_in(self._measure, epsilon, delta, rho, remaining), remaining
            )
        slack = slack_beside_accuracy(self._measure, epsilon, delta, rho)
        return prepare(query, cheapest(asked, self._measure, slack, accuracy), remaining)

    # -- budget ---------------------------------------------------------------------------------

    @property
    def budget(self) -> Budget:
        """The whole budget, with all that was granted later."""
        return self._ledger.budget

    @property
    def spent(self) -> Budget:
        """The exact sum of all charges, those of other processes included."""
        return self._ledger.spent

    @property
    def remaining(self) -> Budget:
        """What is left."""
        return self._ledger.budget - self._ledger.spent

    @property
    def history(self) -> pl.DataFrame:
        """One row per charge: `time`, `fingerprint`, `epsilon`, `delta`, `rho`, `status`.

        Those of other processes that use the ledger are among them.
        """
        entries = self._ledger.entries
        rho = self._measure.currency == "rho"
        mains = [nearest(e.cost.main) for e in entries]
        return pl.DataFrame(
            {
                "time": pl.Series([e.time for e in entries], dtype=pl.Datetime("us", "UTC")),
                "fingerprint": pl.Series([e.fingerprint for e in entries], dtype=pl.String),
                "epsilon": pl.Series([None if rho else m for m in mains], dtype=pl.Float64),
                "delta": pl.Series([nearest(e.cost.slack) for e in entries], dtype=pl.Float64),
                "rho": pl.Series([m if rho else None for m in mains], dtype=pl.Float64),
                "status": pl.Series([e.status for e in entries], dtype=pl.String),
            }
        )

    def __reduce__(self) -> NoReturn:
        raise UnsupportedOperation(
            "a session cannot be pickled or copied: a copy would spend the same budget again",
            where="session",
            remedy="pass the session itself",
        )

    def __repr__(self) -> str:
        label = "" if self._name is None else f" {self._name!r}"
        where = self._ledger.where
        try:
            left, whole = self.remaining.words(), self.budget.words()
        except LedgerError as error:
            return f"<Session{label}: {where}; {error.what}>"
        return f"<Session{label}: {left} of {whole} remains, {where}>"


def _declared(
    source: Source, bounds: Mapping[str, Sequence[Any]], categories: Mapping[str, Sequence[Any]]
) -> Mapping[str, Domain]:
    """The domains of the source's columns, with what the data owner declared."""
    table = {n: domain_of_dtype(t) for n, t in schema_from_polars(source.schema).items()}
    for name, ends in _declarations(bounds, "bounds", "(0, 100)"):
        found = _column(table, name, "bounds")
        where = f"protect(..., bounds={{{name!r}: {ends!r}}})"
        if not found.dtype.is_ordered:
            raise InvalidBounds(
                f"a column of type {found.dtype} has no bounds",
                where=where,
                remedy="declare categories=... for text",
            )
        lo, hi = pair(ends, found.dtype, where)
        if lo > hi:
            raise InvalidBounds(
                "the bounds are reversed", where=where, remedy="write the lower bound first"
            )
        narrowed = found.interval.intersect(Interval(lo, hi))
        if narrowed is None:
            raise InvalidBounds(
                f"no value of type {found.dtype} lies within the bounds",
                where=where,
                remedy="declare bounds that the type can hold",
            )
        table[name] = replace(found, interval=narrowed)
    for name, values in _declarations(categories, "categories", '["a", "b"]'):
        found = _column(table, name, "categories")
        where = f"protect(..., categories={{{name!r}: ...}})"
        if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
            raise InvalidBounds(
                f"categories are a list of values, not {values!r}",
                where=where,
                remedy=f'write categories={{{name!r}: ["a", "b"]}}',
            )
        listed = listed_categories(list(values), found, where)
        table[name] = replace(found, categories=tuple(v for v in listed if v is not None))
    return columns(table)


def _declarations(given: object, what: str, example: str) -> Iterable[tuple[str, Any]]:
    if not isinstance(given, Mapping):
        raise InvalidBounds(
            f"{what} are declared by column, not as a {type(given).__name__}",
            where=f"protect(..., {what}=...)",
            remedy=f'write {what}={{"column": {example}}}',
        )
    return given.items()


def _column(table: Mapping[str, Domain], name: str, what: str) -> Domain:
    if name not in table:
        raise UnknownColumn(
            f"the frame has no column {name!r}",
            where=f"protect(..., {what}={{{name!r}: ...}})",
            remedy=did_you_mean(str(name), table),
        )
    return table[name]
