"""Where in a frame a charge falls, by parts and windows, and what the whole budget pays."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from heapq import nlargest
from typing import ClassVar

from dpframe.core import windows
from dpframe.core.budget import ApproxDP, Budget
from dpframe.core.windows import Every, Windows
from dpframe.errors import InvalidBudget, LedgerError, require
from dpframe.ledger.amounts import add_up, amounts_text, over_budget, read_amounts
from dpframe.ledger.record import Record, Stored

# Calendar windows, and what was charged to each of them.
#
# A budget may be for each window: each day, week, month, quarter or year of the data's own time.
# Then neighbouring frames differ in rows of one window only, and a plan that reads no row of that
# window does not distinguish them. So each window pays only for the plans that may read its rows,
# and the budget bounds the largest of these sums. This is parallel composition as in
# `dpframe.ledger.parts`: windows are the parts, and neighbours differ in one. Rows without a time
# are a separate window.


def as_every(given: object) -> Every:
    """The length of a window that a budget is to be for. Raises `InvalidBudget` when the window is
    invalid.
    """
    return windows.as_every(given, "per", InvalidBudget)


class Timeline:
    """What was charged to each window: a total from each border on, up to the next one.

    Guarantee
    ---------
    Assume that each plan is charged to every window whose rows it may read, and runs only if the
    largest total of any window stays within the budget. Then all results together keep the budget
    for frames that differ in one person's rows in one window, even if each plan and its windows
    are chosen after seeing earlier results. For a person in n windows they keep n epsilon (and n
    delta where no plan reads two of these windows), and n**2 rho, or n rho where no plan reads
    two.

    Proof
    -----
    Fix two such frames, and the window w in which they differ. A plan drops the rows of all windows
    that it is not charged to before it does anything else. So a plan that is not charged to w has
    the same distribution on both frames, given all results before it, and does not distinguish
    them. Each other plan does by its cost at most, and these costs are among those that add up to
    the total of w. That stays within the budget at every time, which is a privacy filter (Rogers,
    Roth, Ullman and Vadhan 2016; Feldman and Zrnic 2021), whose proof takes one pair of frames at
    a time. Rows without a time are one more window, for which the same holds. Epsilons and deltas
    are compared each on their own, so the largest are never below those of w.

    A plan that reads m of a person's n windows distinguishes frames with and without the person
    by m times its epsilon, and m**2 times its rho, by group privacy. Each window's total counts
    it once. So all plans come to the sum of the n totals, and for rho to n times that sum at
    most.

    Parameters
    ----------
    every
        The length of windows.
    zero
        Nothing, in the measure of the budget.
    """

    def __init__(self, every: Every, zero: Budget) -> None:
        self.every: Every = every
        self.zero = zero
        self.borders: list[int] = []
        """Numbers of windows, rising, at which the total is another one than before."""
        self.totals: list[Budget] = [zero]
        """Up to the first border, from there to the second one, and so on."""
        self.without = zero
        """Of rows without a time."""
        self.spent = zero
        """The largest of all; epsilons and deltas (or amounts of rho) each on their own."""

    def largest(self, windows: Windows) -> Budget:
        """The largest total of these windows."""
        found = [self.totals[place] for place in self._places(windows)]
        if windows.without:
            found.append(self.without)
        return self._most(found)

    def fullest(self, windows: Windows) -> Windows | None:
        """The first of these windows with the largest total; None where none was charged."""
        most, found = self.largest(windows), list[Windows]()
        for charged, total in self.charged():
            both = charged.both(windows)
            if both is not None and total.main == most.main:
                found.append(both)
        return found[0] if found else None

    def increase(self, windows: Windows, cost: Budget) -> Budget:
        """By how much the largest total of all grows where these windows are charged a cost. Raises
        `ValueError` when they are of another length.
        """
        if windows.every != self.every:
            raise ValueError
        if windows.none_with_time and not windows.without:
            return self.zero
        return self._most([self.spent, add_up(self.largest(windows), cost)]) - self.spent

    def add(self, windows: Windows, cost: Budget) -> None:
        """Charge these windows a cost."""
        self.spent = self.spent + self.increase(windows, cost)
        if windows.without:
            self.without = add_up(self.without, cost)
        if windows.none_with_time or cost.is_zero:
            return
        if windows.first is not None:
            self._cut(windows.first)
        if windows.last is not None:
            self._cut(windows.last + 1)
        for place in self._places(windows):
            self.totals[place] = add_up(self.totals[place], cost)

    def _places(self, windows: Windows) -> range:
        """Which of `totals` are those of the windows."""
        if windows.none_with_time:
            return range(0)
        start = 0 if windows.first is None else self._place(windows.first)
        stop = len(self.totals) if windows.last is None else self._place(windows.last) + 1
        return range(start, stop)

    def _place(self, number: int) -> int:
        return bisect_left(self.borders, number + 1)

    def _cut(self, number: int) -> None:
        """Let a border be there."""
        place = bisect_left(self.borders, number)
        if place == len(self.borders) or self.borders[place] != number:
            self.borders.insert(place, number)
            self.totals.insert(place, self.totals[place])

    def _most(self, amounts: list[Budget]) -> Budget:
        if not amounts:
            return self.zero
        return self.zero.of(max(a.main for a in amounts), max(a.slack for a in amounts))

    def charged(self) -> Iterator[tuple[Windows, Budget]]:
        """Ranges of windows that were charged anything, with their totals, in order."""
        starts: list[int | None] = [None, *self.borders]
        ends: list[int | None] = [*(border - 1 for border in self.borders), None]
        for start, end, total in zip(starts, ends, self.totals, strict=True):
            if not total.is_zero:
                yield Windows(self.every, start, end, without=False), total
        if not self.without.is_zero:
            yield Windows(self.every, 0, -1, without=True), self.without

    def state(self) -> dict[str, object]:
        """As JSON, in one form only."""
        return {
            "borders": self.borders,
            "totals": [amounts_text(total) for total in self.totals],
            "without": amounts_text(self.without),
        }

    @classmethod
    def restored(cls, every: Every, zero: Budget, state: Stored) -> Timeline:
        """What `state` made. Raises `ValueError, TypeError, KeyError, ArithmeticError` when it
        makes no sense.
        """
        result = cls(every, zero)
        result.borders = [*state["borders"]]
        result.totals = [read_amounts(total, zero) for total in state["totals"]]
        result.without = read_amounts(state["without"], zero)
        rising = all(a < b for a, b in zip(result.borders, result.borders[1:], strict=False))
        if not rising or len(result.totals) != len(result.borders) + 1:
            raise ValueError
        result.spent = result._most([*result.totals, result.without])
        return result


# Totals of the parts of one division, and the sum of the largest of them.


class Largest:
    """By how much the sum of the `n` largest of amounts grows, which themselves only grow, in time
    that depends on `n` alone.
    """

    __slots__ = ("n", "top")

    def __init__(self, n: int) -> None:
        self.n = n
        self.top: dict[str, Fraction] = {}
        """As many as there are, `n` at most; no other amount is larger than one of these."""

    def increase(self, key: str, total: Fraction) -> Fraction:
        """By how much the sum grows where the amount of `key` grows to `total`."""
        if key in self.top:
            return total - self.top[key]
        if len(self.top) < self.n:
            return total
        return max(Fraction(0), total - min(self.top.values()))

    def grow(self, key: str, total: Fraction) -> None:
        """Let the amount of `key` grow to `total`."""
        if key not in self.top and len(self.top) >= self.n:
            least = min(self.top, key=self.top.__getitem__)
            if self.top[least] >= total:
                return
            del self.top[least]
        self.top[key] = total


class Division:
    """What each part was charged; nothing where it was charged nothing.

    Parameters
    ----------
    zero
        Nothing, in the measure of the budget.
    touched
        The number of parts in which neighbouring frames can differ: the whole pays for that many
        of the largest totals. Epsilons and deltas (or amounts of rho) are summed each on their
        own.
    """

    def __init__(self, zero: Budget, touched: int) -> None:
        self.zero = zero
        self.touched = touched
        self.parts: dict[str, Budget] = {}
        self.latest: int | None = None
        """The largest number of a part that was charged, where parts have an order."""
        self._main, self._slack = Largest(touched), Largest(touched)

    def spent(self, key: str) -> Budget:
        """All that the part was charged."""
        return self.parts.get(key, self.zero)

    def increase(self, key: str, cost: Budget) -> Budget:
        """What the whole pays for a cost of the part."""
        after = add_up(self.spent(key), cost)
        return self.zero.of(
            self._main.increase(key, after.main), self._slack.increase(key, after.slack)
        )

    def is_past(self, order: int | None) -> bool:
        """Whether a part comes before one that was charged, where parts have an order; all parts of
        a division have one, or none has.
        """
        if order is None or self.latest is None:
            return bool(self.parts) and order is not self.latest
        return order < self.latest

    def add(self, key: str, cost: Budget, order: int | None = None) -> None:
        """Count a cost of the part."""
        if order is not None:
            self.latest = order if self.latest is None else max(order, self.latest)
        after = add_up(self.spent(key), cost)
        self.parts[key] = after
        self._main.grow(key, after.main)
        self._slack.grow(key, after.slack)

    def most(self, key: str, left: Budget) -> Budget:
        """The largest total that the part can reach with `left` in the whole budget, if nothing
        else is charged.

        With total t here and h the largest total but `touched` - 1 elsewhere, the sum of the
        largest grows by max(t + c, h) - max(t, h) at a cost c: by at most what is left as long as
        t + c <= left + max(t, h).
        """
        total = self.spent(key)
        others = [amount for part, amount in self.parts.items() if part != key]
        return self.zero.of(
            left.main + max(total.main, _nth(self.touched, [t.main for t in others])),
            left.slack + max(total.slack, _nth(self.touched, [t.slack for t in others])),
        )

    def state(self) -> list[object]:
        """As JSON, in one form only."""
        parts = [[key, *amounts_text(t)] for key, t in sorted(self.parts.items())]
        return [self.touched, parts, *([] if self.latest is None else [self.latest])]

    @classmethod
    def restored(cls, zero: Budget, state: Stored) -> Division:
        """What `state` made. Raises `ValueError, TypeError, ArithmeticError` when it makes no
        sense.
        """
        touched, totals, *latest = state
        if type(touched) is not int or touched < 1 or len(latest) > 1:
            raise ValueError
        total = cls(zero, touched)
        if latest:
            total.latest = int(latest[0])
        for key, *amounts in totals:
            if not isinstance(key, str) or key in total.parts:
                raise ValueError
            total.add(key, read_amounts(amounts, zero))
        return total


def _nth(n: int, amounts: list[Fraction]) -> Fraction:
    """The n-th largest, 0 where there are fewer."""
    return nlargest(n, amounts)[-1] if len(amounts) >= n else Fraction(0)


# By which column and time zone each frame's rows are in calendar windows.
#
# A budget for each window counts what each window was charged. A row is in the window of its own
# time. Under another column of times, or in another time zone, the same rows are in other windows:
# both charges would be counted separately, and the rows near midnight paid for once and read twice.
# So what a charge read by is recorded with it, and no later charge of the budget reads by another.


@dataclass(frozen=True, slots=True, order=True)
class Clock:
    """The rule that assigns a frame's rows to windows."""

    frame: str  # The name of the frame; empty for all unnamed frames
    column: str  # The time zone of its times, when it was protected
    zone: str  # Their time zone; empty where they have none

    def fields(self) -> list[str]:
        """As JSON."""
        return [self.frame, self.column, self.zone]

    @classmethod
    def read(cls, found: Stored) -> Clock:
        """What `fields` made. Raises `ValueError, TypeError` when it makes no sense."""
        if not all(isinstance(text, str) for text in found):
            raise TypeError
        return cls(*found)

    def words(self) -> str:
        """As people read it."""
        of = f"of {self.frame!r}" if self.frame else "of a frame without a name"
        zone = f"in the time zone {self.zone}" if self.zone else "without a time zone"
        return f"{self.column!r} {of}, {zone}"


