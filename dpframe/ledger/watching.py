"""What happens to a budget while a command runs, for who watches it: charges, and how they ended.

Events hold only amounts, names, numbers of records and fingerprints: nothing of the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from dpframe.core.budget import Budget
from dpframe.ledger.decimals import decimals, exact_fields

Listener: TypeAlias = "Callable[[str, dict[str, Any]], None]"

_listeners: list[Listener] = []


@contextmanager
def watched(listener: Listener) -> Iterator[None]:
    """Within this, the listener receives each event, by name and with its facts."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def happened(event: str, **facts: Any) -> None:
    """Report an event to the listeners."""
    for listener in [*_listeners]:
        listener(event, facts)


def report_charge(name: str | None, number: int, fingerprint: str, cost: Budget) -> None:
    """Report that a plan was charged to a budget, by a record of this number."""
    amounts = {"cost": exact_fields(cost), "cost_decimal": decimals(cost, up=True)}
    happened("charge", budget=name, record=number, fingerprint=fingerprint, **amounts)
