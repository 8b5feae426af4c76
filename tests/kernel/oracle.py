"""A second judge of plans, which counts where the kernel computes.

`judge` makes small worlds: a few rows of a few individuals. In each world it does what the plan
says, in plain Python, once with and once without the rows of one individual (or with other values
in them). It subtracts, and adds up what the noise reveals of exactly this difference. Where an
epsilon follows from losses, it takes the results of all draws together (`tests.kernel.pairs`). A
plan whose draws reveal more than it states is unsafe, and the world is the proof. It never proves a
plan safe.

It knows the grammar in `dpframe.kernel.plan` and its docstrings, and none of the kernel's rules.
What the grammar leaves open (what a row-wise operation computes, which rows a limit keeps, which
rows a public frame has) is chosen by the numbers of a world, to hurt. `judge` tries worlds at
random, then changes single numbers of the worst one.
"""

from __future__ import annotations

import math
import random
import zlib
from ast import literal_eval
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import date, datetime, timedelta
from fractions import Fraction
from functools import cache, cached_property
from itertools import accumulate, combinations_with_replacement, pairwise, product
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np

from dpframe.kernel import plan as p
from tests.kernel.pairs import Pair, centre_pair, delta_of, noise_pairs, pair_of, report_pair

PARTS = 4096
"""A whole row has so many parts where rows are weighed."""
MANY = 12
"""The most rows of one individual."""
UNKNOWN = -1e6
"""The logarithm of a chance that is at most a billionth."""
SUMS = (p.Vector, p.Running, p.Nights)
"""Draws of numbers, each with its own noise."""
NIGHTS = 12
"""The most nights of a stream that are looked at."""
ORDERS = (1.0001, 2, 3, 5, 9, 17, 65)
"""Orders of the Renyi divergences that bound rho from below."""

Value: TypeAlias = object
Line: TypeAlias = dict[str, Value]
Difference: TypeAlias = dict[tuple[object, ...], list[int]]
Losses: TypeAlias = Sequence["Fraction | float"]


class Meaningless(Exception):
    """Nobody can do what the plan says."""


class Opaque(str):
    """A value of which only its text in a plan is known."""

    __slots__ = ()


class Nan:
    """Not a number. It equals itself, as a key does."""

    def __repr__(self) -> str:
        return "nan"


NAN = Nan()


@dataclass(frozen=True)
class Verdict:
    """What the worst world shows."""

    unsafe: bool
    why: str
    share: float
    """What is lost in the worst world, as a share of what the plan states."""
    seed: int
    changes: Mapping[str, int]


def judge(plan: p.Plan, worlds: int = 20, changes: int = 20, seed: int = 0) -> Verdict:
    """Look for a world in which more is lost than the plan states.

    Raises
    ------
    Meaningless
        When nobody can do what the plan says.
    """
    require_laws(plan)
    hints = Hints(plan)
    rng = random.Random(seed)
    best: tuple[float, World, str] | None = None
    for number in range(worlds + changes):
        if number < worlds or best is None:
            world = World(plan, hints, seed * 1_000_003 + number, {})
        else:
            world = best[1].changed(rng)
        share, why = world.loss()
        if best is None or share >= best[0]:
            best = share, world, why
        if share > 1:
            break
    assert best is not None
    share, world, why = best
    return Verdict(share > 1, why, share, world.seed, world.changes)


def require_laws(plan: p.Plan) -> None:
    """Require that each law is one, and fits what is drawn."""
    for draw in plan.draws:
        what, law = draw.what, draw.law
        choice = isinstance(what, (p.Choice, p.Rank, p.Ranks, p.Levels))
        match law:
            case p.Laplace(scale, fine):
                right = scale > 0 and fine >= 1 and isinstance(what, (*SUMS, p.Rank))
            case p.Gaussian(variance):
                right = variance > 0 and isinstance(what, (*SUMS, p.Rank))
            case p.Box(epsilon, widths, fineness, arches):
                right = isinstance(what, p.Vector) and not what.total
                numbers = len(what.matrix) if isinstance(what, p.Vector) else 0
                places = [place for arch in arches for place in arch]
                right = right and epsilon > 0 and fineness >= 1 and len(widths) == numbers
                right = right and min(widths, default=0) >= 0
                right = right and all(0 <= place < numbers for place in places)
                right = right and all(len({*arch}) == 3 for arch in arches)
            case p.Exact():
                right = True
            case p.Exponential(scale) | p.PermuteAndFlip(scale) | p.NoisyMax(scale):
                right = scale > 0 and choice
            case p.Staircase(rate, width, inner):
                right = isinstance(what, SUMS)
                right = right and rate > 0 and width > 0 and inner > 0
            case p.Response(epsilon):
                right = isinstance(what, p.Reports) and epsilon > 0
            case p.Geometric(epsilon, delta):
                right = isinstance(what, p.Appear) and epsilon > 0 and 0 < delta < 1
            case p.Threshold(_, earlier_draw):
                right = isinstance(what, p.Appear) and 0 <= earlier_draw < len(plan.draws)
            case p.WeighedThreshold(rounds):
                right = isinstance(what, p.Appear) and bool(rounds)
                right = right and all(variance > 0 for _, variance in rounds)
        if not right:
            raise Meaningless(f"no law: {law}")
        if isinstance(what, p.Vector):
            if not what.matrix or not what.tables:
                raise Meaningless("nothing is drawn")
            if any(len(row) != len(what.tables) for row in what.matrix):
                raise Meaningless("the matrix has another size")
    units = [n for n in nodes(plan) if isinstance(n, (p.Rows, p.Person))]
    if len({(type(unit), getattr(unit, "every", None)) for unit in units}) > 1:
        raise Meaningless("individuals of two kinds")
    if plan.composition != "sum" and (plan.measure != "rho" or plan.options):
        raise Meaningless("costs that are no rho")
    for option in plan.options:
        require_laws(option)
    unsure = max((option.delta for option in plan.options), default=Fraction())
    whole = sum((draw.delta for draw in plan.draws), unsure)
    # where draws are taken together, several may fail at once
    if whole > plan.delta and plan.composition != "numerical":
        raise Meaningless("a delta that is not stated")


# What a plan mentions


