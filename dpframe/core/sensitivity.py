"""How far one individual can move a released vector."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from dpframe.core.contribution_bounds import ContributionBounds
from dpframe.core.exact import float_up, sqrt_up
from dpframe.core.fields import EXACT
from dpframe.errors import require


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The largest change of one released vector between neighbouring frames, in the value's units.

    Parameters
    ----------
    l0
        How many entries can change.
    l1
        The sum of absolute changes.
    l2
        The Euclidean norm of the change.
    linf
        The largest change of one entry.

    Notes
    -----
    For people: rounded up, but for L2, which is the nearest float to a root. Noise is calibrated to
    the exact values.
    """

    l0: int = field(metadata={EXACT: True})  # ways to place ten quantiles need 180 bits
    l1: float
    l2: float
    linf: float


@dataclass(frozen=True, slots=True)
class ExactSensitivity:
    """The same, exactly, with L2 squared so that it is rational."""

    l0: int = field(metadata={EXACT: True})
    l1: Fraction
    l2_squared: Fraction
    linf: Fraction

    @property
    def is_zero(self) -> bool:
        return self.l1 == 0

    def scaled(self, factor: Fraction) -> ExactSensitivity:
        """The sensitivity of the vector times `factor`."""
        f = abs(factor)
        return ExactSensitivity(self.l0, self.l1 * f, self.l2_squared * f * f, self.linf * f)

    def repeated(self, times: int) -> ExactSensitivity:
        """The sensitivity of `times` such vectors together, if one row can move them all."""
        n = times
        return ExactSensitivity(self.l0 * n, self.l1 * n, self.l2_squared * n, self.linf)

    def public(self) -> Sensitivity:
        """As floats, rounded up."""
        l2 = sqrt_up(self.l2_squared)
        return Sensitivity(self.l0, float_up(self.l1), _near(l2), float_up(self.linf))


def _near(value: Fraction) -> float:
    """The nearest float, which for an irrational root is the value that people expect."""
    return float(value)


def concentrated(l1: Fraction, linf: Fraction) -> tuple[Fraction, ...]:
    """As many numbers of size `linf` as L1 allows, and one with what is left of it: of all within
    both bounds those that differ most (they majorise the others).
    """
    if not linf:
        return ()
    full, left = divmod(l1, linf)
    return (linf,) * full + ((left,) if left else ())


