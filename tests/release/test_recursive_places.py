"""Rows of a point that take their places: what is kept of a proposal is told by the ranks there."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from dpframe.release import draws
from dpframe.release.draws import _Choice, _Line, _whole_cells
from dpframe.release.numbers import rank_scores
from tests.release.test_recursive import counts_of, planned

ROWS = [0, 2, 2, 2, 2, 2, 3]


def test_the_score_of_a_place_is_that_of_the_rows_beside_it(monkeypatch: Any) -> None:
    """In the first group as in others, whichever place of the point is proposed."""
    found, told = planned(["1/4", "1/2"], 4), list[int]()

    def keeps(scale: Any, losses: Any) -> Any:
        told.extend(losses.tolist())
        return np.ones(losses.size, np.bool_)

    monkeypatch.setattr(draws, "keep_points", keeps)
    line = _Line(found.tree.cells.size, True, 4)
    for groups in (1, 3):
        pieces = _whole_cells(counts_of(ROWS, groups), line, 0, groups)
        choice = _Choice(found.law.scale, line, groups, Fraction(1, 4))
        left = np.arange(groups)
        runs = choice._runs(pieces, left, np.zeros_like(left), np.full_like(left, line.end))
        run = np.flatnonzero(runs.piece >= 0)[1::3]  # the second point of each group
        for inner in range(4):
            told.clear()
            made, _ = choice._place_rows(pieces, runs, run, pieces.place[runs.piece[run]] + inner)
            for group in range(groups):
                own = made.where(made.group == group)
                place = 2 * 4 + inner
                below, upto = own.rows[own.place < place].sum(), own.rows[own.place <= place].sum()
                score = rank_scores(choice.q, *(np.array([n]) for n in (below, upto, len(ROWS))))
                assert told[group] == runs.scores[run[group]] - score[0]
