"""How many examples a law tries: some in `make test`, many in `make test-slow`."""

from __future__ import annotations

from hypothesis import settings

from tests.conftest import PROFILE


def examples(some: int, many: int) -> settings:
    """The settings of a law."""
    return settings(max_examples=many if PROFILE == "slow" else some)
