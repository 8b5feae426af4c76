"""Choosing the groups that appear."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.aggregates.aggregate import MeasurementKey, Noisy, Query
from dpframe.aggregates.keys import KeySelection
from dpframe.aggregates.measurement import Additive, JointSums, Measurement, Table
from dpframe.kernel import plan as kernel
from dpframe.mechanisms.noise import appear, noise
from dpframe.release.draw import Draw, Places, followed

__all__ = ["KeyChoice", "chooser_of", "drawn_with_groups", "number_of", "with_some_key"]

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class KeyChoice:
    """How groups are chosen, given exact numbers of individuals, rows or weights.

    Parameters
    ----------
    table
        The exact table that the choice needs.
    rows
        The most rows of one individual, where rows are counted.
    law
        The law by which groups appear.
    noise
        The noise of the released number by which they do, if they do by one.
    """

    table: Table
    rows: int
    law: kernel.Law
    noise: kernel.Law | None = None

    @property
    def rounds(self) -> tuple[KeyChoice, ...]:
        """The choice of each round, of groups that were not found before."""
        if not isinstance(self.law, kernel.WeighedThreshold):
            return (self,)
        each = (kernel.WeighedThreshold((one,)) for one in self.law.rounds)
        return tuple(replace(self, law=law) for law in each)

    def individuals(self, counts: Numbers) -> Numbers:
        """The least number of individuals who have that many rows."""
        return np.asarray(-(-counts // self.rows), np.int64)

    def keep(self, counts: Numbers) -> tuple[NDArray[np.bool_], Numbers | None]:
        """Whether groups with such numbers appear, and the noisy numbers where these decide. One
        whose number is 0 never does.
        """
        there = counts > 0
        match self.law:
            case kernel.Threshold(least) if self.noise is not None:
                noisy = counts + noise(self.noise, counts.size)
                return there & (noisy >= least), noisy
            case kernel.WeighedThreshold(((least, sigma_squared),)):
                noisy = counts + noise(kernel.Gaussian(sigma_squared), counts.size)
                return there & (noisy >= least), None
            case kernel.Geometric():
                return there & appear(self.law, self.individuals(counts)), None
        raise kernel.Refused(f"groups cannot appear by the law {type(self.law).__name__}")


def number_of(keys: Measurement, parts: Sequence[Measurement]) -> int | None:
    """Which of the parts is the number that groups are chosen by, if any."""
    assert isinstance(keys, KeySelection)
    return next((i for i, p in enumerate(parts) if _is_number(keys.table, p)), None)


def _is_number(table: Table, part: Measurement) -> bool:
    """Whether a part is an unchanged table."""
    if isinstance(part, JointSums):
        return part.sums == (table,) and part.matrix == ((1,),)
    return isinstance(part, Additive) and part.table == table


def chooser_of(draws: Iterable[Draw], places: Places) -> KeyChoice | None:
    """How groups are chosen, where groups are not listed."""
    for one in draws:
        if isinstance(one.measurement, KeySelection):
            node = places.node(one)
            assert isinstance(node.what, kernel.Appear)
            by = (
                places.plan.draws[node.law.draw] if isinstance(node.law, kernel.Threshold) else None
            )
            noise_of_number = None if by is None else by.law
            return KeyChoice(
                places.tables[node.what.table], node.what.rows, node.law, noise_of_number
            )
    return None


def drawn_with_groups(
    draws: Sequence[Draw], places: Places, noisy: NDArray[np.int64] | None
) -> dict[MeasurementKey, Noisy]:
    """The numbers that groups were chosen by: they are released as they were then."""
    if noisy is None:
        return {}
    laws = (places.node(draw).law for draw in draws)
    number = next(law.draw for law in laws if isinstance(law, kernel.Threshold))
    (one,) = (draw for draw in draws if places.draws[draw] == number)
    return followed(one, noisy.reshape(-1, 1))


def with_some_key(query: Query) -> Query:
    """The query with a made-up key if none exist so far."""
    groups = query.groups
    if groups is None or not groups.discovered:
        return query
    none = {name: [None] for name in groups.keys.columns}
    return replace(query, groups=groups.found(pl.DataFrame(none, schema=groups.keys.schema)))
