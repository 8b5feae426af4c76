"""Plans that the planner made are shared by the processes that run tests."""

from __future__ import annotations

import os

import pytest

from tests.kernel import plans


@pytest.fixture(scope="session", autouse=True)
def _plans_are_shared(tmp_path_factory: pytest.TempPathFactory) -> None:
    own = tmp_path_factory.getbasetemp()
    # That of a process lies in the folder of the run, unless tests run in one process.
    plans.SHARED.append((own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "plans")
