"""Choosing the groups that appear."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.aggregates.bound import MeasurementKey, Noisy
from dpframe.aggregates.joint_sums import JointSums
from dpframe.aggregates.keys import KeySelection
from dpframe.aggregates.measurement import Additive, Measurement, Table
from dpframe.aggregates.query import Query
from dpframe.mechanisms import KeyMechanism
from dpframe.release.draw import Draw, followed

__all__ = ["KeyChoice", "chooser_of", "drawn_with_groups", "number_of", "with_some_key"]

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class KeyChoice:
    """How groups are chosen, given exact numbers of individuals or rows.

    Parameters
    ----------
    part
        What is counted.
    law
        The private rule.
    """

    part: KeySelection
    law: KeyMechanism

    @property
    def table(self) -> Table:
        """The exact table that the choice needs."""
        return self.part.table

    @property
    def rounds(self) -> tuple[KeyChoice, ...]:
        """The choice of each round, of groups that were not found before."""
        return tuple(replace(self, law=law) for law in self.law.in_rounds)

    def keep(self, counts: Numbers) -> tuple[NDArray[np.bool_], Numbers | None]:
        """Whether groups with such numbers appear, and the noisy numbers where these decide. One
        whose number is 0 never does.
        """
        noise, there = self.law.noise_of_number(), counts > 0
        if noise is not None:
            noisy = counts + noise.draw(counts.size)
            return there & self.law.keep(noisy), noisy
        return there & self.law.keep(self.part.individuals(counts)), None


def number_of(keys: Measurement, parts: Sequence[Measurement]) -> int | None:
    """Which of the parts is the number that groups are chosen by, if any."""
    assert isinstance(keys, KeySelection)
    return next((i for i, p in enumerate(parts) if _is_number(keys.table, p)), None)


def _is_number(table: Table, part: Measurement) -> bool:
    """Whether a part is an unchanged table."""
    if isinstance(part, JointSums):
        return part.sums == (table,) and part.matrix == ((1,),)
    return isinstance(part, Additive) and part.table == table


def chooser_of(draws: Iterable[Draw]) -> KeyChoice | None:
    """How groups are chosen, where groups are not listed."""
    for one in draws:
        if isinstance(one.measurement, KeySelection):
            assert isinstance(one.law, KeyMechanism)
            return KeyChoice(one.measurement, one.law)
    return None


def drawn_with_groups(
    draws: Sequence[Draw], noisy: NDArray[np.int64] | None
) -> dict[MeasurementKey, Noisy]:
    """The numbers that groups were chosen by: they are released as they were then."""
    if noisy is None:
        return {}
    number = number_of(draws[0].measurement, [draw.measurement for draw in draws])
    assert number is not None
    return followed(draws[number], noisy.reshape(-1, 1))


def with_some_key(query: Query) -> Query:
    """The query with a made-up key if none exist so far."""
    groups = query.groups
    if groups is None or not groups.discovered:
        return query
    none = {name: [None] for name in groups.keys.columns}
    return replace(query, groups=groups.found(pl.DataFrame(none, schema=groups.keys.schema)))