def other_clock(known: Mapping[str, Clock], asked: Iterable[Clock]) -> tuple[Clock, Clock] | None:
    """An earlier clock and the first new one that cannot be used with it; None if all can.

    A frame has one column and zone. Other frames may have columns of their own, but no other zone.
    """
    seen = dict(known)
    for clock in asked:
        before = seen.setdefault(clock.frame, clock)
        if before != clock:
            return before, clock
        for other in seen.values():
            if clock.zone and other.zone and clock.zone != other.zone:
                return other, clock
    return None


def require_clocks(known: Mapping[str, Clock], asked: Iterable[Clock]) -> None:
    """Refuse a charge that reads windows by another column or time zone than earlier ones. Raises
    `LedgerError` with both, and what to do.
    """
    found = other_clock(known, asked)
    if found is None:
        return
    before, now = found
    if before.frame == now.frame == "" and before.column != now.column:
        remedy = "give each frame a name, session.protect(..., name=...), from its first query on"
    elif before.zone != now.zone:
        back = f"dt.convert_time_zone({before.zone!r})" if before.zone else "the type that it had"
        remedy = f"bring the column to {back} before the frame is protected"
    else:
        remedy = f"protect the frame with time={before.column!r}"
    raise LedgerError(
        f"the budget counts windows by {before.words()}, and this query reads them by "
        f"{now.words()}",
        where="dp.Identifier(..., window=..., time=...)",
        why="the same rows would fall into other windows, and be read twice for one charge",
        remedy=(remedy, "use another budget: Session(..., name=...)"),
    )


