"""Plans over the whole grammar, made at random.

`plans` makes frames, tables, vectors and laws with random parameters, asks `verify` what the draws
cost, and states exactly that. `python -m tests.kernel.generate` prints how often each kind of node
occurs in plans that hold, and how near the second judge comes to the stated cost.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from dpframe.kernel import Plan, Refused, verify
from dpframe.kernel import plan as p
from dpframe.kernel.losses import rho_delta
from tests.kernel.oracle import FIRST_DAYS, Meaningless, judge, nodes, size_of

PLENTY = Fraction(10**30)
ONCE = Fraction(1)
QUANTILES = tuple(map(Fraction, ("1/4", "1/3", "1/2", "2/3", "9/10")))
NUMBERS = ("x", "y")
BOUNDS = ((Fraction(-1), Fraction(5, 2)), None)
"""Bounds of two aggregates of an individual's rows, which no cost depends on either."""
TOTALS = p.Grid(Fraction(1, 1024), Fraction(0), -1024, 5120)
"""How totals are added up that get a cell, which no cost depends on."""
KEYS = ("g", "h", "b")
TYPES = {
    "x": "Float64",
    "y": "Int64",
    "g": "String",
    "h": "Int64",
    "b": "Boolean",
    "l": "List(Int64)",
    "t": "Date",
    "p": "String",
}


def plans(seed: int, sample: Counter[str] | None = None) -> Iterator[Plan]:
    """Plans that hold, and state what they cost to the last digit. `sample` counts what is refused
    on the way.
    """
    rng = random.Random(seed)
    while True:
        draft = Draft(rng)
        try:
            plan = with_costs(draft.plan())
            if plan.composition == "sum" and rng.random() < 0.08:
                options = [with_costs(draft.plan()) for _ in range(rng.choice((1, 2)))]
                cost = plan.cost + max(option.cost for option in options)
                delta = plan.delta + max(option.delta for option in options)
                plan = replace(plan, options=tuple(options), cost=cost, delta=delta)
                verify(plan)  # refused where a source has other owners in an option
        except Refused as refused:
            if sample is not None:
                sample[str(refused)] += 1
            continue
        yield plan


def with_costs(plan: Plan) -> Plan:
    """The plan with exactly the costs that its draws have."""
    if plan.composition == "numerical":
        return at_losses(plan, 0.5)
    verified = verify(plan)
    exact = zip(plan.draws, verified.costs, verified.deltas, strict=True)
    draws = tuple(replace(draw, cost=cost, delta=delta) for draw, cost, delta in exact)
    cost, delta = sum(verified.costs, Fraction()), sum(verified.deltas, Fraction())
    if plan.composition == "zcdp":
        price = 4 * cost + 2  # some epsilon
        return replace(plan, draws=draws, cost=price, delta=delta + rho_delta(cost, price))
    return replace(plan, draws=draws, cost=cost, delta=delta)


def at_losses(plan: Plan, wide: float) -> Plan:
    """The plan with the costs that its draws have, an epsilon that about this many deviations of
    Gaussian noise of the same rho exceed, and the delta that follows from all losses there.
    """
    draws = tuple(highest(draw, "rho") for draw in plan.draws)
    cost, delta = PLENTY * len(draws), Fraction(len(draws) + 1)
    ample = replace(plan, draws=draws, cost=cost, delta=delta)
    exact = with_costs(replace(ample, composition="sum"))
    rho = float(min(exact.cost, PLENTY))
    epsilon = Fraction(max(1, round(64 * (rho + wide * (2 * rho) ** 0.5))), 64)
    found = replace(exact, composition="numerical", cost=epsilon, delta=Fraction(1))
    return replace(found, delta=verify(found).delta)


def highest(draw: p.Draw, measure: str) -> p.Draw:
    """The draw with costs that nothing exceeds; but where a delta follows from the epsilon."""
    depends = measure == "epsilon" and isinstance(draw.law, p.Gaussian)
    return replace(draw, cost=draw.cost if depends else PLENTY, delta=ONCE)


@dataclass(frozen=True)
class Known:
    """A frame so far: its place, its columns, and whether somebody's rows are limited."""

    place: int
    columns: tuple[str, ...]
    owned: bool = True


