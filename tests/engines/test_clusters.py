"""Spark whose executors are processes of their own, and what happens when these are killed."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dpframe as dp
from tests.documentation import ROOT
from tests.engines.on_cluster import CONNECT, ROWS
from tests.engines.plans import PLANS
from tests.engines.spark import NO_JAVA

pytestmark = pytest.mark.spark

SOME = [
    "counts",
    "sums by category",
    "means by two keys",
    "people by text",
    "people weighed by category",
    "rows of people by group",
    "totals of people",
    "ratios of people",
    "private join",
    "found groups of people",
]
"""Plans of each kind of step, and some of each kind of statistic of individuals."""
IN_ONE_PROCESS = ["local-cluster[2,1,600]", f"{CONNECT}local[2]"]
"""Clusters that PySpark starts itself: executors in processes, and a server of Spark Connect."""


class Processes:
    """Processes of Spark on this machine, each with a group of its own.

    Parameters
    ----------
    folder
        Where they write.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.all: list[subprocess.Popen[bytes]] = []

    def start(self, kind: str, *options: str) -> tuple[subprocess.Popen[bytes], Path]:
        """One more, and the file of what it says."""
        from pyspark.find_spark_home import _find_spark_home

        home = Path(_find_spark_home())
        log = self.folder / f"{len(list(self.folder.glob('*.log')))}.log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                [home / "bin" / "spark-class", kind, *options],
                stdout=file,
                stderr=file,
                env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"},
                start_new_session=True,
            )
        self.all.append(process)
        return process, log

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """End a process and what it started."""
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def stop(self) -> None:
        """End all."""
        for process in reversed(self.all):
            self.kill(process)


class Cluster(Processes):
    """A master and workers.

    Parameters
    ----------
    workers
        How many there are, of one core each.
    """

    def __init__(self, folder: Path, workers: int) -> None:
        super().__init__(folder)
        deploy, here = "org.apache.spark.deploy", ("--host", "127.0.0.1", "--webui-port", "0")
        _, log = self.start(f"{deploy}.master.Master", *here, "--port", "0")
        self.url = _said(log, r"Starting Spark master at (spark://\S+)")
        self.workers = []
        for _ in range(workers):
            small = ("--cores", "1", "--memory", "600m", "--work-dir", str(folder))
            worker, log = self.start(f"{deploy}.worker.Worker", *here, *small, self.url)
            _said(log, r"(Successfully registered) with master")
            self.workers.append(worker)


def _said(log: Path, pattern: str) -> str:
    """What a process writes sooner or later."""
    end = time.monotonic() + 120
    while not (found := re.search(pattern, log.read_text(errors="replace"))):
        assert time.monotonic() < end, log.read_text(errors="replace")
        time.sleep(0.2)
    return found[1]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    if shutil.which("java") is None:
        pytest.skip(NO_JAVA)
    pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    made = Cluster(tmp_path, 2)
    yield made
    made.stop()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """A server of Spark Connect, in a process of its own."""
    if shutil.which("java") is None:
        pytest.skip(NO_JAVA)
    pytest.importorskip("pyspark.sql.connect.session", exc_type=ImportError)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        "spark.connect.grpc.binding.port": port,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
    }
    options = [text for key, value in settings.items() for text in ("--conf", f"{key}={value}")]
    kind = "org.apache.spark.sql.connect.service.SparkConnectServer"
    made = Processes(tmp_path)
    _, log = made.start(
        "org.apache.spark.deploy.SparkSubmit", "--master", "local[2]", *options,
        "--class", kind, "spark-internal",
    )  # fmt: skip
    _said(log, r"(Spark Connect server started)")
    yield f"sc://127.0.0.1:{port}"
    made.stop()


def started(*arguments: str, wait: float = 120) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.engines.on_cluster", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | {"EXECUTORS_WAIT": str(wait), "SPARK_LOCAL_IP": "127.0.0.1"},
        start_new_session=True,
    )


def ended(process: subprocess.Popen[str]) -> list[Any]:
    try:
        said, errors = process.communicate(timeout=900)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, errors
    return [json.loads(line) for line in said.splitlines()]


def assert_all_equal(found: list[Any], names: list[str]) -> None:
    assert found == [{"plan": name, "equal": True} for name in names]


@pytest.mark.slow
def test_plans_on_a_master_and_two_workers(cluster: Cluster) -> None:
    assert_all_equal(ended(started(cluster.url, *SOME)), SOME)


@pytest.mark.slow
def test_plans_on_a_server_of_spark_connect(server: str) -> None:
    assert_all_equal(ended(started(server, *SOME)), SOME)


@pytest.mark.parametrize(
    "master", [pytest.param(IN_ONE_PROCESS[0], marks=pytest.mark.slow), IN_ONE_PROCESS[1]]
)
def test_plans_on_what_pyspark_starts(master: str) -> None:
    if shutil.which("java") is None:
        pytest.skip(NO_JAVA)
    pytest.importorskip("pyspark.sql.connect.session", exc_type=ImportError)
    assert_all_equal(ended(started(master, *SOME)), SOME)


@pytest.mark.slow
@pytest.mark.parametrize("master", ["standalone", "connect", *IN_ONE_PROCESS])
def test_all_plans(master: str, request: pytest.FixtureRequest) -> None:
    url = master
    if master == "standalone":
        url = request.getfixturevalue("cluster").url
    elif master == "connect":
        url = request.getfixturevalue("server")
    assert_all_equal(ended(started(url, *PLANS)), [*PLANS])


def until(folder: Path, process: subprocess.Popen[str], wanted: list[str]) -> None:
    """Wait until a query has been paid for and runs."""
    end = time.monotonic() + 400
    while statuses(folder) != wanted:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, "the run did not begin in time"
        time.sleep(0.2)
    time.sleep(4)


def statuses(folder: Path) -> list[str]:
    place = folder / "budget.db"
    if not place.exists():
        return []
    return dp.Session(epsilon=10**9, ledger=place).history["status"].to_list()


@pytest.mark.slow
def test_workers_that_are_killed(cluster: Cluster, tmp_path: Path) -> None:
    """One of two changes nothing. A cluster that has none left is not waited for for ever."""
    run = started(cluster.url, "release", str(tmp_path), wait=6)
    until(tmp_path, run, ["charged"])
    cluster.kill(cluster.workers[0])
    until(tmp_path, run, ["released", "charged"])
    cluster.kill(cluster.workers[1])
    released, lost = ended(run)
    sums = [sum(i for i in range(ROWS) if i % 2 == g) for g in (0, 1)]
    assert released == {"released": {"g": [0, 1], "n": [ROWS // 2] * 2, "s": sums}}
    assert "the cluster had no executor for 6 seconds" in lost["error"]
    assert statuses(tmp_path) == ["released", "failed"]
    session = dp.Session(epsilon=10**9, ledger=tmp_path / "budget.db")
    first, second = session.history["epsilon"].to_list()
    assert first == second > 0
    assert session.spent == dp.PureDP(2 * int(first))
