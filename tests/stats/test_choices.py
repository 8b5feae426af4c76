"""Selections against their exact laws."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dpframe.mechanisms.noise import choose_points
from dpframe.samplers import (
    exponential_mechanism,
    exponential_mechanism_each,
    exponential_mechanism_runs,
    permute_and_flip,
    permute_and_flip_each,
    report_noisy_max,
    report_noisy_max_each,
    selection,
    uniform_below,
    uniforms_below,
)
from tests.mechanisms.laws import exponential_law, flip_law, noisy_max_law

from . import checks

pytestmark = pytest.mark.slow

N = 40_000
SCORES = {
    "mixed": [3, 3, 1, 0, -4],
    "tied": [7, 7, 7],
    "two": [0, -1],
    "steep": [0, -9, -9, -9, -9, -9, -9, -9],
}


@pytest.mark.parametrize("name", SCORES)
def test_permute_and_flip(name: str) -> None:
    scores = np.array(SCORES[name], np.int64)
    chosen = [permute_and_flip(scores, Fraction(17, 10)) for _ in range(N)]
    counts = np.bincount(chosen, minlength=scores.size)
    checks.assert_plausible(checks.choices(counts, flip_law(SCORES[name], 1.7)))


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("weighted", [False, True])
def test_exponential_mechanism(name: str, weighted: bool) -> None:
    scores = np.array(SCORES[name], np.int64)
    weights = [(5, 1, 30, 0, 1 << 10)[i % 5] if weighted else 1 for i in range(scores.size)]
    given = np.array(weights, np.int64) if weighted else None
    chosen = [exponential_mechanism(scores, Fraction(17, 10), given) for _ in range(N)]
    counts = np.bincount(chosen, minlength=scores.size)
    assert not counts[np.array(weights) == 0].any()
    checks.assert_plausible(checks.choices(counts, exponential_law(SCORES[name], 1.7, weights)))


def test_weights_against_scores_of_the_opposite_order() -> None:
    """Weights of e**(+gap) nearly, so that every candidate is about as likely."""
    scores = np.array([0, -5, -10, -15, -20], np.int64)
    weights = [round(math.exp(-s)) for s in scores.tolist()]
    chosen = [
        exponential_mechanism(scores, Fraction(1), np.array(weights, np.int64)) for _ in range(N)
    ]
    law = exponential_law(scores.tolist(), 1.0, weights)
    checks.assert_plausible(checks.choices(np.bincount(chosen, minlength=5), law))


@pytest.mark.parametrize("select", [permute_and_flip, exponential_mechanism])
def test_many_candidates(select) -> None:  # type: ignore[no-untyped-def]
    """70 000 candidates with 7 different scores, pooled by score, across blocks."""
    n, rounds, scale = 70_000, 3000, 2.0
    scores = np.arange(n, dtype=np.int64) % 7
    chosen = [int(scores[select(scores, Fraction(2))]) for _ in range(rounds)]
    if select is permute_and_flip:  # so many successes that the choice among them is proportional
        assert n > 10**4
    law = exponential_law(list(range(7)), scale, [1] * 7)
    checks.assert_plausible(checks.choices(np.bincount(chosen, minlength=7), law))


def test_uniform_below() -> None:
    counts = np.bincount([uniform_below(11) for _ in range(N)], minlength=11)
    checks.assert_plausible(checks.choices(counts, [1 / 11] * 11))


@pytest.mark.parametrize("end", [3, 11, 2**40 + 2**38, 2**62 + 2**60])
def test_uniforms_below(end: int) -> None:
    drawn = uniforms_below(np.array([end, 7] * (10 * N)))
    bins = min(end, 11)
    width = -(-end // bins)
    law = [(min(end, (i + 1) * width) - i * width) / end for i in range(bins)]
    checks.assert_plausible(checks.choices(np.bincount(drawn[::2] // width, minlength=bins), law))
    checks.assert_plausible(checks.choices(np.bincount(drawn[1::2], minlength=7), [1 / 7] * 7))


@pytest.mark.parametrize("name", SCORES)
def test_report_noisy_max(name: str) -> None:
    scores = np.array(SCORES[name], np.int64)
    chosen = [report_noisy_max(scores, Fraction(17, 10)) for _ in range(N)]
    counts = np.bincount(chosen, minlength=scores.size)
    checks.assert_plausible(checks.choices(counts, noisy_max_law(SCORES[name], 1.7)))


EACH = {
    "permute-and-flip": (permute_and_flip_each, lambda s: flip_law(s, 1.7)),
    "exponential": (
        exponential_mechanism_each,
        lambda s: exponential_law(s, 1.7, [1] * len(s)),
    ),
    "noisy max": (report_noisy_max_each, lambda s: noisy_max_law(s, 1.7)),
}


@pytest.mark.parametrize("kind", EACH)
@pytest.mark.parametrize("name", SCORES)
def test_choices_of_many_groups(kind: str, name: str) -> None:
    """Two kinds of groups, one after another: the scores, and the scores reversed."""
    select, law = EACH[kind]
    both = [SCORES[name], SCORES[name][::-1]]
    chosen = select(np.array(both * (10 * N), np.int64), Fraction(17, 10))
    for i, scores in enumerate(both):
        counts = np.bincount(chosen[i::2], minlength=len(scores))
        checks.assert_plausible(checks.choices(counts, law(scores)))
    pairs = np.bincount(chosen[::2] * len(both[0]) + chosen[1::2], minlength=len(both[0]) ** 2)
    joint = np.outer(law(both[0]), law(both[1])).reshape(-1)
    checks.assert_plausible(checks.choices(pairs, joint.tolist()))


RUNS = {
    "mixed": ([3, 3, 1, 0, -4], [5, 1, 30, 0, 1 << 10]),
    "weights against scores": ([0, -5, -10, -15, -20], [1, 148, 22026, 3269017, 485165195]),
    "far": ([0, 90, 90], [1 << 62, 7, 3]),
    "two": ([2**63 - 1, 2**63 - 2], [1, 3]),
    "alone": ([5], [9]),
}


@pytest.mark.parametrize("total", [60, 20, 3])
def test_weighted_choices_of_many_groups(total: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of all kinds in turn; with small sums of envelopes most coins are settled in
    integers, and many proposals are rejected.
    """
    monkeypatch.setattr(selection, "_TOTAL", total)
    n = 10 * N if total == 60 else N // 2
    scores, weights = (np.tile([x for k in RUNS.values() for x in k[i]], n) for i in (0, 1))
    sizes = np.tile([len(k[0]) for k in RUNS.values()], n)
    chosen = exponential_mechanism_runs(scores, sizes, Fraction(17, 10), weights)
    places = (chosen - (np.cumsum(sizes) - sizes)).reshape(n, len(RUNS))
    laws = [exponential_law(s, 1.7, w) for s, w in RUNS.values()]
    found = {}
    for i, (name, law) in enumerate(zip(RUNS, laws, strict=True)):
        counts = np.bincount(places[:, i], minlength=len(law))
        found |= checks.named(name, checks.choices(counts, law))
    pairs = np.bincount(places[:, 0] * 5 + places[:, 1], minlength=25)
    found |= checks.named("pairs", checks.choices(pairs, np.outer(laws[0], laws[1]).ravel()))
    after = np.bincount(places[:-1, 0] * 5 + places[1:, 0], minlength=25)
    found |= checks.named("rows", checks.choices(after, np.outer(laws[0], laws[0]).ravel()))
    checks.assert_plausible(found)


def test_points_of_runs() -> None:
    """Every point is as likely as its score says, wherever its run is."""
    scale, n = Fraction(17, 10), 5 * N
    scores, weights, sizes = [2, 0, 3, 1, 1], [3, 9, 1, 4, 2], [3, 2]
    given = [np.tile(part, n) for part in (scores, weights, sizes)]
    run, place = choose_points(scale, *given)
    points = np.cumsum(weights) - weights
    code = points[run % 5] + place
    for i, (lo, hi) in enumerate(((0, 3), (3, 5))):
        each = [s for s, w in zip(scores[lo:hi], weights[lo:hi], strict=True) for _ in range(w)]
        counts = np.bincount(code[i::2] - points[lo], minlength=len(each))
        checks.assert_plausible(checks.choices(counts, exponential_law(each, 1.7, [1] * len(each))))
