"""What monitoring reads of a ledger: OpenMetrics text, as Prometheus and others understand it.

https://github.com/prometheus/OpenMetrics/blob/v1.0.0/specification/OpenMetrics.md
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

from dpframe.core.budget import Budget
from dpframe.core.windows import Windows, number_of
from dpframe.ledger.account import Account
from dpframe.ledger.decimals import decimals
from dpframe.ledger.entry import Status
from dpframe.ledger.report import chosen
from dpframe.ledger.scopes import WindowScope
from dpframe.ledger.store import Store

STATUSES: tuple[Status, ...] = ("charged", "released", "failed")
"""How charges are; one that is only charged is open: its query runs, or its process died."""

Labels: TypeAlias = "Mapping[str, str]"
Sample: TypeAlias = "tuple[Labels, float]"


@dataclass(frozen=True, slots=True)
class Family:
    """One metric.

    Parameters
    ----------
    name, help
        The name and the meaning.
    samples
        Its values in a budget at a time.
    unit
        The unit of the values, if they have one; the name ends with it.
    """

    name: str
    help: str
    samples: Callable[[Account, datetime], Iterator[Sample]]
    unit: str | None = None


def metrics(store: Store, name: str | None, now: datetime | None = None) -> Iterator[str]:
    """The lines of all metrics, of all budgets or of one.

    Raises
    ------
    LedgerError
        When the ledger does not verify, or has no budget of that name.
    """
    chain, time = store.read(whole=True), datetime.now(UTC) if now is None else now
    accounts = chosen(chain, name)
    for family in FAMILIES:
        yield from _described(family)
        for account in accounts:
            for labels, value in family.samples(account, time):
                yield _line(family.name, {"name": account.name, **labels}, value)
    records = Family("dpframe_ledger_records", "Records of the ledger, which verifies.", _none)
    yield from _described(records)
    yield _line(records.name, {}, chain.length)
    yield "# EOF"


def _described(family: Family) -> Iterator[str]:
    yield f"# TYPE {family.name} gauge"
    if family.unit is not None:
        yield f"# UNIT {family.name} {family.unit}"
    yield f"# HELP {family.name} {family.help}"


def _line(name: str, labels: Labels, value: float) -> str:
    shown = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    return f"{name}{{{shown}}} {value}" if shown else f"{name} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _amounts(budget: Budget, *, up: bool = False) -> Iterator[Sample]:
    for amount, value in decimals(budget, up=up).items():
        yield {"amount": amount}, value


def _budget(account: Account, now: datetime) -> Iterator[Sample]:
    return _amounts(account.budget)


def _spent(account: Account, now: datetime) -> Iterator[Sample]:
    return _amounts(account.spent, up=True)


def _remaining(account: Account, now: datetime) -> Iterator[Sample]:
    return _amounts(account.remaining)


def _window_spent(account: Account, now: datetime) -> Iterator[Sample]:
    window = _window(account, now)
    if window is not None:
        yield from _in_window(window, window.spent(account.scopes), up=True)


def _window_remaining(account: Account, now: datetime) -> Iterator[Sample]:
    window = _window(account, now)
    if window is not None:
        closed = account.closed is not None
        left = account.remaining if closed else window.room(account.scopes, account.remaining)
        yield from _in_window(window, left)


def _window(account: Account, now: datetime) -> WindowScope | None:
    """The current window, by the date in UTC, of a budget that is for each of them."""
    if account.per is None:
        return None
    number = number_of(account.per, now.astimezone(UTC).date())
    return WindowScope(Windows(account.per, number, number, without=False))


def _in_window(window: WindowScope, amount: Budget, *, up: bool = False) -> Iterator[Sample]:
    for labels, value in _amounts(amount, up=up):
        yield {"window": window.place, **labels}, value


def _closed(account: Account, now: datetime) -> Iterator[Sample]:
    yield {}, int(account.closed is not None)


def _charges(account: Account, now: datetime) -> Iterator[Sample]:
    counted = Counter(entry.status for entry in account.entries.values())
    for status in STATUSES:
        yield {"status": status}, counted[status]


def _last_release(account: Account, now: datetime) -> Iterator[Sample]:
    released = [e.time for e in account.entries.values() if e.status == "released"]
    if released:
        yield {}, round(max(released).timestamp(), 3)


def _open_charges(account: Account, now: datetime) -> Iterator[Sample]:
    for entry in account.entries.values():
        if entry.status == "charged":
            age = max(0.0, (now - entry.time).total_seconds())
            yield {"record": str(entry.number)}, round(age, 3)


def _none(account: Account, now: datetime) -> Iterator[Sample]:
    return iter(())


FAMILIES: Sequence[Family] = (
    Family("dpframe_budget", "The budget in all or for each window, by amount.", _budget),
    Family("dpframe_spent", "The amount spent, in the fullest window, rounded up.", _spent),
    Family("dpframe_remaining", "The amount that may still be spent, rounded down.", _remaining),
    Family(
        "dpframe_window_spent",
        "The amount spent in the current window, rounded up, for budgets per window.",
        _window_spent,
    ),
    Family(
        "dpframe_window_remaining",
        "The amount that may still be spent in the current window, rounded down.",
        _window_remaining,
    ),
    Family("dpframe_budget_closed", "Whether the budget was ended: 1 or 0.", _closed),
    Family("dpframe_charges", "Charges by how they ended; 'charged' if they have not.", _charges),
    Family(
        "dpframe_last_release_timestamp_seconds",
        "When the newest charge was made that was released.",
        _last_release,
        "seconds",
    ),
    Family(
        "dpframe_open_charge_age_seconds",
        "The age of each charge that has not ended, by the number of its record.",
        _open_charges,
        "seconds",
    ),
)
