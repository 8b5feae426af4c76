"""Plans as the edition before made them, by which results that were paid for are found again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

__all__ = ["as_the_edition_before", "is_edition_before"]

_BEFORE: Final = ContextVar("edition_before", default=False)


@contextmanager
def as_the_edition_before() -> Iterator[None]:
    """Plan by the mechanisms and measurements that the edition before had. Nothing may be drawn by
    plans that are made here.
    """
    token = _BEFORE.set(True)
    try:
        yield
    finally:
        _BEFORE.reset(token)


def is_edition_before() -> bool:
    """Whether plans are made as the edition before made them."""
    return _BEFORE.get()
