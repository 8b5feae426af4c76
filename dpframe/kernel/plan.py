"""The physical plan: what a release does, as plain values.

A plan is three lists and a cost. `frames` are the steps on rows, from the sources on. `tables` are
exact whole numbers, added up over the rows of a frame. `draws` are numbers with noise. An item
names items of earlier lists, and earlier frames, by their places.

All numbers are exact: whole numbers and fractions. `write` gives a plan as JSON, in one form only,
and `read` accepts no other.
"""

from __future__ import annotations

import json
import re
import typing
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import gcd, lcm
from types import NoneType, UnionType
from typing import Literal, TypeAlias, cast, get_args, get_origin, get_type_hints


class Refused(Exception):
    """The plan states something that does not follow from the rest of it."""


# Who is protected


@dataclass(frozen=True)
class Rows:
    """Each individual owns at most this many rows of the source."""

    contributions: int


Every: TypeAlias = Literal["1d", "1w", "1mo", "1q", "1y"]
"""Calendar days, weeks from Monday on, months, quarters and years."""


@dataclass(frozen=True)
class Person:
    """Rows with one value of a column belong to one person. With `every` an individual is a person
    in one calendar window of the column `time`.
    """

    column: str
    every: Every | None
    time: str | None


Unit: TypeAlias = Rows | Person


# Expressions of one row


@dataclass(frozen=True)
class Col:
    """The value of a column."""

    name: str


@dataclass(frozen=True)
class Lit:
    """A constant of a type, or the value of a parameter."""

    dtype: str
    value: str
    parameter: str | None = None


@dataclass(frozen=True)
class Call:
    """A row-wise operation. It gives a value or null for all operands, and never fails."""

    operation: str
    operands: tuple[Row, ...]
    constants: str


Row: TypeAlias = Col | Lit | Call


# Frames


@dataclass(frozen=True)
class Owners:
    """The owner of a row is that of the row of another source whose column `there` equals the
    column `here`.
    """

    source: str
    here: str
    there: str


@dataclass(frozen=True)
class Scan:
    """All rows of a source that have an owner, with columns of these types."""

    name: str
    columns: tuple[tuple[str, str], ...]
    unit: Unit
    owners: Owners | None


@dataclass(frozen=True)
class Map:
    """Each row becomes one row with these columns. The owner of a row follows its column, also to
    another name.
    """

    input: int
    columns: tuple[tuple[str, Row], ...]


@dataclass(frozen=True)
class Filter:
    """The rows for which all conditions are true."""

    input: int
    conditions: tuple[Row, ...]


@dataclass(frozen=True)
class Part:
    """The rows whose expressions have the values of a key: one of disjoint parts."""

    input: int
    by: tuple[Row, ...]
    key: tuple[Lit, ...]


@dataclass(frozen=True)
class Without:
    """The rows that are in no group of those that earlier draws of this plan found."""

    input: int
    by: tuple[Row, ...]


@dataclass(frozen=True)
class Explode:
    """One row for each of the first `most` elements of a list, and at least one row."""

    input: int
    column: str
    most: int


@dataclass(frozen=True)
class Lookup:
    """A join with a public frame, which is known by its digest. A row becomes at most `most` rows,
    or is kept or dropped where the join is a semi or anti join.
    """

    input: int
    public: str
    on: tuple[tuple[str, str], ...]
    how: Literal["inner", "left", "semi", "anti"]
    new: tuple[str, ...]
    most: int


@dataclass(frozen=True)
class Union:
    """The rows of two frames with the same columns."""

    left: int
    right: int


@dataclass(frozen=True)
class Meet:
    """Pairs of rows of one individual, from two frames, that have equal values of the columns `on`.
    `new` names columns of the right frame and what they are called in the result.
    """

    left: int
    right: int
    on: tuple[tuple[str, str], ...]
    how: Literal["inner", "left", "semi", "anti"]
    new: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class KeepRows:
    """At most `n` rows of each individual for each value of the columns `by`. Which are kept
    depends on rows of that individual alone. Rows with the least values of the column `first` come
    first, and nulls last. Then a hash of the values of the columns `of` decides, in the order of
    their names, and then these values. None stands for all columns of the frame. Where several
    releases rest on one choice of rows, the columns are named.
    """

    input: int
    n: int
    by: tuple[str, ...]
    first: str | None
    of: tuple[str, ...] | None = None