@dataclass
class Hints:
    """Values that a plan mentions, and what its columns are used for."""

    plan: p.Plan

    def __post_init__(self) -> None:
        self.places: dict[int, set[int]] = {}

    def used(self, plan: p.Plan) -> set[int]:
        """The frames that draws of a plan, or of one of its options, need."""
        if id(plan) not in self.places:
            places = {table.frame for table in plan.tables}
            for place in range(len(plan.frames) - 1, -1, -1):
                if place in places:
                    frame = plan.frames[place]
                    names = ("input", "left", "right")
                    places |= {getattr(frame, name) for name in names if hasattr(frame, name)}
            self.places[id(plan)] = places
        return self.places[id(plan)]

    @cached_property
    def numbers(self) -> list[Fraction]:
        """Where grids end, between their ends and beyond them, and whole numbers."""
        ends: list[Fraction] = []
        others = [Fraction(n) for n in (0, 1, -1, 2, 3)]
        for node in nodes(self.plan):
            match node:
                case p.Grid(step, centre, lo, hi):
                    ends += [centre + step * hi, centre + step * lo]
                    others += [centre, centre + step * (lo + 1), centre + step * (hi // 2)]
                case p.Edges(_, numbers, _) if edges := each_of(numbers):
                    middles = [(a + b) / 2 for a, b in pairwise(edges)]
                    others += [*edges[:5], *middles[:5], edges[0] - 1, edges[-1] + 1]
                case p.Points(_, low, step, count):
                    others += [low + step * i for i in range(min(count, 5))]
                case p.UpTo(_, numbers) if edges := each_of(numbers):
                    others += [*edges[:5], edges[0] - 1, edges[-1] + 1]
                case p.Between(_, numbers) if candidates := each_of(numbers):
                    others += [*candidates[:5], candidates[0] - 1, candidates[0] + Fraction(1, 3)]
        beyond = [Fraction(10**9), Fraction(-(10**9))]
        mentioned = [v for v in self.mentions if isinstance(v, Fraction)]
        return list(dict.fromkeys(ends)) * 3 + list(dict.fromkeys(others + beyond + mentioned))

    @cached_property
    def wholes(self) -> list[Fraction]:
        """The same, rounded down."""
        return [Fraction(math.floor(n)) for n in self.numbers]

    @cached_property
    def units(self) -> dict[str, p.Unit]:
        """Who is protected in each source, as the first of its scans says."""
        units: dict[str, p.Unit] = {}
        for node in nodes(self.plan):
            if isinstance(node, p.Scan):
                first = units.setdefault(node.name, node.unit)
                if isinstance(first, p.Rows) and isinstance(node.unit, p.Rows):
                    units[node.name] = min(first, node.unit, key=lambda rows: rows.contributions)
        return units

    @cached_property
    def every(self) -> str | None:
        """The calendar windows of individuals."""
        units = [node for node in nodes(self.plan) if isinstance(node, p.Person)]
        return next((unit.every for unit in units if unit.every), None)

    @cached_property
    def dates(self) -> list[date]:
        """The first days of the periods of streams, and one before them."""
        dates: list[date] = []
        for node in nodes(self.plan):
            if isinstance(node, p.Nights):
                dates += starts_of(node)
        return [dates[0] - timedelta(1), *dates * 2] if dates else []

    @cached_property
    def mentions(self) -> list[Value]:
        """Values that keys and categories name."""
        texts: list[str] = []
        for node in nodes(self.plan):
            match node:
                case p.Part(_, _, key):
                    texts += [value.value for value in key]
                case p.Values(_, listed, _):
                    texts += listed
                case p.Lit(value=value):
                    texts.append(value)
        return [value_of(text) for text in dict.fromkeys(texts)]

    @cached_property
    def uses(self) -> dict[str, str]:
        """What each column is used for."""
        uses: dict[str, str] = {}
        for node in nodes(self.plan):
            match node:
                case p.Filter(_, conditions):
                    for row in conditions:
                        if isinstance(row, p.Col):
                            uses[row.name] = "truth"
                case p.Explode(_, column, _):
                    uses[column] = "list"
                case p.Person(_, _, str(time)):
                    uses[time] = "time"
                case p.Placed(p.Col(name)) | p.Squared(p.Col(name)) | p.Paired(p.Col(name)):
                    uses[name] = "number"
                case (
                    p.Edges(p.Col(name))
                    | p.Points(p.Col(name))
                    | p.Between(p.Col(name))
                    | p.UpTo(p.Col(name))
                ):
                    uses[name] = "number"
        return uses


def nodes(value: object) -> Iterator[object]:
    """All parts of a value."""
    if isinstance(value, tuple):
        for item in value:
            yield from nodes(item)
    elif is_dataclass(value):
        yield value
        for field in fields(value):
            yield from nodes(getattr(value, field.name))


def value_of(text: str) -> Value:
    """The value that a text in a plan stands for."""
    try:
        value = literal_eval({"true": "True", "false": "False", "null": "None"}.get(text, text))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return Opaque(text)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (int, float)):
        return Fraction(value) if math.isfinite(value) else Opaque(text)
    return value if isinstance(value, str) else Opaque(text)


def text_of(value: Value) -> str:
    """How a plan writes a value."""
    if isinstance(value, Opaque):
        return str(value)
    if isinstance(value, Fraction):
        return str(value.numerator) if value.denominator == 1 else repr(float(value))
    return repr(value)


def window_of(every: str, time: Value) -> object:
    """The calendar window of a time."""
    if not isinstance(time, date):
        return time
    match every:
        case "1d":
            return (time.year, time.month, time.day)
        case "1w":
            return tuple(time.isocalendar()[:2])
        case "1mo":
            return (time.year, time.month)
        case "1q":
            return (time.year, (time.month - 1) // 3)
        case _:
            return time.year


FIRST_DAYS = {
    "1d": date(2024, 12, 31),
    "1w": date(2024, 12, 30),  # its days are in two months and years
    "1mo": date(2024, 12, 1),
    "1q": date(2024, 10, 1),
    "1y": date(2024, 1, 1),
}
DAYS = {"1d": 1, "1w": 7, "1mo": 31, "1q": 92, "1y": 366}


def calendar(operation: str, constants: str, time: Value) -> Value:
    """A part of a date, `NotImplemented` where the operation is another one."""
    if isinstance(time, date):
        match operation:
            case "dt_year":
                return Fraction(time.year)
            case "dt_month":
                return Fraction(time.month)
            case "dt_quarter":
                return Fraction((time.month + 2) // 3)
            case "dt_day":
                return Fraction(time.day)
            case "dt_weekday":
                return Fraction(time.isoweekday())
            case "dt_ordinal_day":
                return Fraction(time.timetuple().tm_yday)
            case "dt_week":
                return Fraction(time.isocalendar()[1])
            case "dt_iso_year":
                return Fraction(time.isocalendar()[0])
            case "dt_date":
                return date(time.year, time.month, time.day)
            case "dt_month_start":
                return date(time.year, time.month, 1)
            case "dt_truncate":
                for every in DAYS:
                    if constants == f'[["every","{every}"]]':
                        return Opaque(repr(window_of(every, time)))
    return NotImplemented


def starts_of(what: p.Nights) -> list[date]:
    """The first day of each period of a stream, of the first ones where there are many. No row is
    in a period that begins with no date.
    """
    try:
        day = date.fromisoformat(what.start)
    except ValueError:
        return []
    days: list[date] = []
    months = {"1mo": 1, "1q": 3, "1y": 12}.get(what.every)
    for number in range(min(what.periods, NIGHTS)):
        if months is None:
            days.append(day + timedelta(number * DAYS[what.every]))
        else:
            year, month = divmod(day.year * 12 + day.month - 1 + months * number, 12)
            days.append(date(year, month + 1, 1))
    return days


# One world


@dataclass
class Done:
    """The rows of a frame, and which of their columns say whose they are."""

    rows: list[Line]
    who: str | None
    time: str | None
    norm: Fraction | None = None

    def like(self, rows: Iterable[Line]) -> Done:
        """Other rows."""
        return Done(list(rows), self.who, self.time, self.norm)


@dataclass
class World:
    """All that a plan leaves open, chosen by numbers. A number follows from the seed and from what
    it is for, unless it is among the changes.
    """

    plan: p.Plan
    hints: Hints
    seed: int
    changes: Mapping[str, int]

    def __post_init__(self) -> None:
        self.night: int | None = None
        self.left_out: dict[int, tuple[p.Table, frozenset[object]]] = {}
        self.used: dict[str, int] = {}
        self.calls: dict[object, Value] = {}
        self.pools: dict[str, Sequence[Value]] = {}
        self.lines: dict[object, Line] = {}
        self.lists: dict[object, list[dict[Value, None]]] = {}
        self.combinations: dict[object, dict[tuple[Value, ...], None]] = {}

    def pick(self, n: int, *about: object) -> int:
        """A number below n."""
        key = repr(about)
        number = self.used.get(key)
        if number is None:
            number = self.changes.get(key)
            if number is None:
                number = zlib.crc32(f"{self.seed} {key}".encode()) >> 3
            self.used[key] = number
        return number % max(1, n)

    def changed(self, rng: random.Random) -> World:
        """A world with one or two other numbers."""
        keys = rng.choices(list(self.used), k=rng.choice((1, 1, 2)))
        others = {key: rng.randrange(1 << 29) for key in keys}
        return World(self.plan, self.hints, self.seed, {**self.changes, **others})

    def loss(self) -> tuple[float, str]:
        """What is lost, as a share of what the plan states, and where."""
        return self.lost()[1:]

    def lost(self) -> tuple[Losses, float, str]:
        """What all draws lose together, as a share, and where."""
        with_, without = self.frames(True), self.frames(False)
        spent = [self.spent(draw, with_, without) for draw in self.plan.draws]
        shares = [
            (share_of(losses, draw.cost), f"draw {number}")
            for number, (losses, draw) in enumerate(zip(spent, self.plan.draws, strict=True))
        ]
        dearest: Losses = [Fraction()]
        for number, option in enumerate(self.plan.options):
            world = World(option, self.hints, self.seed, self.changes)
            losses, share, why = world.lost()
            self.used.update(world.used)
            shares.append((share, f"option {number}, {why}"))
            dearest = losses if number == 0 else [*map(max, dearest, losses)]
        if self.plan.options:
            spent.append(dearest)
        together = [sum(each) for each in zip(*spent, strict=True)]
        if self.plan.composition == "sum":
            return (together, *max([(share_of(together, self.plan.cost), "all draws"), *shares]))
        if self.plan.composition == "numerical":
            lost = self.together(with_, without, float(self.plan.cost))
            whole = share_of_delta(lost, self.plan.delta)
            if not lost:  # so that worlds are found that move more
                whole = 1e-12 * self.together(with_, without, 0.0)
            share, why = max(shares)
            if share <= 1:
                share, why = whole, "all losses"
            return [self.plan.cost] * 2, share, why
        # all that costs rho costs as much as noise that costs no more, for which delta is known
        stated = sum((draw.cost for draw in self.plan.draws), Fraction())
        unsure = sum((draw.delta for draw in self.plan.draws), Fraction())
        left = float(self.plan.delta - unsure)
        lost = normal_delta(2 * float(stated), float(self.plan.cost))
        whole = math.inf if lost > left * (1 + 1e-9) + 1e-15 else 1.0
        return ([self.plan.cost] * 2, *max([(whole, "all draws"), *shares]))

    # Rows

    @property
    def every(self) -> str | None:
        """The calendar windows of individuals."""
        return self.hints.every

    def source(self, scan: p.Scan, present: bool) -> list[Line]:
        """The rows of a source. Scans of one source read the same rows, and the first of them says
        whose rows these are.
        """
        names = [name for name, _ in scan.columns]
        if len({*names}) != len(names):
            raise Meaningless("a column occurs twice")
        about, unit = crc(scan.name), self.hints.units[scan.name]
        others = self.pick(5, about, "others")
        rows: list[Line] = []
        match unit:
            case p.Rows(contributions):
                rows += [self.line(scan, about, "b", n) for n in range(min(others, 2))]
                most = min(MANY, contributions)
                own = most - (self.pick(6, about, "fewer") == 0 and most > 1)
                if present:
                    rows += [self.line(scan, about, "a", n) for n in range(own)]
                elif self.plan.neighbours == "change-one":
                    rows += [self.line(scan, about, "z", n) for n in range(own)]
            case p.Person(column, _, time):
                strangers = scan.owners is None and column not in names
                if strangers or (self.every and scan.owners is None and time not in names):
                    raise Meaningless("nobody knows whose rows these are")
                if others == 1:
                    rows += [self.line(scan, about, "b", n) for n in range(3)]
                if self.every and others in (2, 3):
                    rows += [self.line(scan, about, "a", n, later=True) for n in range(3)]
                own = (MANY, MANY, 9, 6, 4, 3, 2, 1, 0)[self.pick(9, about, "rows")]
                if present:
                    rows += [self.line(scan, about, "a", n) for n in range(own)]
        if self.night is None:
            return rows
        return [line for n, line in enumerate(rows) if self.there(about, n, line, unit, self.night)]

    def there(self, about: int, n: int, line: Line, unit: p.Unit, night: int) -> bool:
        """Whether a row is there on a night. Rows may come late. A row of a person stays, from the
        night on which it comes; others may be there on any nights.
        """
        match self.pick(6, about, "nights"):
            case 0 | 1:
                return True
            case 2:
                starts = self.hints.dates[1:]
                days = [starts.index(day) for day in line.values() if day in starts]  # type: ignore[arg-type]
                return night >= max(days, default=0) + self.pick(3, about, "late", n)
            case 3 if isinstance(unit, p.Rows):
                return self.pick(3, about, "there", n, night) > 0
        return night >= self.pick(NIGHTS // 2, about, "comes", n)

    def line(self, scan: p.Scan, about: int, who: str, n: int, later: bool = False) -> Line:
        """Row number n of somebody."""
        key = scan, who, n, later
        if key in self.lines:
            return self.lines[key]
        line: Line = self.lines.setdefault(key, {})
        unit = self.hints.units[scan.name]
        person, time = (unit.column, unit.time) if isinstance(unit, p.Person) else (None, None)
        for name, dtype in scan.columns:
            if name == person:
                line[name] = who
            elif self.every and name == time:
                line[name] = self.day(self.place(about, name, n), dtype, later)
            else:
                pool = self.pool(dtype)
                line[name] = pool[self.place(about, name, n, who) % len(pool)]
        if person is not None:
            line.setdefault(person, who)
        if self.every and time is not None and time not in line:
            line[time] = self.day(self.place(about, time, n), "Date", later)
        return line

    def place(self, about: int, name: str, n: int, who: str = "a") -> int:
        """Which value of its type row n has. By default values stay for a few rows and come again
        after a few, so that rows lie in few or many groups.
        """
        whose = "z" if who == "z" else "a"
        own = repr((about, name, n, whose))
        self.used[own] = 0
        if own in self.changes:
            return self.changes[own]
        stride = (1, 1, 1, 2, 3, 4, MANY, MANY)[self.pick(8, about, name, "stride", whose)]
        again = (1, 2, 2, 3, 4, MANY, MANY)[self.pick(7, about, name, "again", whose)]
        start = self.pick(1 << 20, about, name, "start", whose)
        return start + (n // stride) % again

    def day(self, number: int, dtype: str, later: bool = False) -> date:
        """A day of the window, or of a later one."""
        every = self.every or "1y"
        spread = number % (8 if every in ("1d", "1w") else DAYS[every])
        if every == "1mo":
            spread = (number * 13) % 31
        first = FIRST_DAYS[every] + timedelta(DAYS[every] if later else 0)
        days = timedelta(spread % DAYS[every])
        if dtype.startswith("Datetime"):
            hour = number % 24
            return datetime(first.year, first.month, first.day, hour) + days
        return first + days

    def pool(self, dtype: str) -> Sequence[Value]:
        """Values of a type."""
        if dtype not in self.pools:
            self.pools[dtype] = self.new_pool(dtype)
        return self.pools[dtype]

    def new_pool(self, dtype: str) -> Sequence[Value]:
        """Values of a type. A few worlds have nulls."""
        null: list[Value] = [None] if self.pick(4, dtype, "null") == 0 else []
        numbers = self.hints.numbers
        if dtype.startswith(("Int", "UInt")):
            least = 0 if dtype.startswith("UInt") else -(10**9)
            return [max(least, n) for n in self.hints.wholes] + null
        if dtype.startswith(("Float", "Decimal")):
            nans = [NAN] if dtype.startswith("Float") and null else []
            return [*numbers, *nans, *null]
        if dtype.startswith("Bool"):
            return [True, False, *null]
        if dtype.startswith("Date"):
            days: list[Value] = [self.day(n, dtype) for n in range(12)]
            if self.hints.dates and (dtype == "Date" or self.every is None):
                days = [*self.hints.dates]
            return days + null
        if dtype.startswith(("List", "Array")):
            inner = [v for v in self.pool(dtype[dtype.find("(") + 1 :]) if v is not None]
            return [self.listed(inner, n) for n in range(5)]
        words = [v for v in self.hints.mentions if isinstance(v, str)]
        return [*words * 5, *(f"w{n}" for n in range(MANY)), *null]

    def listed(self, inner: Sequence[Value], number: int) -> tuple[Value, ...]:
        """A list of values."""
        length = (MANY, MANY, 4, 2, 1, 0)[self.pick(6, "length", number)]
        again = (1, 2, MANY)[self.pick(3, "elements", number)]
        start = self.pick(len(inner), "element", number)
        return tuple(inner[(start + i % again) % len(inner)] for i in range(length))

    # Expressions

    def value(self, row: p.Row, line: Line, want: str) -> Value:
        """The value of an expression."""
        match row:
            case p.Col(name):
                if name not in line:
                    raise Meaningless(f"no column {name}")
                return line[name]
            case p.Lit(dtype, text):
                return literal(dtype, text)
            case p.Call(operation, operands, constants):
                values = tuple([self.value(operand, line, "any") for operand in operands])
                if operation == "is_not_null" and len(values) == 1:
                    return values[0] is not None
                if len(values) == 1:
                    part = calendar(operation, constants, values[0])
                    if part is not NotImplemented:
                        return part
                key = (operation, constants, values)
                if key not in self.calls:
                    self.calls[key] = self.any_value(want, *key)
                return self.calls[key]

    def any_value(self, want: str, operation: str, constants: str, values: object) -> Value:
        """What a row-wise function gives for these values: anything."""
        about: tuple[object, ...] = ("call", operation, constants)
        if self.pick(4, *about, "constant") == 0:
            values = None
        if want == "any":
            want = ("truth", "number", "key", "key")[self.pick(4, *about, "kind")]
        pool = self.wanted(want)
        return pool[self.pick(len(pool), *about, repr(values))]

    def wanted(self, want: str) -> Sequence[Value]:
        """Values of a kind."""
        match want:
            case "truth":
                return (*[True] * 8, False, None)
            case "number":
                return (*self.hints.numbers, None, NAN)
            case "list":
                return [self.listed(self.hints.numbers, n) for n in range(4)]
            case "time":
                return [self.day(n, "Date", n > 9) for n in range(12)]
        words = [f"w{n}" for n in range(MANY)]
        return [*self.hints.mentions * 4, *words, None]

    def number(self, value: Value) -> Fraction | None:
        """A value as a number; None for null and NaN."""
        if value is None or value is NAN:
            return None
        if isinstance(value, (Fraction, int)):
            return Fraction(value)
        return self.hints.numbers[crc(value) % len(self.hints.numbers)]

    # Frames

    def frames(self, present: bool) -> list[Done]:
        """All frames, with or without the individual."""
        done: list[Done] = []
        for place, frame in enumerate(self.plan.frames):
            used = place in self.hints.used(self.plan)
            done.append(self.frame(frame, done, present) if used else Done([], None, None))
        return done

    def frame(self, frame: p.Frame, done: list[Done], present: bool) -> Done:
        """The rows of a frame."""
        match frame:
            case p.Scan(_, _, unit):
                rows = self.source(frame, present)
                if isinstance(unit, p.Person):
                    return Done(rows, unit.column, unit.time if self.every else None)
                return Done(rows, None, None)
            case p.Union(left, right):
                return self.union(earlier(done, left), earlier(done, right))
            case p.Meet(left, right):
                return self.meet(frame, earlier(done, left), earlier(done, right))
        before = earlier(done, frame.input)
        if len(done) in self.left_out:
            before = before.like(self.remaining(before.rows, len(done)))
        rows = before.rows
        match frame:
            case p.Map(_, columns):
                return self.mapped(before, columns)
            case p.Filter(_, conditions):
                return before.like(
                    line
                    for line in rows
                    if all(self.value(c, line, "truth") is True for c in conditions)
                )
            case p.Part(_, by, key):
                if len(by) != len(key):
                    raise Meaningless("a key has another size")
                return before.like(
                    line
                    for line in rows
                    if [text_of(self.value(row, line, "key")) for row in by]
                    == [value.value for value in key]
                )
            case p.Without(_, by):
                return before.like(
                    line
                    for line in rows
                    if self.pick(8, "found", [self.value(row, line, "key") for row in by])
                )
            case p.Explode(_, column, most):
                return before.like(self.exploded(rows, column, most))
            case p.Lookup():
                return self.looked_up(frame, before)
            case p.KeepRows(_, n, by, first):
                lines = [
                    line
                    for whose in self.individuals(before)
                    for group in split(whose, by)
                    for line in self.ordered(group, first, whose)[: max(n, 0)]
                ]
                return before.like(lines)
            case p.KeepGroups(_, n, by, first):
                lines = []
                for whose in self.individuals(before):
                    groups = split(self.ordered(whose, first, whose), by)
                    lines += [line for group in groups[: max(n, 0)] for line in group]
                return before.like(lines)
            case p.Weigh(_, norm):
                self.individuals(before)
                norm = norm if before.norm is None else min(norm, before.norm)
                return Done(rows, before.who, before.time, norm)
            case p.OneEach(rows=counted, groups=groups, fullest=fullest, ends=ends):
                new = [counted, groups, fullest]
                new += [name for end in ends for name in (end.least, end.largest)]
                lines = [
                    self.owner(before, whose[0]) | self.numbers(new, whose)
                    for whose in self.individuals(before)
                ]
                return Done(lines, before.who, before.time)
            case p.Gather(_, by, new, _, beside):
                return before.like(self.gathered(before, by, new, beside))

    def individuals(self, done: Done) -> list[list[Line]]:
        """The rows of each individual."""
        if done.who is None:
            raise Meaningless("nobody knows whose rows these are")
        whose: dict[object, list[Line]] = {}
        for line in done.rows:
            whose.setdefault(self.individual(done, line), []).append(line)
        return list(whose.values())

    def individual(self, done: Done, line: Line) -> object:
        """Whose row it is."""
        if done.who is None or done.who not in line:
            raise Meaningless("nobody knows whose rows these are")
        if self.every is None:
            return line[done.who]
        if done.time is None or done.time not in line:
            raise Meaningless("nobody knows the window of these rows")
        return line[done.who], window_of(self.every, line[done.time])

    def owner(self, done: Done, line: Line) -> Line:
        """The columns that say whose row it is."""
        names = [name for name in (done.who, done.time) if name is not None]
        return {name: line[name] for name in names}

    def ordered(self, lines: list[Line], first: str | None, whose: list[Line]) -> list[Line]:
        """Rows of one individual in some order that depends on its rows alone."""
        if len(lines) < 2:
            return lines
        if first is not None and any(first not in line for line in lines):
            raise Meaningless(f"no column {first}")
        salt = self.pick(1 << 20, "order")
        if self.night is not None and self.pick(2, "another order each night"):
            salt = self.pick(1 << 20, "order", self.night)
        order = sorted(lines, key=lambda line: crc((salt, line)))
        return order if first is None else sorted(order, key=lambda line: in_order(line[first]))

    def numbers(self, new: Iterable[str], lines: list[Line]) -> Line:
        """Numbers that follow from rows of one individual."""
        about = crc(sorted(map(repr, lines)))
        pools = {name: self.wanted(self.hints.uses.get(name, "number")) for name in new}
        return {
            name: pool[self.pick(len(pool), "of rows", name, about)] for name, pool in pools.items()
        }

    def mapped(self, before: Done, columns: Sequence[tuple[str, p.Row]]) -> Done:
        """Rows with other columns. Whose they are is said by the same column, whatever its name."""
        names = [name for name, _ in columns]
        if len({*names}) != len(names):
            raise Meaningless("a column occurs twice")

        def follow(column: str | None) -> str | None:
            same = [name for name, row in columns if row == p.Col(str(column))]
            return column if column in same else next(iter(same), None)

        uses = self.hints.uses
        rows = [
            {name: self.value(row, line, uses.get(name, "any")) for name, row in columns}
            for line in before.rows
        ]
        return Done(rows, follow(before.who), follow(before.time), before.norm)

    def exploded(self, rows: Iterable[Line], column: str, most: int) -> Iterator[Line]:
        """One row for each element of a list."""
        for line in rows:
            if column not in line:
                raise Meaningless(f"no column {column}")
            value = line[column]
            if not isinstance(value, tuple):
                value = self.listed(self.hints.numbers, crc(value) % 5)
            for element in value[: max(most, 0)] or (None,):
                yield line | {column: element}

    def looked_up(self, frame: p.Lookup, before: Done) -> Done:
        """Rows with what a public frame says of them."""
        rows: list[Line] = []
        about = (frame.public, tuple(right for _, right in frame.on))
        most = min(MANY // 2, frame.most)
        for line in before.rows:
            if any(left not in line for left, _ in frame.on):
                raise Meaningless("no such column")
            key = [line[left] for left, _ in frame.on]
            less = self.pick(8, "matches", about, key)
            number = max(0, most - (0, 0, 0, 0, 0, 0, 1, most)[less])
            if frame.how == "anti":
                number = int(less == 0)
            number = 0 if None in key else number
            if frame.how in ("semi", "anti"):
                rows += [line] if (number > 0) == (frame.how == "semi") else []
                continue
            for match in range(number):
                rows.append(line | {n: self.public(n, about, key, match) for n in frame.new})
            if not number and frame.how == "left":
                rows.append(line | dict.fromkeys(frame.new))
        return before.like(rows)

    def public(self, name: str, about: object, key: object, match: int) -> Value:
        """A value of a public frame."""
        pool = self.wanted(self.hints.uses.get(name, "key"))
        return pool[self.pick(len(pool), "public", name, about, key, match)]

    def union(self, left: Done, right: Done) -> Done:
        """The rows of both."""
        if left.rows and right.rows and {*left.rows[0]} != {*right.rows[0]}:
            raise Meaningless("frames with other columns")
        if (left.who, left.time) != (right.who, right.time) or right.norm is not None:
            raise Meaningless("frames of other individuals")
        return left.like(left.rows + right.rows)

    def meet(self, frame: p.Meet, left: Done, right: Done) -> Done:
        """Pairs of rows of one individual."""
        if right.norm is not None:
            raise Meaningless("rows that are weighed, and others")
        rows: list[Line] = []
        theirs = [(self.individual(right, line), line) for line in right.rows]
        for line in left.rows:
            whose = self.individual(left, line)
            matches = [
                other
                for who, other in theirs
                if who == whose
                and all(same(column(line, a), column(other, b)) for a, b in frame.on)
            ]
            match frame.how:
                case "semi":
                    rows += [line] if matches else []
                case "anti":
                    rows += [] if matches else [line]
                case _:
                    new = [{to: column(m, name) for name, to in frame.new} for m in matches]
                    if not matches and frame.how == "left":
                        new = [dict.fromkeys(to for _, to in frame.new)]
                    rows += [line | more for more in new]
        return left.like(rows)

    def gathered(
        self,
        before: Done,
        by: Sequence[tuple[str, p.Row]],
        new: Sequence[tuple[str, p.Row]],
        beside: bool,
    ) -> Iterator[Line]:
        """Aggregates of an individual's rows."""
        for whose in self.individuals(before):
            groups: dict[tuple[Value, ...], list[Line]] = {}
            for line in whose:
                key = tuple([self.value(row, line, "key") for _, row in by])
                groups.setdefault(key, []).append(line)
            for key, lines in groups.items():
                numbers = self.numbers([name for name, _ in new], lines)
                if beside:
                    yield from (line | numbers for line in lines)
                else:
                    names = {name: value for (name, _), value in zip(by, key, strict=True)}
                    yield self.owner(before, lines[0]) | names | numbers

    # Tables and vectors

    def list_keys(self, keys: p.Keys, lines: Iterable[tuple[Value, ...]]) -> None:
        """List keys that rows have, as many as the plan lists. All groups of the individual may be
        found, as others may be in them.
        """
        if isinstance(keys, p.Found):
            return
        if len(keys.sizes) != 1 and len(keys.sizes) != len(keys.by):
            raise Meaningless("a number of keys is missing")
        if len(keys.sizes) == 1:
            listed = self.combinations.setdefault(keys, {})
            for key in lines:
                if len(listed) < keys.sizes[0]:
                    listed[key] = None
            return
        columns = self.lists.setdefault(keys, [{} for _ in keys.by])
        for key in lines:
            for values, size, value in zip(columns, keys.sizes, key, strict=True):
                if len(values) < size:
                    values[value] = None

    def is_listed(self, keys: p.Keys, key: tuple[Value, ...]) -> bool:
        """Whether a key is listed."""
        if isinstance(keys, p.Found):
            return True
        if len(keys.sizes) == 1:
            return key in self.combinations[keys]
        return all(v in values for v, values in zip(key, self.lists[keys], strict=True))

    def keys(self, table: p.Table, done: list[Done]) -> list[tuple[Value, ...]]:
        """The key of each row of a table."""
        rows = earlier(done, table.frame).rows
        if table.keys is None:
            return [()] * len(rows)
        by = table.keys.by
        return [tuple([self.value(row, line, "key") for _, row in by]) for line in rows]

    def cell(self, cells: p.Cells, value: Value) -> int | None:
        """The cell of a value."""
        number = None if isinstance(cells, p.Values) else self.number(value)
        match cells:
            case p.OfPeople(inner, _):
                return self.cell(inner, value)
            case p.Whole(inner):
                place = self.cell(inner, value)
                return size_of(inner) if place is None else place
            case p.UpTo(_, numbers, above):
                edges = each_of(numbers)
                if number is None:
                    return None
                below = sum(edge < number for edge in edges)
                return below if above else min(below, len(edges) - 1)
            case p.Values(_, listed, other):
                text = text_of(value)
                if text in listed:
                    return listed.index(text)
                return len(listed) if other else None
            case p.Edges(_, numbers, other):
                edges = each_of(numbers)
                if number is not None:
                    for n, (low, high) in enumerate(pairwise(edges)):
                        if low <= number < high or number == high == edges[-1]:
                            return n
                return len(edges) - 1 if other else None
            case p.Points(_, low, step, count):
                if step <= 0 or count < 1:
                    raise Meaningless("no points")
                return None if number is None else clamp(round((number - low) / step), 0, count - 1)
            case p.Between(_, numbers):
                candidates = each_of(numbers)
                if number is None:
                    return None
                below = sum(candidate < number for candidate in candidates)
                return 2 * below + (number in candidates)

    def table(
        self,
        number: int,
        done: list[Done],
        listed: Callable[[tuple[Value, ...]], bool] | None = None,
    ) -> dict[tuple[object, int], int]:
        """What rows add up to, by keys and cells."""
        table = self.plan.tables[number]
        frame = earlier(done, table.frame)
        keys, rows = self.keys(table, done), frame.rows
        if listed is not None:
            inside = [listed(key) for key in keys]
        else:
            inside = [table.keys is None or self.is_listed(table.keys, key) for key in keys]
        lines = [(k, line) for k, line, is_in in zip(keys, rows, inside, strict=True) if is_in]
        adds, cells = table.adds, table.cells
        of_people = isinstance(adds, (p.People, p.PersonRows, p.PersonTotal))
        whose: list[object] = [None] * len(lines)
        if of_people or frame.norm is not None or isinstance(cells, p.OfPeople):
            whose = [self.individual(frame, line) for _, line in lines]
        places: list[int | None] = [0] * len(lines)
        if isinstance(cells, p.OfPeople):
            totals: dict[object, Fraction] = {}
            for who, (key, line) in zip(whose, lines, strict=True):
                value = self.number(self.value(row_of(cells), line, "number"))
                if value is not None:
                    totals[who, key] = totals.get((who, key), Fraction()) + value
            places = [
                self.cell(cells.cells, totals.get((who, key)))
                for who, (key, _) in zip(whose, lines, strict=True)
            ]
        elif cells is not None:
            inner = cells.cells if isinstance(cells, p.Whole) else cells
            want, row = "key" if isinstance(inner, p.Values) else "number", row_of(cells)
            places = [self.cell(cells, self.value(row, line, want)) for _, line in lines]
        weights = self.weights(frame.norm, whose, [key for key, _ in lines], of_people)
        sums: dict[tuple[object, int], int] = {}
        if isinstance(adds, (p.Distinct, p.DistinctPersons)):
            if frame.norm is not None:
                raise Meaningless("different values that are weighed")
            if isinstance(adds, p.DistinctPersons) and frame.who is None:
                raise Meaningless("nobody knows whose rows these are")
            row = adds.row if isinstance(adds, p.Distinct) else p.Col(str(frame.who))
            seen: dict[tuple[object, int], set[Value]] = {}
            for (key, line), place in zip(lines, places, strict=True):
                one = self.value(row, line, "key")
                if place is not None and one is not None and one is not NAN:
                    seen.setdefault((key, place), set()).add(one)
            return {where: len(values) for where, values in seen.items()}
        if of_people:
            people: dict[tuple[object, object, int], list[Line]] = {}
            for who, (key, line), place in zip(whose, lines, places, strict=True):
                if place is not None:
                    people.setdefault((who, key, place), []).append(line)
            for (who, group, cell), own in people.items():
                added = self.person_adds(adds, own) * weights.get(who, 1)
                sums[group, cell] = sums.get((group, cell), 0) + added
            return sums
        for who, (key, line), place in zip(whose, lines, places, strict=True):
            if place is not None:
                added = self.row_adds(adds, line) * weights.get(who, 1)
                sums[key, place] = sums.get((key, place), 0) + added
        return sums

    def weights(
        self, norm: Fraction | None, whose: list[object], keys: list[object], once: bool
    ) -> dict[object, int]:
        """How many parts a row of each individual has."""
        if norm is None:
            return {}
        if norm < 0:
            raise Meaningless("no norm")
        counts: dict[object, dict[object, int]] = {}
        for who, key in zip(whose, keys, strict=True):
            groups = counts.setdefault(who, {})
            groups[key] = 1 if once else groups.get(key, 0) + 1
        room = math.floor(norm * PARTS) ** 2
        return {
            who: min(PARTS, math.isqrt(room // sum(n * n for n in groups.values())))
            for who, groups in counts.items()
        }

    def row_adds(self, adds: p.Adds, line: Line) -> int:
        """What one row adds."""
        match adds:
            case p.One():
                return 1
            case p.Valued(row):
                return int(self.value(row, line, "number") not in (None, NAN))
            case p.Placed(row) | p.Squared(row):
                return numbered(adds, self.number(self.value(row, line, "number")), None)
            case p.Paired(row, _, other):
                value = self.number(self.value(row, line, "number"))
                return numbered(adds, value, self.number(self.value(other, line, "number")))
        raise AssertionError(adds)

    def person_adds(self, adds: p.Adds, lines: list[Line]) -> int:
        """What an individual adds to a group and cell in which it has these rows."""
        match adds:
            case p.People():
                return 1
            case p.PersonRows(row, most):
                if row is not None:
                    values = [self.value(row, line, "number") for line in lines]
                    return min(most, sum(v is not None and v is not NAN for v in values))
                return min(most, len(lines))
            case p.PersonTotal(of):
                other = of.other if isinstance(of, p.Paired) else None
                totals: list[Fraction | None] = []
                for row in (of.row, other):
                    if row is None:
                        totals.append(None)
                        continue
                    found = [self.number(self.value(row, line, "number")) for line in lines]
                    numbers = [value for value in found if value is not None]
                    totals.append(sum(numbers, Fraction()) if numbers else None)
                return numbered(of, *totals)
        raise AssertionError(adds)

    def vector(self, what: p.Vector, done: list[Done]) -> Difference:
        """The numbers of each group, and their sum."""
        shapes = {self.shape(table) for table in what.tables}
        if len(shapes) != 1:
            raise Meaningless("tables with other keys")
        (_, keys, _) = next(iter(shapes))
        if any(not 0 <= k < (0 if keys is None else len(keys.by)) for k in what.kept):
            raise Meaningless("no key column")
        if what.run < 0:
            raise Meaningless("no run")
        numbers: Difference = {}
        for column, table in enumerate(what.tables):
            for (key, cell), value in self.table(table, done).items():
                run = cell // what.run if what.run else 0
                assert isinstance(key, tuple)
                where = tuple(key[k] for k in what.kept), run
                entry = numbers.setdefault(where, [0] * len(what.matrix))
                for j, row in enumerate(what.matrix):
                    entry[j] += row[column] * value
        if what.total:
            numbers["total",] = [sum(map(sum, numbers.values()))]
        return numbers

    def shape(self, table: int) -> tuple[int, p.Keys | None, object]:
        """What the tables of a vector have in common."""
        if not 0 <= table < len(self.plan.tables):
            raise Meaningless("no table")
        it = self.plan.tables[table]
        return it.frame, it.keys, it.cells

    def spent(self, draw: p.Draw, with_: list[Done], without: list[Done]) -> Losses:
        """What a draw loses, in both directions: exactly epsilon, or a lower bound of rho for each
        order of a divergence.
        """
        what = draw.what
        for table in tables_of(what):
            keys = self.plan.tables[self.checked(table)].keys
            if keys is not None and not isinstance(what, p.Nights):
                here = self.plan.tables[table]
                self.list_keys(keys, self.keys(here, with_) + self.keys(here, without))
        if isinstance(what, (p.Choice, p.Rank, p.Ranks, p.Levels)):
            pairs = self.chances(what, draw.law, with_, without)
            if self.plan.measure == "mu_squared":
                joint = joined([pair for pair in pairs if pair[0] != pair[1]])
                return [mu_squared_of(*joint), mu_squared_of(joint[1], joint[0])]
            if self.plan.measure == "epsilon":
                return [
                    sum(largest_ratio(*pair) for pair in pairs),
                    sum(largest_ratio(b, a) for a, b in pairs),
                ]
            one = [sum(divergence(a, b, order) for a, b in pairs) for order in ORDERS]
            return one + [sum(divergence(b, a, order) for a, b in pairs) for order in ORDERS]
        if isinstance(what, p.Appear):
            return self.appeared(draw, what, with_, without)
        if isinstance(what, p.Reports):
            return self.reported(what, draw.law, with_, without)
        moved = self.moves(what, with_, without)
        if self.plan.measure == "epsilon" and isinstance(draw.law, p.Gaussian):
            return self.failed(draw, draw.law, moved)
        if self.plan.measure == "epsilon":
            return [sum((epsilon_of(draw.law, moves) for moves in moved), Fraction())] * 2
        if self.plan.measure == "mu_squared":
            return [sum(mu_of_noise(draw.law, moves) for moves in moved)] * 2
        return [sum(rho_of(draw.law, moves, order) for moves in moved) for order in ORDERS] * 2

    def moves(
        self, what: p.Vector | p.Running | p.Nights, with_: list[Done], without: list[Done]
    ) -> list[tuple[int, ...]]:
        """How far numbers move, those of one draw of a box together."""
        if isinstance(what, p.Nights):
            one, other = self.nights(what)
        else:
            drawn = self.vector if isinstance(what, p.Vector) else self.running
            one, other = drawn(what, with_), drawn(what, without)  # type: ignore[arg-type]
        moved: list[tuple[int, ...]] = []
        for where in one | other:
            a = one.get(where) or [0] * len(other[where])
            b = other.get(where) or [0] * len(a)
            moves = tuple([x - y for x, y in zip(a, b, strict=True)])
            if any(moves):
                moved.append(moves)
        return moved

    def together(self, with_: list[Done], without: list[Done], epsilon: float) -> float:
        """The delta that all draws together have at least at an epsilon. Of groups that are found,
        either so many others are in them that they are found in any case, or nothing is seen but
        that they are found.
        """
        finders = [d for d in self.plan.draws if isinstance(d.what, p.Appear)]
        others = [d for d in self.plan.draws if not isinstance(d.what, p.Appear)]
        pairs = [self.pairs(draw, with_, without) for draw in others]
        delta = delta_of([pair for each in pairs for pair in each], epsilon)
        if not finders:
            return delta
        alone = [self.pairs(draw, with_, without) for draw in finders]
        for draw, each in zip(others, pairs, strict=True):
            keys = [self.plan.tables[table].keys for table in tables_of(draw.what)]
            if not any(isinstance(key, p.Found) for key in keys):
                alone.append(each)
        return max(delta, delta_of([pair for each in alone for pair in each], epsilon))

    def pairs(self, draw: p.Draw, with_: list[Done], without: list[Done]) -> list[Pair]:
        """Pairs of which the results of a draw are made, or some of them."""
        what, law = draw.what, draw.law
        match what:
            case p.Choice() | p.Rank() | p.Ranks() | p.Levels():
                return [pair_of(*pair) for pair in self.chances(what, law, with_, without)]
            case p.Reports():
                assert isinstance(law, p.Response)
                sides = self.reporting(what, with_, without).values()
                size = size_of(self.plan.tables[what.table].cells)
                found = [report_pair(law, size, *counts) for counts in sides]
                return [pair for pair in found if pair is not None]
            case p.Appear():
                return self.appearing(what, law, with_, without)
        moved = self.moves(what, with_, without)
        if isinstance(law, p.Box) and law.arches:
            radii = [radius for moves in moved if (radius := radius_of(law, moves)) is not None]
            found = [centre_pair(law, radius) for radius in radii]
            return [pair for pair in found if pair is not None]
        return [pair for moves in moved for pair in noise_pairs(law, moves)]

    def appearing(
        self, what: p.Appear, law: p.Law, with_: list[Done], without: list[Done]
    ) -> list[Pair]:
        """Pairs of which groups appear."""
        if isinstance(law, p.WeighedThreshold):
            results = self.found(what.table, law, 0, frozenset())
            return [pair_of(*zip(*results, strict=True))]
        if isinstance(law, p.Threshold):
            appear = self.alone(what, law, with_, without)
            return [pair_of(map(log_of, (appear, 1 - appear)), (-math.inf, 0.0))]
        assert isinstance(law, p.Geometric)
        return [
            pair_of(*([log_of(chance), log_of(1 - chance)] for chance in pair))
            for pair in self.appearances(what, law, with_, without)
        ]

    def failed(self, draw: p.Draw, law: p.Gaussian, moved: Sequence[tuple[int, ...]]) -> Losses:
        """The stated epsilon where all numbers that move together have at most the stated delta,
        by the first few of them; infinity where they have more.
        """
        far = int(9 * float(law.sigma_squared) ** 0.5) + 2
        every = [move for moves in moved for move in moves if move]
        moves = sorted(every, key=abs, reverse=True)[: 3 if far < 8 else 2 if far < 40 else 1]
        if not moves:
            return self.nothing()
        if far + max(map(abs, moves)) > 20_000:
            return [draw.cost] * 2
        laws = [(gaussian_chances(law, 0, far, m), gaussian_chances(law, m, far, m)) for m in moves]
        one, other = laws[0]
        for a, b in laws[1:]:
            one, other = np.outer(one, a).ravel(), np.outer(other, b).ravel()
        grown = math.exp(min(float(draw.cost), 500.0))
        lost = float(np.maximum(one - grown * other, 0.0).sum())
        safe = lost <= float(draw.delta) * (1 + 1e-6) + 1e-12
        return [draw.cost if safe else math.inf] * 2

    def nights(self, what: p.Nights) -> tuple[Difference, Difference]:
        """The sums of all nights, each of the rows of its night, on both sides."""
        table, starts = self.plan.tables[what.table], starts_of(what)
        keys = table.keys
        if not isinstance(keys, p.Listed) or not keys.by or what.periods < 1:
            raise Meaningless("no periods")
        if len(keys.sizes) == 1:
            number, rest = divmod(keys.sizes[0], what.periods)
        else:
            number, rest = math.prod(keys.sizes[:-1]), keys.sizes[-1] - what.periods
        if rest or (len(keys.sizes) == 1) < (len(keys.sizes) != len(keys.by)):
            raise Meaningless("other keys than the periods")
        if isinstance(what.sums, p.Tree) and (what.sums.branching < 1 or what.sums.levels < 1):
            raise Meaningless("no tree")
        others: dict[tuple[Value, ...], None] = {}
        row = keys.by[-1][1]

        def period(value: Value) -> int | None:
            for place, start in enumerate(starts):
                if value in (start, Opaque(repr(window_of(what.every, start)))):
                    return place
            free = isinstance(row, p.Call) and not row.operation.startswith("dt_")
            return crc(value) % len(starts) if free else None

        def listed(key: tuple[Value, ...]) -> bool:
            if period(key[-1]) is None:
                return False
            if len(others) < number:
                others[key[:-1]] = None
            return key[:-1] in others

        sides: tuple[Difference, Difference] = {}, {}
        for night in range(len(starts)):
            self.night = night
            for present, numbers in zip((True, False), sides, strict=True):
                sums: dict[tuple[object, int], dict[int, int]] = {}
                for (key, cell), value in self.table(
                    what.table, self.frames(present), listed
                ).items():
                    assert isinstance(key, tuple)
                    at = period(key[-1])
                    assert at is not None
                    here = sums.setdefault((key[:-1], cell), {})
                    here[at] = here.get(at, 0) + value
                for where, of_periods in sums.items():
                    for place, total in enumerate(drawn_on(what.sums, night, of_periods)):
                        numbers[night, place, *where] = [total]
        self.night = None
        return sides

    def nothing(self) -> Losses:
        """No loss, in both directions."""
        match self.plan.measure:
            case "epsilon":
                return [Fraction(), Fraction()]
            case "rho":
                return [0.0] * 2 * len(ORDERS)
            case _:
                return [0.0, 0.0]

    def appeared(
        self, draw: p.Draw, what: p.Appear, with_: list[Done], without: list[Done]
    ) -> Losses:
        """Infinite where it loses more than it states, with a larger probability than it states;
        nothing otherwise, as other draws of the plan do not know of probabilities.
        """
        worst: Losses = [math.inf for _ in self.nothing()]
        if what.rows < 1:
            raise Meaningless("individuals without rows")
        if isinstance(draw.law, p.Threshold):
            appear = self.alone(what, draw.law, with_, without)
            return worst if appear > float(draw.delta) * (1 + 1e-9) + 1e-12 else self.nothing()
        if isinstance(draw.law, p.WeighedThreshold):
            return self.weighed(draw, what, draw.law)
        assert isinstance(draw.law, p.Geometric)
        if self.plan.measure == "mu_squared" and draw.delta:
            return worst
        if self.plan.measure != "epsilon":
            return self.nothing()
        pairs = self.appearances(what, draw.law, with_, without)
        for a, b in ((0, 1), (1, 0)):
            unsure = 0.0
            for results in product((True, False), repeat=len(pairs)):
                one_, other_ = (
                    math.prod(
                        pair[k] if r else 1 - pair[k]
                        for pair, r in zip(pairs, results, strict=True)
                    )
                    for k in (a, b)
                )
                unsure += max(0.0, one_ - math.exp(min(float(draw.cost), 500.0)) * other_)
            if unsure > float(draw.delta) * (1 + 1e-6) + 1e-12:
                return worst
        return self.nothing()

    def alone(
        self, what: p.Appear, law: p.Threshold, with_: list[Done], without: list[Done]
    ) -> float:
        """How likely one of the groups appears that nobody else is in, at least."""
        earlier_draw = self.plan.draws[law.draw]
        if not isinstance(earlier_draw.what, p.Vector):
            raise Meaningless("no numbers of groups")
        one = self.vector(earlier_draw.what, with_)
        other = self.table(what.table, without)
        never = 1.0
        for (key, cell), number in self.table(what.table, with_).items():
            if number and not other.get((key, cell)):
                numbers = one.get((key, 0), [0])
                never *= 1 - tail_of(earlier_draw.law, law.least - numbers[0])
        return 1 - never

    def appearances(
        self, what: p.Appear, law: p.Geometric, with_: list[Done], without: list[Done]
    ) -> list[tuple[float, float]]:
        """The probabilities of the first few groups whose number of individuals changes."""
        pairs: list[tuple[float, float]] = []
        here, there = self.table(what.table, with_), self.table(what.table, without)
        for where in here | there:
            others = (0, 0, 1, 2, 5)[self.pick(5, "individuals", where)]
            numbers = [-(-side.get(where, 0) // what.rows) + others for side in (here, there)]
            pairs.append(tuple(appearance(law, n) for n in numbers))  # type: ignore[arg-type]
        return [pair for pair in pairs if pair[0] != pair[1]][:8]

    def weighed(self, draw: p.Draw, what: p.Appear, law: p.WeighedThreshold) -> Losses:
        """From the chances of all that the rounds may find."""
        results = self.found(what.table, law, 0, frozenset())
        cost, delta = float(draw.cost), float(draw.delta)
        losses: list[Fraction | float] = []
        for a, b in ((0, 1), (1, 0)):
            pairs = [(result[a], result[b]) for result in results]
            if self.plan.measure == "epsilon":
                unsure = sum(
                    -math.expm1(min(0.0, cost + q - r)) * math.exp(r) for r, q in pairs if r > q
                )
                worse = unsure > delta * (1 + 1e-6) + 1e-12
                losses.append(math.inf if worse else Fraction())
                continue
            alone = math.fsum(math.exp(r) for r, q in pairs if q == -math.inf)
            if alone > delta * (1 + 1e-6) + 1e-300:
                losses += [math.inf] * len(ORDERS)
                continue
            spare = delta * (1 + 1e-6) - alone
            shared = capped([(r, q) for r, q in pairs if q > -math.inf], spare)
            for order in ORDERS:
                terms = [order * r + (1 - order) * q for r, q in shared if r > -math.inf]
                loss = log_sum(terms) / (order - 1) / order - delta - 1e-9 if terms else 0.0
                losses.append(max(0.0, loss))
        return losses

    def found(
        self, number: int, law: p.WeighedThreshold, place: int, gone: frozenset[object]
    ) -> list[tuple[float, float]]:
        """The logarithms of the chances of all results from a round on, on both sides."""
        if place == len(law.rounds):
            return [(0.0, 0.0)]
        table = self.plan.tables[number]
        if gone:
            self.left_out = {self.before_limits(table.frame): (table, gone)}
        sides = [self.table(number, self.frames(present)) for present in (True, False)]
        self.left_out = {}
        least, variance = law.rounds[place]
        always: set[object] = set()
        chances: dict[object, list[tuple[float, float]]] = {}
        for where in sides[0] | sides[1]:
            one, other = (side.get(where) for side in sides)
            group, cell = where
            if one == other or cell:
                if self.pick(2, "found by others", group, place):
                    always.add(group)
                continue
            gap = (one or 0) - (other or 0)
            orders = (0, 1, 2, 3, 5, 9, 17, 65)
            few = self.pick(2 * len(orders), "individuals", group, place)
            others = 0
            if few < len(orders):
                others = max(1, least - (other or 0) - orders[few] * gap)
            both = [
                (-math.inf, 0.0) if n is None and not others else noisy_tail(variance, least - m)
                for n, m in ((n, (n or 0) + others) for n in (one, other))
            ]
            chances[group] = both
        groups = [*chances][:4]
        results: list[tuple[float, float]] = []
        for signs in product((0, 1), repeat=len(groups)):
            logs = [
                sum(chances[group][side][sign] for group, sign in zip(groups, signs, strict=True))
                for side in (0, 1)
            ]
            later = [(0.0, 0.0)]
            if len(groups) == len(chances) and max(logs) > -math.inf and len(groups) < 4:
                new = {group for group, sign in zip(groups, signs, strict=True) if not sign}
                later = self.found(number, law, place + 1, gone | new | always)
            results += [(logs[0] + a, logs[1] + b) for a, b in later]
        return results

    def before_limits(self, place: int) -> int:
        """The first of the steps that limit or weigh individuals, or else the last step."""
        first = place
        while hasattr(self.plan.frames[place], "input"):
            if isinstance(self.plan.frames[place], (p.KeepRows, p.KeepGroups, p.Weigh)):
                first = place
            elif isinstance(self.plan.frames[place], (p.OneEach, p.Gather)) and first != place:
                break
            place = self.plan.frames[place].input  # type: ignore[union-attr]
        return first

    def remaining(self, rows: Iterable[Line], place: int) -> Iterator[Line]:
        """Rows before a step that are not in groups of earlier rounds."""
        table, gone = self.left_out[place]
        steps: list[p.Frame] = []
        at = table.frame
        while at >= place:
            steps.insert(0, self.plan.frames[at])
            at = getattr(self.plan.frames[at], "input", -1)
        assert table.keys is not None
        for line in rows:
            done = Done([line], None, None)
            for step in steps:
                match step:
                    case p.Map(_, columns):
                        done = self.mapped(done, columns)
                    case p.Explode(_, name, most):
                        done = done.like(self.exploded(done.rows, name, most))
                    case p.Lookup():
                        done = self.looked_up(step, done)
            keys = [
                tuple([self.value(row, each, "key") for _, row in table.keys.by])
                for each in done.rows
            ]
            if not any(key in gone for key in keys):
                yield line

    def reported(
        self, what: p.Reports, law: p.Law, with_: list[Done], without: list[Done]
    ) -> Losses:
        """By the event that all rows of a group report one cell."""
        assert isinstance(law, p.Response)
        counts = self.reporting(what, with_, without)
        losses = [*self.nothing()]
        for one, other in counts.values():
            if sum(one.values()) != sum(other.values()):
                return [math.inf for _ in losses]
            for side, (a, b) in enumerate(((one, other), (other, one))):
                most = max((n - b.get(cell, 0) for cell, n in a.items()), default=0)
                if self.plan.measure == "epsilon":
                    losses[side] += most * law.epsilon
        return losses

    def reporting(
        self, what: p.Reports, with_: list[Done], without: list[Done]
    ) -> dict[object, list[dict[int, int]]]:
        """How many rows are in each cell of each group, on both sides."""
        counts: dict[object, list[dict[int, int]]] = {}
        for side, done in enumerate((with_, without)):
            for (key, cell), number in self.table(what.table, done).items():
                counts.setdefault(key, [{}, {}])[side][cell] = number
        return counts

    def running(self, what: p.Running, done: list[Done]) -> Difference:
        """Sums of a cell and those before it."""
        size = size_of(self.plan.tables[what.table].cells)
        numbers: Difference = {}
        for (key, cell), value in self.table(what.table, done).items():
            sums = numbers.setdefault((key,), [0] * size)
            for later, factor in enumerate(what.column[: size - cell]):
                sums[cell + later] += factor * value
        return {(*key, n): [v] for key, sums in numbers.items() for n, v in enumerate(sums)}

    def chances(
        self,
        what: p.Choice | p.Rank | p.Ranks | p.Levels,
        law: p.Law,
        with_: list[Done],
        without: list[Done],
    ) -> list[tuple[list[float], list[float]]]:
        """What each choice takes, and with what chances on either side."""
        pairs: list[tuple[list[float], list[float]]] = []
        sides = [self.scores(what, done) for done in (with_, without)]
        rounds = what.rounds if isinstance(what, p.Choice) else 1
        for where in sides[0] | sides[1]:
            base = self.scores_of(what, where, [0] * self.candidates(what))
            one, other = (side.get(where, base) for side in sides)
            noisy = isinstance(law, (p.Laplace, p.Gaussian)) and isinstance(what, p.Rank)
            if noisy and isinstance(self.plan.tables[what.table].cells, p.Between):  # type: ignore[union-attr]
                # scores of listed candidates have noise: cells between them never win
                one, other = one[1::2], other[1::2]
            if one != other:
                pairs.append((law_of(law, one, rounds), law_of(law, other, rounds)))
        return pairs

    def candidates(self, what: p.Choice | p.Rank | p.Ranks | p.Levels) -> int:
        """How many numbers a choice looks at."""
        if not isinstance(what, p.Choice):
            return size_of(self.plan.tables[what.table].cells)
        table = self.plan.tables[self.checked(what.tables[0])]
        match what.among:
            case "tables":
                return len(what.tables)
            case "groups":
                sizes = table.keys.sizes if isinstance(table.keys, p.Listed) else (0,)
                return math.prod(sizes)
        return size_of(table.cells)

    def scores(
        self, what: p.Choice | p.Rank | p.Ranks | p.Levels, done: list[Done]
    ) -> dict[object, list[int]]:
        """The scores of all candidates, for each choice. Other individuals add to them, too."""
        number = self.candidates(what)
        if not 0 < number <= 200:
            return {}  # not judged
        tables = what.tables if isinstance(what, p.Choice) else (what.table,)
        among = what.among if isinstance(what, p.Choice) else "cells"
        if len({self.shape(t) for t in tables}) != 1 or (among != "tables" and len(tables) > 1):
            raise Meaningless("tables with other keys")
        if among != "cells" and self.plan.tables[tables[0]].cells is not None:
            raise Meaningless("a choice of cells among others")
        numbers: dict[object, list[int]] = {}
        group: object
        for place, table in enumerate(tables):
            for (key, cell), value in self.table(table, done).items():
                if among == "groups":
                    keys = self.plan.tables[table].keys
                    if not isinstance(keys, p.Listed):
                        raise Meaningless("a choice of a group of none")
                    group, candidate = "all", self.index(keys, key)
                else:
                    group, candidate = key, place if among == "tables" else cell
                numbers.setdefault(group, [0] * number)[candidate] += value
        return {group: self.scores_of(what, group, each) for group, each in numbers.items()}

    def index(self, keys: p.Listed, key: object) -> int:
        """The place of a listed key."""
        assert isinstance(key, tuple)
        if len(keys.sizes) == 1:
            return [*self.combinations[keys]].index(key)
        place = 0
        for values, size, value in zip(self.lists[keys], keys.sizes, key, strict=True):
            place = place * size + [*values].index(value)
        return place

    def scores_of(
        self, what: p.Choice | p.Rank | p.Ranks | p.Levels, group: object, own: list[int]
    ) -> list[int]:
        """The scores of numbers to which other individuals add."""
        tables = what.tables if isinstance(what, p.Choice) else (what.table,)
        grids = [node for node in nodes(self.plan.tables[tables[0]].adds) if type(node) is p.Grid]
        sign = -1 if grids and grids[0].hi <= 0 else 1
        more = (0, 0, 0, 1, 2, 5, 50, 1000)
        others = [sign * more[self.pick(8, "others", group, n)] for n in range(len(own))]
        counts = [a + b for a, b in zip(own, others, strict=True)]
        match what:
            case p.Rank(_, q):
                a, b, n = q.numerator, q.denominator, sum(counts)
                upto = [*accumulate(counts)]
                return [
                    -max(a * n - b * u, b * (u - c) - a * n, 0)
                    for u, c in zip(upto, counts, strict=True)
                ]
            case p.Ranks(_, quantiles):
                shares = (Fraction(), *quantiles, Fraction(1))
                parts = [high - low for low, high in pairwise(shares)]
                m = math.lcm(*(q.denominator for q in quantiles))
                n, upto = sum(counts), [*accumulate(counts)]
                scores: list[int] = []
                for cells in combinations_with_replacement(range(len(counts)), len(quantiles)):
                    ends = [0, *(upto[cell] for cell in cells), n]
                    rows = [high - low for low, high in pairwise(ends)]
                    far = sum(abs(r - d * n) for r, d in zip(rows, parts, strict=True))
                    scores.append(-int(m * far))
                return scores
            case p.Levels():
                return [0]  # not judged
            case p.Choice():
                return counts

    def checked(self, table: int) -> int:
        self.shape(table)
        return table


def tables_of(what: p.What) -> tuple[int, ...]:
    """The tables that a draw needs."""
    return what.tables if isinstance(what, (p.Vector, p.Choice)) else (what.table,)


def row_of(cells: p.Cells) -> p.Row:
    """The expression that says which cell a row is in."""
    return row_of(cells.cells) if isinstance(cells, (p.Whole, p.OfPeople)) else cells.row


def each_of(numbers: p.Numbers) -> tuple[Fraction, ...]:
    """Edges or candidates one by one."""
    match numbers:
        case p.Progression(first, step, count):
            return tuple(first + step * n for n in range(count))
        case p.Ratios(_, 0):
            raise Meaningless("numbers over nothing")
        case p.Ratios(numerators, denominator):
            return tuple(Fraction(n, denominator) for n in numerators)
        case _:
            return numbers


def size_of(cells: p.Cells | None) -> int:
    """How many cells there are."""
    match cells:
        case None:
            return 1
        case p.Whole(inner):
            return size_of(inner) + 1
        case p.OfPeople(inner):
            return size_of(inner)
        case p.Edges(_, edges, other):
            return max(0, len(each_of(edges)) - 1) + other
        case p.Values(_, listed, other):
            return len(listed) + other
        case p.Points(_, _, _, count):
            return count
        case p.Between(_, candidates):
            return 2 * len(each_of(candidates)) + 1
        case p.UpTo(_, edges, above):
            return len(each_of(edges)) + above


def earlier(done: list[Done], place: int) -> Done:
    """An earlier frame."""
    if not 0 <= place < len(done):
        raise Meaningless("no frame")
    return done[place]


def column(line: Line, name: str) -> Value:
    """The value of a column."""
    if name not in line:
        raise Meaningless(f"no column {name}")
    return line[name]


def same(a: Value, b: Value) -> bool:
    """Whether values of two keys are equal."""
    return a is not None and a == b


def in_order(value: Value) -> tuple[bool, object]:
    """A key that sorts dates by time, and other values somehow."""
    return (False, value) if isinstance(value, date) else (True, repr(value))


def split(lines: list[Line], by: Sequence[str]) -> list[list[Line]]:
    """Rows by the values of columns."""
    groups: dict[tuple[Value, ...], list[Line]] = {}
    for line in lines:
        groups.setdefault(tuple([column(line, name) for name in by]), []).append(line)
    return list(groups.values())


def crc(value: object) -> int:
    """A number that follows from a value."""
    return zlib.crc32(repr(value).encode()) >> 3


def clamp(n: int, lo: int, hi: int) -> int:
    """The nearest number from lo to hi."""
    return min(max(n, lo), hi)


@cache
def literal(dtype: str, text: str) -> Value:
    """A constant."""
    return value_of(text)


def numbered(
    adds: p.Placed | p.Squared | p.Paired, value: Fraction | None, other: Fraction | None
) -> int:
    """The number of a value on a grid, or what its square adds."""
    grid = adds.grid
    if grid.step <= 0 or grid.lo > grid.hi:
        raise Meaningless("no grid")
    if value is None:
        return 0
    if isinstance(adds, p.Paired):
        if other is None:
            return 0
        factor = min(factor_within(value, grid), factor_within(other, adds.other_grid))
        value = value * factor
    s = clamp(round((value - grid.centre) / grid.step), grid.lo, grid.hi)
    if not isinstance(adds, p.Squared):
        return s
    if adds.shift < 0:
        raise Meaningless("no shift")
    h = max(abs(grid.lo), abs(grid.hi))
    top = max(1, h**2 >> adds.shift)
    if not adds.shift:
        return 2 * s**2 - top
    return 2 * min(top, (s**2 >> adds.shift) + 1) - top


def factor_within(value: Fraction, grid: p.Grid) -> Fraction:
    """The largest factor up to 1 that brings a value within a grid."""
    low, high = grid.centre + grid.lo * grid.step, grid.centre + grid.hi * grid.step
    if low <= value <= high or not value:
        return Fraction(1)
    end = high if value > high else low
    return max(Fraction(), min(Fraction(1), end / value))


def drawn_on(sums: p.Root | p.Tree, night: int, periods: Mapping[int, int]) -> list[int]:
    """The sums that a night draws."""
    if isinstance(sums, p.Root):
        column = sums.column[: night + 1]
        return [sum(f * periods.get(night - age, 0) for age, f in enumerate(column))]
    totals: list[int] = []
    for level in range(min(sums.levels, 2 * NIGHTS)):
        width = sums.branching**level
        if width > night + 1:
            break
        first = night + 1 - width if (night + 1) % width == 0 else night + 1
        totals.append(sum(periods.get(n, 0) for n in range(first, night + 1)))
    return totals


# What noise reveals


def share_of(lost: Sequence[Fraction | float], stated: Fraction) -> float:
    """What is lost at most, as a share of what is stated: above 1 where it is more."""
    worst = 0.0
    for loss in lost:
        if loss <= 0:
            continue
        if stated <= 0 or loss == math.inf:
            return math.inf
        if isinstance(loss, Fraction):
            ratio = float(loss / stated)
            ratio = max(ratio, 1 + 1e-12) if loss > stated else min(ratio, 1.0)
        else:
            ratio = loss / float(stated)
            ratio = min(ratio, 1.0) if ratio < 1 + 1e-7 else ratio
        worst = max(worst, ratio)
    return worst


def share_of_delta(lost: float, stated: Fraction) -> float:
    """A delta that is never too large, as a share of the stated one: above 1 where it is more."""
    share = lost / max(float(stated), 1e-300)
    return min(share, 1.0) if share < 1 + 1e-9 else share


def log_of(chance: float) -> float:
    """The logarithm of a chance."""
    return math.log(chance) if chance > 0 else -math.inf


def tail_of(law: p.Law, least: int) -> float:
    """A lower bound of the probability that noise is at least this."""
    match law:
        case p.Laplace(scale, 1):
            q = math.exp(-1 / float(scale))
            return q**least / (1 + q) if least > 0 else 1 - q ** (1 - least) / (1 + q)
        case p.Exact():
            return float(least <= 0)
    return 0.0


@cache
def noisy_tail(variance: Fraction, least: int) -> tuple[float, float]:
    """The logarithms of the chances that Gaussian noise is at least this, and that it is less."""
    if least <= 0:
        more, less = noisy_tail(variance, 1 - least)
        return less, more
    sigma = math.sqrt(variance)
    if sigma > 10**5:
        z = (least - 0.5) / sigma
        tail = math.log(math.erfc(z / math.sqrt(2)) / 2) if z < 30 else -math.inf
        return (tail, math.log1p(-math.exp(tail))) if z < 30 else (-(z**2) / 2 - 5, 0.0)
    far = min(int(12 * sigma), int(60 * float(variance) / least)) + 10
    rest = np.arange(least, least + far, dtype=float)
    every = np.arange(1, int(12 * sigma) + 10, dtype=float)
    whole = math.log(1 + 2 * float(np.exp(-(every**2) / 2 / float(variance)).sum()))
    exponents = -(rest**2) / 2 / float(variance)
    tail = float(exponents[0]) + math.log(float(np.exp(exponents - exponents[0]).sum())) - whole
    return tail, math.log1p(-math.exp(tail))


def capped(pairs: Sequence[tuple[float, float]], spare: float) -> list[tuple[float, float]]:
    """The same chances, but the first ones are lower by `spare` together: where they are the
    largest multiples of the second ones. Any other way to leave something out reveals more.
    """
    ordered = sorted(pairs, key=lambda pair: pair[1] - pair[0])
    if not spare:
        return ordered
    mass, others = 0.0, -math.inf
    for place, (one, other) in enumerate(ordered, 1):
        mass, others = mass + math.exp(one), float(np.logaddexp(others, other))
        following = ordered[place:]
        ratio = following[0][0] - following[0][1] if following else -math.inf
        if mass > spare and mass - math.exp(min(0.0, ratio + others)) >= spare:
            top = math.log(mass - spare) - others
            return [(min(top + q, r), q) for r, q in ordered[:place]] + following
    return []


@cache
def appearance(law: p.Geometric, n: int) -> float:
    """The probability with which a group of n individuals appears."""
    if n <= 0:
        return 0.0
    before, grown = appearance(law, n - 1), math.exp(min(float(law.epsilon), 500.0))
    delta = float(law.delta)
    return min(grown * before + delta, 1 - (1 - before - delta) / grown, 1.0)


def law_of(law: p.Law, scores: Sequence[int], rounds: int) -> list[float]:
    """The logarithms of the chances of all results: candidates, or in rounds sequences of them."""
    if rounds < 1:
        raise Meaningless("a choice in no round")
    rounds = min(rounds, len(scores))
    once = chances_of(law, tuple(scores))
    if rounds == 1:
        return once
    if len(scores) ** rounds > 300:
        return [0.0]  # not judged
    together: list[float] = []
    for place, chance in enumerate(once):
        rest = law_of(law, (*scores[:place], *scores[place + 1 :]), rounds - 1)
        together += [chance + other for other in rest]
    return together


@cache
def chances_of(law: p.Law, scores: tuple[int, ...]) -> list[float]:
    """The logarithm of the chance of each candidate."""
    best = max(scores)
    match law:
        case p.Exact():
            return [
                0.0 if place == scores.index(best) else -math.inf for place in range(len(scores))
            ]
        case p.Exponential(scale):
            logs = [(score - best) / float(scale) for score in scores]
            every = log_sum(logs)
            return [log - every for log in logs]
        case p.PermuteAndFlip(scale):
            # Candidates come at even times from 0 to 1. One is taken when it is the first to pass.
            logs = [(score - best) / float(scale) for score in scores]
            passes = np.exp(np.array(logs))
            times, weights = np.polynomial.legendre.leggauss(len(scores) // 2 + 2)
            fails = 1 - (times[:, None] + 1) / 2 * passes
            taken: list[float] = []
            for place, log in enumerate(logs):
                rest = np.delete(fails, place, axis=1).prod(axis=1)
                taken.append(log + math.log(float((weights / 2 * rest).sum())))
            return taken
        case p.NoisyMax(scale) | p.Laplace(scale, 1):
            far = int(40 * scale) + 60
            return winners(scores, lambda x: -np.abs(x) / float(scale), far)
        case p.Laplace(scale, fine):
            if fine % 2 == 0:
                return [0.0] * len(scores)  # which way a half is rounded is not said
            half, step = fine // 2, -1 / (float(scale) * fine)
            centre = log_sum([0.0, *(step * i + math.log(2) for i in range(1, half + 1))])
            first = log_sum([step * i for i in range(half + 1, half + fine + 1)])
            far = int(40 * scale) + 60
            return winners(
                scores,
                lambda x: np.where(
                    x == 0, centre, first - (np.maximum(np.abs(x), 1) - 1) / float(scale)
                ),
                far,
            )
        case p.Gaussian(variance):
            far = int(12 * math.sqrt(variance)) + 60
            return winners(scores, lambda x: -(x**2) / 2 / float(variance), far)
    raise Meaningless("no choice")


def winners(scores: Sequence[int], weigh: Callable[[Any], Any], far: int) -> list[float]:
    """The logarithm of the chance that each score is the largest one, with noise that has these
    logarithms of weights, and is hardly ever larger than `far`. Of equal ones the first is taken.
    """
    low, high = min(scores) - far, max(scores) + far
    if (high - low) * len(scores) > 400_000 or far > 4000:
        return [-math.log(len(scores))] * len(scores)  # not judged
    reach = high - low
    logs = weigh(np.arange(-reach, reach + 1, dtype=float))
    logs = logs - log_sum_of(logs)
    below = np.logaddexp.accumulate(logs)
    above = np.logaddexp.accumulate(logs[::-1])[::-1]
    sure = np.log1p(-np.exp(np.minimum(np.append(above[1:], -np.inf), -1e-15)))
    upto = np.where(below < math.log(0.5), below, sure)
    values = np.arange(low, high + 1)
    places = [values - score + reach for score in scores]
    at_most = np.array([upto[place] for place in places])
    less = np.array([upto[np.maximum(place - 1, 0)] for place in places])
    sums = at_most.sum(axis=0)
    chances: list[float] = []
    for place in range(len(scores)):
        chances.append(log_sum_of(sums - at_most[place] + logs[places[place]]))
        sums = sums - at_most[place] + less[place]
    return chances


def log_sum_of(logs: Any) -> float:
    """The logarithm of a sum."""
    most = float(np.max(logs))
    return most + math.log(float(np.exp(logs - most).sum()))


def largest_ratio(one: Sequence[float], other: Sequence[float]) -> float:
    """The largest logarithm of a ratio of chances."""
    if len(one) != len(other):
        return 0.0
    return max([a - b for a, b in known_chances(one, other)], default=0.0)


def known_chances(one: Sequence[float], other: Sequence[float]) -> list[tuple[float, float]]:
    """Pairs of chances. Where the first is too small to be known the pair is left out, and where
    the second is, it is at most a billionth.
    """
    pairs = [(a, b) for a, b in zip(one, other, strict=False) if a > UNKNOWN]
    return [(a, b if b > UNKNOWN or b == -math.inf else math.log(1e-9)) for a, b in pairs]


def divergence(one: Sequence[float], other: Sequence[float], order: float) -> float:
    """The Renyi divergence, over the order."""
    pairs = known_chances(one, other)
    if any(b == -math.inf for _, b in pairs):
        return math.inf
    logs = [order * a + (1 - order) * b for a, b in pairs]
    return max(0.0, log_sum(logs) / (order - 1) / order - 1e-9) if logs else 0.0


def epsilon_of(law: p.Law, moves: Sequence[int]) -> Fraction | float:
    """The largest privacy loss of numbers that move so."""
    match law:
        case p.Laplace(scale):
            return Fraction(sum(map(abs, moves))) / scale
        case p.Box(epsilon, _, fineness):
            radius = radius_of(law, moves)
            return math.inf if radius is None else radius * epsilon / fineness
        case p.Staircase(rate, width, _):
            return sum((-(-abs(move) // width) * rate for move in moves), Fraction())
        case _:
            return math.inf


def radius_of(law: p.Box, moves: Sequence[int]) -> int | None:
    """N of a move: the least whole R for which it lies in the box and the hulls. None where no box
    holds it.
    """
    radius = 0
    for move, width in zip(moves, law.widths, strict=True):
        if move and not width:
            return None
        if move:
            radius = max(radius, -(-abs(move) * law.fineness // width))
    if not law.arches:
        return radius
    for arch in law.arches:
        if any(not law.widths[place] for place in arch):
            raise Meaningless("an arch without width")
        point = [Fraction(moves[place], law.widths[place]) for place in arch]
        high = max(radius, 1)
        while not in_hull(point, Fraction(high, law.fineness)):
            high *= 2
        low = radius - 1
        while high - low > 1:
            middle = (low + high) // 2
            if in_hull(point, Fraction(middle, law.fineness)):
                high = middle
            else:
                low = middle
        radius = max(radius, high)
    return radius


def in_hull(point: Sequence[Fraction], r: Fraction) -> bool:
    """Whether a point is in r times the hull of (1, t, 2 t**2 - 1), t from -1 to 1, and its mirror
    image: it is `up` times a point above the arch, and `down` times one below its mirror image.
    """
    a, x, y = point
    up, down = (r + a) / 2, (r - a) / 2
    if up < 0 or down < 0 or abs(x) > r or abs(y) > r:
        return False
    for share, rest, height in ((up, down, y), (down, up, -y)):
        far = max(Fraction(), abs(x) - rest)
        if far and (not share or far > share or height < 2 * far**2 / share - r):
            return False
    return True


def normal_delta(d_squared: float, epsilon: float) -> float:
    """Delta of continuous Gaussian noise, which costs d**2 / 2 of rho."""
    if d_squared <= 0:
        return 0.0
    d, normal = d_squared**0.5, NormalDist()
    a = epsilon / d - d / 2
    return normal.cdf(-a) - math.exp(min(epsilon, 700.0)) * normal.cdf(-a - d)


def gaussian_chances(law: p.Gaussian, centre: int, far: int, move: int) -> np.ndarray:
    """The chances of discrete Gaussian noise around a number, as far as they matter."""
    x = np.arange(-far - abs(move), far + abs(move) + 1)
    terms = np.exp(-((x - centre) ** 2) * float(1 / (2 * law.sigma_squared)))
    return np.asarray(terms / terms.sum())


def joined(pairs: Sequence[tuple[list[float], list[float]]]) -> tuple[list[float], list[float]]:
    """The logarithms of the chances of several independent choices: of the first few."""
    one, other = [0.0], [0.0]
    for a, b in pairs[:3]:
        if len(one) * len(a) > 3000 or len(a) != len(b):
            break
        one = [x + y for x in one for y in a]
        other = [x + y for x in other for y in b]
    return one, other


def mu_squared_of(one: Sequence[float], other: Sequence[float]) -> float:
    """The square of the largest z(alpha) + z(beta) over the tests that are best. Errors that are
    too small for floats are left out.
    """
    pairs = sorted(known_chances(one, other), key=lambda pair: pair[0] - pair[1])
    alpha, beta, found, normal = 0.0, 1.0, 0.0, NormalDist()
    for a, b in pairs:
        alpha, beta = alpha + math.exp(a), beta - math.exp(b)
        if 1e-5 < alpha < 1 - 1e-5 and 1e-5 < beta < 1 - 1e-5:
            found = max(found, -normal.inv_cdf(alpha) - normal.inv_cdf(beta))
    return max(0.0, found * (1 - 1e-6)) ** 2


@cache
def mu_of_noise(law: p.Law, moves: tuple[int, ...]) -> float:
    """A lower bound of the square of mu: of each number on its own."""
    found = 0.0
    for move in map(abs, moves):
        if not move or isinstance(law, p.Exact):
            found += math.inf if move else 0.0
            continue
        match law:
            case p.Gaussian(variance):
                rate, far = float(1 / (2 * variance)), int(12 * float(variance) ** 0.5) + 3
            case p.Laplace(scale, 1):
                rate, far = float(1 / scale), int(30 * scale) + 3
            case p.Staircase(rate_of, width, inner):
                rate, far = float(rate_of), inner + int(30 / rate_of + 1) * width
            case _:
                continue  # not judged
        if far + move > 2000:  # asked before numbers are made: a plan may state any scale
            continue
        logs = {}
        for x in range(-far - move, far + move + 1):
            match law:
                case p.Gaussian():
                    logs[x] = -rate * x * x
                case p.Laplace():
                    logs[x] = -rate * abs(x)
                case _:
                    logs[x] = -rate * max(0, -(-(abs(x) + 1 - inner) // width))
        whole = log_sum(logs.values())
        ones = [log - whole for log in logs.values()]
        others = [logs.get(x - move, -math.inf) - whole for x in logs]
        found += mu_squared_of(ones, others)
    return found


@cache
def rho_of(law: p.Law, moves: tuple[int, ...], order: float) -> float:
    """A lower bound of the Renyi divergence of this order, over the order. All that satisfies rho
    is at most rho, at each order.
    """
    match law:
        case p.Exact():
            return math.inf
        case p.Gaussian(variance):
            return float(sum(move * move for move in moves) / (2 * variance))
        case p.Laplace(scale, fine):
            if fine % 2 == 0:
                return 0.0  # which way a half is rounded is not said
            return sum(laplace_divergence(float(scale), fine, abs(m), order) for m in moves if m)
        case p.Box():
            return box_divergence(law, moves, order)
        case p.Staircase():
            return sum(staircase_divergence(law, abs(m), order) for m in moves if m)
    return math.inf


def staircase_divergence(law: p.Staircase, move: int, order: float) -> float:
    """Of one number, where it does not take long."""
    far = law.inner + int(40 / law.rate + 1) * law.width + move
    if far > 5000:
        return 0.0
    rate = float(law.rate)
    ones = [-rate * max(0, -(-(abs(x) + 1 - law.inner) // law.width)) for x in range(-far, far + 1)]
    others = [
        -rate * max(0, -(-(abs(x - move) + 1 - law.inner) // law.width))
        for x in range(-far, far + 1)
    ]
    terms = [order * one + (1 - order) * other for one, other in zip(ones, others, strict=True)]
    return max(0.0, (log_sum(terms) - log_sum(ones)) / (order - 1) / order - 1e-9)


def laplace_divergence(scale: float, fine: int, move: int, order: float) -> float:
    """Of rounded Laplace noise, whose chances are geometric on both sides of 0."""
    half = fine // 2
    step = -1 / (scale * fine)
    log_centre = log_sum([0.0, *(step * i + math.log(2) for i in range(1, half + 1))])
    log_first = log_sum([step * i for i in range(half + 1, half + fine + 1)])
    log_ratio = -1 / scale
    log_tails = log_first - math.log(-math.expm1(log_ratio)) + math.log(2)
    log_all = log_sum([log_centre, log_tails])

    def log_chance(x: int) -> float:
        return (log_centre if not x else log_first + (abs(x) - 1) * log_ratio) - log_all

    def term(x: int) -> float:
        return order * log_chance(x) + (1 - order) * log_chance(x - move)

    rest = -math.log(-math.expm1(log_ratio))
    terms = [term(0), term(move), term(move + 1) + rest, term(-1) + rest]
    if move > 1:
        slope, number = (2 * order - 1) * log_ratio, move - 1
        run = math.expm1(slope * number) / math.expm1(slope)
        terms.append(term(1) + math.log(run))
    return max(0.0, log_sum(terms) / (order - 1) / order - 1e-9)


@cache
def box_log_centre(epsilon: Fraction, widths: tuple[int, ...], fineness: int) -> float | None:
    """A lower bound of log P(0); None where it takes too long."""
    a = float(epsilon / fineness)
    most = int(50 * (1 + len(widths)) / a) + 1
    if most > 20_000:
        return None
    logs = [sum(math.log(2 * (w * r // fineness) + 1) for w in widths) - a * r for r in range(most)]
    return -(log_sum(logs) + math.log(-math.expm1(-a)) + 1e-6)


def box_divergence(law: p.Box, moves: tuple[int, ...], order: float) -> float:
    """Of one number exactly, of several by the one event that the noise is 0."""
    radius = radius_of(law, moves)
    if radius is None:
        return math.inf
    far = int(40 * law.fineness / law.epsilon) * law.widths[0] // law.fineness + abs(moves[0])
    if len(moves) == 1 and far < 5000:
        a, w, f = float(law.epsilon / law.fineness), law.widths[0], law.fineness
        ones = [-a * -(-abs(z) * f // w) for z in range(-far, far + 1)]
        others = [-a * -(-abs(z - moves[0]) * f // w) for z in range(-far, far + 1)]
        terms = [order * one + (1 - order) * other for one, other in zip(ones, others, strict=True)]
        return max(0.0, (log_sum(terms) - log_sum(ones)) / (order - 1) / order - 1e-9)
    centre = box_log_centre(law.epsilon, law.widths, law.fineness)
    if centre is None:
        return 0.0
    loss = float(radius * law.epsilon / law.fineness)
    return max(0.0, (loss + centre / (order - 1)) / order)


def log_sum(logs: Iterable[float]) -> float:
    """The logarithm of a sum."""
    values = list(logs)
    most = max(values)
    return most + math.log(math.fsum(math.exp(value - most) for value in values))
