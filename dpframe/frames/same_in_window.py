"""What is the same in all rows of a calendar window, and so in all rows of one individual there."""

from __future__ import annotations

from collections.abc import Mapping

from dpframe.core.tree import Call, Column, Tree
from dpframe.core.windows import Every
from dpframe.frames.facts import FrameFacts
from dpframe.rows.temporal import Truncate

__all__ = ["follows_from_window"]

_PARTS: Mapping[str, frozenset[Every]] = {
    "dt_date": frozenset({"1d"}),
    "dt_day": frozenset({"1d"}),
    "dt_weekday": frozenset({"1d"}),
    "dt_ordinal_day": frozenset({"1d"}),
    "dt_month": frozenset({"1d", "1mo"}),
    "dt_quarter": frozenset({"1d", "1mo", "1q"}),
    "dt_year": frozenset({"1d", "1mo", "1q", "1y"}),
}
"""Operations on a time, and the windows in which all times give the same. Weeks cross months."""
_TRUNCATED: Mapping[str, frozenset[Every]] = {
    "1d": frozenset({"1d"}),
    "1w": frozenset({"1d", "1w"}),
    "1mo": frozenset({"1d", "1mo"}),
    "1q": frozenset({"1d", "1mo", "1q"}),
    "3mo": frozenset({"1d", "1mo", "1q"}),
    "1y": frozenset({"1d", "1mo", "1q", "1y"}),
    "12mo": frozenset({"1d", "1mo", "1q", "1y"}),
}


def follows_from_window(tree: Tree, facts: FrameFacts) -> bool:
    """Whether an expression of the time has one value, or is null, throughout each window.

    Guarantee
    ---------
    Rows of one window give one value: a person in a window is in one group by it.

    Proof
    -----
    Windows are distinguished by what the clocks of the time's zone show, and so are these parts:
    a date, a month or a year that has a whole window in it is that of all its times. Times
    outside the calendar, for which the parts are null, are windows of their own, and so are rows
    without a time. A time with a zone that is truncated is an instant, and where clocks show the
    beginning of a window twice there are two: so that is not among them. A date is its own day,
    also outside the calendar.
    """
    if facts.time is None or facts.every is None:
        return False
    match tree:
        case Column(name):
            is_day = name == facts.time and facts.columns[name].dtype.name == "Date"
            return is_day and facts.every == "1d"
        case Call(Truncate(every), (Column(name),)):
            zoned = facts.columns[facts.time].dtype.zone is not None
            alike = facts.every in _TRUNCATED.get(every, ())
            return name == facts.time and alike and not zoned
        case Call(operation, (Column(name),)):
            return name == facts.time and facts.every in _PARTS.get(operation.name, ())
        case Call(operation, (Call() as inner,)) if operation.name in _PARTS:
            return follows_from_window(inner, facts)
        case _:
            return False
