"""Places of rows that tie."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

from dpframe.samplers import row_places


def test_rows_of_a_large_tie_stay_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is counted a part at a time, as it has more rows than fit in memory at once."""
    monkeypatch.setattr(import_module("dpframe.samplers.responses"), "_AT_ONCE", 4)
    found = row_places(np.array([2, 9, 0, 5]), places=8)
    tie, place, rows = (column.tolist() for column in found)
    assert np.bincount(tie, rows, minlength=4).tolist() == [2, 9, 0, 5]
    taken = list(zip(tie, place, strict=True))
    assert taken == sorted(set(taken))
    assert set(place) <= set(range(8))
