"""The box law: its radii proven equal to their targets to 300 bits, scripted draws, chi square."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest

from dpframe.samplers import box as module
from dpframe.samplers import discrete_box
from dpframe.samplers.box import Radii, radii_of

from .scripted import Script
from .seeded import Seeded

LAWS = {
    "plain": Radii(Fraction(1), (1, 1), 1),
    "uneven": Radii(Fraction(7, 10) / 4, (1, 3, 5), 4),
    "one": Radii(Fraction(1, 3), (2,), 2),
    "sharp": Radii(Fraction(30), (1, 2**32), 1),
    "cells": Radii(Fraction(1, 3000), (1, 1), 1),
    "fine": Radii(Fraction(1, 2**15), (1, 60, 2**30), 2**14),
    "wide": Radii(Fraction(1, 2**40), (1, 2**10), 1),
    "short": Radii(Fraction(1, 3), (1, 2), 2, shift=0, cells=3),
    "short cells": Radii(Fraction(1, 40), (1, 2), 2, shift=2, cells=5),
    "many": Radii(Fraction(1, 4), (1, 2, 3, 4, 5, 6), 8),
}
each_law = pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
in_cells = pytest.mark.parametrize(
    "law", [law for law in LAWS.values() if law.shift], ids=[n for n in LAWS if LAWS[n].shift]
)


def real(x: Fraction) -> mpmath.mpf:
    return mpmath.mpf(x.numerator) / x.denominator


def proposal(law: Radii, cell: int) -> mpmath.mpf:
    """The weight of a cell by definition."""
    return mpmath.exp(-real(law.rate) * (cell << law.shift)) * law.volume(law.end(cell))


def sums_from(law: Radii, start: int) -> list[mpmath.mpf]:
    """Cumulative probabilities of the cells of a table, by adding up far beyond it."""
    step = float(law.rate) * 2**law.shift
    fall, power, running = mpmath.exp(-real(law.rate) * 2**law.shift), mpmath.mpf(1), mpmath.mpf(0)
    sums = []
    for cell in range(start, start + math.ceil((200 + 20 * len(law.widths)) / step) + 2):
        running += power * law.volume(law.end(cell))
        power *= fall
        sums.append(running)
    return [found / running for found in sums[: law.cells]]


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("plain", 0),
        ("uneven", 0),
        ("one", 0),
        ("sharp", 0),
        ("short", 0),
        ("short", 6),
        ("short cells", 0),
        ("short cells", 10),
        ("plain", 46),
    ],
)
def test_tables_hold_the_exact_boundaries(name: str, start: int) -> None:
    law = LAWS[name]
    with mpmath.workprec(500):
        sums = sums_from(law, start)
        for precision in (64, 128):
            expected = [int(mpmath.floor(f * mpmath.mpf(2) ** precision)) for f in sums]
            assert law.table(start).floors(precision) == expected


@each_law
def test_brackets_hold_and_get_tighter(law: Radii) -> None:
    for precision in (70, 200):
        found = law._boundaries(0, precision)
        assert len(found) == law.cells
        assert all(0 <= lo <= hi for lo, hi in found)
        if law.rate < 20:
            assert max(hi - lo for lo, hi in found) <= 1 << 20


@in_cells
def test_every_radius_has_its_target_probability(law: Radii) -> None:
    """Weight of the cell times 2**-k times acceptance is proportional to exp(-rate R) V(R)."""
    with mpmath.workprec(400):
        for cell in (0, 1, law.cells // 3, law.cells - 1, law.cells + 7):
            last = (1 << law.shift) - 1
            for offset in {0, last, last // 3}:
                radius = (cell << law.shift) | offset
                inner, outer = law.volume(radius), law.volume(law.end(cell))
                accepted = mpmath.exp(-real(law.rate * offset)) * inner / outer
                assert 0 < accepted <= 1
                target = mpmath.exp(-real(law.rate) * radius) * inner
                assert abs(proposal(law, cell) * accepted / target - 1) < mpmath.mpf(2) ** -300


@in_cells
def test_float_filter_is_far_inside_its_margin(law: Radii) -> None:
    rng = np.random.default_rng(1)
    cell = rng.integers(0, law.cells, 300)
    offset = rng.integers(0, 1 << law.shift, 300)
    cell[:3], offset[:3] = [0, law.cells - 1, 1], [(1 << law.shift) - 1, 0, 1]
    found = law._acceptance(cell, offset)
    with mpmath.workprec(200):
        for h, low, p in zip(cell.tolist(), offset.tolist(), found, strict=True):
            inner, outer = law.volume((h << law.shift) | low), law.volume(law.end(h))
            exact = mpmath.exp(-real(law.rate * low)) * inner / outer
            assert abs(mpmath.mpf(float(p)) - exact) < mpmath.mpf(2) ** -44


@in_cells
def test_squeeze_accepts_only_what_is_sure(law: Radii) -> None:
    last = (1 << law.shift) - 1
    assert law._squeeze[law.cells] == 0
    for h in range(0, law.cells, 1 + law.cells // 100):
        quotient = law.volume(h << law.shift) / Fraction(law.volume(law.end(h)))
        least = mpmath.exp(-real(law.rate * last)) * real(quotient)
        assert int(law._squeeze[h]) / 65536 < least
        assert least - int(law._squeeze[h]) / 65536 < 0.01


def word_of(law: Radii, cell: int) -> int:
    """A 64-bit word that selects this cell."""
    floors = [0, *law.table(0).floors(64), (1 << 64) - 1]
    return (floors[cell] + floors[cell + 1]) // 2


def test_radii_without_cells() -> None:
    law = radii_of(Fraction(1), (1, 3), 1)
    radii, far = law.draw(3, Script(u64=[word_of(law, c) for c in (0, 4, 2)]))
    assert radii.tolist() == [0, 4, 2]
    assert not far


def test_coordinates_are_spread_over_their_intervals() -> None:
    law = radii_of(Fraction(1), (1, 3), 1)
    words = [word_of(law, 4)] * 3
    ends = [1, 1 << 63, (1 << 64) - 1]
    drawn = discrete_box(Fraction(1), (3, 1), 1, 3, Script(u64=[*words, *ends, *ends]))
    assert drawn.tolist() == [[-12, -4], [0, 0], [12, 4]]


@pytest.mark.parametrize("accepted", [True, False])
def test_a_radius_on_the_edge_of_acceptance_is_settled_exactly(accepted: bool) -> None:
    law = LAWS["cells"]
    h, offset, lanes = 9, (1 << law.shift) - 5, 1 + 1 // 8 + 4
    with mpmath.workprec(400):
        inner, outer = law.volume((h << law.shift) | offset), law.volume(law.end(h))
        p = mpmath.exp(-real(law.rate * offset)) * inner / outer
        boundary = int(mpmath.floor(p * mpmath.mpf(2) ** 128))
    word, low = divmod(boundary, 1 << 64)
    script = Script(
        u64=[word_of(law, h)] * lanes + [(word << 16) & ((1 << 64) - 1)],
        u16=[offset] + [0] * (lanes - 1) + [word >> 48] + [0] * (lanes - 1),
        single=[low - 1 if accepted else low + 1],
    )
    radii, _ = law.draw(1, script)
    assert radii.tolist() == [(h << law.shift) + (offset if accepted else 0)]
    assert script.exhausted()


def test_the_least_first_bits_do_not_accept_what_is_hardly_ever_accepted() -> None:
    """Of the inner end of a cell whose outer end is far wider, in each dimension."""
    law = Radii(Fraction(1, 3000), (1, 1, 1), 1)
    inner, outer = law.volume(0), law.volume(law.end(0))
    assert Fraction(inner, outer) < Fraction(1, 1 << 16)
    assert law._squeeze[0] == 0
    keep = np.ones(2, np.bool_)
    script = Script(u16=[0, 0], u64=[0, (1 << 64) - 1])
    law._accept(np.zeros(2, np.int64), np.zeros(2, np.int64), keep, script)
    assert keep.tolist() == [True, False]
    assert script.exhausted()


def test_tables_follow_each_other() -> None:
    law, last = LAWS["short"], (1 << 64) - 1
    second, third = law.table(3).floors(64), law.table(6).floors(64)
    words = [last, 5, last, second[0] + 5, last, third[1] + 5]
    script = Script(u64=words)
    radii, far = law.draw(3, script)
    assert radii.tolist() == [0, 0, 0]
    assert far == {0: 4, 2: 8}
    assert script.exhausted()


def test_far_radii_are_drawn_with_their_probabilities() -> None:
    """Many tables, each of a few cells: the same law."""
    n = 3000
    for law in (LAWS["short"], LAWS["short cells"]):
        radii, far = law.draw(n, Seeded(5))
        for place, radius in far.items():
            assert radii[place] == 0
            radii[place] = radius
        top = 200
        weights = np.array([math.exp(-float(law.rate) * r) * law.volume(r) for r in range(2000)])
        weights /= weights.sum()
        check(radii, weights, top)


def check(radii: np.ndarray, weights: np.ndarray, top: int) -> None:
    """Chi square, within seven deviations or so."""
    n = radii.size
    weights = np.pad(weights, (0, max(0, top + 1 - weights.size)))
    expected = np.append(weights[:top], weights[top:].sum()) * n
    counts = np.bincount(np.minimum(radii, top), minlength=top + 1)
    often = expected > 10
    expected = np.append(expected[often], expected[~often].sum())
    counts = np.append(counts[often], counts[~often].sum())
    used = expected > 0
    found = float((((counts - expected) ** 2)[used] / expected[used]).sum())
    degrees = int(used.sum()) - 1
    assert found < degrees + 7 * math.sqrt(2 * degrees) + 20


@pytest.mark.parametrize(
    ("epsilon", "widths", "fineness"),
    [
        (Fraction(1), (1, 1), 1),
        (Fraction(7, 10), (1, 3), 4),
        (Fraction(2), (1, 2, 3), 8),
        (Fraction(5, 2), (1,), 1024),
        (Fraction(3), (1, 2), 256),
    ],
)
def test_vectors_have_their_probabilities(
    epsilon: Fraction, widths: tuple[int, ...], fineness: int
) -> None:
    """Against P(z) ~ exp(-epsilon N(z) / fineness) on a grid, N(z) by definition."""
    drawn = discrete_box(epsilon, widths, fineness, 30_000, Seeded(3))
    reach = [int(60 * w / epsilon) // len(widths) ** 2 + 3 for w in widths]
    points = list(product(*(range(-r, r + 1) for r in reach)))
    rate = float(epsilon) / fineness
    weights = np.exp(-rate * np.array([least_radius(z, widths, fineness) for z in points]))
    order = np.argsort(-weights, kind="stable")
    place = {points[i]: at for at, i in enumerate(order)}
    codes = np.array([place.get(tuple(z), len(points)) for z in drawn.tolist()])
    check(codes, weights[order] / weights.sum(), 1500)


def least_radius(z: tuple[int, ...], widths: tuple[int, ...], fineness: int) -> int:
    """N(z)."""
    radius = 0
    while any(abs(x) > radius * w // fineness for x, w in zip(z, widths, strict=True)):
        radius += 1
    return radius


@pytest.mark.parametrize("dimensions", [1, 2, 64])
@pytest.mark.parametrize("epsilon", ["1/1000000", "1/7", "10000", "16384"])
def test_extremes(epsilon: str, dimensions: int) -> None:
    cost = Fraction(epsilon)
    drawn = discrete_box(cost, (1,) * dimensions, 1, 300, Seeded(1))
    assert drawn.shape == (300, dimensions)
    assert drawn.dtype == np.int64
    if cost >= 10_000:
        assert not drawn.any()
        return
    deviation = math.sqrt((dimensions + 1) * (dimensions + 2) / 3) / float(cost)
    assert drawn.std() == pytest.approx(deviation, rel=0.35)


@pytest.mark.parametrize("n", [0, 1, 2047, 65_536, 65_537])
def test_shapes(n: int) -> None:
    for widths, fineness in (((1,), 1), ((1, 2**30), 1024)):
        assert discrete_box(Fraction(1), widths, fineness, n).shape == (n, len(widths))


def test_the_largest_noise_fits_or_wraps() -> None:
    largest = Fraction(2**32, 2**54)
    drawn = discrete_box(largest, (2**32, 1), 1, 2000, Seeded(2)).astype(float)
    assert drawn[:, 0].std() == pytest.approx(2 * 2.0**54, rel=0.2)
    assert drawn[:, 1].std() == pytest.approx(2 * 2.0**22, rel=0.2)


def test_coordinates_of_far_radii_wrap(monkeypatch: pytest.MonkeyPatch) -> None:
    radius = (1 << 63) + 3

    def drawn(self: Radii, n: int, source: object) -> tuple[np.ndarray, dict[int, int]]:
        return np.zeros(n, np.int64), {1: radius}

    monkeypatch.setattr(Radii, "draw", drawn)
    top = 2 * radius  # the last of 2 radius + 1 values
    single = [top >> 1, (top & 1) << 63]
    source = Script(u64=[0] * 3, single=single)
    found = discrete_box(Fraction(1), (1,), 1, 3, source)
    assert found[:, 0].tolist() == [0, module.wrap(radius), 0]
    assert module.wrap(radius) == -(1 << 63) + 3


@pytest.mark.parametrize(
    ("epsilon", "widths", "fineness"),
    [
        (Fraction(0), (1,), 1),
        (Fraction(-1), (1,), 1),
        (Fraction(16385), (1,), 1),
        (Fraction(1), (), 1),
        (Fraction(1), (1,) * 65, 1),
        (Fraction(1), (0,), 1),
        (Fraction(1), (2**32 + 1,), 1),
        (Fraction(1), (1,), 3),
        (Fraction(1), (1,), 0),
        (Fraction(1), (1,), 2**31),
        (Fraction(1, 2**55), (1,), 1),
        (Fraction(1, 2**30), (2**25,), 1),
        (Fraction(1, 2**30), (1,), 2**25),
        (1 + Fraction(1, 1 << 5000), (1,), 1),
    ],
)
def test_range_of_parameters(epsilon: Fraction, widths: tuple[int, ...], fineness: int) -> None:
    with pytest.raises(ValueError, match=r"range|fineness|bits"):
        discrete_box(epsilon, widths, fineness, 1)


def test_tables_are_shared_between_equal_parameters_and_bounded() -> None:
    assert radii_of(Fraction(6, 4), (1, 2), 1) is radii_of(Fraction(3, 2), (1, 2), 1)
    assert radii_of.cache_info().maxsize == 64
