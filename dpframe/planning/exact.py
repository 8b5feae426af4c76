"""Vectors without noise, from exact tables of public frames: for simulations and audits.

The tables are read from the physical plan, as those of a release are, and what is drawn is made of
the nodes of this plan. The kernel does not check it first: an audit may be of a plan that is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import polars as pl

from dpframe.aggregates.margins import Margin
from dpframe.aggregates.measurement import CellCounts, Integers, Measurement, Selection
from dpframe.frames.without_limits import without_limits
from dpframe.kernel import plan as kernel
from dpframe.lower import Execution, Frames, PartWanted, PlanTables, tables_of_plan
from dpframe.planning.physical import Lists, translated
from dpframe.planning.prepared import Prepared
from dpframe.planning.stated import alone
from dpframe.release import Places, draw_node
from dpframe.release.numbers import Runs, exact_numbers, first_choice, scores_of, tables_of

__all__ = ["Exact", "ExactTables"]


@dataclass(frozen=True, slots=True, eq=False)
class Exact:
    """Vectors of a plan without noise: those that are drawn, and those that follow from them.

    Parameters
    ----------
    places
        The physical plan, and the places of draws and tables in it.
    nodes
        What each vector is in it.
    tables
        The tables, read from the plan.
    """

    places: Places
    nodes: Mapping[Measurement, kernel.What]
    tables: tuple[PlanTables, ...]

    @classmethod
    def of(cls, prepared: Prepared, salt: int | None = None) -> Exact:
        """All that a plan draws, and what follows from that.

        Parameters
        ----------
        prepared
            The plan.
        salt
            By which limits choose among an individual's rows, the same for all frames; None for a
            choice of each run.
        """
        lists, query = Lists(sources={}), prepared.query
        translation = translated(alone(prepared), lists)
        plan, (places,) = translation.plan, translation.parts
        keys = [key for one in prepared.draws for key in one.keys]
        parts = [*(one.measurement for one in prepared.draws), *(part for part, _ in keys)]
        parts += [part.first for part in parts if isinstance(part, Selection)]
        nodes = {part: lists.what(part, query) for part in dict.fromkeys(parts)}
        assert len(lists.tables) == len(plan.tables)  # all parts are of tables that are drawn
        salt = query.relation.salt if salt is None else salt
        (read,) = tables_of_plan(plan, lists.handles, [(places.draw_tables, salt)])
        by_place = {place: table for one in read for place, table in one.tables.items()}
        return cls(replace(places, tables=by_place), nodes, tuple(read))

    def without_limits(self) -> Exact:
        """The same of frames that no limit drops rows of."""
        return replace(
            self,
            tables=tuple(replace(t, relation=without_limits(t.relation)) for t in self.tables),
        )

    def count(self, frames: Frames, keys: pl.DataFrame | None = None) -> ExactTables:
        """The exact tables of public frames, by their tokens.

        Parameters
        ----------
        frames
            These.
        keys
            The groups, where the plan is to find them.

        Raises
        ------
        EngineError
            When the engine fails.
        """
        listed = [
            one
            if one.groups is None or not one.groups.discovered or keys is None
            else replace(one, groups=one.groups.found(keys))
            for one in self.tables
        ]
        (counted,) = Execution.of_public(frames).run_parts([PartWanted(listed)])
        return ExactTables(self, counted.tables)


@dataclass(frozen=True, slots=True, eq=False)
class ExactTables:
    """The exact tables of public frames.

    Parameters
    ----------
    exact
        What they are of.
    tables
        These, by their places in its plan.
    """

    exact: Exact
    tables: Mapping[int, CellCounts] = field(repr=False)

    def of(self, part: Measurement) -> list[CellCounts]:
        """The tables of a vector."""
        return [self.tables[place] for place in tables_of(self.exact.nodes[part])]

    def numbers(self, part: Measurement) -> Integers:
        """What a vector is without noise; of choices the best candidates."""
        plan, node = self.exact.places.plan, self.exact.nodes[part]
        if isinstance(node, kernel.Reports):
            return exact_numbers(plan, node, self.of(part))
        numbers = draw_node(plan, node, kernel.Exact(), self.of(part))
        return numbers.reshape(-1, 1) if isinstance(part, Margin) else numbers

    def scores(self, part: Selection, first: int, end: int) -> Integers | Runs:
        """The scores of a choice in groups `first` to `end` - 1, which depend on no other one."""
        node = self.exact.nodes[part]
        assert isinstance(node, kernel.Choice | kernel.Rank | kernel.Ranks | kernel.Levels)
        return scores_of(self.exact.places.plan, first_choice(node), self.of(part), first, end)