@dataclass(frozen=True)
class KeepGroups:
    """The rows of each individual in at most `n` different values of the columns `by`. Which are
    kept depends on rows of that individual alone.
    """

    input: int
    n: int
    by: tuple[str, ...]
    first: str | None


@dataclass(frozen=True)
class Weigh:
    """Rows of an individual count less, all by one factor, so that the norm of what it has in all
    groups is at most this. The factor is decided where rows are added up. They count in parts: a
    whole row has 4096 of them.
    """

    input: int
    norm: Fraction


@dataclass(frozen=True)
class Ends:
    """Columns with the least and the largest value of an expression in an individual's rows, or,
    with `total`, with the least and the largest of its totals in groups. Values are floats, and
    null and NaN are left out. In a total each value counts as floor(1024 value + 1/2) / 1024, after
    it was clamped to 2**40 on both sides; the total of no values is 0.
    """

    least: str
    largest: str
    row: Row
    total: bool


@dataclass(frozen=True)
class OneEach:
    """One row for each individual. Its rows make groups, by the values of `by`. The columns have
    the number of its rows, the number of its groups, the number of rows in the group that has the
    most, and the ends of some values. With `listed`, the digest of public keys, rows count that
    have one of these keys; an individual without such rows has no row. With windows the row has the
    latest time of those that count.
    """

    input: int
    by: tuple[Row, ...]
    listed: str | None
    rows: str
    groups: str
    fullest: str
    ends: tuple[Ends, ...]


@dataclass(frozen=True)
class Gather:
    """Aggregates of the rows that one individual has for each value of `by`. They stand in one row
    for each value, or, with `beside`, in all of the rows. The operands of an aggregate are computed
    from each row; it gives a value or null for all of them, and never fails.

    `bounds` has the bounds of each aggregate that adds values up, a sum or a mean, and None for
    others. Whole numbers are clamped to the whole numbers within the bounds. Floats and decimals
    are clamped to the bounds as floats, and added up in steps s, each as floor(value / s + 1/2).
    With c the larger magnitude of the bounds, s is 2**(e - 31) where 2**(e - 1) <= c < 2**e and
    e >= -900, else 2**-931, and 1 where c is 0. A mean is clamped to the bounds again.
    """

    input: int
    by: tuple[tuple[str, Row], ...]
    new: tuple[tuple[str, Call], ...]
    bounds: tuple[tuple[Fraction, Fraction] | None, ...]
    beside: bool


Frame: TypeAlias = (
    Scan
    | Map
    | Filter
    | Part
    | Without
    | Explode
    | Lookup
    | Union
    | Meet
    | KeepRows
    | KeepGroups
    | Weigh
    | OneEach
    | Gather
)


# Tables of whole numbers


@dataclass(frozen=True)
class Listed:
    """Public keys. With one size for each expression they are all combinations of the listed
    values; with a single size, that many listed combinations. Rows with other keys do not count.
    """

    by: tuple[tuple[str, Row], ...]
    sizes: tuple[int, ...]
    digest: str


@dataclass(frozen=True)
class Found:
    """Keys of the groups that a draw of this plan found; for the table of that draw, of all groups
    that rows are in.
    """

    by: tuple[tuple[str, Row], ...]
    draw: int


Keys: TypeAlias = Listed | Found


@dataclass(frozen=True)
class Progression:
    """`count` numbers. The first one is `first`, and each later one is `step` more than the one
    before it.
    """

    first: Fraction
    step: Fraction
    count: int


@dataclass(frozen=True)
class Ratios:
    """Whole numbers, each divided by the same denominator."""

    numerators: tuple[int, ...]
    denominator: int


Numbers: TypeAlias = tuple[Fraction, ...] | Progression | Ratios
"""Edges or candidates. A value is compared with the nearest numbers that its own type has.

They have one form only. Up to 64 are listed. More of them are a `Progression` where they rise in
equal steps, and else `Ratios` over their least common denominator. If that has more than 4096 bits
they are listed, too.
"""
LISTED_UP_TO = 64
"""Up to this many numbers are listed, because people read them, and they take no time."""
LONGEST = 1 << 12
"""Bits of a denominator that many numbers share. Over a longer one they would take more room than
each as a fraction.
"""


