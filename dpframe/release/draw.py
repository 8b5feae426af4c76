"""Drawing: the only place where exact tables meet noise."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dpframe.aggregates.aggregate import Noisy
from dpframe.aggregates.part import Additive, CellCounts, Part, Responses, Selection, Table
from dpframe.aggregates.request import Scope
from dpframe.errors import DPFrameError
from dpframe.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Law,
    NoNoise,
    PermuteAndFlip,
    RandomizedResponse,
    ReportNoisyMax,
    SelectionLaw,
)

_AT_ONCE = 1 << 20
"""Scores that are chosen among at the same time, which bounds the memory."""


def draw(part: Part, law: Law, counted: Mapping[Table, CellCounts], scope: Scope) -> Noisy:
    """The noisy integers of one part.

    Returns
    -------
    numpy.ndarray
        Of shape (groups, cells) for sums, (groups, rounds) of candidate codes for selections.

    Notes
    -----
    Exact integers and noise are added modulo 2**64, so that an overflow, should there be one, is
    the same whether it happens before or after the noise: it never costs privacy.
    """
    tables = [counted[table] for table in part.tables]
    match part, law:
        case Additive(), DiscreteLaplace() | DiscreteGaussian() | NoNoise():
            cells = part.table.cells
            exact = tables[0].dense(1 if cells is None else cells.size)
            return exact + law.draw(exact.size).reshape(exact.shape)
        case Selection(), Exponential() | PermuteAndFlip() | ReportNoisyMax():
            return _select(part, law, tables, scope)
        case Responses(), RandomizedResponse():
            return law.draw(tables[0].dense(part.categories)[0]).reshape(1, -1)
        case Selection(), NoNoise():
            return _best(part, tables, scope)
        case _:
            raise DPFrameError(f"a {type(law).__name__} cannot release {part.words()}")


def _select(part: Selection, law: SelectionLaw, tables: list[CellCounts], scope: Scope) -> Noisy:
    codes = np.empty((part.entries(scope), part.rounds), dtype=np.int64)
    if part.rounds == 1 and part.scores(tables, 0, 0) is not None:
        rows = max(1, _AT_ONCE // part.candidates)
        for first in range(0, codes.shape[0], rows):
            scores = part.scores(tables, first, min(first + rows, codes.shape[0]))
            assert scores is not None
            codes[first : first + rows, 0] = law.select_each(scores)
        return codes
    for group in range(codes.shape[0]):
        ballot = part.ballot(tables, group)
        if ballot.weights is not None:
            assert isinstance(law, Exponential)
            index, point = law.select_point(ballot.scores, ballot.weights)
            codes[group, 0] = ballot.starts[index] + point
        elif part.rounds == 1:
            codes[group, 0] = ballot.starts[law.select(ballot.scores)]
        else:
            codes[group] = ballot.starts[list(law.select_top(ballot.scores, part.rounds))]
    return codes


def _best(part: Selection, tables: list[CellCounts], scope: Scope) -> Noisy:
    """The best candidates of scores that no individual can change."""
    codes = np.empty((part.entries(scope), part.rounds), dtype=np.int64)
    for group in range(codes.shape[0]):
        ballot = part.ballot(tables, group)
        order = np.argsort(-ballot.scores, kind="stable")[: part.rounds]
        codes[group] = ballot.starts[order]
    return codes
