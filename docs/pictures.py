"""Draws the pictures of docs/concepts.md from dpframe's own plans and accountants.

Run it to write them again: ``python docs/pictures.py``. Nothing here is random.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import polars as pl

import dpframe as dp
from dpframe.accounting import (
    AdvancedAccountant,
    BasicAccountant,
    DiscreteLaplaceEvent,
    PrivacyLossAccountant,
    ZCDPAccountant,
)
from dpframe.aggregates.reconstructed_error import DistributionError, RebuiltError, RootError
from dpframe.plan.data import errors_by_edge, errors_by_set

HERE = Path(__file__).parent / "pictures"
_STYLE = """
text { font: 13px system-ui, sans-serif; fill: #3c4043 }
.title { font-weight: 600 }
.axis { stroke: #80868b; stroke-width: 1; fill: none }
.grid { stroke: #80868b; stroke-width: 0.5; stroke-opacity: 0.35; fill: none }
.line { stroke-width: 2; fill: none }
.a { stroke: #1967d2; fill: #1967d2 } .b { stroke: #c5500b; fill: #c5500b }
.c { stroke: #188038; fill: #188038 } .d { stroke: #8430ce; fill: #8430ce }
text.a, text.b, text.c, text.d { stroke: none }
.line.a, .line.b, .line.c, .line.d { fill: none }
@media (prefers-color-scheme: dark) {
  text { fill: #dadce0 }
  .a { stroke: #8ab4f8; fill: #8ab4f8 } .b { stroke: #fcad70; fill: #fcad70 }
  .c { stroke: #81c995; fill: #81c995 } .d { stroke: #d7aefb; fill: #d7aefb }
}
""".strip()

Point = tuple[float, float]


@dataclass(frozen=True)
class Line:
    """A curve, its colour, and its name where the name stands."""

    points: Sequence[Point]
    colour: str
    name: str
    at: Point = (0, 0)
    dots: bool = False


@dataclass(frozen=True)
class Panel:
    """One diagram: axes from 0 or `left` to `right` and from 0 or `bottom` to `top`, and what they
    mean; `named` is what stands below places that are no numbers.
    """

    title: str
    across: str
    right: float
    top: float
    lines: Sequence[Line]
    left: float = 0
    bottom: float = 0
    xs: Sequence[float] = ()
    ys: Sequence[float] = ()
    named: Sequence[str] = ()


def picture(label: str, panels: Sequence[Panel], width: int = 640, height: int = 330) -> str:
    """Panels side by side, as SVG; `label` is for those who cannot see it."""
    each = width / len(panels)
    drawn = [part for i, panel in enumerate(panels) for part in _panel(panel, i * each, each)]
    return drawing(label, drawn, width, height)


def drawing(label: str, drawn: Iterable[str], width: int, height: int) -> str:
    """The parts of a picture, as SVG."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img" aria-label="{label}">',
            f"<style>\n{_STYLE}\n</style>",
            *drawn,
            "</svg>\n",
        ]
    )


def _panel(panel: Panel, offset: float, width: float, height: float = 330) -> Iterable[str]:
    x0, x1, y0, y1 = offset + 42, offset + width - 16, height - 52, 34

    def place(point: Point) -> Point:
        along = (point[0] - panel.left) / (panel.right - panel.left)
        up = (point[1] - panel.bottom) / (panel.top - panel.bottom)
        return x0 + along * (x1 - x0), y0 - up * (y0 - y1)

    yield f'<text class="title" x="{x0:.1f}" y="18">{panel.title}</text>'
    for value in panel.ys:
        _, y = place((panel.left, value))
        yield f'<path class="grid" d="M{x0:.1f} {y:.1f}H{x1:.1f}"/>'
        yield f'<text x="{x0 - 6:.1f}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>'
    for value, name in zip(panel.xs, panel.named or [f"{x:g}" for x in panel.xs], strict=True):
        x, _ = place((value, panel.bottom))
        yield f'<path class="axis" d="M{x:.1f} {y0}v4"/>'
        yield f'<text x="{x:.1f}" y="{y0 + 19}" text-anchor="middle">{name}</text>'
    yield f'<path class="axis" d="M{x0:.1f} {y0}H{x1:.1f}"/>'
    middle = (x0 + x1) / 2
    yield f'<text x="{middle:.1f}" y="{height - 10}" text-anchor="middle">{panel.across}</text>'
    for line in panel.lines:
        yield from _line(line, place)


def _line(line: Line, place: Callable[[Point], Point]) -> Iterable[str]:
    placed = [place(point) for point in line.points]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in placed)
    yield f'<path class="line {line.colour}" d="M{path}"/>'
    if line.dots:
        for x, y in placed:
            yield f'<circle class="{line.colour}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>'
    if not line.name:
        return
    x, y = place(line.at)
    yield f'<text class="{line.colour}" x="{x:.1f}" y="{y:.1f}">{line.name}</text>'


def laplace(x: float, scale: float) -> float:
    """The probability of a whole number under discrete Laplace noise."""
    q = math.exp(-1 / scale)
    return (1 - q) / (1 + q) * q ** abs(x)


def gaussian(x: float, sigma: float) -> float:
    """The same under discrete Gaussian noise, whose sum is the continuous one's above sigma 1."""
    return math.exp(-x * x / (2 * sigma * sigma)) / (sigma * math.sqrt(2 * math.pi))


def counts(mechanism: str, groups: int) -> dp.NoisyAggregate:
    """Counts of persons by city at epsilon 1 and delta 1e-6, each in so many cities."""
    visits = pl.LazyFrame(schema={"person": pl.Int64, "city": pl.Int64})
    session = dp.Session(epsilon=1, delta=1e-6)
    limited = session.protect(visits, unit="person").limit_groups(groups, by="city")
    number = dp.count(per="unit", bounds=(0, 1), mechanism=mechanism).alias("n")
    query = limited.group_by("city", keys=range(100)).agg(number)
    return query.plan(epsilon=1, delta=1e-6).releases[0]


def neighbours() -> str:
    """Results with one person and without."""
    xs = range(94, 108)
    lines = [
        Line([(x, laplace(x - 100, 1)) for x in xs], "a", "without: 100", (96.2, 0.42), True),
        Line([(x, laplace(x - 101, 1)) for x in xs], "b", "with: 101", (101.7, 0.42), True),
    ]
    title = "How likely each result of a count is, at epsilon 1"
    panel = Panel(title, "released number", 107, 0.5, lines, 94, 0, range(94, 108, 2), (0.2, 0.4))
    label = "Two pointed curves, one step apart: nowhere is one more than 2.72 times the other"
    return picture(label, [panel])


def noise() -> str:
    """Laplace against Gaussian noise, where one person is in one group and where in 30."""
    panels = []
    for groups, reach, top, ys, named in (
        (1, 14, 0.5, (0.2, 0.4), ((1.6, 0.41), (5.6, 0.1))),
        (30, 100, 0.02, (0.01, 0.02), ((52, 0.004), (17, 0.016))),
    ):
        b = float(counts("discrete_laplace", groups).scale)
        sigma = float(counts("discrete_gaussian", groups).scale)
        xs = [x * reach / 100 for x in range(-100, 101)] if groups > 1 else range(-reach, reach + 1)
        lines = [
            Line([(x, laplace(x, b)) for x in xs], "a", "Laplace", named[0]),
            Line([(x, gaussian(x, sigma)) for x in xs], "b", "Gaussian", named[1]),
        ]
        title = f"A person is in {groups} group{'s' if groups > 1 else ''}"
        ticks = (-reach // 2, 0, reach // 2)
        panels.append(Panel(title, "noise in each count", reach, top, lines, -reach, 0, ticks, ys))
    label = "For one group Laplace noise is the narrower one, for 30 groups Gaussian noise is"
    return picture(label, panels)


def groups() -> str:
    """The error in each group, over the number of groups that one person is in."""
    sizes = range(1, 51)
    lines = []
    for mechanism, colour, name, at in (
        ("discrete_laplace", "a", "Laplace, by L1 = groups", (12, 92)),
        ("discrete_gaussian", "b", "Gaussian, by L2 = root of groups", (27, 28)),
    ):
        errors = [(size, counts(mechanism, size).accuracy()) for size in sizes]
        lines.append(Line(errors, colour, name, at))
    title = "95% error of each count, at epsilon 1 and delta 1e-6"
    across, xs = "groups that one person is in", range(0, 51, 10)
    panel = Panel(title, across, 50, 150, lines, 0, 0, xs, (50, 100, 150))
    label = "The error of Laplace noise grows in a line, that of Gaussian noise like a root"
    return picture(label, [panel])


def composition() -> str:
    """What releases cost together, over their number."""
    sizes = [1, *range(5, 201, 5)]
    methods = {
        "sequential: sums": (BasicAccountant, "a", (42, 8.8)),
        "advanced": (AdvancedAccountant, "b", (136, 8.75)),
        "zCDP": (ZCDPAccountant, "c", (178, 7.85)),
        "numerical": (PrivacyLossAccountant, "d", (165, 5.6)),
    }
    lines = []
    for name, (accountant, colour, at) in methods.items():
        events = [DiscreteLaplaceEvent(10)]
        points = [(k, accountant(events * k).epsilon(1e-6)) for k in sizes]
        lines.append(Line([p for p in points if p[1] <= 12], colour, name, at))
    title = "Epsilon of all together, each count at epsilon 0.1 (delta 1e-6)"
    panel = Panel(title, "number of counts", 200, 12, lines, 0, 0, range(0, 201, 50), (4, 8, 12))
    label = "Sums grow in a straight line, the other three bend; the numerical one is lowest"
    return picture(label, [panel])


Corner = tuple[float, float, float]
_BOX: list[Corner] = [(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]
_TIPS: list[Corner] = [(3, 0, 0), (-3, 0, 0), (0, 3, 0), (0, -3, 0), (0, 0, 3), (0, 0, -3)]
_SIDES = {
    "b": [[c for c in _BOX if c[i] == end] for i in range(3) for end in (-1, 1)],
    "a": [[t for t in _TIPS if sum(map(operator.mul, t, corner)) > 0] for corner in _BOX],
}
"""Of the box of what one row moves three numbers by, and of the octahedron around it."""


def seen(point: Sequence[float]) -> Corner:
    """To the right, upwards and towards who looks, a little from above and from the side."""
    (x, y, z), turn, tilt = point, math.radians(32), math.radians(18)
    right = x * math.cos(turn) - y * math.sin(turn)
    back = x * math.sin(turn) + y * math.cos(turn)
    up = z * math.cos(tilt) + back * math.sin(tilt)
    return right, up, z * math.sin(tilt) - back * math.cos(tilt)


def solid(colour: str, at: Point, scale: float) -> Iterable[str]:
    """Its sides; what is behind is dashed."""
    for corners in _SIDES[colour]:
        middle = [math.fsum(axis) for axis in zip(*corners, strict=True)]
        placed = [(at[0] + scale * seen(c)[0], at[1] - scale * seen(c)[1]) for c in corners]
        centre = [math.fsum(axis) / len(placed) for axis in zip(*placed, strict=True)]
        placed.sort(key=lambda p: math.atan2(p[1] - centre[1], p[0] - centre[0]))
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in placed)
        front = "fill-opacity:0.13" if seen(middle)[2] > 0 else "fill:none;stroke-dasharray:2 4"
        yield f'<path class="{colour}" style="{front}" d="M{path}Z"/>'


def draws() -> str:
    """What one row moves three numbers by, with what noise has to cover around it."""
    parts, scale = list[str](), 29.0
    kinds = (
        ("a", "Separate noise: octahedron", "tips at 3"),
        ("c", "Gaussian noise: ball", "1.73 all around"),
        ("b", "Box noise: box", "sides at 1"),
    )
    for number, (colour, title, reach) in enumerate(kinds):
        x, y = 108 + 212 * number, 148
        parts.append(f'<text class="title" x="{x}" y="20" text-anchor="middle">{title}</text>')
        names = (("count", 7, 4, "start"), ("sum", -9, -3, "end"), ("another sum", 0, -6, "middle"))
        for tip, (name, across, down, anchor) in zip(_TIPS[::2], names, strict=True):
            right, up, _ = seen([1.1 * t for t in tip])
            end = x + scale * right, y - scale * up
            parts.append(f'<path class="grid" d="M{x} {y}L{end[0]:.1f} {end[1]:.1f}"/>')
            where = f'x="{end[0] + across:.1f}" y="{end[1] + down:.1f}"'
            if not number:
                parts.append(f'<text {where} text-anchor="{anchor}">{name}</text>')
        parts += solid("b", (x, y), scale)
        if colour == "a":
            parts += solid("a", (x, y), scale)
        if colour == "c":
            far = f'style="fill-opacity:0.13" cx="{x}" cy="{y}" r="{scale * math.sqrt(3):.1f}"'
            parts.append(f'<circle class="c" {far}/>')
        parts.append(f'<text class="{colour}" x="{x}" y="256" text-anchor="middle">{reach}</text>')
    label = (
        "A box in an octahedron, whose tips are farthest out; the same box in a ball that goes "
        "through its corners; the box alone"
    )
    return drawing(label, parts, 640, 270)


def together() -> str:
    """The standard deviation of numbers with separate and with joint noise."""
    names = (("a", "separate", (4.3, 10.8)), ("b", "count", (7.6, 6.6)), ("c", "sum", (8.6, 3.5)))
    found = [deviations(number) for number in range(2, 11)]
    lines = [
        Line([(d, each[i]) for d, each in enumerate(found, 2)], colour, name, at, True)
        for i, (colour, name, at) in enumerate(names)
    ]
    title = "Standard deviation of a count and sums at epsilon 1, relative to what one row adds"
    panel = Panel(title, "numbers", 10, 15, lines, 2, 0, range(2, 11), (5, 10, 15))
    label = "Drawn apart, deviations grow more than twice as fast as together"
    return picture(label, [panel])


def deviations(numbers: int) -> tuple[float, float, float]:
    """Of a count that is drawn by itself at its part of epsilon 1, of one that is drawn together
    with sums, and of such a sum, relative to what one row adds at most.
    """
    frame = pl.LazyFrame(schema={"x": pl.Int64})
    people = dp.Session(epsilon=1).protect(frame, unit=dp.Rows()).drop_nulls()
    sums = [dp.sum("x", (0, 1000 + i)).alias(f"s{i}") for i in range(numbers - 1)]
    releases = people.agg(dp.count().alias("n"), *sums).plan(epsilon=1).releases
    n, s = (math.sqrt(release.noise.variance()) for release in releases[:2])
    return math.sqrt(2) * numbers, n, s / 1000


def tree() -> str:
    """Which sums of neighbouring steps make the number up to an edge, and the error up to each."""
    lines, sums = [], []
    for level in range(4):
        for node in range(2**level):
            x = (node + 0.5) * 8 / 2**level
            up = 3 - level
            if level:
                above = (node // 2 + 0.5) * 16 / 2**level
                lines.append(Line([(x, up), (above, up + 1)], "grid", ""))
            used = (level, node) in ((1, 0), (3, 4))
            sums.append(Line([(x, up)], "b" if used else "a", "", dots=True))
    lines += sums
    lines.append(Line([(0, -0.55), (5, -0.55)], "b", "up to the fifth step", (0.4, -0.95)))
    title = "Sums of neighbouring steps"
    left = Panel(title, "eight steps", 8, 3.4, lines, 0, -1.2, range(9))
    frame = pl.LazyFrame(schema={"x": pl.Int64})
    people = dp.Session(rho=1).protect(frame, unit=dp.Rows(), bounds={"x": (0, 128)}).drop_nulls()
    plan = people.dp_cdf("x", list(range(129))).plan(rho="0.02")
    rule = plan.outputs[0].error
    assert isinstance(rule, (DistributionError, RootError))
    ((_, errors),) = errors_by_edge(rule, plan.releases, Fraction(95, 100))
    found = errors.tolist()
    added = [(i, 1.96 * 5 * math.sqrt(i)) for i in range(1, 129)]  # each step has a deviation of 5
    both = [
        Line(added, "a", "steps added up", (10, 97)),
        Line(list(enumerate(found, 1))[: len(added)], "b", "the square root of sums", (60, 33)),
    ]
    title, across, xs = "95% error at rho 0.02", "up to which of 128 steps", range(0, 129, 32)
    right = Panel(title, across, 128, 125, both, 0, 0, xs, (25, 50, 75, 100, 125))
    label = (
        "A tree over eight steps, in which two of its sums make the first five; the error of steps "
        "that are added up grows like a root, that of sums of them hardly"
    )
    return picture(label, [left, right])


def rollup() -> str:
    """Errors of a roll-up: each table with noise of its own, or all from what is best to draw."""
    frame = pl.LazyFrame(schema={"country": pl.Int64, "sex": pl.Int64})
    people = dp.Session(rho=1).protect(frame, unit=dp.Rows())
    keys = {"country": range(42), "sex": [0, 1]}
    groups = people.group_by(dp.rollup("country", "sex"), keys=keys)
    plan = groups.agg(dp.count().alias("n")).plan(rho="0.02")
    rule = plan.outputs[0].error
    assert isinstance(rule, RebuiltError)
    now = [error for _, error in errors_by_set(rule, plan.releases, Fraction(95, 100))]
    apart = people.dp_count().plan(rho=Fraction(1, 150)).accuracy("len")
    (cells,) = people.dp_count().plan(rho="0.02").releases
    finest = [1.96 * math.sqrt(many * cells.noise.variance()) for many in (1, 2, 84)]
    places = (1, 2, 3)
    before, after = [(x, apart) for x in places], list(zip(places, now, strict=True))
    added = f"the finest table alone, added up ({finest[2]:.0f} for all rows)"
    lines = [
        Line(before, "a", "each table drawn apart", (1.35, apart + 0.7), True),
        Line(after, "b", "all rebuilt from what is best to draw", (2.2, 13.4), True),
        Line(list(zip(places, finest[:2], strict=False)), "c", added, (1.35, 9), True),
    ]
    title = "95% error of a roll-up of 42 countries and two sexes, at rho 0.02"
    names = ("by country and sex", "by country", "all rows")
    panel = Panel(title, "grouping set", 3.6, 20, lines, 0.6, 0, places, (5, 10, 15, 20), names)
    label = (
        "Each table by itself errs more than the same tables rebuilt from all of them; what the "
        "finest table adds up to errs least in cells and most in the total"
    )
    return picture(label, [panel])


PICTURES: dict[str, Callable[[], str]] = {
    "neighbours.svg": neighbours,
    "noise.svg": noise,
    "groups.svg": groups,
    "composition.svg": composition,
    "draws.svg": draws,
    "together.svg": together,
    "tree.svg": tree,
    "rollup.svg": rollup,
}

if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        (HERE / name).write_text(draw())