# Where in a frame a charge falls, and what the whole budget pays for it.
#
# Most charges are for the whole frame. A charge with a scope concerns some of its rows only: a part
# of it, or the windows of time that a query reads. Two neighbouring frames differ in few of them,
# so the whole budget pays the increase of the largest totals (`dpframe.ledger.parts`), and the
# record of the charge has that increase as its amount. The record has the scope too, so every
# reader of the ledger computes each increase again and refuses a record with a different one.


@dataclass(slots=True)
class Totals:
    """What was charged in each scope of one budget."""

    zero: Budget  # Nothing, in its measure
    # Totals of the parts of each division, by its digest.
    divisions: dict[str, Division] = field(default_factory=dict)
    windows: Timeline | None = None  # Totals of windows, where the budget is for each of them
    # By what the rows of each frame are in windows, since the first charge that said so.
    clocks: dict[str, Clock] = field(default_factory=dict)

    def division(self, name: str, touched: int) -> Division:
        """The division of a digest, which begins with nothing. Raises `ValueError` when it was
        charged before with another number of parts that neighbours differ in.
        """
        result = self.divisions.get(name)
        if result is None:
            return Division(self.zero, touched)
        if result.touched != touched:
            raise ValueError
        return result

    @property
    def size(self) -> int:
        """How many amounts it holds."""
        parts = sum(len(division.parts) for division in self.divisions.values())
        return parts + (0 if self.windows is None else len(self.windows.totals))

    def state(self) -> dict[str, object]:
        """As JSON, in one form only; empty where nothing was charged to any scope."""
        result: dict[str, object] = {}
        if self.divisions:
            result["divisions"] = {n: d.state() for n, d in sorted(self.divisions.items())}
        if self.windows is not None and not self.windows.spent.is_zero:
            result["windows"] = self.windows.state()
        if self.clocks:
            result["clocks"] = [clock.fields() for clock in sorted(self.clocks.values())]
        return result

    def restore(self, state: Stored) -> None:
        """Begin with what `state` made. Raises `ValueError, TypeError, KeyError, ArithmeticError`
        when it makes no sense.
        """
        if not state or not state.keys() <= {"divisions", "windows", "clocks"}:
            raise ValueError
        for found in state.get("clocks", []):
            clock = Clock.read(found)
            self.clocks[clock.frame] = clock
        for name, division in state.get("divisions", {}).items():
            self.divisions[name] = Division.restored(self.zero, division)
        if "windows" in state:
            every = _timeline(self).every
            self.windows = Timeline.restored(every, self.zero, state["windows"])
        if self.state() != state:
            raise ValueError


