"""The current time from the machine's clock, which decides whether a release is too early."""

from __future__ import annotations

from datetime import UTC, datetime

__all__ = ["now"]


def now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC)