@dataclass(frozen=True)
class Edges:
    """A row is in the bin of its value; with `other` one more cell has all other rows."""

    row: Row
    edges: Numbers
    other: bool


@dataclass(frozen=True)
class Values:
    """A row is in the cell of its value; with `other` one more cell has all other rows."""

    row: Row
    listed: tuple[str, ...]
    other: bool


@dataclass(frozen=True)
class Points:
    """A row is in the cell of the nearest of evenly spaced points."""

    row: Row
    low: Fraction
    step: Fraction
    count: int


@dataclass(frozen=True)
class Between:
    """A row is in the cell of the candidate that it equals, or of the two that it lies between."""

    row: Row
    candidates: Numbers


@dataclass(frozen=True)
class UpTo:
    """A row is in the cell of the least edge that its value does not exceed. What exceeds the last
    edge is in its cell, or with `above` in one more.
    """

    row: Row
    edges: Numbers
    above: bool


@dataclass(frozen=True)
class Whole:
    """Cells, and one more for all rows that are in none of them."""

    cells: Edges | Values | Points | Between | UpTo


@dataclass(frozen=True)
class OfPeople:
    """Each individual is in the cell of the total of its values in a group. Values are added up for
    this grid as `PersonTotal` adds them up. Without values there is no total.
    """

    cells: Edges | Values | Points | Between | UpTo | Whole
    grid: Grid


Cells: TypeAlias = Edges | Values | Points | Between | UpTo | Whole | OfPeople


@dataclass(frozen=True)
class Grid:
    """Whole numbers `lo` to `hi` for values: `centre + number * step`, clamped."""

    step: Fraction
    centre: Fraction
    lo: int
    hi: int


@dataclass(frozen=True)
class One:
    """Each row adds 1."""


@dataclass(frozen=True)
class Valued:
    """A row adds 1 where the expression is neither null nor NaN."""

    row: Row


@dataclass(frozen=True)
class Placed:
    """A row adds the number of its value on a grid, and nothing for null or NaN."""

    row: Row
    grid: Grid


@dataclass(frozen=True)
class Squared:
    """With s the number of a row's value on a grid, h the largest |s|, and top = max(1, h**2 >>
    shift), a row adds 2 min(top, (s**2 >> shift) + 1) - top, or 2 s**2 - top where shift is 0; and
    nothing for null or NaN.
    """

    row: Row
    grid: Grid
    shift: int


@dataclass(frozen=True)
class Paired:
    """A row adds the number of its value on a grid, after the value and another one were multiplied
    by one factor that brings both within their grids.
    """

    row: Row
    grid: Grid
    other: Row
    other_grid: Grid


@dataclass(frozen=True)
class Distinct:
    """The number of different values that are neither null nor NaN."""

    row: Row


@dataclass(frozen=True)
class People:
    """Each individual adds 1 to each group in which it has a row."""


@dataclass(frozen=True)
class DistinctPersons:
    """The number of different persons. One with rows in several windows counts once."""


@dataclass(frozen=True)
class PersonRows:
    """Each individual adds the number of its rows in a group, or of its values there, at most
    `most`.
    """

    row: Row | None
    most: int


@dataclass(frozen=True)
class PersonTotal:
    """Each individual adds what a row would whose value is the total of its values in a group.

    Let c be the magnitude of the end of its grid that is farther from 0. Whole numbers, times and
    truth values are added up themselves, each clamped to b = min(floor(65536 c) + 1, 2**62) on both
    sides. Others are added up in steps s, each as floor(value / s + 1/2), and clamped to
    b = min(floor(65536 c / s) + 1, 2**52) steps on both sides. Here s is the step of the grid,
    doubled until it is at least c / 2**35. Sums have 64 bits, and wrap.
    """

    of: Placed | Squared | Paired


Adds: TypeAlias = (
    One
    | Valued
    | Placed
    | Squared
    | Paired
    | Distinct
    | People
    | DistinctPersons
    | PersonRows
    | PersonTotal
)


@dataclass(frozen=True)
class Table:
    """What the rows of a frame add up to, by keys and cells. A row is in one cell at most."""

    frame: int
    keys: Keys | None
    cells: Cells | None
    adds: Adds