class Scope(ABC):
    """Where a charge falls."""

    kind: ClassVar[str]
    """Its name in records."""

    @abstractmethod
    def amounts(self, totals: Totals, cost: Budget) -> tuple[Budget, ...]:
        """What a plan of this cost adds: to the whole budget first, then to each level below it,
        and at last to the innermost, which is charged the cost itself.
        """

    @abstractmethod
    def add(self, totals: Totals, amounts: Sequence[Budget]) -> None:
        """Count what `amounts` made of a cost."""

    def is_past(self, totals: Totals) -> bool:
        """Whether it may not be charged any more, because what comes after it was."""
        return False

    @abstractmethod
    def spent(self, totals: Totals) -> Budget:
        """All that was charged to it."""

    @abstractmethod
    def room(self, totals: Totals, left: Budget) -> Budget:
        """The amount that may still be charged to it while `left` remains in the whole budget."""

    @abstractmethod
    def fields(self) -> object:
        """As JSON."""

    @property
    @abstractmethod
    def words(self) -> str:
        """Which one it is, after an amount: ``for this part``."""

    def fullest(self, totals: Totals) -> str:
        """Where in it least is left, after its words, if that is not all of it."""
        return ""

    @property
    @abstractmethod
    def place(self) -> str:
        """The same in lists of charges: ``part ["2026-11-22"]``."""


