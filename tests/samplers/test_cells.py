"""The noise laws: proven equal to their targets to 300 bits, scripted draws, and a rough look."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from dpframe.samplers import cells as module
from dpframe.samplers import discrete_gaussian, discrete_laplace
from dpframe.samplers.cells import Cells, _gaussian, _laplace, wrap

from .scripted import Script

SCALES = [
    Fraction(1, 1024),
    Fraction(3, 10),
    Fraction(10, 7),
    Fraction(319, 10),
    Fraction(32),
    Fraction(1000, 7),
    Fraction(10**9),
    Fraction(2**56),
]
VARIANCES = [
    Fraction(1, 2**9),
    Fraction(9, 100),
    Fraction(100),
    Fraction(64**2) - Fraction(1, 7),
    Fraction(64**2),
    Fraction(10**6, 7),
    Fraction(10**18),
    Fraction(2**112),
]
LAWS = [_laplace(t) for t in SCALES] + [_gaussian(v) for v in VARIANCES]
IDS = [f"laplace-{float(t):.3g}" for t in SCALES] + [f"gauss-{float(v):.3g}" for v in VARIANCES]
each_law = pytest.mark.parametrize("law", LAWS, ids=IDS)


def real(x: Fraction) -> mpmath.mpf:
    return mpmath.mpf(x.numerator) / x.denominator


def target(law: Cells, m: int) -> mpmath.mpf:
    """exp(-phi(m)), not normalised, per integer."""
    return mpmath.exp(-real(law.linear * m + law.quadratic * m * m))


def boundaries(law: Cells) -> tuple[list[mpmath.mpf], mpmath.mpf]:
    """Cumulative probabilities by definition, and the probability of the tail's index."""
    sides = [1 if law.shift or h == 0 else 2 for h in range(law.cells + 1)]
    masses = [sides[h] * target(law, h << law.shift) for h in range(law.cells)]
    rate = real(law.tail_rate)
    tail = sides[-1] * target(law, law.edge) / -mpmath.expm1(-rate) / 2**law.shift
    total = mpmath.fsum(masses) + tail
    sums, running = [], mpmath.mpf(0)
    for mass in masses:
        running += mass
        sums.append(running / total)
    return sums, tail / total


@each_law
def test_table_holds_the_exact_boundaries(law: Cells) -> None:
    with mpmath.workprec(3300 if law.table.floors(64)[0] == (1 << 64) - 1 else 300):
        sums, _ = boundaries(law)
        for precision in (64, 128):
            expected = [int(mpmath.floor(f * mpmath.mpf(2) ** precision)) for f in sums]
            assert law.table.floors(precision) == expected


