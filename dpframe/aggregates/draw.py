"""What is drawn at once, and where that stands in a physical plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dpframe.aggregates.aggregate import MeasurementKey
from dpframe.aggregates.keys import KeySelection
from dpframe.aggregates.measurement import Additive, JointSums, Measurement, Rebuilt, Table
from dpframe.aggregates.nightly import NightlySums
from dpframe.aggregates.noise import noise_of
from dpframe.kernel import plan as kernel
from dpframe.mechanisms import AdditiveMechanism, Mechanism


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """What is drawn at once.

    Parameters
    ----------
    measurement
        The vector.
    law
        Its mechanism.
    keys
        The parts of the query that follow from it.
    rebuilt
        How each of these does; None for one that is the vector.
    """

    measurement: Measurement
    law: Mechanism
    keys: tuple[MeasurementKey, ...]
    rebuilt: tuple[Rebuilt, ...] | None = None

    @property
    def vector(self) -> MeasurementKey:
        """What the vector itself is found by, where parts are rebuilt from it."""
        return self.measurement, "drawn"

    def noises(self) -> dict[MeasurementKey, Mechanism]:
        """The mechanism of each part on its own."""
        each = self.rebuilt or (None,) * len(self.keys)
        return {k: noise_of(self.law, r) for k, r in zip(self.keys, each, strict=True)}


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Where the tables and draws of a query stand in a physical plan.

    Parameters
    ----------
    plan
        The plan.
    draws
        The place of each draw.
    tables
        What the tables at some places are of.
    """

    plan: kernel.Plan
    draws: Mapping[Draw, int]
    tables: Mapping[int, Table] = field(default_factory=dict)

    def node(self, one: Draw) -> kernel.Draw:
        """The draw in the plan."""
        return self.plan.draws[self.draws[one]]

    @property
    def draw_tables(self) -> list[int]:
        """The places of the tables that draws are of, each once."""
        nodes = map(self.node, self.draws)
        return list(dict.fromkeys(p for node in nodes for p in kernel.tables_of(node.what)))


def number_of(keys: Measurement, parts: Sequence[Measurement]) -> int | None:
    """Which of the parts is the number that groups are chosen by, if any."""
    assert isinstance(keys, KeySelection)
    return next((i for i, p in enumerate(parts) if _is_number(keys.table, p)), None)


def _is_number(table: Table, part: Measurement) -> bool:
    """Whether a part is an unchanged table."""
    if isinstance(part, JointSums):
        return part.sums == (table,) and part.matrix == ((1,),)
    return isinstance(part, Additive) and part.table == table


def part_of(one: Draw) -> NightlySums:
    """The vector of a draw of a stream."""
    assert isinstance(one.measurement, NightlySums)
    return one.measurement


def law_of(one: Draw) -> AdditiveMechanism:
    """The noise of a draw of a stream."""
    assert isinstance(one.law, AdditiveMechanism)
    return one.law
