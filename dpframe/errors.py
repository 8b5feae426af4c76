"""Every error that dpframe raises on purpose.

::

    DPFrameError
    ├── UnsupportedOperation   an operation with no known stability rule (also an AttributeError)
    ├── UnboundedSensitivity   one individual could change the result without limit
    ├── InvalidBounds          bounds, bins, candidates or quantiles that make no sense
    ├── InvalidBudget          a spend or budget that is empty, infinite or in another measure
    ├── BudgetExceeded         the session's budget does not cover the plan
    ├── MissingKeys            groups that nobody listed and that may not be read from the data
    ├── UnknownColumn          a column that the frame does not have
    ├── UnitDropped            the column that says who is protected was dropped or redefined
    ├── LedgerError            the ledger cannot be opened, does not verify or names another budget
    ├── PlanMismatch           a plan that is not the one that was approved
    ├── TooEarly               a period that ended too short a time ago
    └── EngineError            an engine failed; its own text is withheld because it may hold data
    UserWarning
    └── ResultWarning          numbers of a release that are not what they seem
        ├── DroppedRows        a limit that was found drops more than a tenth of the rows, or may
        ├── NoGroups           no group is large enough to appear
        ├── NoRows             numbers that rest on no rows, as far as noise lets see
        ├── ValuesAtBounds     numbers at a bound, to which most values are probably clamped
        ├── ImpossibleKeys     listed keys that no row can have
        └── EventRows          rows are protected, and people seem to have several

A message has up to four parts, each on lines of its own: what is wrong, the expression it was
found in (``in:``), the reason (``why:``), and what to do (``instead:``). The last holds code or
actions, never reasons: one, or two with the better one first. Code in it runs to a right result, or
has a placeholder such as ``low`` and cannot run at all. No part is ever derived from private data,
and addresses in it have lost what gives access to them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

__all__ = [
    "BudgetExceeded",
    "DPFrameError",
    "DroppedRows",
    "EngineError",
    "EventRows",
    "ImpossibleKeys",
    "InvalidBounds",
    "InvalidBudget",
    "LedgerError",
    "MissingKeys",
    "NoBudget",
    "NoGroups",
    "NoRows",
    "PlanMismatch",
    "ResultWarning",
    "TooEarly",
    "UnboundedSensitivity",
    "UnitDropped",
    "UnknownColumn",
    "Unsound",
    "UnsupportedOperation",
    "ValuesAtBounds",
]

# What of a location people may see: an address without what gives access to it.
#
# A presigned address carries its permission in its query, a server's address its password before
# the host. Messages, representations, plans, histories and ledgers quote locations through here.

_URL = re.compile(
    r"[A-Za-z][A-Za-z0-9+.\-]*://"
    r"(?:(?=\S*[@?#])\S*?(?=['\"<>)\],.;:]*(?:\s|$))|[^\s'\"<>]*)"
)
"""A quotation mark ends an address, but may be part of a secret: where one may be, marks at the end
of the word do.
"""
_HIDDEN = "..."


def location(place: object) -> str:
    """A path or address as messages may quote it: without user, password, query and fragment."""
    text = str(place)
    scheme, separator, rest = text.partition("://")
    if not separator:
        return text
    return f"{scheme}://{_shown(rest)}"


def redacted(text: str) -> str:
    """A message with each address in it as `location` gives it."""
    if "://" not in text:
        return text
    return _URL.sub(lambda found: location(found[0]), text)


def _shown(rest: str) -> str:
    """Host and path. If an ``@`` follows a ``?`` or ``#``, it is unknown whether a password
    continues there, so nothing is shown.
    """
    end = min((i for i in map(rest.find, "?#") if i >= 0), default=len(rest))
    kept, cut = rest[:end], rest[end:]
    if "@" in cut:
        return _HIDDEN
    _, user, place = kept.rpartition("@")
    return (f"{_HIDDEN}@" if user else "") + place + (f"{cut[0]}{_HIDDEN}" if cut else "")


class DPFrameError(Exception):
    """The root of the tree; catches everything that dpframe refuses.

    Parameters
    ----------
    what
        What is wrong, in one sentence.
    where
        The expression or argument it was found in, as the analyst would write it.
    why
        The reason, where `what` does not say it.
    remedy
        What to do: code or an action. A pair has a second way, for when the first does not fit.
        The attribute `remedy` is a text with a line for each.
    """

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        why: str | None = None,
        remedy: str | tuple[str, str] | None = None,
    ) -> None:
        self.what = redacted(what)
        self.where = None if where is None else redacted(where)
        self.why = None if why is None else redacted(why)
        ways = remedy if isinstance(remedy, str | None) else "\n".join(remedy)
        self.remedy = None if ways is None else redacted(ways)
        super().__init__(self.what, self.where, self.why, self.remedy)

    def __str__(self) -> str:
        return "\n".join([self.what, *self.lines(str)])

    def lines(self, shown: Callable[[str], str]) -> list[str]:
        """The lines below `what`, each text as a function shows it."""
        lines = []
        if self.where is not None:
            lines.append(f"  in: {shown(self.where)}")
        if self.why is not None:
            reason, *facts = self.why.split("\n")
            lines += [f"  why: {shown(reason)}", *map(shown, facts)]
        if self.remedy is not None:
            first, *second = self.remedy.split("\n", 1)
            lines.append(f"  instead: {shown(first)}")
            lines += [f"       or: {shown(way)}" for way in second]
        return lines

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions are built again from `args`, which subclasses need not take.
        return _remade, (type(self), self.args), dict(self.__dict__)

    def at(self, where: str) -> DPFrameError:
        """The same error, located in `where` unless a place is known already."""
        if self.where is None:
            self.where = redacted(where)
        return self


def _remade(kind: type[DPFrameError], args: tuple[Any, ...]) -> DPFrameError:
    """An error as it was when it was pickled or copied, without its fields and notes."""
    made = kind.__new__(kind)
    made.args = args
    return made


class UnsupportedOperation(DPFrameError, AttributeError):
    """An operation whose stability or sensitivity rule is not known, so it is refused."""


class UnboundedSensitivity(DPFrameError):
    """One individual could change the result by any amount."""


class InvalidBounds(DPFrameError):
    """Bounds, bins, candidates or quantiles that are reversed, equal, infinite or not numbers."""


class InvalidBudget(DPFrameError):
    """A spend or budget that is empty, infinite, zero, negative or in another measure."""


class BudgetExceeded(DPFrameError):
    """The plan costs more than what remains in the session."""


class MissingKeys(DPFrameError):
    """Groups would have to be read from private data, and the budget does not allow that."""


class UnknownColumn(DPFrameError):
    """A column that the frame does not have at this point."""


class UnitDropped(DPFrameError):
    """The column that identifies individuals was dropped, cast or redefined."""


class LedgerError(DPFrameError):
    """The ledger cannot be opened, does not verify, or holds another budget."""


class NoBudget(LedgerError):
    """The ledger does not exist, or it has no budget of that name, and none is opened here."""


class PlanMismatch(DPFrameError):
    """The plan is not the one that was approved."""


class Unsound(DPFrameError):
    """A plan whose statements do not follow from what would run: an error of dpframe itself. Or the
    document of a plan that promises more privacy than its noise gives.
    """


def require(holds: bool, fact: str) -> None:
    """Refuse to go on where a fact that privacy rests on does not hold: an error of dpframe itself.
    Unlike an `assert` it holds under `python -O` too.

    Raises
    ------
    Unsound
        When it does not hold.
    """
    if not holds:
        raise Unsound(f"a fact that privacy rests on does not hold: {fact}", remedy=_REPORT)


_REPORT = "report this as an error of dpframe, with the plan"


class TooEarly(DPFrameError):
    """A period that ended too short a time ago: its `delay` has not passed.

    Parameters
    ----------
    due
        The earliest time for the request, in UTC.
    """

    def __init__(
        self,
        what: str,
        *,
        due: datetime,
        where: str | None = None,
        why: str | None = None,
        remedy: str | tuple[str, str] | None = None,
    ) -> None:
        super().__init__(what, where=where, why=why, remedy=remedy)
        self.due = due


class EngineError(DPFrameError):
    """An engine failed while it ran a plan; its message is withheld, because it may quote
    data."""


class ResultWarning(UserWarning):
    """Python's warning that numbers of a release are not what they seem: the root of the classes
    below. Its text follows from the query and from noisy numbers alone, and stands in
    `Release.warnings` too.
    """


class DroppedRows(ResultWarning):
    """The limit that a query found when it ran drops more than a tenth of the rows, or may drop
    that many within noise.
    """


class NoGroups(ResultWarning):
    """Python's warning about a result whose groups were chosen privately: none of them is large
    enough to appear.
    """


class NoRows(ResultWarning):
    """Python's warning about numbers of a result that rest on no rows within noise. The noisy
    count of a mean, variance or ratio is within its 95% bound of 0, or the numbers of all listed
    groups are.
    """


class ValuesAtBounds(ResultWarning):
    """Python's warning, when a query has run, that a mean, sum or quantile is at a bound of its
    values, or within noise of it: most values are probably clamped.
    """


class ImpossibleKeys(ResultWarning):
    """Python's warning, when a query runs, of listed keys that no row can have, by the type of the
    column or by what is known of the expression.
    """


class EventRows(ResultWarning):
    """Warning, when a query runs, that people seem to have several of the protected rows (`Rows`):
    the frame has a time, and a column whose name looks like an identifier of people.
    """
