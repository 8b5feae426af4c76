"""The current time, from the clock of the machine, for acts that must not happen before a
time."""

from __future__ import annotations

from datetime import UTC, datetime

__all__ = ["now"]


def now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC)
