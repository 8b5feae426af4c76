"""Limits on individuals: suggested, found when a query runs, and what they drop.

Plans and a histogram that is released anyway give the loss under each limit, so it costs nothing
more.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe import pipeline
from dpframe.aggregates.aggregate import BoundAggregate, Clamp, OutputSpec, Query, is_told
from dpframe.aggregates.count import Count
from dpframe.aggregates.keys import require_numbers
from dpframe.aggregates.registry import bind
from dpframe.aggregates.request import QueryScope
from dpframe.aggregates.statistics import UnitCount
from dpframe.api.expressions import make, output_of, require_rows
from dpframe.api.functions import bounds, count, histogram
from dpframe.api.payer import Payer, ProtectedRows, Spend
from dpframe.api.source import Source, Sources
from dpframe.core import tree
from dpframe.core.dtypes import FLOAT64, INT64, Columns
from dpframe.core.exact import Number, exact, show_input
from dpframe.core.tree import Column, Named, Tree
from dpframe.core.units import Identifier, norm_in_parts, parts_in_each
from dpframe.errors import (
    DPFrameError,
    InvalidBounds,
    InvalidBudget,
    UnboundedSensitivity,
    UnsupportedOperation,
)
from dpframe.frames.contribution_limits import LimitGroups, LimitNorm, LimitRows
from dpframe.frames.contributions import spread_of, unlimited_refusal
from dpframe.frames.groups import Groups, SetGroups
from dpframe.frames.per_individual import FULLEST, GROUPS, ROWS, Extremes, PerIndividual
from dpframe.frames.relation import Relation, Step
from dpframe.frames.row_steps import Drop, DropNulls, Filter, Rename, Select, WithColumns
from dpframe.kernel.frame import PARTS
from dpframe.mechanisms import AdditiveMechanism
from dpframe.optimise.limit_rule import GROUPS as LEAST_GROUPS
from dpframe.optimise.limit_rule import LimitRule
from dpframe.optimise.planning import has_normal_noise, noise_in_rows, sizes_to_appear
from dpframe.optimise.queries import LimitSearch, Queries
from dpframe.report import Plan
from dpframe.rows.comparison import IsBetween
from dpframe.rows.fold import domain
from dpframe.rows.logic import And, IsNotNan, Not, When

_STEPS = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)
_ROUND = tuple(int(step * 10**power) for power in range(1, 6) for step in _STEPS)
BIN_ENDS: Final = (*range(1, 10), *_ROUND, 10**6)
"""Limits that are suggested."""

_FINE = 64
"""Up to how many listed groups each number of them has a bin of its own."""
_NORMAL = 1.959963984540054
"""Within how many standard deviations a normal error is with 95%."""
_NOT = "not compared: "
COMPARED: Final[Mapping[str, pl.DataType | type[pl.DataType]]] = {
    "limit": pl.String,
    "by": pl.List(pl.String),
    "n": pl.Int64,
    "norm": pl.Float64,
    "bias": pl.Float64,
    "bias_error": pl.Float64,
    "noise": pl.Float64,
    "error": pl.Float64,
    "best": pl.Boolean,
    "note": pl.String,
}


def keys_of(groups: Groups | None) -> pl.DataFrame | None:
    """The keys of groups that are listed."""
    if groups is None or isinstance(groups, SetGroups) or groups.discovered:
        return None
    return groups.keys


def ends_up_to(groups: int) -> tuple[int, ...]:
    """The largest number in each bin of a histogram of the number of groups per individual."""
    fine = range(1, min(groups, _FINE) + 1)
    return tuple(dict.fromkeys([*fine, *(n for n in BIN_ENDS if _FINE < n < groups), groups]))


def read_spend(for_spend: Mapping[str, Number]) -> Spend:
    """A spend as it was given by names."""
    known = {"epsilon", "delta", "rho"}
    if not isinstance(for_spend, Mapping) or not for_spend or not known >= set(for_spend):
        raise InvalidBudget(
            f"{show_input(for_spend)} is not a spend",
            where="suggest_limits(for_spend=...)",
            remedy='write for example for_spend={"epsilon": 1}, with epsilon and delta, or rho',
        )
    return Spend(for_spend.get("epsilon"), for_spend.get("delta"), for_spend.get("rho"))


@dataclass(frozen=True, slots=True)
class Candidate:
    """A limit, and the noise of a number of individuals under it."""

    step: LimitGroups | LimitNorm  # The limit
    noise: float  # The error of one group by noise alone, with 95%
    variance: float  # The parameter of the noise

    def lost(self, groups: int) -> float:
        """In how many of its groups an individual does not count, in total; for weights, the
        missing weight.
        """
        if isinstance(self.step, LimitGroups):
            return float(max(0, groups - self.step.n))
        parts = parts_in_each(norm_in_parts(self.step.n), groups)
        return groups * (1 - parts / PARTS)


@dataclass(frozen=True, slots=True, eq=False)
class NoisyGroups:
    """How many individuals are in how many listed groups."""

    ends: tuple[int, ...]  # The largest number of groups in each bin
    counts: NDArray[np.int64]  # The noisy numbers of individuals
    variance: float  # The standard deviation of the noise of one group

    def bias(self, way: Candidate, groups: int) -> tuple[float, float]:
        """By how much a limit lowers the average number of individuals in one of these groups,
        and the 95% error of that figure.

        It is sum_t h(t) lost(t) / G, with h(t) the individuals that are in t groups. The noise of
        bins is independent, so the standard deviation is sqrt(sum_t lost(t)^2) / G times the one of
        a bin, and 95% is taken of a normal law. In a bin of several numbers lost(t) lies between
        its ends: it is taken in the middle, and half their distance counts as error.
        """
        starts = (1, *(end + 1 for end in self.ends[:-1]))
        least = np.array([way.lost(start) for start in starts])
        most = np.array([way.lost(end) for end in self.ends])
        middle, half = (most + least) / 2, abs(most - least) / 2
        found = float(self.counts @ middle) / groups
        noise = _NORMAL * math.sqrt(self.variance * float(middle @ middle)) / groups
        return max(0.0, found), noise + float(np.maximum(self.counts, 0) @ half) / groups


@dataclass(frozen=True, slots=True)
class Candidates:
    """Ways that are compared, or why a kind of limit is not."""

    limit: str  # The kind
    by: tuple[str, ...]
    tried: tuple[Candidate, ...]  # Limits of that kind
    note: str | None = None  # Why no way is compared


def find_candidates(asked: Query, plan: Callable[[Query], Plan]) -> tuple[Candidates, ...]:
    """The limits that a query could have instead of its own, with the noise under each; `plan`
    plans a query at the spend that it shall have.
    """
    keys, counted, why = keys_of(asked.groups), individuals_of(asked), None
    if asked.groups is None:
        return ()
    by = asked.groups.names
    if keys is None:
        why = "the groups are not listed"
    elif counted is None:
        why = "only counts of individuals are, by dp.n_unique of the identifier"
    elif any(n.tree != Column(n.name) for n in asked.groups.by):
        why = "groups are computed; make columns of them with with_columns first"
    if why is not None or keys is None or counted is None:
        return (Candidates("limit_norm", (), (), f"{_NOT}{why}"),)
    relation, size = unlimited_relation(asked.relation), keys.height
    groups = [n for n in BIN_ENDS if n < size] + [size]
    norms = dict.fromkeys(_norm(n) for n in groups)
    rows = f"{_NOT}it loses no less than limit_groups, at the same noise"
    plans = _Plans(replace(asked, relation=relation), counted, plan)
    return (
        plans.ways("limit_groups", by, [LimitGroups(n, by) for n in groups]),
        plans.ways("limit_norm", (), [LimitNorm(norm) for norm in norms]),
        Candidates("limit_rows", (), (), rows),
    )


def _norm(groups: int) -> Fraction:
    """The smallest norm, in quarters, at which an individual in this many groups loses
    nothing."""
    return Fraction(math.isqrt(16 * groups - 1) + 1, 4)


def individuals_of(asked: Query) -> str | None:
    """The first output that is a number of individuals."""
    for output in asked.outputs:
        only = output.only
        if only is None or only.request.kind != "n_unique" or len(only.uses) != 1:
            continue
        tables = only.uses[0].part.tables
        if len(tables) == 1 and tables[0].statistic == UnitCount():
            return output.name
    return None


def unlimited_relation(relation: Relation) -> Relation:
    """A frame without its limits on rows, groups and norms."""
    found = replace(relation, steps=(), facts=relation.source)
    for step, _ in relation.steps:
        if not isinstance(step, (LimitRows, LimitGroups, LimitNorm)):
            found = found.then(step)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Plans:
    """Plans of a query under different limits."""

    asked: Query
    counted: str
    plan: Callable[[Query], Plan]

    def ways(
        self, limit: str, by: tuple[str, ...], steps: Iterable[LimitGroups | LimitNorm]
    ) -> Candidates:
        """The limits of one kind; none where the query is refused under them."""
        try:
            return Candidates(limit, by, tuple(map(self._way, steps)))
        except (UnsupportedOperation, UnboundedSensitivity) as refusal:
            why = "" if refusal.why is None else f", because {refusal.why}"
            return Candidates(limit, by, (), f"{_NOT}{refusal.what}{why}")

    def _way(self, step: LimitGroups | LimitNorm) -> Candidate:
        plan = self.plan(limited(self.asked, step))
        noise = plan.accuracy(self.counted)
        return Candidate(step, noise, _variance(plan, self.counted, noise))


def limited(asked: Query, step: Step) -> Query:
    """The same query of a frame with one more limit."""
    relation = asked.relation.then(step)
    scope = QueryScope(relation.facts, asked.groups)
    outputs = tuple(
        replace(o, aggregates={p: bind(a.request, scope) for p, a in o.aggregates.items()})
        for o in asked.outputs
    )
    return Query(relation, asked.groups, outputs)


def _variance(plan: Plan, name: str, noise: float) -> float:
    """The variance of an output's noise; for one that is computed from several draws, the variance
    of a normal law with its error.
    """
    found = [release for release in plan.releases if name in release.users]
    if len(found) != 1 or not isinstance(found[0].noise, AdditiveMechanism):
        return (noise / _NORMAL) ** 2
    return found[0].noise.variance() * float(found[0].step) ** 2


def compare_candidates(ways: Sequence[Candidates], found: NoisyGroups, groups: int) -> pl.DataFrame:
    """One row for each kind of limit: of those tried the one with the least error."""
    rows: list[dict[str, Any]] = []
    for kind in ways:
        row: dict[str, Any] = {"limit": kind.limit, "by": list(kind.by), "note": kind.note}
        tried = [_row(way, found, groups) for way in kind.tried]
        if tried:
            row |= min(tried, key=lambda one: one["error"])
        rows.append(row)
    with_error = [row for row in rows if "error" in row]
    least = min(with_error, key=lambda row: row["error"], default=None)
    for row in with_error:
        row["best"] = row is least
    return pl.DataFrame(rows, schema=COMPARED)


def _row(way: Candidate, found: NoisyGroups, groups: int) -> dict[str, Any]:
    bias, bias_error = found.bias(way, groups)
    by_norm = isinstance(way.step, LimitNorm)
    return {
        "n": None if by_norm else way.step.n,
        "norm": float(way.step.n) if by_norm else None,
        "bias": bias,
        "bias_error": bias_error,
        "noise": way.noise,
        "error": math.sqrt(bias**2 + way.variance),
    }


# -- Queries without limits -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class MissingLimit:
    """What is refused for want of a limit, and nothing else."""

    refusal: UnboundedSensitivity  # What it was refused with
    rows: ProtectedRows  # The rows
    groups: Groups | None  # The groups and outputs
    specs: tuple[OutputSpec, ...]

    def refused(self) -> UnboundedSensitivity:
        """A new copy of the refusal, because a traceback belongs to one raise."""
        return copy(self.refusal)

    def under(self, step: Step) -> Query:
        """The query of the limited frame."""
        rows = replace(self.rows, relation=self.rows.relation.then(step))
        return rows.ask(self.groups, self.specs)


def query_or_missing_limit(
    rows: ProtectedRows, groups: Groups | None, specs: list[OutputSpec]
) -> tuple[Query, MissingLimit | None]:
    """A query; if it only lacks limits, the query with one row of each individual."""
    try:
        asked = rows.ask(groups, specs)
    except UnboundedSensitivity as refusal:
        if not isinstance(rows.relation.facts.unit, Identifier):
            raise
        missing = MissingLimit(refusal, rows, groups, tuple(specs))
    else:
        return asked, None
    try:
        limited = missing.under(LimitRows(1))
    except UnboundedSensitivity as refusal:  # missing bounds, which limits cannot replace
        raise refusal from None
    except DPFrameError:
        raise missing.refused() from None
    return limited, replace(missing, refusal=_tailored(missing, limited))


def _tailored(missing: MissingLimit, limited: Query) -> UnboundedSensitivity:
    """The error for the strictest output, so that following its advice does not lead to a second
    error.
    """
    facts, groups = missing.rows.relation.facts, missing.groups
    found = spread_of(facts, groups)
    if found.is_bounded:
        return missing.refusal
    by_row = [a for a in limited.aggregates if not _is_of_individuals(a, facts.identifier)]
    kinds = {aggregate.request.kind for aggregate in by_row}
    if not by_row:  # and each counts once in a group
        found = replace(found, per_group=1)
    return unlimited_refusal(facts, groups, found, kinds)


def _is_of_individuals(aggregate: BoundAggregate, identifier: str | None) -> bool:
    """Whether an individual counts once in a group, with any number of rows there."""
    request = aggregate.request
    counted = request.kind == "n_unique" and request.tree == Column(identifier or "")
    return counted or getattr(request.aggregate, "per", None) == "unit"


# ``report_dropped=True``: which share of the rows limits dropped, or bounds clamped values of.
#
# Two more counts are measured in one plan with the query: the rows that limits keep and bounds do
# not change, and all rows before limits. They are separate measurements with their own noise and
# cost. Their sensitivities follow from the limits of their frames: the count of rows before limits
# uses a limit of ten times as many rows. The share follows from both.


DROPPED: Final = "dropped"
_SHARES: Final = (Fraction(18), Fraction(1), Fraction(1))
"""The weights of the query and of the two counts, by which they share the spend."""
_TIMES: Final = 10
"""Rows before limits are counted under a limit of this many times the query's limit."""
_UNLIMITED: Final = 100
"""The limit for that count where rows of an individual are not limited."""


