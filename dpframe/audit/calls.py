"""Releases that are drawn one by one, compared with runs that are drawn jointly.

An audit draws thousands of runs in a few calls of the noise, where a release is one call. A
mistake between calls, such as a source that starts again at each call, or a call that forgets its
noise, shows only in releases that are drawn one by one.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpframe import pipeline
from dpframe.audit.evidence import binomial_high, binomial_low
from dpframe.audit.neighbours import Neighbours
from dpframe.audit.outcomes import outcomes

Floats = NDArray[np.float64]
MOST_CALLS: Final = 1_000
"""How many releases are drawn one by one. In addition to 10,000 runs of several numbers, which
are rarely the same twice, an audit of this many sees noise that is missing in one call of 50 with
99%, in one of 100 with 73%.
"""
_MOST_NUMBERS: Final = 64


def calls_beside(
    prepared: pipeline.Prepared, pair: Neighbours, runs: Floats, doubt: float
) -> tuple[int, tuple[str, ...]]:
    """How many releases were drawn one by one, and in what they differ from runs drawn jointly.

    Parameters
    ----------
    prepared, pair
        The plan, and the neighbours; the releases are of the first of the two frames.
    runs
        What was drawn jointly of that frame, of shape (runs, 1 + numbers), see `outcomes`.
    doubt
        The probability with which a difference may be named if none exists.
    """
    number = min(MOST_CALLS, len(runs))
    calls, _ = outcomes(prepared, pair, number, at_once=1)
    return number, differences(calls[:, 1:], runs[:, 1:], doubt)


def differences(calls: Floats, runs: Floats, doubt: float) -> tuple[str, ...]:
    """In what independent draws of one law differ from others of it, in words; nothing where they
    do not.

    Three comparisons share the doubt. How often a row equals the row before is a sum of pairs: of
    every other pair the rows are independent, so exact binomial bounds hold (Clopper and Pearson
    1934). The row that is most frequent in one half of the calls is counted in the other half, with
    the same bounds. Distribution functions of single numbers differ by less than the two bounds of
    Dvoretzky, Kiefer and Wolfowitz with the constant of Massart 1990, which hold for laws with
    atoms too.

    Parameters
    ----------
    calls, runs
        Numbers of shape (draws, numbers).
    doubt
        The probability with which a difference may be named if none exists.
    """
    if not calls.shape[1]:
        return ()
    share, words = doubt / 3, list[str]()
    if _is_likelier(_repeats(calls), _repeats(runs), share):
        words.append("a release repeats the one before more often than runs do")
    row, _ = Counter(map(bytes, calls[::2])).most_common(1)[0]
    if _is_likelier(_equals(calls[1::2], row), _equals(runs, row), share):
        words.append("one result comes more often than in runs, as where noise is missing")
    numbers = min(calls.shape[1], _MOST_NUMBERS)
    each = share / numbers / 2  # of one bound for the calls, and of one for the runs
    most = sum(math.sqrt(math.log(2 / each) / (2 * len(side))) for side in (calls, runs))
    if any(_distance(calls[:, i], runs[:, i]) > most for i in range(numbers)):
        words.append("a number has another distribution than in runs")
    return tuple(words)


def _repeats(rows: Floats) -> NDArray[np.bool_]:
    """Of pairs that share no row, which have two equal ones."""
    pairs = len(rows) // 2
    return _same(rows[: 2 * pairs : 2], rows[1 : 2 * pairs : 2])


def _equals(rows: Floats, row: bytes) -> NDArray[np.bool_]:
    return _same(rows, np.frombuffer(row, dtype=np.float64)[None, :])


def _same(one: Floats, other: Floats) -> NDArray[np.bool_]:
    equal = (one == other) | (np.isnan(one) & np.isnan(other))
    return np.asarray(equal.all(axis=1))


def _is_likelier(calls: NDArray[np.bool_], runs: NDArray[np.bool_], doubt: float) -> bool:
    """Whether an event is surely more likely in calls than in runs."""
    least = binomial_low(int(calls.sum()), len(calls), doubt / 2)
    return least > binomial_high(int(runs.sum()), len(runs), doubt / 2)


def _distance(one: Floats, other: Floats) -> float:
    """The largest difference of two empirical distribution functions; NaN is above all numbers."""
    one, other = np.sort(one), np.sort(other)
    points = np.concatenate([one, other])
    shares = [np.searchsorted(side, points, side="right") / len(side) for side in (one, other)]
    return float(np.abs(shares[0] - shares[1]).max())
