"""Ways to limit individuals, compared: what each loses, and how much noise there is under it.

All of it is computed from plans and from a histogram that is released anyway, so it costs nothing
more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np
import polars as pl

from dpframe.aggregates.query import Query
from dpframe.aggregates.registry import bind
from dpframe.aggregates.request import QueryScope
from dpframe.aggregates.unit_statistics import UnitCount
from dpframe.api.spend import Spend
from dpframe.core.exact import Number, as_given
from dpframe.core.tree import Column
from dpframe.core.weights import PARTS, norm_in_parts, parts_in_each
from dpframe.errors import InvalidBudget, UnboundedSensitivity, UnsupportedOperation
from dpframe.frames.grouping_sets import SetGroups
from dpframe.frames.groups import Groups
from dpframe.frames.limit_groups import LimitGroups
from dpframe.frames.limit_norm import LimitNorm
from dpframe.frames.limit_rows import LimitRows
from dpframe.frames.relation import Relation
from dpframe.frames.step import Step
from dpframe.mechanisms import AdditiveMechanism
from dpframe.pipeline import Prepared
from dpframe.report import Plan

__all__ = [
    "COMPARED",
    "BIN_ENDS",
    "NoisyGroups",
    "Way",
    "compared",
    "ends_up_to",
    "individuals_of",
    "keys_of",
    "limited",
    "read_spend",
    "unlimited_relation",
    "ways_of",
]

_STEPS = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)
_ROUND = tuple(int(step * 10**power) for power in range(1, 6) for step in _STEPS)
BIN_ENDS: Final = (*range(1, 10), *_ROUND, 10**6)
"""Limits that are suggested."""

_FINE = 64
"""Up to how many listed groups each number of them has a bin of its own."""
_NORMAL = 1.959963984540054
"""Within how many standard deviations a normal error is with 95%."""
_NOT = "not compared: "
COMPARED: Final[dict[str, Any]] = {
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
    """A spend as it was given by names.

    Raises
    ------
    InvalidBudget
        When the spend is invalid.
    """
    known = {"epsilon", "delta", "rho"}
    if not isinstance(for_spend, Mapping) or not for_spend or not known >= set(for_spend):
        raise InvalidBudget(
            f"{as_given(for_spend)} is not a spend",
            where="suggest_limits(for_spend=...)",
            remedy='write for example for_spend={"epsilon": 1}, with epsilon and delta, or rho',
        )
    return Spend(for_spend.get("epsilon"), for_spend.get("delta"), for_spend.get("rho"))


@dataclass(frozen=True, slots=True)
class Way:
    """A limit, and the noise of a number of individuals under it.

    Parameters
    ----------
    step
        The limit.
    noise
        The error of one group by noise alone, with 95%.
    variance
        The parameter of the noise.
    """

    step: LimitGroups | LimitNorm
    noise: float
    variance: float

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
    """How many individuals are in how many listed groups.

    Parameters
    ----------
    ends
        The largest number of groups in each bin.
    counts
        The noisy numbers of individuals.
    variance
        The standard deviation of the noise of one group.
    """

    ends: tuple[int, ...]
    counts: np.ndarray[Any, np.dtype[np.int64]]
    variance: float

    def bias(self, way: Way, groups: int) -> tuple[float, float]:
        """By how much a limit lowers the average number of individuals in one of these groups,
        and the 95% error of that figure.

        It is sum_t h(t) lost(t) / G, with h(t) the individuals that are in t groups. The noise of
        bins is independent, so the standard deviation is that of a bin times sqrt(sum_t lost(t)^2)
        / G, and 95% are those of a normal law. In a bin of several numbers lost(t) lies between
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
class Ways:
    """Ways that are compared, or why a kind of limit is not.

    Parameters
    ----------
    limit, by
        The kind.
    tried
        Limits of that kind.
    note
        Why no way is compared.
    """

    limit: str
    by: tuple[str, ...]
    tried: tuple[Way, ...]
    note: str | None = None


def ways_of(asked: Query, prepare: Callable[[Query], Prepared]) -> tuple[Ways, ...]:
    """The limits that a query could have instead of its own, with the noise under each.

    Parameters
    ----------
    asked
        The query.
    prepare
        What plans it, at the spend that it shall have.

    Raises
    ------
    InvalidBudget
        When that spend is invalid.
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
        return (Ways("limit_norm", (), (), f"{_NOT}{why}"),)
    relation, size = unlimited_relation(asked.relation), keys.height
    groups = [n for n in BIN_ENDS if n < size] + [size]
    norms = dict.fromkeys(_norm(n) for n in groups)
    rows = f"{_NOT}it loses no less than limit_groups, at the same noise"
    plans = _Plans(replace(asked, relation=relation), counted, prepare)
    return (
        plans.ways("limit_groups", by, [LimitGroups(n, by) for n in groups]),
        plans.ways("limit_norm", (), [LimitNorm(norm) for norm in norms]),
        Ways("limit_rows", (), (), rows),
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
    prepare: Callable[[Query], Prepared]

    def ways(
        self, limit: str, by: tuple[str, ...], steps: Iterable[LimitGroups | LimitNorm]
    ) -> Ways:
        """The limits of one kind; none where the query is refused under them."""
        try:
            return Ways(limit, by, tuple(map(self._way, steps)))
        except (UnsupportedOperation, UnboundedSensitivity) as refusal:
            why = "" if refusal.why is None else f", because {refusal.why}"
            return Ways(limit, by, (), f"{_NOT}{refusal.what}{why}")

    def _way(self, step: LimitGroups | LimitNorm) -> Way:
        plan = self.prepare(limited(self.asked, step)).plan
        noise = plan.accuracy(self.counted)
        return Way(step, noise, _variance(plan, self.counted, noise))


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
    """The variance of an output's noise; if it is computed from several draws, that of a normal
    law with its error."""
    found = [release for release in plan.releases if name in release.users]
    if len(found) != 1 or not isinstance(found[0].noise, AdditiveMechanism):
        return (noise / _NORMAL) ** 2
    return found[0].noise.variance() * float(found[0].step) ** 2


def compared(ways: Sequence[Ways], found: NoisyGroups, groups: int) -> pl.DataFrame:
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


def _row(way: Way, found: NoisyGroups, groups: int) -> dict[str, Any]:
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