@dataclass(frozen=True, slots=True)
class Level:
    """One part of one division."""

    # Digest of what divides which frame, and how; equal for all its parts and no others.
    division: str
    touched: int  # In how many of its parts neighbouring frames can differ
    key: str  # Which part, as JSON of the values that its rows have
    # Where parts are charged in the order of their keys only: the number of this one's. None where
    # any part may be charged at any time.
    order: int | None = None

    def fields(self) -> list[str | int]:
        """As JSON."""
        found: list[str | int] = [self.division, self.touched, self.key]
        return found if self.order is None else [*found, self.order]


@dataclass(frozen=True, slots=True)
class PartScope(Scope):
    """A part of a frame, or a part of a part: the levels from the outermost on."""

    kind = "parts"

    levels: tuple[Level, ...]

    def amounts(self, totals: Totals, cost: Budget) -> tuple[Budget, ...]:
        found = [cost]
        for level in reversed(self.levels):
            division = totals.division(level.division, level.touched)
            found.append(division.increase(level.key, found[-1]))
        return tuple(reversed(found))

    def is_past(self, totals: Totals) -> bool:
        return any(
            totals.division(level.division, level.touched).is_past(level.order)
            for level in self.levels
        )

    def add(self, totals: Totals, amounts: Sequence[Budget]) -> None:
        for level, amount in zip(self.levels, amounts[1:], strict=True):
            division = totals.division(level.division, level.touched)
            totals.divisions[level.division] = division
            division.add(level.key, amount, level.order)

    def spent(self, totals: Totals) -> Budget:
        last = self.levels[-1]
        return totals.division(last.division, last.touched).spent(last.key)

    def room(self, totals: Totals, left: Budget) -> Budget:
        for level in self.levels:
            division = totals.division(level.division, level.touched)
            left = division.most(level.key, left) - division.spent(level.key)
        return left

    def fields(self) -> object:
        return [level.fields() for level in self.levels]

    @property
    def words(self) -> str:
        return "for this part"

    @property
    def place(self) -> str:
        return f"part {' of '.join(level.key for level in reversed(self.levels))}"

    @classmethod
    def read(cls, found: Stored) -> PartScope:
        """What `fields` made. Raises `ValueError, TypeError` when it makes no sense."""
        levels = tuple(Level(*values) for values in found)
        for level in levels:
            if type(level.touched) is not int or level.touched < 1:
                raise ValueError
            if not (isinstance(level.division, str) and isinstance(level.key, str)):
                raise TypeError
            if level.order is not None and type(level.order) is not int:
                raise TypeError
        if not levels or len({level.division for level in levels}) < len(levels):
            raise ValueError
        return cls(levels)


