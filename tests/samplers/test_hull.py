"""The hull law: its set by definition, floats against integers, chi square of what is drawn."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.spatial import ConvexHull

from dpframe.samplers import box, discrete_hull
from dpframe.samplers.box import Radii, is_within
from tests.laws.neighbours import is_in_arch

from .scripted import Script
from .seeded import Seeded
from .test_box import check

ONE = ((0, 1, 2),)
TWO = ((0, 1, 2), (0, 4, 3))
parts = st.fractions(-1, 1, max_denominator=40)


def on_arch(t: Fraction, up: Fraction) -> tuple[Fraction, Fraction]:
    """What a row may add to a sum and a sum of squares: at least the square of what it adds."""
    least = 2 * t * t - 1
    return t, least + (1 - least) * up


def of_widths(point: tuple[Fraction, ...], whole: int) -> tuple[list[int], list[int]]:
    """Whole numbers, and the widths of which they are these parts."""
    return [int(part * whole) for part in point], [whole] * len(point)


@given(st.lists(st.tuples(parts, st.fractions(0, 1, max_denominator=9), st.integers(-3, 3))))
@settings(max_examples=200)
def test_what_rows_add_and_take_away_is_inside(
    rows: list[tuple[Fraction, Fraction, int]],
) -> None:
    """Any mixture of points of the arch and of its mirror image."""
    total = sum(abs(times) for *_, times in rows)
    assume(total > 0)
    point = [Fraction(0)] * 3
    for t, up, times in rows:
        for i, value in enumerate((Fraction(1), *on_arch(t, up))):
            point[i] += value * times / total
    whole = math.lcm(*(part.denominator for part in point))
    numbers, widths = of_widths(tuple(point), whole)
    assert is_within(1, numbers, widths, 1, ONE)
    assert is_within(8, [8 * n for n in numbers], widths, 1, ONE)
    assert is_within(8, numbers, widths, 8, ONE)


@given(parts, parts, parts)
@settings(max_examples=400)
def test_what_is_inside_is_added_and_taken_away(a: Fraction, x: Fraction, y: Fraction) -> None:
    """It lies between two mixtures with the same count and sum: one with the greatest of squares,
    and one with the least.
    """
    whole = math.lcm(a.denominator, x.denominator, y.denominator)
    numbers, widths = of_widths((a, x, y), whole)
    inside = is_within(1, numbers, widths, 1, ONE)
    assert inside == is_in_arch(a, x, y)
    if not inside:
        return
    p, q = (1 + a) / 2, (1 - a) / 2
    for sign in (1, -1):
        more, less = (p, q) if sign > 0 else (q, p)
        v = max(Fraction(0), abs(x) - more) / less if less else Fraction(0)
        u = (abs(x) - less * v) / more if more else Fraction(0)
        assert abs(u) <= 1
        assert abs(v) <= 1
        assert sign * y <= more - less * (2 * v * v - 1)


def test_the_set_is_the_convex_hull() -> None:
    """Against the hull of many points of the arch and its mirror image."""
    t = np.linspace(-1, 1, 801)
    arch = np.stack([np.ones_like(t), t, 2 * t * t - 1], axis=1)
    planes = ConvexHull(np.concatenate([arch, -arch])).equations
    whole = 1 << 20
    points = np.random.default_rng(4).integers(-whole, whole + 1, (4000, 3))
    beyond = (points / whole @ planes[:, :3].T + planes[:, 3]).max(axis=1)
    inside = np.array([is_within(1, z, (whole,) * 3, 1, ONE) for z in points.tolist()])
    clear = np.abs(beyond) > 2e-5
    assert clear.mean() > 0.99
    assert ((beyond < 0) == inside)[clear].all()
    assert inside.mean() == pytest.approx(7 / 9, abs=0.03)


@pytest.mark.parametrize("widths", [(1, 1, 1), (1, 2, 3), (2, 5, 7), (1, 73, 5329)])
@pytest.mark.parametrize("fineness", [1, 4])
def test_floats_decide_as_integers_do(widths: tuple[int, ...], fineness: int) -> None:
    """At all points of small boxes, where many lie on the edge, and in large ones."""
    rng = np.random.default_rng(1)
    radii, points = [], []
    for radius in (0, 1, 2, 3, 5, 8, 2**20 + 1, 2**40 + 1):
        halves = [radius * w // fineness for w in widths]
        if math.prod(2 * half + 1 for half in halves) < 9000:
            found = list(product(*(range(-half, half + 1) for half in halves)))
        else:
            found = [
                tuple(int(rng.integers(-half, half + 1)) for half in halves) for _ in range(900)
            ]
            found += list(product(*((-half, 0, half) for half in halves)))
        points += found
        radii += [radius] * len(found)
    drawn = np.array(points, dtype=np.int64)
    fast = box._are_within(np.array(radii), drawn, widths, fineness, ONE)
    slow = [is_within(r, z, widths, fineness, ONE) for r, z in zip(radii, points, strict=True)]
    assert fast.tolist() == slow
    assert 0 < sum(slow) < len(slow)


def test_what_floats_cannot_tell_is_settled_in_integers() -> None:
    """Next to the edge by one part in 2**60, on both sides of it."""
    size = 1 << 30
    widths = (size, size, size)
    x = size - 12345
    edge = -(-(2 * x * x - size * size) // size)  # y >= 2 x**2 - 1 where a = 1
    points = [(size, x, edge - 1), (size, x, edge), (size, -x, edge - 1), (-size, x, -edge)]
    fast = box._are_within(np.ones(4, np.int64), np.array(points), widths, 1, ONE)
    assert fast.tolist() == [False, True, False, True]


@pytest.mark.parametrize(
    ("epsilon", "widths", "fineness", "arches"),
    [
        (Fraction(3), (1, 2, 3), 2, ONE),
        (Fraction(2), (1, 1, 1), 1, ONE),
        (Fraction(4), (1, 2, 2), 4, ONE),
        (Fraction(5), (1, 2, 2, 1, 1), 2, TWO),
        (Fraction(4), (2, 1, 1, 3), 1, ((0, 2, 1),)),
    ],
)
def test_vectors_have_their_probabilities(
    epsilon: Fraction, widths: tuple[int, ...], fineness: int, arches: tuple[box.Arch, ...]
) -> None:
    """Against P(z) ~ exp(-epsilon N(z) / fineness) on a grid, N(z) by definition."""
    drawn = discrete_hull(epsilon, widths, fineness, arches, 30_000, Seeded(3))
    reach = 6 if len(widths) == 3 else 3
    points = list(product(*(range(-reach * w, reach * w + 1) for w in widths)))
    rate = float(epsilon) / fineness
    least = [least_radius(z, widths, fineness, arches) for z in points]
    weights = np.exp(-rate * np.array(least))
    order = np.argsort(-weights, kind="stable")
    place = {points[i]: at for at, i in enumerate(order)}
    codes = np.array([place.get(tuple(z), len(points)) for z in drawn.tolist()])
    assert (codes == len(points)).mean() < 0.002
    check(codes[codes < len(points)], weights[order] / weights.sum(), 1500)


def least_radius(
    z: tuple[int, ...], widths: tuple[int, ...], fineness: int, arches: tuple[box.Arch, ...]
) -> int:
    """N(z), by the definition of the hull."""
    radius = max(-(-abs(x) * fineness // w) for x, w in zip(z, widths, strict=True))
    while radius and not all(
        is_in_arch(*(Fraction(z[i] * fineness, radius * widths[i]) for i in arch))
        for arch in arches
    ):
        radius += 1
    return radius


@pytest.mark.parametrize("n", [0, 1, 2047, 65_536, 65_537])
def test_shapes(n: int) -> None:
    found = discrete_hull(Fraction(1), (1, 2**30, 2**30), 1024, ONE, n)
    assert found.shape == (n, 3)
    assert found.dtype == np.int64


@pytest.mark.parametrize("epsilon", ["1/1000000", "1/7", "10000", "16384"])
def test_extremes(epsilon: str) -> None:
    cost = Fraction(epsilon)
    drawn = discrete_hull(cost, (1, 64, 64), 1, ONE, 3000, Seeded(1)).astype(float)
    if cost >= 10_000:
        assert not drawn.any()
        return
    for found, moment in zip(drawn.std(axis=0), (11 / 35, 163 / 700, 74 / 245), strict=True):
        assert found in (
            pytest.approx(math.sqrt(20 * moment) / float(cost), rel=0.1),
            *[pytest.approx(64 * math.sqrt(20 * moment) / float(cost), rel=0.1)],
        )


def test_numbers_of_far_radii_wrap(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are looked at before, as the integers that they are."""
    radius = (1 << 63) + 3

    def drawn(self: Radii, n: int, source: object) -> tuple[np.ndarray, dict[int, int]]:
        return np.zeros(n, np.int64), {0: radius, 1: radius}

    monkeypatch.setattr(Radii, "draw", drawn)
    lanes, top = 5, 2 * radius

    def word(value: int) -> list[int]:
        return [value >> 1, (value & 1) << 63]

    # (1, 1, -1) over the radius lies outside, (1, 1, 1) inside
    single = [*word(top), *word(top), *word(0), *word(top), *word(top), *word(top)]
    source = Script(u64=[0] * 3 * lanes, single=single)
    found = discrete_hull(Fraction(1), (1, 1, 1), 1, ONE, 1, source)
    assert found.tolist() == [[-(1 << 63) + 3] * 3]


@pytest.mark.parametrize(
    "arches",
    [
        (),
        ((0, 1, 2),) * 9,
        ((0, 1, 1),),
        ((0, 1, 2), (0, 1, 3)),
        ((1, 1, 2),),
        ((0, 1, 4),),
        ((0, 2, 1), (2, 3, 1)),
        ((0, 1, -1),),
    ],
)
def test_range_of_arches(arches: tuple[box.Arch, ...]) -> None:
    with pytest.raises(ValueError, match="arches"):
        discrete_hull(Fraction(1), (1, 2, 3, 4), 1, arches, 1)


def test_up_to_eight_arches() -> None:
    """Of which one vector in eight or so is kept."""
    arches = tuple((0, 2 * i + 1, 2 * i + 2) for i in range(9))
    eight = discrete_hull(Fraction(1), (1, *(64,) * 16), 16, arches[:8], 50, Seeded(1))
    assert eight.shape == (50, 17)
    with pytest.raises(ValueError, match="arches"):
        discrete_hull(Fraction(1), (1, *(64,) * 18), 16, arches, 1)


def test_range_of_boxes() -> None:
    with pytest.raises(ValueError, match="range"):
        discrete_hull(Fraction(0), (1, 2, 3), 1, ONE, 1)
