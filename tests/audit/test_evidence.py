"""Bounds from counts, against other computations of the same, and events that are found."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpframe.audit.evidence import (
    best_event,
    binomial_high,
    binomial_low,
    likelihood_scores,
    proved_epsilon,
)


@pytest.mark.parametrize("n", [1, 7, 100, 5000])
@pytest.mark.parametrize("doubt", [0.5, 0.025, 1e-6])
def test_bounds_are_those_of_clopper_and_pearson(n: int, doubt: float) -> None:
    for hits in {0, 1, n // 3, n - 1, n}:
        low = stats.beta.ppf(doubt, hits, n - hits + 1) if hits else 0.0
        high = stats.beta.ppf(1 - doubt, hits + 1, n - hits) if hits < n else 1.0
        assert binomial_low(hits, n, doubt) == pytest.approx(low, rel=1e-9, abs=1e-12)
        assert binomial_high(hits, n, doubt) == pytest.approx(high, rel=1e-9, abs=1e-12)


def test_what_is_proved_is_below_the_truth_as_often_as_it_says() -> None:
    """Counts of an event of probability 0.6 on one side and 0.3 on the other: the bound exceeds
    ln 2 in at most 5% of repetitions, and is not far below.
    """
    rng = np.random.default_rng(3)
    n, repetitions = 2000, 400
    pairs = zip(rng.binomial(n, 0.6, repetitions), rng.binomial(n, 0.3, repetitions), strict=True)
    found = [proved_epsilon(int(a), int(b), n, 0.0, 0.05) for a, b in pairs]
    assert np.mean(np.array(found) > math.log(2)) <= 0.05
    assert np.median(found) > 0.8 * math.log(2)


def test_a_delta_is_taken_off() -> None:
    with_none = proved_epsilon(900, 100, 1000, 0.0, 0.05)
    assert 0 < proved_epsilon(900, 100, 1000, 0.1, 0.05) < with_none
    assert proved_epsilon(100, 0, 1000, 0.2, 0.05) == 0.0


def test_an_event_on_the_rare_side_is_found() -> None:
    """A value that one side never has: the bound grows with the number of runs, and not with
    anything else.
    """
    rng = np.random.default_rng(4)
    one = (rng.random(4000) < 0.5) * 10.0
    other = np.zeros(4000)
    event = best_event([one], [other], [0.0], [1.0])
    assert (event.threshold, event.least, event.swapped) == (10.0, True, False)
    assert proved_epsilon(event.hits(one), event.hits(other), 4000, 0.0, 0.05) > 6


def test_scores_learn_which_values_tell() -> None:
    """Two numbers of noise, of which only the second differs, and not in its mean."""
    rng = np.random.default_rng(5)
    one, other = (
        np.stack([rng.normal(size=6000), rng.normal(size=6000) * s], axis=1) for s in (1, 4)
    )
    learnt = [(one[::2, i], other[::2, i]) for i in (0, 1)]
    a, b = likelihood_scores(learnt, one[1::2], other[1::2])
    assert np.mean(a) > 0.3 > -0.3 > np.mean(b)


def test_values_that_are_not_there_are_values() -> None:
    one = np.full((1000, 1), np.nan)
    other = np.zeros((1000, 1))
    a, b = likelihood_scores([(one[:, 0], other[:, 0])], one, other)
    assert a.min() > 3 > -3 > b.max()
