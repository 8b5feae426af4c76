"""Several releases of one query as one, with less error than each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import polars as pl

from dpframe.api.release import Release, stated_plan
from dpframe.core.budget import Budget
from dpframe.core.exact import Number
from dpframe.errors import UnknownColumn, UnsupportedOperation
from dpframe.mechanisms import AdditiveMechanism
from dpframe.mechanisms.combined import MOST_TERMS, reach_of_sum
from dpframe.plan import confidence_of
from dpframe.report import Plan
from dpframe.rows.suggest import did_you_mean
from dpframe.sealed import sealed

__all__ = ["Combination", "combine"]

_WHERE = "dp.combine([...])"


@dataclass(frozen=True, slots=True)
class _Part:
    """The noise of one output in one release, and how much that counts.

    Parameters
    ----------
    law
        In steps.
    step
        What a step is.
    weight
        The weight of its value; the weights of an output add up to 1.
    """

    law: AdditiveMechanism
    step: Fraction
    weight: float


@dataclass(frozen=True, slots=True, eq=False)
class Combination:
    """Several releases of one query as one.

    Parameters
    ----------
    frame
        The weighted means of their results, as Float64, next to the columns of groups.
    cost
        The sum of the charges of all releases. The combination costs nothing.
    weights
        By output, the weight of each release, in their order.
    """

    frame: pl.DataFrame
    cost: Budget
    weights: dict[str, tuple[float, ...]]
    _parts: dict[str, tuple[_Part, ...]] = field(repr=False)

    def accuracy(self, column: str, confidence: Number = 0.95) -> float:
        """A bound on the error of an output that holds with the given confidence, for each number
        separately. It follows from the laws of noise in the plans. It covers noise alone: the bias
        of limits and clamping is in each release, and remains.

        Raises
        ------
        UnknownColumn
            When the output does not exist.
        InvalidBounds
            When the confidence does not lie between 0 and 1.
        """
        level = confidence_of(confidence)
        if column not in self._parts:
            raise UnknownColumn(
                f"the releases have no output {column!r}",
                where="combination.accuracy(...)",
                remedy=did_you_mean(column, list(self._parts)),
            )
        noises = [(p.law, p.weight * float(p.step)) for p in self._parts[column]]
        return reach_of_sum(noises, float(1 - level))

    def __repr__(self) -> str:
        count = len(next(iter(self.weights.values())))
        errors = ", ".join(f"{name} \u00b1 {self.accuracy(name):.6g}" for name in self.weights)
        said = f"{count} releases for {self.cost.words()} together; 95%: {errors}"
        return f"<Combination of {said}>\n{self.frame}"


@sealed
def combine(releases: Sequence[Release]) -> Combination:
    """Combine several releases of one query into one. Each number is their mean, weighted by the
    inverse of the variance of its noise. This is post-processing and costs nothing.

    Two releases at the same spend give the noise of one at 1.41 times the spend. No other weighted
    mean has a smaller variance (Gauss-Markov).

    Parameters
    ----------
    releases
        Results of ``release(...)`` of the same query, from different charges and at any spends;
        also those of ``reuse="same"``. The query has counts and sums only, without
        ``nonnegative=True``. The frame should have the same rows each time: if rows were added
        between two releases, the result is a mean of both states.

    Raises
    ------
    UnsupportedOperation
        When the releases are of different queries, two are of one charge, or an output does not
        have unbiased noise of a known law, such as a mean, a quantile or a nonnegative count.

    Examples
    --------
    >>> import polars as pl, dpframe as dp
    >>> session = dp.Session(epsilon=1.0)
    >>> people = session.protect(pl.DataFrame({"age": [31, 64]}), unit=dp.Rows())
    >>> found = [people.dp_count().release(epsilon=0.5) for _ in range(2)]
    >>> both = dp.combine(found)
    >>> both.weights
    {'len': (0.5, 0.5)}
    >>> both.accuracy("len") < found[0].plan.accuracy("len")
    True
    """
    given = _read(releases)
    plans = [release.own_plan for release in given]
    _require_one_query([stated_plan(release) for release in given])
    parts: dict[str, tuple[_Part, ...]] = {}
    for output in plans[0].outputs:
        name = output.name
        if not all(name in release.plain for release in given):
            raise _not_plain(name)
        parts[name] = _weighed([_noise(plan, name) for plan in plans])
    first = given[0].frame
    keys = [column for column in first.columns if not _is_of_output(column, parts)]
    if any(not release.frame.select(keys).equals(first.select(keys)) for release in given):
        raise _not_one("their groups differ")
    means = [_mean(given, name, own).alias(name) for name, own in parts.items()]
    cost = given[0].cost
    for release in given[1:]:
        cost = cost + release.cost
    weights = {name: tuple(part.weight for part in own) for name, own in parts.items()}
    frame = pl.DataFrame([*first.select(keys).get_columns(), *means])
    return Combination(frame, cost, weights, parts)


def _is_of_output(column: str, parts: dict[str, Any]) -> bool:
    """Whether it is the column of an output, or an end of its interval."""
    ends = ("", "_low", "_high")
    return any(column == f"{name}{end}" for name in parts for end in ends)


def _read(releases: object) -> list[Release]:
    if not isinstance(releases, Sequence) or not all(isinstance(r, Release) for r in releases):
        raise UnsupportedOperation(
            "dp.combine takes a list of releases",
            where=_WHERE,
            remedy="write dp.combine([first, second]) with what query.release(...) returned",
        )
    if not 2 <= len(releases) <= MOST_TERMS:
        raise UnsupportedOperation(
            f"from 2 to {MOST_TERMS} releases are combined at once, not {len(releases)}",
            where=_WHERE,
            remedy="leave out those with the largest errors",
        )
    origins = {release.origin for release in releases}
    if "" in origins or len(origins) < len(releases):
        raise UnsupportedOperation(
            "two of the releases come from the same charge, or their charge is unknown",
            where=_WHERE,
            why="results of one charge share their noise, so combining them gains nothing",
            remedy="give each result once, as query.release(...) returned it",
        )
    return list(releases)


def _require_one_query(plans: Sequence[Plan]) -> None:
    first = _asked(plans[0])
    for plan in plans[1:]:
        for what, found in _asked(plan).items():
            if found != first[what]:
                raise _not_one(f"their {what} differ")


def _asked(plan: Plan) -> dict[str, object]:
    """What a plan says but for how much is spent on it, and how."""
    return {
        "frames": (plan.source, plan.others, plan.declared, plan.unit),
        "steps": [(step.words, step.definition) for step in plan.steps],
        "groups": (plan.grouping, plan.grouped_by, plan.keys_digest),
        "outputs": [(o.name, o.words, o.note, o.definition) for o in plan.outputs],
        "parameters": plan.parameters,
        "measures": plan.cost.measure,
    }


def _noise(plan: Plan, name: str) -> tuple[AdditiveMechanism, Fraction]:
    (output,) = (output for output in plan.outputs if output.name == name)
    used = [plan.releases[number] for number in output.releases]
    if len(used) != 1 or not isinstance(used[0].noise, AdditiveMechanism):
        raise _not_plain(name)
    return used[0].noise, used[0].step


def _weighed(noises: Sequence[tuple[AdditiveMechanism, Fraction]]) -> tuple[_Part, ...]:
    """By the inverse of each variance; none counts where another has no noise."""
    variances = [law.variance() * float(step) ** 2 for law, step in noises]
    least = min(variances)
    shares = [1.0 if v == least else least / v for v in variances]
    whole = sum(shares)
    return tuple(
        _Part(law, step, share / whole) for (law, step), share in zip(noises, shares, strict=True)
    )


def _mean(releases: Sequence[Release], name: str, parts: Sequence[_Part]) -> pl.Series:
    found = pl.zeros(releases[0].frame.height, dtype=pl.Float64, eager=True)
    for release, part in zip(releases, parts, strict=True):
        found = found + release.frame[name].cast(pl.Float64) * part.weight
    return found


def _not_one(why: str) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"the releases are not of one query: {why}",
        where=_WHERE,
        remedy="combine releases of the same query; their spends may differ",
    )


def _not_plain(name: str) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"{name!r} does not have unbiased noise of a known variance, so a weighted "
        "mean of several may be worse than one of them",
        where=_WHERE,
        remedy="combine counts and sums by listed keys, leave nonnegative= out, and "
        "compute means from the combined numbers",
    )
