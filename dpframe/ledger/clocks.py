"""By which column and time zone each frame's rows are in calendar windows.

A budget for each window counts what each window was charged. A row is in the window of its own
time. Under another column of times, or in another time zone, the same rows are in other windows:
both charges would be counted separately, and the rows near midnight paid for once and read twice.
So what a charge read by is recorded with it, and no later charge of the budget reads by another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dpframe.errors import LedgerError


@dataclass(frozen=True, slots=True, order=True)
class Clock:
    """The rule that assigns a frame's rows to windows.

    Parameters
    ----------
    frame
        The name of the frame; empty for all unnamed frames.
    column
        The time zone of its times, when it was protected.
    zone
        Their time zone; empty where they have none.
    """

    frame: str
    column: str
    zone: str

    def fields(self) -> list[str]:
        """As JSON."""
        return [self.frame, self.column, self.zone]

    @classmethod
    def read(cls, found: Any) -> Clock:
        """What `fields` made.

        Raises
        ------
        ValueError, TypeError
            When it makes no sense.
        """
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
    """Refuse a charge that reads windows by another column or time zone than earlier ones.

    Raises
    ------
    LedgerError
        With both, and what to do.
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