# Draws


@dataclass(frozen=True)
class Vector:
    """Combinations of tables: number j of a group is the sum of `matrix[j][t] * tables[t]`. The
    tables have the same rows, keys and cells. First they are added up over all key columns that
    are not `kept`, and over runs of `run` neighbouring cells (0: over all cells). With `total` the
    sum of all numbers follows them.
    """

    tables: tuple[int, ...]
    matrix: tuple[tuple[int, ...], ...]
    kept: tuple[int, ...]
    run: int
    total: bool


@dataclass(frozen=True)
class Running:
    """For each cell of a group one sum of cells: the cell itself times `column[0]`, the cell before
    it times `column[1]`, and so on.
    """

    table: int
    column: tuple[int, ...]


@dataclass(frozen=True)
class Root:
    """Each night one sum: its period times `column[0]`, the period before it times `column[1]`, and
    so on.
    """

    column: tuple[int, ...]


@dataclass(frozen=True)
class Tree:
    """Each night the sums of 1, `branching`, `branching**2`, ... neighbouring periods, of `levels`
    widths, that end with its period. The first sum of each width begins with the first period.
    """

    branching: int
    levels: int


@dataclass(frozen=True)
class Nights:
    """Sums of periods that are drawn night after night, of a frame that grows. A night draws, once,
    the sums that end with its period, from the rows of that night.

    The last key is the period of a date in the column `by`, of type `dtype`. For each value of the
    other keys there are `periods` of them, from the date `start` on, one after the other.
    """

    table: int
    by: str
    dtype: str
    every: Every
    start: str
    periods: int
    sums: Root | Tree


@dataclass(frozen=True)
class Choice:
    """A choice among candidates by their exact scores, repeated for more winners, each time among
    those that are left, while there are any. With `among` cells each group chooses one of its
    cells, by the number in it. With `among` groups there is one choice of a group. With `among`
    tables each group chooses one of several tables.
    """

    tables: tuple[int, ...]
    among: Literal["cells", "groups", "tables"]
    rounds: int


@dataclass(frozen=True)
class Rank:
    """In each group the choice of a cell as quantile q = a / b. With n rows, the score of a cell is
    -max(a n - b (rows up to it), b (rows before it) - a n, 0). With the law of a number the
    score of each candidate of `Between` gets noise, and the candidate with the largest one wins.
    """

    table: int
    quantile: Fraction


@dataclass(frozen=True)
class Ranks:
    """In each group one choice of a tuple of cells in rising order, as several quantiles. They cut
    n rows into parts; with d what should be between two quantiles, and m the least common
    denominator of the quantiles, the score is -m times the sum over parts of |rows in it - d n|.
    """

    table: int
    quantiles: tuple[Fraction, ...]


@dataclass(frozen=True)
class Levels:
    """In each group the choice of cells as several quantiles, level after level. Each choice is
    that of `Rank`, among the rows between the nearest quantiles that earlier levels chose, and of
    the quantile that it is of these rows. The score counts in parts 1 / m of a row, with m the
    least common denominator of the quantiles. With r the most by which a row moves the scores of a
    choice against each other, and R the largest r, the scale of the choice is r / R times that of
    the law.
    """

    table: int
    quantiles: tuple[Fraction, ...]
    levels: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Appear:
    """Which groups appear, each by its own number in a table divided by `rows` and rounded up: at
    least how many individuals it has, where one has `rows` rows at most.
    """

    table: int
    rows: int


@dataclass(frozen=True)
class Reports:
    """Each row reports its cell on its own, or another one at random; how many rows report each."""

    table: int


What: TypeAlias = Vector | Running | Nights | Choice | Rank | Ranks | Levels | Appear | Reports


def tables_of(what: What) -> tuple[int, ...]:
    """The places of the tables that a draw is of."""
    return what.tables if isinstance(what, Vector | Choice) else (what.table,)


@dataclass(frozen=True)
class Exact:
    """No noise."""


@dataclass(frozen=True)
class Laplace:
    """P(x) proportional to exp(-|x| / scale) on multiples of 1 / fine, rounded to whole ones."""

    scale: Fraction
    fine: int