def with_dropped(asked: Query) -> Queries:
    """The query, and the two counts that give the share of dropped rows."""
    require_numbers(asked.aggregates, "report_dropped=True", "nothing drops out of one")
    groups = asked.groups
    names = [o.name for o in asked.outputs] + ([] if groups is None else [*groups.names])
    if DROPPED in names:
        raise UnsupportedOperation(
            f"the result has a column {DROPPED!r} already",
            where="report_dropped=True",
            remedy="give the output another name, with .alias(...)",
        )
    if groups is not None and (
        groups.discovered or isinstance(groups, SetGroups) or asked.chooses_groups
    ):
        groups = None  # no result has a row for each listed group
    kept, before = asked.relation, unlimited_relation(asked.relation)
    if isinstance(kept.facts.unit, Identifier):
        spread = spread_of(kept.facts, asked.groups)
        most = _TIMES * spread.tight[0] if spread.is_bounded else _UNLIMITED
        if not spread.is_bounded or (groups is None and spread.rows is None):
            kept = kept.then(LimitRows(most))  # where groups alone have limits
        before = before.then(LimitRows(most))
    untouched = _untouched([c for a in asked.aggregates for c in a.clamps], kept.facts.columns)
    left = count() if untouched is None else make(Count(), Named("left", untouched))
    is_found = asked.finds_limit and kept is asked.relation  # they share what is drawn
    as_they_are = pipeline.ask(kept, groups, [output_of(left, "rows as they are")])
    return Queries(
        (
            replace(asked, tells_dropped=True),
            replace(as_they_are, tells_dropped=True, finds_limit=is_found),
            pipeline.ask(before, groups, [output_of(count(), "rows before limits")]),
        ),
        _SHARES,
    )


