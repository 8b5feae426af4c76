"""Doubts that follow from noisy numbers: results rest on no rows, or are at bounds of values.

All of it is computed from noisy numbers and from the laws of their noise: post-processing, which
costs nothing and reads no data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.aggregates.aggregate import BoundAggregate, Clamp, MeasurementKey, Noisy, Query
from dpframe.aggregates.count import BoundCount
from dpframe.aggregates.histogram import BoundHistogram
from dpframe.aggregates.mean import BoundMean
from dpframe.aggregates.measurement import COUNT, Additive
from dpframe.aggregates.quantile import POINTS, BoundQuantile
from dpframe.aggregates.ratio import BoundRatio
from dpframe.aggregates.sum import BoundSum
from dpframe.aggregates.values import as_series, show_value
from dpframe.core.domain import Columns
from dpframe.core.tree import Call, Tree
from dpframe.mechanisms import AdditiveMechanism, Mechanism
from dpframe.rows.fold import domain

__all__ = ["Doubt", "doubts_of", "null_within_noise"]

Laws: TypeAlias = "Mapping[MeasurementKey, Mechanism]"
Floats: TypeAlias = "NDArray[np.float64]"
Bools: TypeAlias = "NDArray[np.bool_]"

LEVEL: Final = Fraction(95, 100)
"""A number that noise alone stays above no oftener than 1 in 20 says nothing."""
_SURE: Final = Fraction(999, 1000)
"""The probability that a mean of values that are all clamped is within noise of the bound."""
_NEAR: Final = 0.05
"""Noise of more than this share of the bounds says nothing about what is at them."""
_CLIPS: Final = ("clip", "clip_between")


@dataclass(frozen=True, slots=True)
class Doubt:
    """A doubt about a result.

    Parameters
    ----------
    kind
        The name of a class of warnings.
    words
        A sentence.
    """

    kind: str
    words: str


def null_within_noise(
    aggregate: BoundAggregate, found: pl.Series, noisy: Mapping[MeasurementKey, Noisy], laws: Laws
) -> pl.Series:
    """A result without the numbers whose noisy count is within its noise of 0: those would be one
    noise divided by another.
    """
    if aggregate.rests_on is None:
        return found
    rests = ~_within_noise(aggregate.keys[aggregate.rests_on], noisy, laws)
    if rests.all():
        return found
    frame = pl.DataFrame([found.alias("number"), pl.Series("rests", rests)])
    return frame.select(pl.when("rests").then("number").alias(found.name)).to_series()


def _within_noise(key: MeasurementKey, noisy: Mapping[MeasurementKey, Noisy], laws: Laws) -> Bools:
    """Whether the noisy count of each group is no larger than noise alone, with 95%."""
    return noisy[key].reshape(-1) <= _reach(laws[key])


def _reach(law: Mechanism, cells: int = 1, level: Fraction = LEVEL) -> int:
    assert isinstance(law, AdditiveMechanism)
    return law.quantile(level, cells)


def doubts_of(query: Query, noisy: Mapping[MeasurementKey, Noisy], laws: Laws) -> tuple[Doubt, ...]:
    """The doubts about results that follow from a query's noisy numbers, each once."""
    found = [*_of_no_rows(query, noisy, laws), *_of_bounds(query, noisy, laws)]
    return tuple(dict.fromkeys(found))


def _of_no_rows(query: Query, noisy: Mapping[MeasurementKey, Noisy], laws: Laws) -> Iterator[Doubt]:
    for output in query.outputs:
        for aggregate in output.aggregates.values():
            if (small := _without_rows(aggregate, query, noisy, laws)) is not None and small.any():
                verb = "rests on no rows" if isinstance(aggregate, BoundQuantile) else "is null"
                yield Doubt(
                    "NoRows",
                    f"{output.name!r} {verb}{_where(small)}, where its noisy count is within the "
                    "95% bound of its noise: perhaps no row has a value there. Check casts, date "
                    "formats, filters and keys, which may fit no row, or spend more",
                )
        if output.only is not None and (size := _all_small(output.only, noisy, laws)):
            yield Doubt(
                "NoRows",
                f"all {size} numbers of {output.name!r} are within the 95% bound of their noise: "
                "perhaps no row is in any of these groups. Check casts, date formats, filters "
                "and keys, which may fit no row, or spend more",
            )


def _without_rows(
    aggregate: BoundAggregate, query: Query, noisy: Mapping[MeasurementKey, Noisy], laws: Laws
) -> Bools | None:
    """The groups in which an aggregate rests on no rows within noise; None if there are none."""
    if aggregate.rests_on is not None:
        return _within_noise(aggregate.keys[aggregate.rests_on], noisy, laws)
    if isinstance(aggregate, BoundRatio):
        return aggregate.combine([noisy[key] for key in aggregate.keys]).is_null().to_numpy()
    if isinstance(aggregate, BoundQuantile):
        key = _count_beside(aggregate, query)
        return None if key is None else _within_noise(key, noisy, laws)
    return None


def _count_beside(aggregate: BoundAggregate, query: Query) -> MeasurementKey | None:
    """What counts the rows of an aggregate's values in the same query, if anything does."""
    for other in query.aggregates:
        if isinstance(other, BoundCount) and not other.of_totals:
            (key,) = other.keys
            same = other.request.tree == aggregate.request.tree
            if isinstance(key[0], Additive) and (same or key[0] == COUNT):
                return key
    return None