NO_SENSITIVITY = ExactSensitivity(0, Fraction(0), Fraction(0), Fraction(0))


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one row adds to an entry of an additive vector.

    Parameters
    ----------
    lo, hi
        The least and greatest value that a row adds where it adds anything.
    always
        Whether every row of the frame adds a value in [lo, hi]. Where it does not (nulls count as
        0, and a filter may drop the row), a row may also add 0.
    """

    lo: Fraction
    hi: Fraction
    always: bool = False

    @property
    def magnitude(self) -> Fraction:
        return max(abs(self.lo), abs(self.hi))

    @property
    def width(self) -> Fraction:
        """The largest difference that changing one row makes to one entry."""
        if self.always:
            return self.hi - self.lo
        return max(self.hi, Fraction(0)) - min(self.lo, Fraction(0))


def additive_sensitivity(
    contribution: Contribution,
    spread: ContributionBounds,
    entries: int | None,
    cells: int = 1,
    of_cell: int | None = None,
) -> ExactSensitivity:
    """The sensitivity of a vector whose entries are sums over disjoint sets of rows.

    Parameters
    ----------
    contribution
        What one row adds to the one entry that it belongs to.
    spread
        How many rows of one individual may differ, and in how many groups.
    entries
        The number of entries of the vector; None where rows are not split into entries (every row
        belongs to the single entry).
    cells
        How many of the entries are in one group.
    of_cell
        How many rows of one individual may be in one entry of them, if that is known.

    Notes
    -----
    With r, g and m the bounds of the spread, k rows where these are the same, b the largest
    magnitude and w the width of a contribution:

    add-remove
        r rows come or go, at most m in each of g groups, each moving one entry by at most b. If a
        group has one entry, L0 = min(r, g), L1 = b r, Linf = b m, and L2**2 = b**2 (q m**2 + (r -
        q m)**2) with q = floor(r / m), because a sum of squares is largest where as much as
        possible is in one place. With k rows in any group this is L1 = L2 = Linf = k b.
    add-remove, c rows in each of several cells of a group
        Linf = b c, and the sum of squares is largest where as many cells as possible have c rows.
        The rest is in one more cell; or, if all groups have as many full cells as they may, in as
        few groups as possible with m mod c each. For every j, no j cells can have more rows than
        the j fullest have then, so it majorises all others.
    change-one, one entry
        each row changes by at most w: L1 = L2 = Linf = k w.
    change-one, several entries
        a row leaves one entry and enters another (b each), or stays and changes by w:
        L1 = 2 k b, Linf = k w, L2 = k max(sqrt(2) b, w).

    For L2 with several entries write the change as the sum of k changes, one for each row. Each
    has norm at most max(sqrt(2) b, w), and the triangle inequality gives k times that, which is
    attained when all rows make the same move. Since w <= 2b always, L1 = 2kb also covers a row
    that stays.
    """
    rows, groups, k = spread.tight
    b, w = contribution.magnitude, contribution.width
    if spread.changes:
        k = rows  # rows that change may all come from one group, or go to one
    if not spread.changes:
        if not rows or not b:
            return NO_SENSITIVITY
        l0 = min(rows, groups * cells, entries or 1)
        if of_cell is not None and of_cell < k:
            return _in_cells(spread, cells, of_cell, l0).scaled(b)
        return ExactSensitivity(l0, rows * b, spread.l2_squared * b * b, k * b)
    if entries is None or entries <= 1:
        reach = k * (w if entries is None else _joined(contribution).width)
        return ExactSensitivity(1, reach, reach * reach, reach) if reach else NO_SENSITIVITY
    joined = _joined(contribution).width
    if not b:
        return NO_SENSITIVITY
    return ExactSensitivity(
        min(2 * k, entries),
        2 * k * b,
        k * k * max(2 * b * b, joined * joined),
        k * joined,
    )


def sensitivity_with_total(
    found: ExactSensitivity, contribution: Contribution, spread: ContributionBounds
) -> ExactSensitivity:
    """The sensitivity of a vector of sums over disjoint sets of rows with one number more, which is
    the sum of all its entries, where rows change.

    Parameters
    ----------
    found
        The sensitivity of the vector without its total, which has several entries.
    contribution, spread
        As in `additive_sensitivity`.

    Notes
    -----
    A row adds w to one entry before it changes and v to one afterwards, each a contribution, or 0
    where it is in none. If the entries are two, the vector changes by (-w, v) and the total by
    v - w; if it is one, both change by v - w. L1 is |w| + |v| + |v - w|, or 2 |v - w|, and L2**2 is
    w**2 + v**2 + (v - w)**2, or 2 (v - w)**2. All are convex in (w, v), so they are largest at
    corners of the box that contributions and 0 lie in. k rows: the triangle inequality, attained
    where all make the same move. Where contributions have one sign and at most the magnitude b the
    corners are (b, b), (b, 0) and (0, b): L1 = 2 k b and L2 = sqrt(2) k b, which the vector has
    without its total. What a row that moves adds to one entry it takes from another, and one that
    leaves all entries moves just one of them: so the total is one number more at no further cost.
    """
    require(spread.changes, "a row that comes or goes moves an entry and the total")
    k, _, _ = spread.tight
    ends = min(contribution.lo, Fraction(0)), max(contribution.hi, Fraction(0))
    pairs = [(w, v) for w in ends for v in ends]
    l1 = max(max(abs(w) + abs(v) + abs(v - w), 2 * abs(v - w)) for w, v in pairs)
    squared = max(max(w * w + v * v + (v - w) ** 2, 2 * (v - w) ** 2) for w, v in pairs)
    linf = max(max(abs(w), abs(v), abs(v - w)) for w, v in pairs)
    if not l1:
        return NO_SENSITIVITY
    return ExactSensitivity(found.l0 + 1, k * l1, k * k * squared, k * linf)


def _in_cells(spread: ContributionBounds, cells: int, of_cell: int, l0: int) -> ExactSensitivity:
    """The sensitivity of rows that add 1 each, with a limit per cell that is below the limit per
    group.

    Parameters
    ----------
    cells
        How many there are in one group.
    """
    rows, groups, most = spread.tight
    most = min(most, cells * of_cell)
    rows = min(rows, groups * most)
    of_group, rest = divmod(most, of_cell)
    full = min(rows // of_cell, groups * of_group)
    left = rows - full * of_cell
    parts, last = divmod(left, rest) if full == groups * of_group and rest else (0, left)
    squared = full * of_cell**2 + parts * rest**2 + last**2
    return ExactSensitivity(l0, Fraction(rows), Fraction(squared), Fraction(of_cell))


def joint_sensitivity(
    widths: tuple[int, ...],
    turned: tuple[int, ...],
    spread: ContributionBounds,
    grouped: bool,
    conditions: tuple[int, ...] = (),
    kept: tuple[int, ...] = (),
) -> ExactSensitivity:
    """The sensitivity of vectors of several numbers, one vector per group, each number a sum over
    the rows of its group.

    Parameters
    ----------
    widths
        By how much one row that comes or goes moves each number at most.
    turned
        By how much a row that stays in its group and changes moves each at most; no more than twice
        the width.
    spread
        How many rows of one individual may differ, and in how many groups.
    grouped
        Whether a row belongs to one of several groups, or to none.
    conditions
        What a row needs to move each number: 0 where it needs to be there, or the number of an
        expression that has to have a value. Without any, each number is a separate condition.
    kept
        By how much a row that stays, and meets the condition of a number before and after, moves it
        at most: a count not at all.

    Notes
    -----
    add-remove
        with r, g and m as in `additive_sensitivity` and w the widths, r rows come or go and each
        moves one vector by at most w: L1 = r sum(w), L2**2 = (q m**2 + (r - q m)**2) sum(w**2),
        Linf = m max(w).
    change-one, one group of all rows
        k rows stay and change: L1 = k sum(t), L2**2 = k**2 sum(t**2), Linf = k max(t).
    change-one, groups
        each of k rows leaves one group for another, or stays: L1 = 2 k sum(w), L2 = k times the
        larger of sqrt(2 sum(w**2)) and sqrt(sum(t**2)), Linf = k max(w, t).
    change-one, conditions
        a row that comes, or goes, moves all numbers by at most w, and one that leaves one group for
        another the vectors of both. For a row that stays, the numbers of condition 0 move by at
        most their part of `kept`. The numbers of any other condition e move by at most `kept`
        where it is met before and after, by at most w where it is met once, and not at all where
        it never is. So let z(f) be the sum over condition 0 of f(kept), plus the sum over others
        of the larger of sum(f(kept)) and sum(f(w)). Then L1 = k max(c sum(w), z(size)) and L2**2
        = k**2 max(c sum(w**2), z(square)), with c = 2 for groups and else 1; Linf = k max(w,
        kept). All are attained where a row can move all of its numbers by as much as that at
        once.
    """
    rows, groups, most = spread.tight
    numbers = len(widths)
    if not spread.changes:
        return ExactSensitivity(
            numbers * min(rows, groups),
            Fraction(rows * sum(widths)),
            Fraction(spread.l2_squared * sum(w * w for w in widths)),
            Fraction(most * max(widths)),
        )
    vectors = 2 if grouped else 1
    if conditions:
        moved = stays(widths, conditions, kept)
        square = stays(_squares(widths), conditions, _squares(kept))
        leaves = vectors * sum(widths), vectors * sum(_squares(widths))
        return ExactSensitivity(
            (2 * rows if grouped else 1) * numbers,
            Fraction(rows * max(leaves[0], moved)),
            Fraction(rows * rows * max(leaves[1], square)),
            Fraction(rows * max(*widths, *kept)),
        )
    square = sum(t * t for t in turned)
    if not grouped:
        reach = rows * max(turned)
        norms = Fraction(rows * sum(turned)), Fraction(rows * rows * square), Fraction(reach)
        return ExactSensitivity(numbers, *norms)
    return ExactSensitivity(
        2 * rows * numbers,
        Fraction(2 * rows * sum(widths)),
        Fraction(rows * rows * max(2 * sum(w * w for w in widths), square)),
        Fraction(rows * max(*widths, *turned)),
    )


def stays(widths: tuple[int, ...], conditions: tuple[int, ...], kept: tuple[int, ...]) -> int:
    """The largest sum of what a row that stays moves numbers by; see `joint_sensitivity`."""
    found = 0
    for condition in {*conditions}:
        mine = [place for place, other in enumerate(conditions) if other == condition]
        both = sum(kept[place] for place in mine)
        found += max(both, sum(widths[place] for place in mine)) if condition else both
    return found


def _squares(numbers: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(number * number for number in numbers)


def _joined(contribution: Contribution) -> Contribution:
    """The contribution to one listed entry: a row may belong to another entry, or to none."""
    return Contribution(contribution.lo, contribution.hi, always=False)
