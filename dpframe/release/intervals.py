"""Intervals that hold the exact results with a given confidence: post-processing, so they are free.

A number that noise is added to lies within the noise's exact quantile of what is released. Means
and variances have sets of their own, from the joint law of their parts' noise (`mean_interval`,
`variance_interval`). Sums with public factors and ratios of these, such as a sum over a count, are
taken whole as well (`ratio_interval`). The ends of other arithmetic follow by interval arithmetic
from those of its aggregates; each aggregate gets an equal share of the miss probability (union
bound).

All that holds of groups that are listed, and of those that a draw of its own has found. A group
that was found by its noisy number appears because that is large, so intervals of groups near the
threshold hold less often than they say; plans with such groups warn of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.aggregates.aggregate import BoundAggregate, MeasurementKey, Noisy, Output, Query
from dpframe.aggregates.margins import LevelSumsWithTotal, MarginWithTotal
from dpframe.aggregates.mean import BoundMean, BoundVariance
from dpframe.aggregates.noise import JointNoise, noise_law
from dpframe.aggregates.ratio import ratio_ends, sum_reach
from dpframe.aggregates.shapes import Ends
from dpframe.core.domain import Domain
from dpframe.core.dtypes import FLOAT64
from dpframe.core.exact import nearest
from dpframe.core.interval import EVERYTHING, ZERO, Interval
from dpframe.core.tree import Call, Tree, walk
from dpframe.mechanisms import AdditiveMechanism, Mechanism
from dpframe.release.asked import Intervals
from dpframe.release.draw import Draw
from dpframe.release.formula import Ratio, Sum, ratio_of
from dpframe.release.missing import MissingRows
from dpframe.release.sampling import Sampling
from dpframe.rows.arithmetic import FloorDiv, Mod, TrueDiv
from dpframe.rows.fold import domain

Laws: TypeAlias = "Mapping[MeasurementKey, tuple[Mechanism, int]]"
Floats: TypeAlias = "NDArray[np.float64]"

_TOGETHER = 3
"""This many noises are taken together; more would need too many slices."""


def interval_of(
    output: Output,
    query: Query,
    noisy: Mapping[MeasurementKey, Noisy],
    draws: Sequence[Draw],
    asked: Intervals,
    missing: MissingRows | None = None,
) -> Ends | None:
    """The lower and upper ends of one output of a query, a value per row; None for what is no
    number, or has no sampling error that is known where that is requested.

    Ends of arithmetic are null where nothing is known. With `missing` rows they are those of the
    result with these.
    """
    confidence = asked.confidence
    laws = {k: (law, i) for i, d in enumerate(draws) for k, law in d.noises().items()}
    keys = {p: aggregate.keys for p, aggregate in output.aggregates.items()}
    if not all(
        isinstance(laws[key][0], AdditiveMechanism) for used in keys.values() for key in used
    ):
        return None  # the error of a selection is one of its score
    whole = None
    if output.post is not None and output.post_tree is not None and missing is None:
        whole = _whole(output, keys, noisy, laws, confidence)
        if whole is not None and not asked.sampling:
            return whole
    level = 1 - (1 - confidence) / len(set(keys.values()))
    found = {p: _aggregate(a, noisy, laws, level, missing) for p, a in output.aggregates.items()}
    if asked.sampling:
        kept = {p: pair for p, pair in found.items() if pair is not None}
        if len(kept) < len(found):
            return None
        by_law = {key: law for key, (law, _) in laws.items()}
        if output.post is not None and output.post_tree is not None:
            if whole is None:
                whole = _arithmetic(output.name, output.post_tree, kept)
            about = Sampling(query, noisy, by_law, confidence)
            both = None if whole is None else about.of_formula(output, kept, whole)
            if both is not None:
                return both
        sampled = Sampling(query, noisy, by_law, level)
        found = {p: sampled.ends(a, kept[p]) for p, a in output.aggregates.items()}
    if output.post is None:
        return next(iter(found.values()))
    ends = {placeholder: pair for placeholder, pair in found.items() if pair is not None}
    if output.post_tree is None or len(ends) < len(found):
        return None
    return _arithmetic(output.name, output.post_tree, ends)


def _noise_of(keys: Sequence[MeasurementKey], laws: Laws) -> JointNoise:
    """The joint law of the noise of parts."""
    parts = list[tuple[AdditiveMechanism, Fraction, int]]()
    for key in keys:
        law, draw = laws[key]
        assert isinstance(law, AdditiveMechanism)
        if isinstance(
            key[0], (MarginWithTotal, LevelSumsWithTotal)
        ):  # a table and its total have noise of their own
            draw = -1 - len(parts)
        parts.append((law, key[0].step, draw))
    return noise_law(parts)


def _aggregate(
    aggregate: BoundAggregate,
    noisy: Mapping[MeasurementKey, Noisy],
    laws: Laws,
    level: Fraction,
    missing: MissingRows | None,
) -> Ends | None:
    values, noise = [noisy[key] for key in aggregate.keys], _noise_of(aggregate.keys, laws)
    if missing is None:
        return aggregate.interval(values, noise, level)
    splits = isinstance(aggregate, (BoundMean, BoundVariance))  # which also need their number
    ends = aggregate.interval(values, noise, (1 + level) / 2 if splits else level)
    return None if ends is None else missing.widen(aggregate, ends, values, noise, level)


def _whole(
    output: Output,
    keys: Mapping[str, tuple[MeasurementKey, ...]],
    noisy: Mapping[MeasurementKey, Noisy],
    laws: Laws,
    confidence: Fraction,
) -> Ends | None:
    """The ends of a sum, or a ratio of sums, of numbers that noise is added to; else None."""
    assert output.post_tree is not None
    ratio = ratio_of(output.post_tree)
    parts = tuple(dict.fromkeys(key for used in keys.values() for key in used))
    if ratio is None or len(parts) > _TOGETHER:
        return None
    if not all(aggregate.is_plain_number for aggregate in output.aggregates.values()):
        return None
    places = {p: parts.index(used[0]) for p, used in keys.items()}
    noise, miss = _noise_of(parts, laws), float(1 - confidence)
    values = [noisy[key].reshape(-1).astype(np.float64) * float(key[0].step) for key in parts]
    above = _sum(ratio.above, places, values)
    factors = _factors(ratio, places, len(parts))
    if ratio.below.is_constant:
        scale = float(ratio.below.constant)
        reach = sum_reach(noise, factors[0], miss) / abs(scale)
        return _series(output.name, above / scale - reach, above / scale + reach)
    low, high = ratio_ends(above, _sum(ratio.below, places, values), noise, factors, miss)
    return _series(output.name, low, high)


def _sum(form: Sum, places: Mapping[str, int], values: Sequence[Floats]) -> Floats:
    result = np.full(values[0].shape, float(form.constant))
    for placeholder, factor in form.factors.items():
        result = result + float(factor) * values[places[placeholder]]
    return result


def _factors(
    ratio: Ratio, places: Mapping[str, int], size: int
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """By part, of the sums above and below."""
    found = []
    for form in (ratio.above, ratio.below):
        row = [Fraction(0)] * size
        for placeholder, factor in form.factors.items():
            row[places[placeholder]] += factor
        found.append(tuple(map(float, row)))
    return found[0], found[1]


def _series(name: str, low: Floats, high: Floats) -> Ends:
    """Ends moved outwards by more than a few roundings, null if none exist."""
    margin = 2.0**-48
    ends = (low - np.abs(low) * margin, high + np.abs(high) * margin)
    lower, upper = (pl.Series(name, end, dtype=pl.Float64).fill_nan(None) for end in ends)
    return lower, upper


def _arithmetic(name: str, tree: Tree, ends: Mapping[str, Ends]) -> Ends | None:
    """The ends of a formula, row by row, by the interval arithmetic of expressions.

    That rounds each step as it should be; engines may be off by a last digit, such as Polars, which
    divides by a constant by multiplying with its reciprocal.
    """
    if not all(end.dtype.is_numeric() for pair in ends.values() for end in pair):
        return None
    size = len(next(iter(ends.values()))[0])
    columns = {p: (low.to_list(), high.to_list()) for p, (low, high) in ends.items()}
    lower, upper = list[float](), list[float]()
    for row in range(size):
        known = {
            p: Domain(FLOAT64, nullable=False, interval=_between(low[row], high[row]))
            for p, (low, high) in columns.items()
        }
        result = EVERYTHING if _divides_by_zero(tree, known) else domain(tree, known).interval
        lower.append(math.nan if result.lo is None else nearest(result.lo))
        upper.append(math.nan if result.hi is None else nearest(result.hi))
    return _series(name, np.array(lower), np.array(upper))


def _divides_by_zero(tree: Tree, known: Mapping[str, Domain]) -> bool:
    """Whether a divisor is surely 0. Then nothing is known of the result."""
    return any(
        isinstance(part, Call)
        and isinstance(part.operation, TrueDiv | FloorDiv | Mod)
        and domain(part.args[1], known).interval == ZERO
        for part in walk(tree)
    )


def _between(low: float | int | None, high: float | int | None) -> Interval:
    return Interval(
        None if low is None else Fraction(low), None if high is None else Fraction(high)
    )
