"""Statistical tests of integer noise against its exact law; each gives named p-values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Integers = NDArray[np.int64]
Upper = Callable[[NDArray[np.int64]], NDArray[np.float64]]
PValues = dict[str, float]

ALARM = 1e-6
"""A test function fails by chance with at most this probability (Bonferroni)."""


def laplace_upper(scale: Fraction) -> Upper:
    """m -> P(|X| >= m)."""
    rate = float(1 / scale)
    return lambda m: np.where(m <= 0, 1.0, 2 * np.exp(-rate * m) / (1 + math.exp(-rate)))


def gaussian_upper(variance: Fraction) -> Upper:
    """m -> P(|X| >= m), by the series; for large sigma by the midpoint rule (error below 1e-5)."""
    sigma = math.sqrt(variance)
    if sigma >= 200:
        return lambda m: np.where(m <= 0, 1.0, 2 * stats.norm.sf((m - 0.5) / sigma))
    k = np.arange(0, int(16 * sigma) + 40)
    weights = np.exp(-k * k / (2 * float(variance)))
    weights[1:] *= 2
    tails = np.append(np.cumsum(weights[::-1])[::-1], 0) / weights.sum()
    return lambda m: tails[np.minimum(m, tails.size - 1)]


def assert_plausible(found: PValues) -> None:
    """No p-value is so small that chance (`ALARM`, over all of them) does not explain it."""
    worst = min(found, key=lambda name: found[name])
    assert found[worst] * len(found) > ALARM, f"{worst}: p = {found[worst]:.3g} of {len(found)}"


def smallest(found: Iterable[PValues]) -> float:
    """The smallest p-value, times their number."""
    values = [p for ps in found for p in ps.values()]
    return min(values) * len(values)


def _grouped_chi(expected: NDArray[np.float64], counts: Integers) -> float:
    """Pearson's chi-square with neighbouring bins merged to an expectation of at least 10."""
    merged: list[tuple[float, float]] = []
    e = c = 0.0
    for more_e, more_c in zip(expected, counts, strict=True):
        e, c = e + more_e, c + more_c
        if e >= 10:
            merged.append((e, c))
            e = c = 0.0
    if not merged:
        return 1.0
    merged[-1] = (merged[-1][0] + e, merged[-1][1] + c)
    if len(merged) == 1:
        return 1.0
    wanted, seen = map(np.array, zip(*merged, strict=True))
    return float(stats.chi2.sf(((seen - wanted) ** 2 / wanted).sum(), len(merged) - 1))


def _edges(scale: float) -> Integers:
    if scale < 60:
        return np.arange(0, int(30 * scale) + 8, dtype=np.int64)
    steps = np.concatenate([np.linspace(0, 4, 400), np.arange(4, 14)])
    return np.unique((scale * steps).astype(np.int64))


def magnitudes(drawn: Integers, upper: Upper, scale: float) -> PValues:
    """Chi-square of |X|, and counts beyond three far points."""
    n, size = drawn.size, np.abs(drawn)
    edges = _edges(scale)
    expected = -np.diff(np.append(upper(edges), 0.0)) * n
    counts = np.bincount(np.searchsorted(edges, size, "right") - 1, minlength=edges.size)
    found = {"chi-square": _grouped_chi(expected, counts)}
    for target in (1e-3, 1e-4, 1e-5):
        low, high = 0, 1 << 62
        while high - low > 1:
            middle = (low + high) // 2
            if float(upper(np.array([middle]))[0]) > target:
                low = middle
            else:
                high = middle
        p = float(upper(np.array([high]))[0])
        if p * n > 5:
            beyond = int((size >= high).sum())
            found[f"tail {target:g}"] = float(stats.binomtest(beyond, n, p).pvalue)
    return found


def signs(drawn: Integers) -> PValues:
    """As many positive as negative, and no memory from draw to draw."""
    positive, negative = int((drawn > 0).sum()), int((drawn < 0).sum())
    if positive + negative == 0:
        return {}
    s = np.sign(drawn).astype(np.float64)
    r = float((s[1:] * s[:-1]).mean() / (s * s).mean())
    rank = stats.rankdata(np.abs(drawn[:200_000]))
    memory = float(np.corrcoef(rank[1:], rank[:-1])[0, 1])
    return {
        "sign": float(stats.binomtest(positive, positive + negative).pvalue),
        "serial sign": float(2 * stats.norm.sf(abs(r) * math.sqrt(drawn.size))),
        "serial rank": float(2 * stats.norm.sf(abs(memory) * math.sqrt(rank.size))),
    }


def laplace_bits(drawn: Integers, scale: Fraction) -> PValues:
    """The digits of |X| - 1 given X != 0 are independent, digit i being 1 with p / (1 + p),
    p = exp(-2**i / scale).
    """
    rest = np.abs(drawn[drawn != 0]) - 1
    n = rest.size
    if n < 1000:
        return {}
    places = min(48, int(scale).bit_length() + 2)
    columns, scores = [], []
    for i in range(places):
        p = 1 / (1 + math.exp(float(Fraction(1 << i) / scale)))
        digit = (rest >> i) & 1
        if n * p > 20:
            scores.append((digit.sum() - n * p) / math.sqrt(n * p * (1 - p)))
            columns.append((digit - p) / math.sqrt(p * (1 - p)))
    found = {"digits": float(stats.chi2.sf(np.square(scores).sum(), len(scores)))}
    if len(columns) > 1:
        matrix = np.array(columns, np.float32)
        pairs = ((matrix @ matrix.T) / n)[np.triu_indices(len(columns), 1)]
        found["pairs of digits"] = float(stats.chi2.sf((pairs**2).sum() * n, pairs.size))
    return found


def low_bytes(drawn: Integers) -> PValues:
    """For large scales: bytes far below the scale are uniform."""
    return {
        f"byte {shift}": float(
            stats.chisquare(np.bincount((drawn >> shift) & 255, minlength=256)).pvalue
        )
        for shift in (0, 8, 16)
    }


def same_law(one: Integers, other: Integers) -> PValues:
    """Two samples, by a chi-square on common bins."""
    both = np.sort(np.concatenate([one, other]))
    edges = np.unique(both[:: max(1, both.size // 40)])
    counts = [
        np.bincount(np.searchsorted(edges, x, "right"), minlength=edges.size + 1)
        for x in (one, other)
    ]
    table = np.array(counts)
    table = table[:, table.sum(axis=0) > 0]
    while table.shape[1] > 2 and table.sum(axis=0).min() < 20:
        i = int(table.sum(axis=0).argmin())
        j = i - 1 if i else 1
        table[:, j] += table[:, i]
        table = np.delete(table, i, axis=1)
    return {"two samples": float(stats.chi2_contingency(table).pvalue)}


def choices(counts: Integers, law: Iterable[float]) -> PValues:
    """Frequencies of selections against their probabilities."""
    expected = np.array(list(law)) * counts.sum()
    order = np.argsort(expected)
    return {"choices": _grouped_chi(expected[order], counts[order])}


def named(prefix: str, found: PValues) -> PValues:
    """The same p-values with a prefix to their names."""
    return {f"{prefix}: {name}": p for name, p in found.items()}
