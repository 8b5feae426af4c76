"""Settings that all tests share: how many examples a generated law tries."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import dpframe as dp
from tests import tiers
from tests.clocks import Set, setter
from tests.kernel import compared, slack
from tests.postgres import Server, remove_servers, started
from tests.steady import steady

FAST = "/dev/shm"
"""A disk in memory, for temporary files of tests and of processes that they start: each charge to a
ledger waits for the disk several times. What a killed process leaves behind is the same there.
"""
if "TMPDIR" not in os.environ and os.access(FAST, os.W_OK) and shutil.disk_usage(FAST).free > 2**30:
    os.environ["TMPDIR"] = tempfile.tempdir = FAST

for _name in dp.__all__:  # tests ask for all subclasses of a class, so all modules are loaded
    getattr(dp, _name)

slack.watch()
compared.watch_all()

_UNHURRIED = (HealthCheck.too_slow, HealthCheck.data_too_large)

settings.register_profile(
    "fast",
    max_examples=25,
    deadline=None,
    print_blob=True,
    suppress_health_check=_UNHURRIED,
    derandomize=True,  # a change is judged by itself; `make test-nightly` looks for new examples
)
settings.register_profile(
    "slow", max_examples=200, deadline=None, print_blob=True, suppress_health_check=_UNHURRIED
)
PROFILE = os.environ.get("DPFRAME_PROFILE", "fast")
settings.load_profile(PROFILE)


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--shard K/N` runs one of N parts of the tests that are selected."""
    parser.addoption("--shard", default="1/1")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Where several processes run all tests, let each import other files first: one of them then
    rewrites the asserts of a file, and the rest read what it has written.
    """
    worker, folder = getattr(session.config, "workerinput", None), Path(__file__).parent
    if worker is None or str(folder) not in {
        str(Path(arg).absolute()) for arg in session.config.args
    }:
        return
    files = sorted(folder.rglob("test_*.py"))
    for file in files[int(worker["workerid"][2:]) :: worker["workercount"]]:
        name = ".".join(file.relative_to(folder.parent).with_suffix("").parts)
        with suppress(Exception, pytest.skip.Exception):  # they come again when it is collected
            import_module(name)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what waits for the night, before the marks are looked at, and keep one shard. Of the
    slow run, leave out what would do the same as in `make test`: tests that are neither slow nor
    generated anew. The longest come first, so that no process waits for another at the end.
    """
    nightly, shard = tiers.nightly_names(), config.getoption("--shard")
    for item in items:
        if tiers.name_of(item.nodeid) in nightly and not item.get_closest_marker("always"):
            item.add_marker("nightly")
    rest = [item for item in items if not tiers.in_shard(item.nodeid, shard)]
    if PROFILE == "slow":
        rest += [i for i in items if not (i.get_closest_marker("slow") or _is_generated(i))]
    config.hook.pytest_deselected(items=rest)
    left_out = set(rest)
    items[:] = [item for item in items if item not in left_out]
    items.sort(key=lambda item: item.get_closest_marker("always") is None)


def _is_generated(item: pytest.Item) -> bool:
    return bool(getattr(getattr(item, "obj", None), "is_hypothesis_test", False))


@pytest.fixture(autouse=True)
def _same_noise(request: pytest.FixtureRequest) -> Iterator[None]:
    """In each run of `make test`, unless a test is about the randomness itself."""
    if PROFILE == "slow" or request.node.get_closest_marker("chance"):
        yield
    else:
        with steady(request.node.nodeid):
            yield


@pytest.fixture(scope="session")
def adult() -> Path:
    """The example data: 32,561 people, one row each."""
    return Path(__file__).parents[1] / "examples" / "data" / "adult.parquet"


@pytest.fixture(scope="session", autouse=True)
def _no_server_stays() -> Iterator[None]:
    yield
    remove_servers()


@pytest.fixture(scope="session")
def server() -> Server:
    """A PostgreSQL server, of this worker only."""
    server = started()
    if server is None:
        pytest.skip("PostgreSQL's server (initdb, postgres) is not installed")
    return server


@pytest.fixture
def set_clock(monkeypatch: pytest.MonkeyPatch) -> Set:
    """Says what time it is, in UTC."""
    return setter(monkeypatch)


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Where a new ledger may be: the path of a file, or the URL of a database."""
    if request.param == "sqlite":
        return tmp_path / "budget.db"
    server: Server = request.getfixturevalue("server")
    return server.empty()
