"""What changes from one plan to another for who is protected, and for who reads the results."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from typing import Final

from dpframe.core.budget import Budget
from dpframe.core.units import Identifier, Unit
from dpframe.core.visible import quoted
from dpframe.errors import DPFrameError
from dpframe.plan.data import PlanData
from dpframe.report.amounts import change_words
from dpframe.report.group_size import about
from dpframe.report.numbers import separated

_WINDOWS: Final = ("1d", "1w", "1mo", "1q", "1y", None)
"""From the shortest window to all of a person."""
_NEITHER: Final = "the guarantee changes"


def guarantee(before: PlanData, after: PlanData) -> Iterator[str]:
    """Whether it gets weaker or stronger: by whom it protects first, and then by how much.

    Protecting less of a person is weaker at any cost. Protecting more at a larger cost is neither.
    """
    whom = _more(before.unit, after.unit)
    much = _less(before.cost, after.cost)
    words = []
    if before.unit != after.unit:
        words.append(f"{before.unit.words()} -> {after.unit.words()}")
    if _amounts(before.cost) != _amounts(after.cost):
        words.append(_cost_change(before.cost, after.cost))
    if not words:
        return
    if before.unit != after.unit and whom in (0, None):
        verdict = _NEITHER
    elif (whom or 0) < 0:
        verdict = "the guarantee gets weaker"
        words.append("less noise, where there is less, comes from protecting less")
    elif much is None or (whom and much < 0):
        verdict = _NEITHER
    else:
        both = (whom or 0) + much
        verdict = f"the guarantee gets {'stronger' if both > 0 else 'weaker'}"
    yield f"{verdict}: {'; '.join(words)}"


def _cost_change(before: Budget, after: Budget) -> str:
    """Two amounts: with what they promise where this differs, and in more digits where they would
    look the same.
    """
    one, other = before.words(), after.words()
    if before.guarantee != after.guarantee:
        return f"{one} ({before.guarantee}) -> {other} ({after.guarantee})"
    if one != other:
        return f"{one} -> {other}"
    main, slack = (before.main, after.main), (before.slack, after.slack)
    what, pair = (before.currency, main) if main[0] != main[1] else ("delta", slack)
    return f"{one} -> {other} ({what} {change_words(*pair)})"


def _amounts(cost: Budget) -> tuple[str, Fraction, Fraction]:
    """What is promised, however a session counts it."""
    return cost.currency, cost.main, cost.slack


def _reach(unit: Unit) -> tuple[int, int]:
    """How much of a person is protected: rows, windows, all."""
    if isinstance(unit, Identifier):
        return (1, _WINDOWS.index(unit.window))
    return (0, unit.contributions)


def _more(before: Unit, after: Unit) -> int | None:
    """1 if more of a person is protected, -1 if less, 0 if the same. None if they cannot be
    compared: other people, or another notion of neighbours.
    """
    one, other = _reach(before), _reach(after)
    if one == other and before != after:
        return None
    return (other > one) - (other < one)


def _less(before: Budget, after: Budget) -> int | None:
    """1 where nothing costs more and something less, -1 the other way; None where both."""
    if before.currency != after.currency:
        return None
    pairs = ((before.main, after.main), (before.slack, after.slack))
    less, more = any(a < b for b, a in pairs), any(a > b for b, a in pairs)
    return None if less and more else less - more


def errors(before: PlanData, after: PlanData) -> Iterator[str]:
    """The 95% errors of outputs that both have, where they are known and differ."""
    names = {output.name for output in after.outputs}
    for output in before.outputs:
        if output.name in names:
            with suppress(DPFrameError):
                one, other = before.accuracy(output.name), after.accuracy(output.name)
                if one != other:
                    yield f"95% error of {quoted(output.name)} {_bound_change(one, other)}"


def _bound_change(one: float, other: float) -> str:
    """Two bounds on errors, rounded up, or longer where they would look the same."""
    before, after = separated(about(one)), separated(about(other))
    return change_words(one, other) if before == after else f"{before} -> {after}"
