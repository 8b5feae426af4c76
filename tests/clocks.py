"""What time it is, in tests that say so: the fixture `set_clock`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeAlias

import pytest

from dpframe.core import windows

Set: TypeAlias = Callable[..., None]


def setter(monkeypatch: pytest.MonkeyPatch) -> Set:
    """Says what time it is, in UTC."""

    def set_to(*moment: Any) -> None:
        monkeypatch.setattr(windows, "now", lambda: datetime(*moment, tzinfo=UTC))

    return set_to