@dataclass(frozen=True, slots=True)
class WindowScope(Scope):
    """The windows of time that a query may read, of a budget that is for each of them."""

    kind = "windows"

    windows: Windows  # Which
    # By what the rows of each frame are in them, in the order of their names; nothing in what
    # earlier versions charged.
    clocks: tuple[Clock, ...] = ()

    def amounts(self, totals: Totals, cost: Budget) -> tuple[Budget, ...]:
        return (_timeline(totals).increase(self.windows, cost), cost)

    def add(self, totals: Totals, amounts: Sequence[Budget]) -> None:
        _timeline(totals).add(self.windows, amounts[1])
        totals.clocks |= {clock.frame: clock for clock in self.clocks}

    def is_past(self, totals: Totals) -> bool:
        """Whether the same rows are in other windows than those that were charged."""
        return other_clock(totals.clocks, self.clocks) is not None

    def spent(self, totals: Totals) -> Budget:
        return _timeline(totals).largest(self.windows)

    def room(self, totals: Totals, left: Budget) -> Budget:
        timeline = _timeline(totals)
        return left + timeline.spent - timeline.largest(self.windows)

    def fields(self) -> object:
        result = self.windows.fields()
        if self.clocks:
            result["clocks"] = [clock.fields() for clock in self.clocks]
        return result

    @property
    def words(self) -> str:
        return f"for {self.windows.words()}"

    @property
    def place(self) -> str:
        return self.windows.words()

    def fullest(self, totals: Totals) -> str:
        found = _timeline(totals).fullest(self.windows)
        return "" if found is None or found == self.windows else f" (least in {found.words()})"

    @classmethod
    def read(cls, found: Stored) -> WindowScope:
        """What `fields` made; errors as `PartScope.read`."""
        said = dict(found)
        clocks = tuple(Clock.read(one) for one in said.pop("clocks", ()))
        if sorted({clock.frame for clock in clocks}) != [clock.frame for clock in clocks]:
            raise ValueError
        return cls(Windows.read(said), clocks)


def _timeline(totals: Totals) -> Timeline:
    if totals.windows is None:
        raise ValueError
    return totals.windows


KINDS: Mapping[str, type[PartScope] | type[WindowScope]] = {
    kind.kind: kind for kind in (PartScope, WindowScope)
}


def amounts_of(scope: Scope | None, totals: Totals, cost: Budget) -> tuple[Budget, ...]:
    """What a plan of this cost adds to the whole budget, and to each level below it. Raises
    `ValueError` when the budget does not have the scope, or needs one.
    """
    if totals.windows is not None and not isinstance(scope, WindowScope):
        raise ValueError
    return (cost,) if scope is None else scope.amounts(totals, cost)