@dataclass(frozen=True)
class Gaussian:
    """P(x) proportional to exp(-x**2 / (2 sigma_squared)), on whole numbers."""

    sigma_squared: Fraction


@dataclass(frozen=True)
class Box:
    """P(z) proportional to exp(-epsilon N(z) / fineness), with N(z) the least whole R >= 0 for
    which z lies in the box of `widths` times R / fineness, and in the hulls of `arches`.
    """

    epsilon: Fraction
    widths: tuple[int, ...]
    fineness: int
    arches: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class Staircase:
    """P(x) proportional to exp(-rate level(|x|)), on whole numbers: level 0 has the first `inner`
    magnitudes, and each level after it the next `width`.
    """

    rate: Fraction
    width: int
    inner: int


@dataclass(frozen=True)
class Response:
    """A report is exp(epsilon) times as likely to be the row's own cell as any other."""

    epsilon: Fraction


@dataclass(frozen=True)
class Exponential:
    """A candidate with probability proportional to exp(score / scale)."""

    scale: Fraction


@dataclass(frozen=True)
class PermuteAndFlip:
    """Candidates in random order, each taken with probability exp((score - best) / scale)."""

    scale: Fraction


@dataclass(frozen=True)
class NoisyMax:
    """The candidate with the largest sum of its score and Laplace noise of this scale on whole
    numbers.
    """

    scale: Fraction


@dataclass(frozen=True)
class Geometric:
    """A group of n individuals appears with the largest probability p(n) that is private:
    p(0) = 0, and p(n + 1) = min(exp(epsilon) p(n) + delta, 1 - exp(-epsilon) (1 - p(n) - delta),
    1), rounded down, with the epsilon and delta of one group.
    """

    epsilon: Fraction
    delta: Fraction


@dataclass(frozen=True)
class Threshold:
    """A group appears where its number is at least this, with the noise of another draw of the
    same table. A group without rows never appears.
    """

    least: int
    draw: int


@dataclass(frozen=True)
class WeighedThreshold:
    """A group appears where its number with Gaussian noise is at least a threshold, in one of
    several rounds, each with a threshold and a sigma squared. A round leaves out all rows in groups
    of earlier rounds, before individuals are limited or weighed. A group without rows never
    appears.
    """

    rounds: tuple[tuple[int, Fraction], ...]


Law: TypeAlias = (
    Exact
    | Laplace
    | Gaussian
    | Box
    | Staircase
    | Response
    | Exponential
    | PermuteAndFlip
    | NoisyMax
    | Geometric
    | Threshold
    | WeighedThreshold
)


@dataclass(frozen=True)
class Draw:
    """What is drawn, and what it costs in the plan's measure; but with probability `delta` that
    does not hold.
    """

    what: What
    law: Law
    cost: Fraction
    delta: Fraction


Measure: TypeAlias = Literal["epsilon", "rho", "mu_squared"]
Composition: TypeAlias = Literal["sum", "zcdp", "numerical"]


@dataclass(frozen=True)
class Plan:
    """All that a release does, and what it costs. With `options` one of these plans runs
    afterwards, which one is decided by what was drawn before.

    `measure` is that of the draws' costs. With the composition `sum` they add up to the plan's
    cost. With `zcdp` they are in rho and add up, and the plan's cost is an epsilon that follows
    from the sum, at the plan's delta. With `numerical` it is an epsilon that follows from the
    privacy losses of all draws.
    """

    neighbours: Literal["add-remove", "change-one"]
    frames: tuple[Frame, ...]
    tables: tuple[Table, ...]
    draws: tuple[Draw, ...]
    measure: Measure
    cost: Fraction
    delta: Fraction
    options: tuple[Plan, ...]
    composition: Composition = "sum"


# JSON


def write(plan: Plan) -> str:
    """The plan as JSON, always in the same form."""
    return json.dumps(plan, default=_json, ensure_ascii=True, separators=(",", ":"))


def read(text: str) -> Plan:
    """The plan that JSON states: each field once, and no other.

    Raises
    ------
    Refused
        When it is not the form that `write` gives.
    """
    try:
        found = plan_of(json.loads(text))
        if write(found) == text:
            return found
    except (ValueError, RecursionError):
        raise Refused("this is not the JSON of a plan") from None
    raise Refused("the JSON has another form than plans have")


