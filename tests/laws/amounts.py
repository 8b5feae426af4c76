"""How much is tried: some in `make test`, many in `make test-nightly`."""

from __future__ import annotations

import pytest
from hypothesis import settings

from tests.conftest import PROFILE


def examples(some: int, many: int) -> settings:
    """The settings of a law."""
    return settings(max_examples=many if PROFILE == "slow" else some)


def amounts(name: str, some: int, many: int) -> pytest.MarkDecorator:
    """The parameter of a test that is not generated: two tests, the longer of them slow."""
    return pytest.mark.parametrize(name, [some, pytest.param(many, marks=pytest.mark.slow)])