@each_law
def test_every_magnitude_has_its_target_probability(law: Cells) -> None:
    """P(cell) 2**-k exp(-gamma), and the tail's product, are one constant times exp(-phi)."""
    with mpmath.workprec(3500):
        sums, tail = boundaries(law)
        constant = sums[0] / 2**law.shift
        for h in {0, 1, law.cells // 2, law.cells - 1}:
            sides = 1 if law.shift or h == 0 else 2
            cell = (sums[h] - (sums[h - 1] if h else 0)) / 2**law.shift / sides
            last = (1 << law.shift) - 1
            for offset in {0, last, last // 3}:
                found = cell * mpmath.exp(-real(law.gamma(h, offset)))
                ratio = found / (constant * target(law, (h << law.shift) + offset))
                assert abs(ratio - 1) < mpmath.mpf(2) ** -300
        rate = real(law.tail_rate)
        for beyond in (0, 1, 5 << law.shift):
            proposal = -mpmath.expm1(-rate) * mpmath.exp(-rate * beyond)
            accepted = mpmath.exp(-real(law.quadratic * beyond**2))
            found = tail * proposal * accepted / (1 if law.shift else 2)
            ratio = found / (constant * target(law, law.edge + beyond))
            assert abs(ratio - 1) < mpmath.mpf(2) ** -300


@each_law
def test_float_filter_is_far_inside_its_margin(law: Cells) -> None:
    if not law.shift:
        return
    rng = np.random.default_rng(1)
    cell = rng.integers(0, law.cells + 1, 300)
    offset = rng.integers(0, 1 << law.shift, 300)
    cell[:3], offset[:3] = law.cells - 1, [(1 << law.shift) - 1, 0, 1]
    gammas = law._gamma_float(cell, offset)
    assert gammas.max() < 0.36
    with mpmath.workprec(200):
        for h, low, g in zip(cell, offset, gammas, strict=True):
            exact = mpmath.mpf(0) if h == law.cells else real(law.gamma(int(h), int(low)))
            assert abs(mpmath.mpf(float(g)) - exact) < mpmath.mpf(2) ** -51


@each_law
def test_squeeze_accepts_only_what_is_sure(law: Cells) -> None:
    if not law.shift:
        return
    last = (1 << law.shift) - 1
    for h in range(law.cells):
        accepted = mpmath.exp(-real(law.gamma(h, last)))
        assert int(law._squeeze[h]) / 65536 < accepted
        assert accepted - int(law._squeeze[h]) / 65536 < 3 / 65536


def word_of(law: Cells, cell: int) -> int:
    """A 64-bit word that selects this cell."""
    floors = [0, *law.table.floors(64), (1 << 64) - 1]
    return (floors[cell] + floors[cell + 1]) // 2


def test_signs_without_cells() -> None:
    law = _laplace(Fraction(3))
    words = [word_of(law, c) for c in (0, 0, 5, 5)]
    drawn = law.draw(4, Script(u64=words, bits=[0, 1, 0, 1]))
    assert drawn.tolist() == [0, 0, 5, -5]


@pytest.mark.parametrize(
    ("scale", "width"), [(Fraction(1000), 16), (Fraction(10**7), 32), (Fraction(2**50), 64)]
)
def test_cells_offsets_and_signs_are_put_together(scale: Fraction, width: int) -> None:
    law = _laplace(scale)
    k, sign = law.shift, {16: 15, 32: 31, 64: 63}[width]
    low = {16: 0, 32: 0, 64: 1}[width]  # the 64-bit word drops its lowest bit
    offset = (1 << k) - 2
    plus, minus = offset << low, 1 << sign | offset << low
    lanes = 1 + 1 // 16 + 4
    words = [word_of(law, 7)] * lanes
    for word, expected in ((plus, 1), (minus, -1)):
        script = Script(
            u64=[*words, *([word] * lanes if width == 64 else [])],
            u32=[word] * lanes if width == 32 else [],
            u16=[*([word] * lanes if width == 16 else []), *[0] * lanes],
        )
        drawn = law.draw(1, script)
        assert drawn.tolist() == [expected * ((7 << k) + offset)]


def test_minus_zero_is_rejected() -> None:
    law = _laplace(Fraction(1000))
    zero, five = word_of(law, 0), word_of(law, 5)
    script = Script(
        u64=[zero, five, five, five, five],
        u16=[1 << 15, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    )
    assert law.draw(1, script).tolist() == [5 << law.shift]


def test_an_offset_on_the_edge_of_acceptance_is_settled_exactly() -> None:
    law = _laplace(Fraction(1000))
    offset, lanes = (1 << law.shift) - 1, 5
    with mpmath.workprec(300):
        boundary = int(mpmath.floor(mpmath.exp(-real(law.gamma(3, offset))) * mpmath.mpf(2) ** 128))
    word, low = divmod(boundary, 1 << 64)
    for further, accepted in ((low - 1, True), (low + 1, False)):
        script = Script(
            u64=[word_of(law, 3)] * lanes + [(word << 16) & ((1 << 64) - 1)] * 1,
            u16=[offset] + [0] * 4 + [word >> 48] + [0] * 4,
            single=[further],
        )
        expected = (3 << law.shift) + (offset if accepted else 0)
        assert law.draw(1, script).tolist() == [expected]
        assert script.exhausted()


def test_the_tail_begins_at_the_edge() -> None:
    law = _laplace(Fraction(1000))
    never = (1 << 64) - 1
    digits = int(1 / law.tail_rate).bit_length() + 2
    script = Script(u64=[(1 << 64) - 1] * 5, u16=[0] * 10, single=[*[never] * digits, never] * 5)
    assert law.draw(1, script).tolist() == [law.edge]


def test_values_wrap_and_never_saturate() -> None:
    assert wrap(2**63 - 1) == 2**63 - 1
    assert wrap(2**63) == -(2**63)
    assert wrap(2**64 + 5) == 5
    law = _laplace(Fraction(2**56))
    assert law.edge == 2**61


@pytest.mark.parametrize(
    ("draw", "least", "most"),
    [
        (discrete_laplace, Fraction(1, 2**10), Fraction(2**56)),
        (discrete_gaussian, Fraction(1, 2**20), Fraction(2**112)),
    ],
)
def test_range_of_parameters(draw, least: Fraction, most: Fraction) -> None:  # type: ignore[no-untyped-def]
    assert draw(least, 5).tolist() == [0] * 5  # P(0) = 1 - 1e-222 or better
    assert np.abs(draw(most, 5)).min() > 0  # P(0) < 2**-56
    for value in (least * Fraction(999, 1000), most + 1, Fraction(0), Fraction(-1)):
        with pytest.raises(ValueError, match="range"):
            draw(value, 1)
    with pytest.raises(ValueError, match="bits"):
        draw(1 + Fraction(1, 1 << 5000), 1)


@pytest.mark.parametrize("n", [0, 1, 2047, 2048, 65_536, 65_537, 200_000])
@pytest.mark.parametrize("scale", [1, 1000, 2**40])
def test_shapes(n: int, scale: int) -> None:
    for drawn in (discrete_laplace(Fraction(scale), n), discrete_gaussian(Fraction(scale), n)):
        assert drawn.shape == (n,)
        assert drawn.dtype == np.int64


def test_tables_are_shared_between_equal_parameters_and_bounded() -> None:
    assert _laplace(Fraction(6, 4)) is _laplace(Fraction(3, 2))
    assert module._laplace.cache_info().maxsize == 64
    assert module._gaussian.cache_info().maxsize == 64


def laplace_law(t: float, edges: np.ndarray) -> np.ndarray:
    """P(|X| >= m)."""
    return np.where(edges <= 0, 1.0, 2 * np.exp(-edges / t) / (1 + math.exp(-1 / t)))


def gaussian_law(sigma: float, edges: np.ndarray) -> np.ndarray:
    """P(|X| >= m), by the series or for large sigma by the midpoint rule."""
    if sigma < 100:
        k = np.arange(1, int(40 * sigma) + 20)
        w = np.exp(-k * k / (2 * sigma**2))
        total = 1 + 2 * w.sum()
        return np.array([1.0 if m <= 0 else 2 * w[int(m) - 1 :].sum() / total for m in edges])
    return np.array([1.0 if m <= 0 else math.erfc((m - 0.5) / sigma / 2**0.5) for m in edges])


@pytest.mark.parametrize(
    "scale", [Fraction(3, 10), Fraction(7), Fraction(1000, 7), Fraction(10**9)]
)
@pytest.mark.parametrize("gaussian", [False, True])
def test_the_laws_roughly(scale: Fraction, gaussian: bool) -> None:
    """Frequencies of |X| in some 12 bins, of signs and of odd numbers.

    Each is within 7 standard deviations; fewer than 20 comparisons per case, 8 cases: the test
    fails by chance with probability below 160 * 2.6e-12 < 1e-9.
    """
    n, s = 60_000, float(scale)
    law = gaussian_law if gaussian else laplace_law
    drawn = discrete_gaussian(scale**2, n) if gaussian else discrete_laplace(scale, n)
    edges = np.unique(np.floor(s * np.array([0, 0.1, 0.3, 0.6, 1, 1.5, 2, 2.5, 3, 4, 6])))
    upper = law(s, edges)
    expected = np.append(upper[:-1] - upper[1:], upper[-1])
    bins = np.searchsorted(edges, np.abs(drawn), "right") - 1
    counts = np.bincount(bins, minlength=edges.size)
    spread = np.sqrt(n * expected * (1 - expected))
    assert np.all(np.abs(counts - n * expected) <= 7 * spread + 2)
    positive, nonzero = int((drawn > 0).sum()), int((drawn != 0).sum())
    assert abs(positive - nonzero / 2) <= 7 * math.sqrt(nonzero / 4) + 1
    if s > 100:
        assert abs(int((drawn & 1).sum()) - n / 2) <= 7 * math.sqrt(n / 4)