def _all_small(aggregate: BoundAggregate, noisy: Mapping[MeasurementKey, Noisy], laws: Laws) -> int:
    """How many counts an aggregate has, if there are several and all are within their noise."""
    if not isinstance(aggregate, (BoundCount, BoundHistogram)):
        return 0
    (key,) = aggregate.keys
    law = laws[key]
    if not isinstance(key[0], Additive) or not isinstance(law, AdditiveMechanism):
        return 0
    numbers = noisy[key]
    if numbers.size < 2 or (np.abs(numbers) > _reach(law, numbers.size)).any():
        return 0
    return int(numbers.size)


def _of_bounds(query: Query, noisy: Mapping[MeasurementKey, Noisy], laws: Laws) -> Iterator[Doubt]:
    columns = query.relation.facts.columns
    for output in query.outputs:
        for aggregate in output.aggregates.values():
            if not isinstance(aggregate, (BoundMean, BoundSum, BoundQuantile)):
                continue
            for clamp in aggregate.clamps:
                for upper in (False, True):
                    if not _may_exceed(clamp, columns, upper=upper):
                        continue
                    at = _at_bound(aggregate, query, noisy, laws, upper=upper)
                    if 2 * at.sum() < max(at.size, 1):  # of few groups noise alone may do it
                        continue
                    end = show_value(clamp.bounds[upper], aggregate.value.domain.dtype)
                    which = "upper" if upper else "lower"
                    at_it = f"at its {which} bound {end}, or within noise of it"
                    if isinstance(aggregate, BoundSum):
                        at_it = f"what it would be if all values were {end}, within noise"
                    yield Doubt(
                        "ValuesAtBounds",
                        f"{output.name!r} is {at_it}"
                        f"{_where(at)}: most values are probably clamped to it, or the bounds are "
                        "far wider than the values; give bounds that are in the unit of the column",
                    )


def _may_exceed(clamp: Clamp, columns: Columns, *, upper: bool) -> bool:
    """Whether something may be clamped to a bound, by the aggregate or by a clip that it is of."""
    end = clamp.bounds[upper]
    if clamp.per_unit:
        return True
    tree: Tree = clamp.tree
    while True:
        known = domain(tree, columns)
        limit = known.interval.hi if upper else known.interval.lo
        if known.dtype.is_boolean:
            return False
        if limit is None or (limit > end if upper else limit < end):
            return True
        if not isinstance(tree, Call) or tree.operation.name not in _CLIPS:
            return False
        tree = tree.args[0]


def _at_bound(
    aggregate: BoundMean | BoundSum | BoundQuantile,
    query: Query,
    noisy: Mapping[MeasurementKey, Noisy],
    laws: Laws,
    *,
    upper: bool,
) -> Bools:
    """In which groups the result is at a bound, or within noise of it."""
    if isinstance(aggregate, BoundQuantile):
        return _chosen_at_bound(aggregate, noisy, upper=upper)
    lo, hi = map(float, aggregate.bounds)
    if isinstance(aggregate, BoundMean):
        total_key, count_key = aggregate.keys
        centre = float(aggregate.grid.centre)
    else:
        found = None if aggregate.per == "unit" else _count_beside(aggregate, query)
        if found is None:
            return np.zeros(0, dtype=np.bool_)
        (total_key,), count_key, centre = aggregate.keys, found, 0.0
    step = float(total_key[0].step)
    total = noisy[total_key].reshape(-1).astype(np.float64) * step
    count = noisy[count_key].reshape(-1).astype(np.float64)
    farthest = max(abs(lo - centre), abs(hi - centre))
    noise = _reach(laws[total_key], level=_SURE) * step
    noise += farthest * _reach(laws[count_key], level=_SURE)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean, reach = centre + total / count, noise / count
        near = mean + reach >= hi if upper else mean - reach <= lo
        known = (count > _reach(laws[count_key])) & (reach <= _NEAR * (hi - lo))
    return near & known


def _chosen_at_bound(
    aggregate: BoundQuantile, noisy: Mapping[MeasurementKey, Noisy], *, upper: bool
) -> Bools:
    """In which groups a chosen value that is not meant to be the least or greatest is a bound."""
    if aggregate.bounds is None:
        return np.zeros(0, dtype=np.bool_)
    found = aggregate.combine([noisy[key] for key in aggregate.keys])
    dtype = aggregate.value.domain.dtype
    inner = [q not in (0, 1) for q in aggregate.quantiles]
    numbers = found.explode() if aggregate.is_list else found
    ends = as_series("ends", np.array([*map(float, aggregate.bounds)]), dtype)
    lo, hi = ends.to_physical().cast(pl.Float64).to_list()
    values = numbers.to_physical().cast(pl.Float64).to_numpy().reshape(-1, len(inner))
    step = (hi - lo) / POINTS
    at = values >= hi - step if upper else values <= lo + step
    return np.asarray((at & np.array(inner)).any(axis=1), dtype=np.bool_)


def _where(groups: Bools) -> str:
    """In how many groups, where there are several."""
    if groups.size < 2:
        return ""
    return f" in {int(groups.sum()):,} of {groups.size:,} groups"
