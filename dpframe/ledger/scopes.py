"""Where in a frame a charge falls, and what the whole budget pays for it.

Most charges are for the whole frame. A charge with a scope concerns some of its rows only: a part
of it, or the windows of time that a query reads. Two neighbouring frames differ in few of them, so
the whole budget pays the increase of the largest totals (`dpframe.ledger.parts`), and the record of
the charge has that increase as its amount. The record has the scope too, so every reader of the
ledger computes each increase again and refuses a record with a different one.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dpframe.core.budget import Budget
from dpframe.core.windows import Every, Windows
from dpframe.ledger.clocks import Clock, other_clock
from dpframe.ledger.exact_text import amounts_text, read_amounts
from dpframe.ledger.largest import Division
from dpframe.ledger.record import Record
from dpframe.ledger.windows import Timeline, as_every


@dataclass(slots=True)
class Totals:
    """What was charged in each scope of one budget.

    Parameters
    ----------
    zero
        Nothing, in its measure.
    divisions
        Totals of the parts of each division, by its digest.
    windows
        Totals of windows, where the budget is for each of them.
    clocks
        By what the rows of each frame are in windows, since the first charge that said so.
    """

    zero: Budget
    divisions: dict[str, Division] = field(default_factory=dict)
    windows: Timeline | None = None
    clocks: dict[str, Clock] = field(default_factory=dict)

    def division(self, name: str, touched: int) -> Division:
        """The division of a digest, which begins with nothing.

        Raises
        ------
        ValueError
            When it was charged before with another number of parts that neighbours differ in.
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

    def state(self) -> dict[str, Any]:
        """As JSON, in one form only; empty where nothing was charged to any scope."""
        result: dict[str, Any] = {}
        if self.divisions:
            result["divisions"] = {n: d.state() for n, d in sorted(self.divisions.items())}
        if self.windows is not None and not self.windows.spent.is_zero:
            result["windows"] = self.windows.state()
        if self.clocks:
            result["clocks"] = [clock.fields() for clock in sorted(self.clocks.values())]
        return result

    def restore(self, state: Any) -> None:
        """Begin with what `state` made.

        Raises
        ------
        ValueError, TypeError, KeyError, ArithmeticError
            When it makes no sense.
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
    def fields(self) -> Any:
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
    """One part of one division.

    Parameters
    ----------
    division
        Digest of what divides which frame, and how; equal for all its parts and no others.
    touched
        In how many of its parts neighbouring frames can differ.
    key
        Which part, as JSON of the values that its rows have.
    order
        Where parts are charged in the order of their keys only: the number of this one's. None
        where any part may be charged at any time.
    """

    division: str
    touched: int
    key: str
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

    def fields(self) -> Any:
        return [level.fields() for level in self.levels]

    @property
    def words(self) -> str:
        return "for this part"

    @property
    def place(self) -> str:
        return f"part {' of '.join(level.key for level in reversed(self.levels))}"

    @classmethod
    def read(cls, found: Any) -> PartScope:
        """What `fields` made.

        Raises
        ------
        ValueError, TypeError
            When it makes no sense.
        """
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
    """The windows of time that a query may read, of a budget that is for each of them.

    Parameters
    ----------
    windows
        Which.
    clocks
        By what the rows of each frame are in them, in the order of their names; nothing in what
        earlier versions charged.
    """

    kind = "windows"

    windows: Windows
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

    def fields(self) -> Any:
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
    def read(cls, found: Any) -> WindowScope:
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
    """What a plan of this cost adds to the whole budget, and to each level below it.

    Raises
    ------
    ValueError
        When the budget does not have the scope, or needs one.
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
    """The scopes of a budget that a record opens.

    Raises
    ------
    ValueError, TypeError, InvalidBudget
        When it is for unknown windows.
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


def scope_fields(scope: Scope, cost: Budget) -> dict[str, Any]:
    """A scope and the cost of the plan that it was charged, as JSON."""
    return {"kind": scope.kind, "where": scope.fields(), "cost": amounts_text(cost)}


def read_scope(found: Any, measure: Budget) -> tuple[Scope, Budget]:
    """What `scope_fields` made, of a budget with this measure.

    Raises
    ------
    ValueError, TypeError, KeyError, ArithmeticError
        When it makes no sense.
    """
    if not isinstance(found, dict) or found.keys() != {"kind", "where", "cost"}:
        raise ValueError
    scope, cost = KINDS[found["kind"]].read(found["where"]), read_amounts(found["cost"], measure)
    if scope_fields(scope, cost) != found:
        raise ValueError
    return scope, cost