def plan_of(value: object) -> Plan:
    """The plan that JSON states once it is read: objects, lists, text and numbers. The fields of an
    object may stand in any order.

    Raises
    ------
    Refused
        When it is no plan.
    """
    found = _value(value, Plan)
    if not isinstance(found, Plan):
        raise Refused("this is not the JSON of a plan")
    return found


def _json(value: object) -> object:
    """What JSON has in place of a fraction or a node."""
    if isinstance(value, Fraction):
        return str(value)
    return {"node": type(value).__name__, **vars(value)}


def _are_in_form(numbers: Numbers) -> bool:
    """Whether numbers have the form that `Numbers` says. No rule is written out here: a few bytes
    may stand for any amount of numbers.
    """
    under = 1
    match numbers:
        case Progression(first, step, count):
            under = lcm(first.denominator, step.denominator)
            return step > 0 and count > LISTED_UP_TO and not under >> LONGEST
        case Ratios(numerators, under):
            if len(numerators) <= LISTED_UP_TO or under <= 0 or under >> LONGEST:
                return False
            low, by, size = numerators[0], numerators[1] - numerators[0], len(numerators)
            is_regular = by > 0 and numerators == (*range(low, low + size * by, by),)
            return not is_regular and gcd(under, *numerators) == 1
        case _:
            are_few = len(numbers) <= LISTED_UP_TO
            return are_few or any((under := lcm(under, n.denominator)) >> LONGEST for n in numbers)


def _value(said: object, kind: object) -> object:
    """The value of a type that some JSON states."""
    origin, options = get_origin(kind), get_args(kind)
    if origin in (UnionType, typing.Union):
        node = said.get("node") if isinstance(said, dict) else None
        fits = (option for option in options if _fits(said, node, option))
        result = _value(said, next(fits, None))
        if kind == Numbers and not _are_in_form(cast("Numbers", result)):
            raise Refused("numbers in another form than plans have")
        return result
    if origin is Literal:
        fits = (option for option in options if type(option) is type(said) and option == said)
        return _require(next(fits, None), f"{said!r} is not one of {options}")
    if kind == tuple[int, ...] and isinstance(said, list) and {*map(type, said)} <= {int}:
        return tuple(said)
    if origin is tuple and isinstance(said, list):
        each = [options[0]] * len(said) if options[-1] is ... else list(options)
        if len(each) != len(said):
            raise Refused("a list has another length")
        return tuple(_value(item, option) for item, option in zip(said, each, strict=True))
    if kind is NoneType and said is None:
        return None
    if kind is Fraction and isinstance(said, str):
        return _fraction(said)
    if kind in (int, bool, str) and type(said) is kind:
        return said
    if isinstance(said, dict) and isinstance(kind, type) and said.get("node") == kind.__name__:
        return _node(said, kind)
    raise Refused(f"a {kind} is missing")


def _node(said: dict[str, object], kind: Callable[..., object]) -> object:
    """The value of a class, from its fields."""
    hints = _hints(kind)
    if said.keys() != {"node", *hints}:
        raise Refused("other fields than those of a node")
    return kind(**{name: _value(said[name], hint) for name, hint in hints.items()})


@cache
def _hints(kind: Callable[..., object]) -> dict[str, object]:
    """The fields of a class, and their types."""
    return get_type_hints(kind)


def _fits(said: object, node: object, option: object) -> bool:
    """Whether some JSON may state a value of one of several types."""
    if isinstance(option, type) and option not in (int, bool, str, Fraction, NoneType):
        return option.__name__ == node
    if get_origin(option) is Literal:
        return said in get_args(option)
    if get_origin(option) is tuple:
        return isinstance(said, list)
    return type(said) is (str if option is Fraction else option)


def _fraction(said: str) -> Fraction:
    # "1e999999999" is short, and would take all memory
    if len(said) > 4000 or not re.fullmatch(r"-?[0-9]+(/[0-9]+)?", said):
        raise Refused("a number that is not written as a fraction")
    try:
        return Fraction(said)
    except (ValueError, ZeroDivisionError):
        raise Refused("a number that is not written as a fraction") from None


def _require(value: object, why: str) -> object:
    if value is None:
        raise Refused(why)
    return value