def amounts_due(scope: Scope | None, totals: Totals, cost: Budget) -> tuple[Budget, ...]:
    """The same, where the scope may be charged now.

    Raises
    ------
    ValueError
        Also when it may not be any more.
    """
    if scope is not None and scope.is_past(totals):
        raise ValueError
    return amounts_of(scope, totals, cost)


def opened_scopes(record: Record, zero: Budget) -> Totals:
    """The scopes of a budget that a record opens. Raises `ValueError, TypeError, InvalidBudget`
    when it is for unknown windows.
    """
    per = read_per(record.why)
    return Totals(zero, windows=None if per is None else Timeline(per, zero))


def per_text(per: Every | None) -> str | None:
    """For which windows a budget is, as the record keeps it that opens it."""
    return None if per is None else json.dumps({"per": per})


def read_per(text: str | None) -> Every | None:
    """What `per_text` made; errors as `opened_scopes`."""
    if text is None:
        return None
    fields = json.loads(text)
    if not isinstance(fields, dict) or fields.keys() != {"per"}:
        raise ValueError
    return as_every(fields["per"])


def scope_fields(scope: Scope, cost: Budget) -> dict[str, object]:
    """A scope and the cost of the plan that it was charged, as JSON."""
    return {"kind": scope.kind, "where": scope.fields(), "cost": amounts_text(cost)}


def read_scope(found: object, measure: Budget) -> tuple[Scope, Budget]:
    """What `scope_fields` made, of a budget with this measure. Raises `ValueError, TypeError,
    KeyError, ArithmeticError` when it makes no sense.
    """
    if not isinstance(found, dict) or found.keys() != {"kind", "where", "cost"}:
        raise ValueError
    scope, cost = KINDS[found["kind"]].read(found["where"]), read_amounts(found["cost"], measure)
    if scope_fields(scope, cost) != found:
        raise ValueError
    return scope, cost


# How one scope of a budget stands, and whether a plan fits there.


@dataclass(frozen=True, slots=True)
class InScope:
    """What a scope was charged, and what may still be."""

    spent: Budget  # All that was charged to it
    left: Budget  # What may still be charged to it, if nothing else is meanwhile
    # The amount that a plan would now charge to the whole budget, if a plan is given.
    increase: Budget


def in_scope(scope: Scope, totals: Totals, left: Budget, cost: Budget | None) -> InScope:
    """The state of a scope while `left` remains in the whole budget."""
    amounts = amounts_of(scope, totals, totals.zero if cost is None else cost)
    return InScope(scope.spent(totals), scope.room(totals, left), amounts[0])


def required(
    scope: Scope | None,
    totals: Totals,
    cost: Budget,
    left: Budget,
    budget: Budget,
    within: ApproxDP | None,
) -> tuple[Budget, ...]:
    """What a plan of this cost adds, to the whole budget first; refused where it does not fit.
    Raises `BudgetExceeded` with what is left, in the scope if there is one. Raises `LedgerError`
    when the scope may not be charged, or not any more.
    """
    require(
        totals.windows is None or isinstance(scope, WindowScope),
        "a budget for windows of time is charged for the windows that a query reads",
    )
    if isinstance(scope, WindowScope):
        require_clocks(totals.clocks, scope.clocks)
    elif scope is not None and scope.is_past(totals):
        raise LedgerError(
            "a later part of the frame was charged before this one",
            where=scope.place,
            why="the limit keeps the first parts of each individual, so new rows could put an "
            "individual into one part more",
            remedy=(
                'read a kept release again with reuse="same"',
                "run the parts in the order of their keys, on another budget",
            ),
        )
    amounts = amounts_of(scope, totals, cost)
    if left.covers(amounts[0]):
        return amounts
    if scope is None:
        raise over_budget(budget, budget - left, cost, within)
    spent, room = scope.spent(totals), scope.room(totals, left)
    raise over_budget(spent + room, spent, cost, within, of=scope.words + scope.fullest(totals))
