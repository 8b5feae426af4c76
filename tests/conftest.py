"""Settings that all tests share: how many examples a generated law tries."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

_UNHURRIED = (HealthCheck.too_slow, HealthCheck.data_too_large)

settings.register_profile(
    "fast",
    max_examples=25,
    deadline=None,
    print_blob=True,
    suppress_health_check=_UNHURRIED,
    derandomize=True,  # a change is judged by itself; `make test-slow` looks for new examples
)
settings.register_profile(
    "slow", max_examples=500, deadline=None, print_blob=True, suppress_health_check=_UNHURRIED
)
settings.load_profile(os.environ.get("DPFRAME_PROFILE", "fast"))


@pytest.fixture(scope="session")
def adult() -> Path:
    """The example data: 32,561 people, one row each."""
    return Path(__file__).parents[1] / "examples" / "data" / "adult.parquet"