def _untouched(clamps: Iterable[Clamp], columns: Columns) -> Tree | None:
    """1 for a row whose values are all within bounds, null for others; None where nothing is
    clamped."""
    outside: list[Tree] = []
    for clamp in dict.fromkeys(clamps):
        found = domain(clamp.tree, columns)
        if not is_told(clamp, columns):
            continue
        ends = [_constant(end, found.dtype.is_integer) for end in clamp.bounds]
        beyond: Tree = Not().of(IsBetween("both").of(clamp.tree, *ends))
        if found.nan:
            beyond = And().of(beyond, IsNotNan().of(clamp.tree))
        outside.append(beyond)
    result: Tree | None = None
    for beyond in outside:
        inner = tree.Literal(1, INT64) if result is None else result
        result = When().of(beyond, tree.Literal(None, INT64), inner)
    return result


def _constant(end: Fraction, whole: bool) -> tree.Literal:
    if whole and end.denominator == 1:
        return tree.Literal(int(end), INT64)
    return tree.Literal(float(end), FLOAT64)


def with_share(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The result with the share of what was dropped: of each group where it has a row for each
    listed group, and of all rows otherwise.
    """
    result, left, before = frames
    kept, every = left["rows as they are"], before["rows before limits"]
    if kept.len() != result.height:
        kept, every = (pl.Series([found.sum()]) for found in (kept, every))
    numbers = pl.DataFrame({"kept": kept, "every": every})
    share = (1 - pl.col("kept") / pl.col("every")).clip(0.0, 1.0)
    found = numbers.select(pl.when(pl.col("every") >= 1).then(share)).to_series()
    if found.len() != result.height:
        found = pl.Series([found.item()] * result.height, dtype=pl.Float64)
    return result.with_columns(found.alias(DROPPED))


# -- The limit that a query lacks -----------------------------------------------------------------


Limits: TypeAlias = Literal["auto"] | None
LIMITS: Final = (*(step * 10**power for power in range(5) for step in (1, 2, 5)), 10**5)
"""Limits that may be found: two or two and a half times as much from one to the next, so that few
bins share what finds them.
"""
MOST_OF_FOUND: Final = 2000
"""The largest limit where groups are chosen privately: under a larger one only groups of
thousands would appear, and planning takes longer with each candidate.
"""
_NO_MORE_ROWS = Filter, DropNulls, WithColumns, Select, Rename, Drop
"""Steps after which no individual has more rows than before."""


def require_limits(limits: object) -> None:
    """Refuse an unknown value of ``limits=``."""
    if limits is not None and limits != "auto":
        raise UnsupportedOperation(
            f'limits={show_input(limits)} is neither "auto" nor None',
            where="limits=...",
            remedy=(
                "leave limits= out",
                "write limits=None and a limit of the frame: .limit_rows(n) or "
                ".limit_groups(n, by=...)",
            ),
        )


def require_amount(spend: Spend) -> None:
    """Refuse spends that a limit cannot be found by."""
    if spend.accuracy is not None:
        raise InvalidBudget(
            "accuracy= needs a limit on what one individual adds, and this query finds "
            "its limit when it runs",
            where="accuracy=...",
            why="the cost of an accuracy depends on that limit",
            remedy=("write the limit: .limit_rows(n)", "give a spend, such as epsilon=1"),
        )


def search_of(missing: MissingLimit, *, report_dropped: bool = False) -> LimitSearch:
    """How the limit that a query lacks is found: one on groups where that is enough, else one on
    rows in all, which bounds groups and rows in each as well.

    With `report_dropped` the plan also measures the share of dropped rows, under each limit.
    """
    found = _search_for([missing], [missing])
    if not report_dropped:
        return found
    told = [with_dropped(query) for (query,) in found.queries]
    every = tuple(one.queries for one in told)
    return replace(found, queries=every, weights=told[0].weights)


def search_of_several(
    asked: Sequence[Query | MissingLimit], weights: tuple[Fraction, ...] | None
) -> LimitSearch:
    """Build one search for a limit that serves all queries of a list that lack one; the other
    queries run in the same plan.

    Several that lack one share it: it is on rows, and found on the frame that they have in common,
    where an individual has at least as many rows as in each of them.
    """
    lacking = [one for one in asked if isinstance(one, MissingLimit)]
    return replace(_search_for(asked, lacking), weights=weights)


def _search_for(
    asked: Sequence[Query | MissingLimit], lacking: Sequence[MissingLimit]
) -> LimitSearch:
    first, *others = lacking
    groups = first.groups
    discovered = any(one.groups is not None and one.groups.discovered for one in lacking)
    limits = [n for n in LIMITS if n <= (MOST_OF_FOUND if discovered else LIMITS[-1])]
    by = () if groups is None or others else groups.by
    if by and all(named.tree == Column(named.name) for named in by):
        names = tuple(named.name for named in by)
        try:
            queries = _under(asked, [LimitGroups(n, names) for n in limits])
            search = _search(first.rows.relation, by)
            return LimitSearch("limit_groups", names, search, LIMITS, queries)
        except UnboundedSensitivity:  # rows in each group need one too
            pass
    relation = (
        first.rows.relation if not others else _shared([one.rows.relation for one in lacking])
    )
    queries = _under(asked, [LimitRows(n) for n in limits])
    return LimitSearch("limit_rows", (), _search(relation, ()), LIMITS, queries)


def _under(
    asked: Sequence[Query | MissingLimit], steps: Sequence[LimitRows | LimitGroups]
) -> tuple[tuple[Query, ...], ...]:
    """The queries under each limit; those that lack none as they are."""
    return tuple(
        tuple(
            replace(one.under(step), finds_limit=True) if isinstance(one, MissingLimit) else one
            for one in asked
        )
        for step in steps
    )


def _shared(relations: Sequence[Relation]) -> Relation:
    """The frame that some come from by steps that make no row of none."""
    first, *others = relations
    size = 0
    while all(
        size < len(one.steps) and one.steps[size][0] is first.steps[size][0] for one in relations
    ) and size < len(first.steps):
        size += 1
    later = [step for one in relations for step, _ in one.steps[size:]]
    same = all(other.token == first.token for other in others)
    if not same or not all(isinstance(step, _NO_MORE_ROWS) for step in later):
        raise UnsupportedOperation(
            "several of these queries lack a limit on what one individual adds, and "
            "they are of different frames",
            where="session.collect([...])",
            why="a plan that finds a limit for each frame has no finite form",
            remedy=("collect each query separately", "write their limits: .limit_rows(n)"),
        )
    facts = first.facts if size == len(first.steps) else first.steps[size][1]
    return replace(first, steps=first.steps[:size], facts=facts)


def _search(rows: Relation, by: tuple[Named, ...]) -> Query:
    """The query for the number of individuals by their numbers of rows, or groups, on the
    unlimited frame."""
    relation = rows.then(PerIndividual(by))
    edges = [1, *(n + 1 for n in LIMITS)]
    number = GROUPS if by else ROWS
    column = PerIndividual.name_of(number, relation.facts)
    output = output_of(histogram(column, edges, other=True), f"individuals by {number}")
    return pipeline.ask(relation, None, [output])


# -- The limit on rows with the least error -------------------------------------------------------


_NORMAL_QUANTILE = 1.959963984540054
_ENDLESS = 2**62
"""A size that no group has."""


@dataclass(frozen=True, slots=True)
class LimitsOfRows:
    """Limits on rows that are compared."""

    # The error by noise under each of the first limits, with 95%, as rows of all groups together.
    noise: tuple[float, ...]
    groups: int  # How many groups there are, or are taken to be
    sizes: tuple[int, ...]  # As for `LimitRule`
    is_normal: bool

    def best(
        self, ends: Sequence[int], counts: Sequence[int], law: AdditiveMechanism
    ) -> dict[str, object]:
        """The limit with the least error, as a row of the suggestions, by the rule that finds
        limits in queries.

        Parameters
        ----------
        ends, counts
            The histogram of rows of individuals; its bins end at the limits, and between them.
        law
            The noise of each count.
        """
        known = dict(zip(LIMITS, self.noise, strict=False))
        noise = tuple(known.get(end, math.inf) for end in ends)
        by_limit = dict(zip(LIMITS, self.sizes, strict=False))
        sizes = tuple(by_limit.get(end, _ENDLESS) for end in ends) if self.sizes else ()
        loss = LimitRule(tuple(ends), noise, sizes, law, self.is_normal).best_loss(counts)
        bias, left = loss.dropped / self.groups, loss.noise / self.groups
        return {
            "limit": "limit_rows",
            "by": [],
            "n": ends[loss.place],
            "bias": bias,
            "bias_error": max(0.0, loss.most.rows - loss.dropped) / self.groups,
            "noise": left,
            "error": math.hypot(bias, left / _NORMAL_QUANTILE),
            "best": True,
        }


def limits_of_rows(asked: Query, plan: Callable[[Query], Plan]) -> LimitsOfRows | None:
    """Limits on rows in all, with the noise of a query under each; None where none are enough."""
    free = replace(asked, relation=unlimited_relation(asked.relation))
    groups = asked.groups
    found = groups is not None and groups.discovered
    count = 1 if groups is None else LEAST_GROUPS if found else groups.size
    plans = list[Plan]()
    for n in LIMITS:
        if found and n > MOST_OF_FOUND:
            break
        try:
            under = plan(limited(free, LimitRows(n)))
        except DPFrameError as refusal:  # too little is spent for more
            if groups is None and isinstance(refusal, InvalidBudget):
                raise
            break
        plans.append(under)
    noise = tuple(noise_in_rows(n, p, count) for n, p in zip(LIMITS, plans, strict=False))
    if not plans:
        return None
    return LimitsOfRows(noise, count, sizes_to_appear(plans), has_normal_noise(plans))


def share_of_rows(
    ends: Sequence[int], counts: Sequence[int], law: AdditiveMechanism, limit: int
) -> float:
    """Which share of the rows a limit keeps, up to noise."""
    rule = LimitRule(tuple(ends), (), law=law)
    return max(0.0, 1 - rule.share(counts, list(ends).index(limit)))


# -- Suggestions ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SuggestionQuery:
    """What histograms of individuals are for."""

    query: Query  # The histograms
    # The numbers whose limits are sought: of rows, of groups, of rows in a group.
    numbers: tuple[str, ...]
    names: tuple[str, ...]  # The outputs whose bounds are sought
    ends: dict[str, tuple[int, ...]]  # The largest number in each bin of the histogram of a number


def suggest(
    asked: Query,
    source: Source | Sources,
    payer: Payer,
    spend: Spend,
    coverage: Number,
    for_spend: Mapping[str, Number] | None,
    *,
    details: bool,
) -> pl.DataFrame:
    """See `PrivateQuery.suggest_limits`; refusals come before anything is charged."""
    share = share_of(coverage)
    later = spend if for_spend is None else read_spend(for_spend)
    sought = build_suggestion_query(asked, with_bounds=source.engine.name == "polars")

    def plan(query: Query) -> Plan:
        return payer.prepare(Queries((query,)), later).plan

    ways = find_candidates(asked, plan)
    by_row = None
    if individuals_of(asked) is None:
        by_row = limits_of_rows(asked, plan)
    release = payer.release(Queries((sought.query,)), [source], spend)[0]
    laws = _laws(release.plan, sought)
    found = [read_suggestion(release.frame, asked.groups, sought, share, laws)]
    if asked.groups is not None:
        counts = _histogram(release.frame, GROUPS)[: len(sought.ends[GROUPS])]
        ends = sought.ends[GROUPS]
        groups = NoisyGroups(ends, counts, laws[GROUPS].variance())
        ways_found = compare_candidates(ways, groups, asked.groups.size)
        also = (ways_found, "limit_groups", ends, counts, laws[GROUPS])
        found.append(ways_found if details else _with_shares(*also))
    if by_row is not None:
        counts = _histogram(release.frame, ROWS)
        best = by_row.best(sought.ends[ROWS], counts.tolist(), laws[ROWS])
        frame = pl.DataFrame([best], schema_overrides=COMPARED)
        ends = sought.ends[ROWS]
        also = (frame, "limit_rows", ends, counts, laws[ROWS])
        found.append(frame if details else _with_shares(*also))
    table = pl.concat(found, how="diagonal")
    return table if details else brief(table)


def _laws(plan: Plan, sought: SuggestionQuery) -> dict[str, AdditiveMechanism]:
    """The noise of each histogram."""
    found = {}
    for number in sought.numbers:
        (noise,) = (r.noise for r in plan.releases if number in r.users)
        assert isinstance(noise, AdditiveMechanism)
        found[number] = noise
    return found


def _with_shares(
    found: pl.DataFrame,
    limit: str,
    ends: Sequence[int],
    counts: NDArray[np.int64],
    law: AdditiveMechanism,
) -> pl.DataFrame:
    """Rows of compared limits with the shares of individuals and of rows that a limit keeps."""
    shares: list[tuple[float | None, float | None]] = []
    for row in found.select("limit", "n").rows():
        if row[0] == limit and row[1] in ends:
            below = np.cumsum(counts)[ends.index(row[1])] / max(1.0, float(counts.sum()))
            people = float(np.clip(below, 0.0, 1.0))
            shares.append((people, share_of_rows(ends, counts.tolist(), law, row[1])))
        else:
            shares.append((None, None))
    schema = {"covered": pl.Float64, "covered_rows": pl.Float64}
    return found.hstack(pl.DataFrame(shares, schema=schema, orient="row"))


def brief(table: pl.DataFrame) -> pl.DataFrame:
    """Limits in the form that analysts write, with what decides between them; no row is about a
    limit that is not compared, and no column is empty.
    """
    rows = dict[str, Mapping[str, object]]()
    for row in table.iter_rows(named=True):
        words = _limit_words(row)
        if words is None:
            continue
        cells = {
            "n": row["n"],
            "people": _in_digits(row["covered"], 3),
            "rows": _in_digits(row["covered_rows"], 3),
            "error": _in_digits(row.get("error"), None),
            "best": row.get("best"),
        }
        kept = rows.setdefault(words, dict.fromkeys(cells))
        rows[words] = {name: cells[name] if old is None else old for name, old in kept.items()}
    schema = {
        "limit": pl.String,
        "n": pl.Int64,
        "people": pl.Float64,
        "rows": pl.Float64,
        "error": pl.Float64,
        "best": pl.Boolean,
    }
    found = pl.DataFrame([{"limit": words, **cells} for words, cells in rows.items()], schema)
    if found["best"].is_null().all():
        return found.drop("error", "best")
    return found.with_columns(pl.col("best").fill_null(False))


def _limit_words(row: Mapping[str, Any]) -> str | None:
    """The limit as an analyst writes it; None where it is not compared."""
    by = row["by"] or []
    if row["limit"] == "bounds":
        (name,) = by
        ends = row["bounds"]
        return f"bounds of {name}: " + (
            "not found" if ends is None else f"({ends[0]:,.15g}, {ends[1]:,.15g})"
        )
    if row.get("norm") is not None:
        return f"limit_norm({row['norm']:g})"
    if row["n"] is None:
        return None
    columns = by[0] if len(by) == 1 else by
    beside = f", by={json.dumps(columns, ensure_ascii=False)}" if by else ""
    return f"{row['limit']}({row['n']}{beside})"


def _in_digits(value: float | None, decimals: int | None) -> float | None:
    """A noisy number rounded to decimals, or to three digits."""
    if value is None:
        return None
    return round(value, decimals) if decimals is not None else float(f"{value:.3g}")


def suggest_for_frame(
    rows: ProtectedRows, by: Sequence[object], spend: Spend, coverage: Number, *, details: bool
) -> pl.DataFrame:
    """See `PrivateFrame.suggest_limits`."""
    share = share_of(coverage)
    assert rows.payer is not None  # frames that analysts hold belong to a session
    require_rows(by, "suggest_limits")
    groups = pipeline.group(rows.relation, by, {}, None, discover=True) if by else None
    sought = suggestion_of(rows.relation, groups, {})
    release = rows.payer.release(Queries((sought.query,)), [rows.source], spend)[0]
    laws = _laws(release.plan, sought)
    table = read_suggestion(release.frame, groups, sought, share, laws)
    return table if details else brief(table)


def _histogram(released: pl.DataFrame, number: str) -> NDArray[np.int64]:
    """The noisy counts of a number; the last is of what is in no bin."""
    alone = released.width > 1 and "upper" in released.columns  # then it is a separate table
    found = released if alone else released[number].item().struct.unnest()
    return found["count"].to_numpy()


def read_suggestion(
    released: pl.DataFrame,
    groups: Groups | None,
    sought: SuggestionQuery,
    share: Fraction,
    laws: Mapping[str, AdditiveMechanism],
) -> pl.DataFrame:
    """Limits and bounds from noisy histograms: one row each, see `PrivateQuery.suggest_limits`."""
    by = [] if groups is None else list(groups.names)
    limits = {ROWS: ("limit_rows", []), GROUPS: ("limit_groups", by), FULLEST: ("limit_rows", by)}
    rows: list[tuple[object, ...]] = []
    for number in sought.numbers:
        counts, limits_of = _histogram(released, number), sought.ends[number]
        n, covered = _least(counts, limits_of, share)
        kept = None
        if number != FULLEST:  # other groups of an individual may have as many rows
            kept = share_of_rows(limits_of, counts.tolist(), laws[number], n)
        rows.append((*limits[number], n, covered, kept, None))
    for place, name in enumerate(sought.names):
        least, largest = (released[f"{end} {place}"].item() for end in ("least", "largest"))
        ends = None if least is None or largest is None else _ends(least[0], largest[1])
        rows.append(("bounds", [name], None, None, None, ends))
    return pl.DataFrame(
        rows,
        schema={
            "limit": pl.String,
            "by": pl.List(pl.String),
            "n": pl.Int64,
            "covered": pl.Float64,
            "covered_rows": pl.Float64,
            "bounds": pl.List(pl.Float64),
        },
        orient="row",
    )


def _ends(lo: float, hi: float) -> list[float]:
    """Bounds; a lower one far below the upper is 0, which costs nothing and raises no value."""
    return [0.0 if 0 < lo <= hi / 64 else lo, hi]


def share_of(coverage: Number) -> Fraction:
    """A share as a fraction."""
    try:
        share = exact(coverage)
    except (TypeError, ValueError, ZeroDivisionError):
        share = Fraction(0)
    if not 0 < share < 1:
        raise InvalidBounds(
            f"coverage={show_input(coverage)} does not lie between 0 and 1",
            where="coverage",
            remedy="write for example coverage=0.95",
        )
    return share


def build_suggestion_query(asked: Query, *, with_bounds: bool = True) -> SuggestionQuery:
    """How many individuals have which numbers of rows and groups, and between which bounds their
    values lie if that is wanted, on the frame without its limits.
    """
    return suggestion_of(asked.relation, asked.groups, _clamped(asked) if with_bounds else {})


def suggestion_of(
    asked: Relation, groups: Groups | None, clamped: Mapping[Extremes, str]
) -> SuggestionQuery:
    """The histograms for a frame in groups, and for numbers that are clamped there."""
    facts = asked.facts
    if not isinstance(facts.unit, Identifier) or facts.identifier is None:
        raise UnsupportedOperation(
            "limits need an identifier of individuals, and unit=dp.Rows() has none",
            where="suggest_limits(...)",
            remedy='protect the frame with unit="user_id"',
        )
    relation = unlimited_relation(asked)
    by = () if groups is None else groups.by
    keys = keys_of(groups)
    relation = relation.then(
        PerIndividual(by, tuple(clamped))
        if keys is None
        else PerIndividual.within(by, tuple(clamped), keys)
    )
    numbers = (ROWS,) if groups is None else (ROWS, GROUPS, FULLEST)
    ends: dict[str, tuple[int, ...]] = dict.fromkeys(numbers, BIN_ENDS)
    if keys is not None:
        ends[GROUPS] = ends_up_to(keys.height)
    outputs = []
    for number, largest in ends.items():
        edges = [1, *(end + 1 for end in largest)]
        column = PerIndividual.name_of(number, relation.facts)
        outputs.append(output_of(histogram(column, edges, other=True), number))
    for place in range(len(clamped)):
        for end in (f"least {place}", f"largest {place}"):
            outputs.append(output_of(bounds(PerIndividual.name_of(end, relation.facts)), end))
    query = pipeline.ask(relation, None, outputs)
    return SuggestionQuery(query, numbers, tuple(clamped.values()), ends)


def _clamped(asked: Query) -> dict[Extremes, str]:
    """The numbers that outputs clamp, each with the first output that does."""
    found: dict[Extremes, str] = {}
    columns = asked.relation.facts.columns
    for aggregate in asked.aggregates:
        for clamp in aggregate.clamps:
            is_number = domain(clamp.tree, columns).dtype.is_numeric
            if is_number and not aggregate.shape.is_choice:
                found.setdefault(Extremes(clamp.tree, clamp.per_unit), aggregate.name)
    return found


def _least(counts: NDArray[np.int64], ends: tuple[int, ...], share: Fraction) -> tuple[int, float]:
    """The least limit under which so large a share of individuals stays, and their share."""
    total = max(1.0, float(counts.sum()))
    below = np.clip(np.cumsum(counts) / total, 0.0, 1.0)
    tried = [place for place, end in enumerate(ends) if end in BIN_ENDS or end == ends[-1]]
    enough = (place for place in tried if below[place] >= float(share))
    place = next(enough, tried[-1])
    return ends[place], float(below[place])
