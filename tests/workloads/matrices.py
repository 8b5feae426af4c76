"""The engine's maps as matrices, by the definition of each, and small workloads to try it on."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import reduce

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpframe.workloads import Axis, Estimate, Factor, Kind, Part, Strategy, Wanted, Workload
from dpframe.workloads.axes import KINDS

Floats = NDArray[np.float64]

KEPT = {"total": False, "cells": True, "prefixes": True}


def kron(matrices: Sequence[Floats]) -> Floats:
    return reduce(np.kron, matrices, np.ones((1, 1)))


def nodes(axis: Axis, level: int) -> Floats:
    """Which leaves lie below which node."""
    return np.kron(np.eye(axis.branching**level), np.ones((1, axis.width(level))))


def projection(axis: Axis, level: int) -> Floats:
    """On the means of a level's nodes, less those of the level above."""
    found = nodes(axis, level).T @ nodes(axis, level) / axis.width(level)
    return found if level == 0 else found - sum(projection(axis, i) for i in range(level))


def factor_matrix(factor: Factor) -> Floats:
    """Of all leaves, with the rows that the factor has."""
    return nodes(factor.axis, factor.level)[: factor.entries]


def part_matrix(part: Part) -> Floats:
    """Of the cells."""
    return kron([factor_matrix(f)[:, : f.axis.size] for f in part.factors])


def queries(axis: Axis, kind: Kind) -> Floats:
    n = axis.size
    prefixes = np.tril(np.ones((n, n)))
    if kind == "ranges":
        ends = np.vstack([np.zeros((1, n)), prefixes])
        return np.array([ends[j] - ends[i] for i, j in itertools.combinations(range(n + 1), 2)])
    return {"total": np.ones((1, n)), "cells": np.eye(n), "prefixes": prefixes}[kind]


def wanted_matrix(axes: Sequence[Axis], kinds: Sequence[Kind]) -> Floats:
    return kron([queries(axis, kind) for axis, kind in zip(axes, kinds, strict=True)])


def estimator(strategy: Strategy, kinds: Sequence[Kind]) -> Floats:
    """The map from all measured numbers to the cells of a table, before they are made whole."""
    entries = sum(part.entries for part in strategy.parts)
    columns = []
    for unit in np.eye(entries, dtype=np.int64) * 2**20:
        pieces, start = [], 0
        for part in strategy.parts:
            pieces.append(unit[start : start + part.entries])
            start += part.entries
        found = Estimate(strategy, pieces).cells([KEPT[kind] for kind in kinds])
        for at, kind in enumerate(kinds):
            found = np.cumsum(found, axis=at) if kind == "prefixes" else found
        columns.append(found.reshape(-1) / 2**20)
    return np.stack(columns, axis=1)


def axes(most: int = 9) -> st.SearchStrategy[Axis]:
    sizes = st.integers(1, most)
    return st.one_of(sizes.map(Axis.nominal), st.builds(Axis.ordered, sizes, st.integers(2, 5)))


@st.composite
def workloads(
    draw: st.DrawFn, most_axes: int = 3, most_cells: int = 40, ranges: bool = False
) -> Workload:
    made: list[Axis] = []
    for _ in range(draw(st.integers(1, most_axes))):
        room = most_cells // math.prod(axis.size for axis in made)
        if room >= 1:
            made.append(draw(axes(min(9, room))))
    tables = []
    for _ in range(draw(st.integers(1, 4))):
        kinds = tuple(
            draw(st.sampled_from(KINDS[: 3 + ranges] if axis.is_ordered else KINDS[:2]))
            for axis in made
        )
        tables.append(Wanted(kinds, draw(st.fractions(min_value="1/4", max_value=4))))
    return Workload(tuple(made), tuple(tables))


def cell_tables(workload: Workload) -> list[Wanted]:
    """Those that are listed number by number."""
    return [table for table in workload.tables if "ranges" not in table.kinds]