class Draft:
    """One plan that may hold."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.frames: list[p.Frame] = []
        self.tables: list[p.Table] = []
        self.person = rng.random() < 0.68
        self.every = rng.choice(("1d", "1w", "1mo", "1q", "1y")) if self.chance(0.25) else None
        self.rows = rng.choice((1, 1, 2, 3))
        self.measure = rng.choice(("epsilon", "epsilon", "epsilon", "rho", "rho", "mu_squared"))
        share = self.rng.random() if self.measure == "rho" else 1.0
        self.composition = "zcdp" if share < 0.25 else "numerical" if share < 0.5 else "sum"
        changes = not self.person and self.chance(0.5)
        self.neighbours = "change-one" if changes else "add-remove"
        self.new = 0

    def chance(self, share: float) -> bool:
        """True with this probability."""
        return self.rng.random() < share

    def some(self, *numbers: int) -> int:
        """One of some numbers."""
        return self.rng.choice(numbers)

    def name(self, kind: str) -> str:
        """A new column, whose name begins with its kind."""
        self.new += 1
        return f"{kind}{self.new}"

    def plan(self) -> Plan:
        """A plan with very high costs."""
        self.frames, self.tables = [], []
        ends = [self.chain() for _ in range(self.some(1, 1, 1, 2))]
        draws: list[p.Draw] = []
        for _ in range(self.some(1, 1, 2, 3)):
            if self.chance(0.12):
                draws += self.found(self.rng.choice(ends), len(draws))
            else:
                draws += self.drawn(self.rng.choice(ends))
        return Plan(
            self.neighbours,  # type: ignore[arg-type]
            tuple(self.frames),
            tuple(self.tables),
            tuple(draws),
            self.measure,  # type: ignore[arg-type]
            PLENTY * len(draws),
            Fraction(len(draws) + 1),
            (),
            self.composition,  # type: ignore[arg-type]
        )

    # Frames

    def add(self, frame: p.Frame, columns: tuple[str, ...], owned: bool = True) -> Known:
        """A new frame, or an equal one that is there."""
        if frame not in self.frames:
            self.frames.append(frame)
        return Known(self.frames.index(frame), columns, owned)

    def scan(self) -> Known:
        """A source."""
        columns = ["x", "y", "g", "h", "b", "l", "t"]
        unit: p.Unit = p.Rows(self.rows)
        if self.person:
            columns += ["p"]
            unit = p.Person("p", self.every, "t" if self.every else None)  # type: ignore[arg-type]
        types = tuple((name, TYPES[name]) for name in columns)
        owners = p.Owners("C", "h", "h") if self.person and self.chance(0.08) else None
        source = p.Scan(self.rng.choice("AB"), types, unit, owners)
        return self.add(source, tuple(columns))

    def chain(self) -> Known:
        """A frame after some steps."""
        known = self.scan()
        for _ in range(self.some(0, 1, 1, 2, 3)):
            known = self.step(known)
        if self.person and self.chance(0.9):
            known = self.limit(known)
        for _ in range(self.some(0, 0, 1, 1, 2)):
            known = self.step(known)
        return known

    def of_kind(self, known: Known, kinds: str) -> list[str]:
        """Columns by the first letter of their names."""
        return [name for name in known.columns if name[0] in kinds]

    def limit(self, known: Known) -> Known:
        """Limits of what an individual has."""
        keys = self.of_kind(known, "gh")
        self.rng.shuffle(keys)
        if self.chance(0.3) and "t" in known.columns:
            keys.insert(0, "t")
        n, by = self.some(1, 2, 3), tuple(keys[: self.some(1, 1, 2)])
        first = self.rng.choice(known.columns) if self.chance(0.2) else None
        first = "t" if "t" in keys and self.chance(0.5) else first
        at, columns = known.place, known.columns
        which = self.rng.random()
        if which < 0.3 or not by:
            by = by if self.chance(0.3) else ()
            by_values = columns[-1:] if len(columns) % 2 else None
            return self.add(p.KeepRows(at, n, by, first, by_values), columns)
        if which < 0.45:
            return self.add(p.KeepGroups(at, n, by, first), columns)
        if which < 0.8:
            known = self.add(p.KeepGroups(at, n, by, first), columns)
            if self.chance(0.2):
                known = self.step(known)
            if any(name not in known.columns for name in by):
                return known
            if self.chance(0.3):
                by = by[:1]
            return self.add(p.KeepRows(known.place, self.some(1, 2), by, None), known.columns)
        if which < 0.9:
            if self.chance(0.4):
                kept = p.KeepGroups(at, n, by, first)
                known = self.add(kept, columns)
            return self.add(p.Weigh(known.place, self.fraction()), columns)
        return self.each(known)

    def fraction(self) -> Fraction:
        """A small fraction above 0."""
        return Fraction(self.some(1, 2, 3, 4, 7, 10), self.some(1, 1, 1, 2, 3, 5))

    def each(self, known: Known) -> Known:
        """Rows of individuals in place of theirs."""
        owners = ("p", "t") if self.every else ("p",)
        if not {*owners} <= {*known.columns}:
            return known
        new = self.name("x"), self.name("g")
        if self.chance(0.4):
            ends = p.Ends("least", "largest", p.Col(known.columns[-1]), total=self.new % 2 == 0)
            by, listed = (p.Col(known.columns[0]),), (None, "digest 1")[self.new % 4 // 2]
            each = p.OneEach(known.place, by, listed, *new, "fullest", (ends,))
            return self.add(each, (*owners, *new))
        by = tuple((self.name("h"), self.key(known)) for _ in range(self.some(0, 1, 1)))
        numbers = tuple((name, p.Call("sum", (p.Col(known.columns[-1]),), "[]")) for name in new)
        beside = self.chance(0.5)
        gather = p.Gather(known.place, by, numbers, BOUNDS, beside)
        names = tuple(name for name, _ in by)
        columns = (*known.columns, *new) if beside else (*owners, *names, *new)
        return self.add(gather, columns)

    def step(self, known: Known) -> Known:
        """One more step."""
        at, columns = known.place, known.columns
        keys, which = self.of_kind(known, "ghb"), self.rng.randrange(13)
        match which:
            case 0 | 1:
                return self.mapped(known)
            case 2:
                conditions = [self.truth(known) for _ in range(self.some(1, 1, 2))]
                return self.add(p.Filter(at, tuple(conditions)), columns)
            case 3:
                by = tuple(self.key(known) for _ in range(self.some(1, 1, 2)))
                return self.add(
                    p.Part(at, by, tuple(p.Lit("", self.text(row)) for row in by)), columns
                )
            case 4:
                return self.add(p.Without(at, (self.key(known),)), columns)
            case 5 if self.of_kind(known, "l"):
                column = self.rng.choice(self.of_kind(known, "l"))
                name = self.name("y")
                known = self.add(p.Explode(at, column, self.some(1, 2, 3)), columns)
                kept = tuple((n, p.Col(n)) for n in columns if n != column)
                every = (*(n for n, _ in kept), name)
                return self.add(p.Map(known.place, (*kept, (name, p.Col(column)))), every)
            case 6 | 7 if keys:
                how = self.rng.choice(("inner", "left", "semi", "anti"))
                adds = how in ("inner", "left")
                new = (self.name("g"), self.name("x")) if adds else ()
                on = ((self.rng.choice(keys), "key"),)
                most = self.some(1, 1, 2, 3) if adds else 1
                public = self.rng.choice(("digest 1", "digest 2"))
                return self.add(p.Lookup(at, public, on, how, new, most), (*columns, *new))  # type: ignore[arg-type]
            case 8:
                return self.joined(known)
            case 9 if self.person:
                return self.limit(known)
            case 10 if self.person:
                return self.each(known)
            case 11:
                return self.united(known)
        return known

    def other(self, known: Known) -> Known:
        """A second frame: of another source, or of the same."""
        if self.chance(0.6):
            other = self.scan()
            for _ in range(self.some(0, 1)):
                other = self.step(other)
            return self.limit(other) if self.person and self.chance(0.5) else other
        place = self.rng.randrange(known.place + 1)
        frame = self.frames[place]
        if isinstance(frame, p.Scan):
            return Known(place, tuple(name for name, _ in frame.columns))
        return known

    def united(self, known: Known) -> Known:
        """The rows of two frames, with the columns that both have."""
        other = self.other(known)
        names = [name for name in known.columns if name in other.columns]
        if not names:
            return known
        columns = tuple((name, p.Col(name)) for name in names)
        left = self.add(p.Map(known.place, columns), tuple(names))
        right = self.add(p.Map(other.place, columns), tuple(names))
        return self.add(p.Union(left.place, right.place), tuple(names))

    def joined(self, known: Known) -> Known:
        """Pairs of rows of one individual."""
        other = self.other(known)
        both = [n for n in self.of_kind(known, "ghb") if n in other.columns]
        on = ((name := self.rng.choice(both), name),) if both and self.chance(0.6) else ()
        if self.chance(0.9):
            on = (("p", "p"), *on)
        how = self.rng.choice(("inner", "left", "semi", "anti"))
        used = [n for n in other.columns if n[0] in "xgh"][:2]
        new = tuple((n, self.name(n[0])) for n in used) if how in ("inner", "left") else ()
        meet = p.Meet(known.place, other.place, on, how, new)  # type: ignore[arg-type]
        return self.add(meet, (*known.columns, *(n for _, n in new)))

    def mapped(self, known: Known) -> Known:
        """Other columns: new, replaced, renamed, dropped or exchanged."""
        columns: dict[str, p.Row] = {name: p.Col(name) for name in known.columns}
        which = self.rng.randrange(6)
        free = [name for name in columns if name[0] not in "pt"]
        name = self.rng.choice(free) if free else "p"
        if which == 0 and name[0] in "ghxyb":
            columns[name] = self.call(known, name[0])
        elif which == 1 and len(free) > 2:
            del columns[name]
        elif which == 2 and free:
            del columns[name]
            columns[self.name(name[0])] = p.Col(name)
        elif which == 3:
            kind = self.rng.choice("ghx")
            columns[self.name(kind)] = self.call(known, kind)
        elif which == 4:
            kind = self.rng.choice("gh")
            columns[self.name(kind)] = p.Col(self.rng.choice([*columns]))
        elif {"g", "h"} <= {*columns}:
            columns["g"], columns["h"] = columns["h"], columns["g"]
        return self.add(p.Map(known.place, (*columns.items(),)), tuple(columns))

    # Expressions

    def text(self, row: p.Row) -> str:
        """A value that an expression may have."""
        match row:
            case p.Col(name) | p.Call(name):
                texts = {"h": ("0", "1"), "b": ("True", "False"), "dt_month": ("12",)}
                texts |= {"dt_year": ("2024",), "dt_quarter": ("4",), "dt_weekday": ("1", "2")}
                texts |= {"dt_day": ("31", "1"), "dt_ordinal_day": ("366", "1")}
                own = texts.get(name, texts.get(name[:1] if name[1:].isdigit() else name))
                return self.rng.choice(own or ("'w0'", "'w1'", "None"))
        return "'w0'"

    def call(self, known: Known, kind: str) -> p.Row:
        """A row-wise operation."""
        operands = [self.rng.choice(known.columns) for _ in range(self.some(1, 1, 2))]
        operation = self.rng.choice({"x": ("add", "abs"), "y": ("mul", "neg")}.get(kind, ("op",)))
        return p.Call(operation, tuple(map(p.Col, operands)), self.rng.choice(("[]", '[["n",1]]')))

    def truth(self, known: Known) -> p.Row:
        """A condition."""
        bools = self.of_kind(known, "b")
        if bools and self.chance(0.3):
            return p.Col(self.rng.choice(bools))
        column = p.Col(self.rng.choice(known.columns))
        if self.chance(0.4):
            return p.Call("is_not_null", (column,), "[]")
        return p.Call("gt", (column, p.Lit("Int64", "1")), "[]")

    def key(self, known: Known) -> p.Row:
        """An expression for keys."""
        if "t" in known.columns and self.chance(0.35):
            parts = ("dt_year", "dt_quarter", "dt_month", "dt_day", "dt_weekday", "dt_truncate")
            part = self.rng.choice((*parts, "dt_date", "dt_ordinal_day", "dt_month_start"))
            every = self.rng.choice(("1d", "1w", "1mo", "1q", "1y"))
            constants = f'[["every","{every}"]]' if part == "dt_truncate" else "[]"
            return p.Call(part, (p.Col("t"),), constants)
        keys = self.of_kind(known, "ghb")
        if keys and self.chance(0.85):
            return p.Col(self.rng.choice(keys))
        if self.chance(0.1):
            return p.Lit("String", '"w0"')
        return self.call(known, "g")

    def number(self, known: Known) -> p.Row:
        """An expression for numbers."""
        numbers = self.of_kind(known, "xy")
        if numbers and self.chance(0.8):
            return p.Col(self.rng.choice(numbers))
        return self.call(known, "x")

    # Tables

    def grid(self) -> p.Grid:
        """Whole numbers for values."""
        lo, hi = self.rng.choice(((0, 5), (-3, 3), (-4, 2), (0, 1), (-5, 5), (2, 7), (-6, -1)))
        return p.Grid(self.fraction(), Fraction(self.some(0, 0, 1, -5), self.some(1, 2)), lo, hi)

    def keys(self, known: Known) -> p.Listed | None:
        """Public keys."""
        number = self.some(0, 1, 1, 1, 2, 2)
        by = tuple({f"k{n}": self.key(known) for n in range(number)}.items())
        if self.chance(0.7):
            by = tuple((row.name, row) if isinstance(row, p.Col) else (n, row) for n, row in by)
        if not by or len({name for name, _ in by}) < len(by):
            return None
        if self.chance(0.3):
            return p.Listed(by, (self.some(1, 2, 3, 8),), "combinations")
        return p.Listed(by, tuple(self.some(1, 2, 3, 8) for _ in by), "product")

    def cells(self, known: Known) -> p.Edges | p.Values | p.Points | p.Between | p.UpTo | p.Whole:
        """Cells of rows."""
        cells = self.plain_cells(known)
        return p.Whole(cells) if self.chance(0.15) else cells

    def plain_cells(self, known: Known) -> p.Edges | p.Values | p.Points | p.Between | p.UpTo:
        """Cells of some rows."""
        row, other = self.number(known), self.chance(0.4)
        match self.rng.randrange(5):
            case 4:
                return p.UpTo(row, self.rising(self.some(1, 2, 4)), other)
            case 0:
                return p.Edges(row, self.rising(self.some(2, 3, 5)), other)
            case 1:
                key = self.key(known)
                listed = tuple(dict.fromkeys(self.text(key) for _ in range(self.some(1, 2, 3))))
                return p.Values(key, listed, other)
            case 2:
                low = Fraction(self.some(-1, 0))
                return p.Points(row, low, self.fraction(), self.some(1, 2, 5))
        return p.Between(row, self.rising(self.some(1, 2, 4)))

    def rising(self, size: int) -> p.Numbers:
        """Whole numbers from 0 on, in one of their forms."""
        match self.rng.randrange(4):
            case 0:
                return p.Progression(Fraction(0), Fraction(1), size)
            case 1:
                return p.Ratios(tuple(range(size)), 1)
        return tuple(map(Fraction, range(size)))

    def placed(self, row: p.Row, known: Known) -> p.Placed | p.Squared | p.Paired:
        """What a value adds."""
        grid = self.grid()
        match self.rng.randrange(3):
            case 0:
                return p.Placed(row, grid)
            case 1:
                return p.Squared(row, grid, self.some(0, 0, 1, 2))
        return p.Paired(row, grid, self.number(known), self.grid())

    def adds(self, known: Known) -> list[p.Adds]:
        """What tables of one vector add up."""
        row, grid = self.number(known), self.grid()
        which = self.rng.random()
        if which < 0.15:
            if self.chance(0.6):
                grid = replace(grid, lo=-3, hi=3)
            return [p.Valued(row), p.Placed(row, grid), p.Squared(row, grid, self.some(0, 0, 1))]
        if which < 0.2:
            return [p.One(), p.Valued(row), p.Placed(row, grid)]
        if which < 0.26:
            one, other = self.number(known), self.grid()
            return [p.Paired(row, grid, one, other), p.Paired(one, other, row, grid)]
        if which < 0.3 and self.person:
            return [p.PersonTotal(self.placed(row, known)), p.People()]
        return [self.one(known) for _ in range(self.some(1, 1, 1, 2))]

    def one(self, known: Known) -> p.Adds:
        """What one table adds up."""
        row = self.number(known)
        which = self.rng.randrange(9 if self.person else 6)
        if self.every is not None and self.chance(0.15):
            return p.DistinctPersons()
        match which:
            case 0 | 1:
                return p.One()
            case 2:
                return p.Valued(row)
            case 3 | 4:
                return self.placed(row, known)
            case 5:
                return p.Distinct(row if self.chance(0.5) else self.key(known))
            case 6:
                return p.People()
            case 7:
                return p.PersonRows(row if self.chance(0.5) else None, self.some(1, 2, 3))
        return p.PersonTotal(self.placed(row, known))

    # Draws

    def drawn(self, known: Known) -> list[p.Draw]:
        """Draws from tables of one frame."""
        if "t" in known.columns and self.chance(0.15):
            return [self.nights(known)]
        keys = self.keys(known)
        plain = self.cells(known) if self.chance(0.35) else None
        cells: p.Cells | None = plain
        if plain is not None and self.person and self.chance(0.25):
            cells = p.OfPeople(plain, TOTALS)
        adds = self.adds(known)
        if isinstance(cells, p.OfPeople):
            adds = [self.rng.choice((p.People(), p.PersonRows(None, 2)))]
            adds += [p.PersonTotal(self.placed(self.number(known), known))] * self.some(0, 1)
        places: list[int] = []
        for add in adds:
            table = p.Table(known.place, keys, cells, add)
            places.append(self.table(table))
        if self.neighbours == "change-one" and cells is not None and self.chance(0.3):
            response = p.Response(self.fraction())
            place = self.table(
                p.Table(known.place, keys, p.Whole(self.plain_cells(known)), p.One())
            )
            return [p.Draw(p.Reports(place), response, PLENTY, ONCE)]
        many = cells is not None or len(places) > 1 or (keys is not None and keys.sizes[0] > 1)
        if many and self.chance(0.22):
            what = self.chosen(places, cells)
            law = self.choice_law()
            if isinstance(what, p.Rank) and self.chance(0.4):
                law = self.law([[1]], adds[:1], True)
            if isinstance(what, p.Running):
                law = self.law([[1]], adds[:1], True)
            return [self.priced(p.Draw(what, law, PLENTY, ONCE))]
        return [self.draw(places, adds, keys, cells) for _ in range(self.some(1, 1, 1, 2))]

    def nights(self, known: Known) -> p.Draw:
        """Sums of periods, night after night."""
        every = self.rng.choice(("1d", "1d", "1w", "1mo"))
        period: p.Row = p.Col("t")
        if every != "1d":
            period = p.Call("dt_truncate", (period,), f'[["every","{every}"]]')
        own = self.keys(known) if self.chance(0.6) else None
        by = own.by if own is not None else ()
        number, periods = self.some(1, 2, 3), self.some(1, 2, 3, 4, 5)
        keys = p.Listed((*by, ("period", period)), ((number if by else 1) * periods,), "periods")
        add = self.one(known)
        factors = [self.some(0, 1, 1, 2, 3, 5) for _ in range(periods)]
        falling = tuple(sorted(factors, reverse=True)) if self.chance(0.8) else tuple(factors)
        root: p.Root | p.Tree = p.Root(falling)
        sums = root if self.chance(0.5) else p.Tree(self.some(2, 2, 3), self.some(1, 1, 2, 3))
        start = FIRST_DAYS[every].isoformat()
        place = self.table(p.Table(known.place, keys, None, add))
        what = p.Nights(place, "t", "Date", every, start, periods, sums)  # type: ignore[arg-type]
        return p.Draw(what, self.law([[1]], [add], True), PLENTY, ONCE)

    def table(self, table: p.Table) -> int:
        """The place of a table."""
        if table not in self.tables:
            self.tables.append(table)
        return self.tables.index(table)

    def found(self, known: Known, number: int) -> list[p.Draw]:
        """A draw that finds groups, and one of numbers in these groups."""
        keys, at = self.keys(known), known.place
        if keys is None:
            return self.drawn(known)
        delta = Fraction(1, self.some(10, 100, 10**6))
        if self.measure == "rho" and self.person and self.chance(0.5):
            return self.weighed(known, keys, number)
        if self.chance(0.3):
            found = p.Found(keys.by, number)
            place = self.table(p.Table(at, found, None, self.finding(known)))
            rule = p.Geometric(self.fraction() / 4, delta)
            first = p.Draw(p.Appear(place, self.some(1, 1, 2)), rule, PLENTY, ONCE)
            add = self.one(known)
            second = self.table(p.Table(at, found, None, add))
            return [first, self.draw([second], [add], keys, None)]
        found = p.Found(keys.by, number + 1)
        add = self.finding(known)
        place = self.table(p.Table(at, found, None, add))
        what = p.Vector((place,), ((1,),), tuple(range(len(keys.by))), 1, False)
        first = self.priced(p.Draw(what, self.law([[1]], [add], True), PLENTY, ONCE))
        least = p.Threshold(self.some(2, 5, 10, 30), number)
        return [first, p.Draw(p.Appear(place, self.some(1, 1, 2)), least, PLENTY, ONCE)]

    def weighed(self, known: Known, keys: p.Listed, number: int) -> list[p.Draw]:
        """A draw that finds groups by weights, in rounds."""
        columns = [row.name for _, row in keys.by if type(row) is p.Col]
        norm = Fraction(self.some(1, 2, 3), self.some(1, 2))
        known = self.add(p.Weigh(known.place, norm), known.columns)
        if columns and self.chance(0.9):
            limit = p.KeepGroups(known.place, self.some(1, 2, 3), tuple(columns), None)
            known = self.add(limit, known.columns)
            if self.chance(0.5):
                limit_ = p.KeepRows(known.place, self.some(1, 2), tuple(columns), None)
                known = self.add(limit_, known.columns)
        times = self.some(1, 1, 2, 3)
        rounds = tuple(
            (4096 * self.some(2, 5, 10, 20), self.fraction() * 4096**2) for _ in range(times)
        )
        by = (*keys.by, *((("rounds", p.Lit("Int64", str(times))),) if times > 1 else ()))
        add = self.rng.choice((p.People(), p.One()))
        place = self.table(p.Table(known.place, p.Found(by, number), None, add))
        return [p.Draw(p.Appear(place, 1), p.WeighedThreshold(rounds), PLENTY, ONCE)]

    def finding(self, known: Known) -> p.Adds:
        """What says that somebody is in a group."""
        if self.person:
            return self.rng.choice((p.People(), p.People(), p.One()))
        return p.One() if self.chance(0.8) else p.Valued(self.number(known))

    def chosen(
        self, places: list[int], cells: p.Cells | None
    ) -> p.Choice | p.Rank | p.Ranks | p.Levels | p.Running:
        """A choice, or sums of cells."""
        if cells is None:
            among: Literal["groups", "tables"] = "groups" if len(places) == 1 else "tables"
            used = places if among == "tables" else places[:1]
            return p.Choice(tuple(used), among, self.some(1, 1, 2))
        quantiles = tuple(sorted(self.rng.sample(QUANTILES, self.some(1, 2, 2))))
        ordered = isinstance(cells, (p.Points, p.Between))
        match self.rng.randrange(1, 4) if ordered else self.rng.choice((0, 4)):
            case 0:
                return p.Choice((places[0],), "cells", self.some(1, 1, 2))
            case 1:
                return p.Rank(places[0], quantiles[0])
            case 2:
                return p.Ranks(places[0], quantiles)
            case 3:
                return p.Levels(places[0], quantiles, tuple((n,) for n in range(len(quantiles))))
        factors = tuple(self.some(-1, 0, 1, 1, 2) for _ in range(size_of(cells)))
        return p.Running(places[0], factors)

    def choice_law(self) -> p.Law:
        """The noise of a choice."""
        scale = self.fraction() * self.some(1, 5)
        laws = (p.Exponential(scale), p.PermuteAndFlip(scale), p.NoisyMax(scale))
        return self.rng.choice(laws)

    def draw(
        self,
        places: list[int],
        adds: list[p.Adds],
        keys: p.Listed | None,
        cells: object,
    ) -> p.Draw:
        """A vector and its noise."""
        matrix = [[int(i == j) for j in range(len(places))] for i in range(len(places))]
        if self.chance(0.25):
            n = self.some(1, 2)
            matrix = [[self.some(-2, -1, 0, 1, 1, 2) for _ in places] for _ in range(n)]
            matrix[0][0] = matrix[0][0] or 1
        if self.chance(0.1):
            matrix.append(list(self.rng.choice(matrix)))
        kept = tuple(k for k in range(0 if keys is None else len(keys.by)) if self.chance(0.7))
        run = self.some(0, 1, 1, 2, 3) if cells is not None else 1
        total = self.chance(0.12)
        what = p.Vector(tuple(places), tuple(map(tuple, matrix)), kept, run, total)
        return self.priced(p.Draw(what, self.law(matrix, adds, total), PLENTY, ONCE))

    def law(self, matrix: list[list[int]], adds: list[p.Adds], total: bool) -> p.Law:
        """The noise of a vector."""
        which = self.rng.random()
        scale = self.fraction() * self.some(1, 10)
        if which < 0.06:
            return p.Exact()
        if which < 0.3 and not total:
            return self.box(matrix, adds)
        if which < (0.45 if self.measure == "epsilon" else 0.6):
            return p.Gaussian(scale**2)
        if which > 0.92:
            return p.Staircase(self.fraction(), self.some(1, 2, 5), self.some(1, 2))
        return p.Laplace(scale, self.some(1, 1, 1, 1025))

    def priced(self, draw: p.Draw) -> p.Draw:
        """The draw with an epsilon, where its delta follows from that."""
        if self.measure == "epsilon" and isinstance(draw.law, p.Gaussian):
            return replace(draw, cost=self.fraction())
        return draw

    def box(self, matrix: list[list[int]], adds: list[p.Adds]) -> p.Box:
        """A box that rows may stay in, and its arches."""
        most = [largest(add) for add in adds]
        wide = [max(1, sum(abs(f) * m for f, m in zip(row, most, strict=True))) for row in matrix]
        if self.neighbours == "change-one" and self.chance(0.7):
            wide = [2 * width for width in wide]
        arches: tuple[tuple[int, int, int], ...] = ()
        kinds = [type(add) for add in adds]
        arch = kinds == [p.Valued, p.Placed, p.Squared]
        if arch and len(matrix) == 3 and self.chance(0.7):
            arches = ((0, 1, 2),)
        epsilon = self.fraction() / self.some(1, 10)
        return p.Box(epsilon, tuple(wide), self.some(1, 2, 64), arches)


def largest(add: p.Adds) -> int:
    """The most that a row, or an individual in one group, adds."""
    match add:
        case p.Placed(_, grid) | p.Paired(_, grid):
            return max(abs(grid.lo), abs(grid.hi))
        case p.Squared(_, grid, shift):
            return max(1, max(abs(grid.lo), abs(grid.hi)) ** 2 >> shift)
        case p.PersonRows(_, most):
            return most
        case p.PersonTotal(of):
            return largest(of)
        case _:
            return 1


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.kernel.generate", description=__doc__)
    parser.add_argument("--number", type=int, default=2000, help="how many plans")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--judged", type=int, default=300, help="how many of them are judged")
    chosen = parser.parse_args()
    refused: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    shares: Counter[str] = Counter()
    for number, plan in enumerate(plans(chosen.seed, refused)):
        if number == chosen.number:
            break
        kinds.update({type(node).__name__ for node in nodes(plan)})
        if number < chosen.judged:
            try:
                share = judge(plan, worlds=40, changes=60, seed=number).share
                shares[f"{int(share * 10) / 10:.1f}" if share <= 1 else "unsafe"] += 1
            except Meaningless as nobody:
                shares[f"meaningless: {nobody}"] += 1
    print(f"{sum(refused.values())} plans refused on the way, most often:")
    for why, times in refused.most_common(25):
        print(f"{times:8} {why}")
    print(f"of {chosen.number} plans, how many have")
    for kind, times in kinds.most_common():
        print(f"{times:8} {kind}")
    known = {cls.__name__ for cls in vars(p).values() if hasattr(cls, "__dataclass_fields__")}
    print("never:", *sorted(known - {*kinds}))
    print(f"of {chosen.judged} plans, how large a share of the cost the worst world loses:")
    for tenth, times in sorted(shares.items()):
        print(f"{times:8} {tenth}")


if __name__ == "__main__":
    main()
