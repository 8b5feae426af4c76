"""Plans on Spark give the tables that they give on Polars, whatever the session says."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import polars as pl
import pytest

import dpframe as dp
from dpframe.lower import lower_query
from dpframe.lower.engines.polars_engine import POLARS
from tests.documentation import ROOT, beside_data, run_page
from tests.engines.plans import FRAMES, PLANS, query
from tests.engines.running import exact, on_polars, one_hash
from tests.engines.spark import frames, session
from tests.laws.neighbours import tables_of

__all__ = ["one_hash", "session"]

pytestmark = pytest.mark.spark

ZONES = ("UTC", "America/New_York")
EVERY = [("true", ZONES[1]), ("false", ZONES[0]), ("true", ZONES[0]), ("false", ZONES[1])]
"""Whether ANSI is on, and the session's time zone. Building a plan takes seconds, so plans without
dates and times run in the first two alone.
"""


@pytest.fixture(scope="session")
def given(session: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return frames(session, tmp_path_factory.mktemp("spark"), FRAMES)


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.usefixtures("one_hash")
def test_spark_gives_the_tables_of_polars(name: str, session: Any, given: dict[str, Any]) -> None:
    from dpframe.lower.engines.spark_engine import SparkEngine

    asked, tokens = query(PLANS[name])
    expected = on_polars(name)
    plan = PLANS[name]
    timed = any(word in plan.steps + plan.groups + plan.outputs for word in ('"d"', '"t"'))
    for ansi, zone in EVERY if timed else EVERY[:2]:
        session.conf.set("spark.sql.ansi.enabled", ansi)
        session.conf.set("spark.sql.session.timeZone", zone)
        found = exact(asked, tokens, SparkEngine(given["f"]), given)
        assert found == expected, (ansi, zone)


def test_a_release_from_spark(session: Any, given: dict[str, Any]) -> None:
    budget = dp.Session(epsilon=10**15)
    people = budget.protect(given["f"], "u", name="people")
    query = people.limit_groups(3, by="e").group_by("e", keys=["p", "q"]).agg(dp.n_unique("u"))
    released = query.collect(epsilon=10**14)
    assert released["e"].to_list() == ["p", "q"]
    assert min(released["u"]) > 0
    assert budget.history["status"].to_list() == ["released"]
    with pytest.raises(dp.UnsupportedOperation, match="belongs to Spark"):
        query.collect(epsilon=1, engine="streaming")


# -------------------------------------------------------------------------- shuffles of limits

LIMITED = (
    "people by category",
    "people by two",
    "people by text",
    "windows and groups",
)
"""Plans whose last step limits groups, in which pairs of individual and group are dropped."""
OPTION = "spark.dpframe.pairs.combine"


@pytest.fixture
def combine(session: Any) -> Iterator[Callable[[str], None]]:
    yield lambda value: session.conf.set(OPTION, value)
    session.conf.unset(OPTION)


@pytest.mark.parametrize("name", LIMITED)
@pytest.mark.usefixtures("one_hash")
def test_how_pairs_are_shuffled_changes_no_table(
    name: str, session: Any, given: dict[str, Any], combine: Callable[[str], None]
) -> None:
    from dpframe.lower.engines.spark_engine import SparkEngine

    asked, tokens = query(PLANS[name])
    shuffled = _shuffles(name, given["f"], SparkEngine(given["f"]))
    combine("TRUE")
    assert _shuffles(name, given["f"], SparkEngine(given["f"])) > shuffled
    assert exact(asked, tokens, SparkEngine(given["f"]), given) == on_polars(name)


@pytest.mark.usefixtures("session")
def test_a_limit_on_groups_shuffles_rows_once(given: dict[str, Any]) -> None:
    """By individual, and then groups by themselves; also where its owner has done the first."""
    from dpframe.lower.engines.spark_engine import SparkEngine

    for frame in (given["f"], given["f"].repartition("u")):
        assert _shuffles("people by category", frame, SparkEngine(frame)) == 2


def _shuffles(name: str, data: Any, engine: Any) -> int:
    """How often a plan's only query shuffles, as Spark plans it before it runs."""
    asked, _ = query(PLANS[name])
    found = lower_query(
        asked.relation, asked.groups, tables_of(asked), engine.frame(data), engine.ns
    )
    (frame,) = (cast(Any, one.frame).native for one in found)
    plan: str = frame._jdf.queryExecution().executedPlan().toString()
    return plan.count("Exchange hashpartitioning(")


def test_time_with_a_zone_is_refused_by_name(session: Any) -> None:
    frame = session.sql("SELECT TIMESTAMP '2026-01-01 23:30:00' AS t, 1 AS x")
    people = dp.Session(epsilon=1).protect(frame, dp.Rows())
    people.dp_count()  # the column does no harm as long as it is not used
    with pytest.raises(dp.UnsupportedOperation, match="not supported on Spark"):
        people.filter(pl.col("t").dt.hour() > 3).dp_count()


def test_text_with_a_collation_is_refused(session: Any) -> None:
    if int(session.version.split(".")[0]) < 4:
        pytest.skip("collations came with Spark 4")
    frame = session.sql("SELECT 'a' COLLATE UTF8_LCASE AS s, 1 AS x")
    people = dp.Session(epsilon=1).protect(frame, dp.Rows())
    with pytest.raises(dp.UnsupportedOperation):
        people.group_by("s", keys=["a"]).agg(dp.count())
    people.dp_sum("x", (0, 1))


def test_an_engine_that_fails_says_nothing(session: Any) -> None:
    frame = session.sql(
        "SELECT CAST(IF(id < 0, 1, raise_error('secret-ssn-123')) AS INT) AS x FROM range(5)"
    )
    budget = dp.Session(epsilon=1)
    query = budget.protect(frame, dp.Rows()).dp_count("x")
    with pytest.raises(dp.EngineError) as caught:
        query.collect(epsilon=0.5)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert budget.history["status"].to_list() == ["failed"]


class _Heard(logging.Handler):
    """What a logger lets through."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text += record.getMessage()


def test_what_spark_quotes_is_not_printed(session: Any, tmp_path: Path) -> None:
    """PySpark prints what an error quotes before it raises it; of other queries it still does."""
    pl.DataFrame({"s": ["1", "secret-ssn-123"]}).write_parquet(tmp_path / "1.parquet")
    session.conf.set("spark.sql.ansi.enabled", "true")
    frame = session.read.parquet(str(tmp_path / "1.parquet")).selectExpr("CAST(s AS INT) AS x")
    query = dp.Session(epsilon=1).protect(frame, dp.Rows()).dp_sum("x", (0, 9))
    heard, printer = _Heard(), logging.getLogger("SQLQueryContextLogger")
    printer.addHandler(heard)
    try:
        with pytest.raises(dp.EngineError):
            query.collect(epsilon=0.5)
        assert heard.text == ""
        with pytest.raises(Exception, match="secret"):
            frame.collect()
        assert ("secret" in heard.text) == (int(session.version.split(".")[0]) >= 4)
    finally:
        printer.removeHandler(heard)


def test_a_run_that_is_cancelled_releases_nothing(session: Any) -> None:
    slow = session.range(0, 400_000, numPartitions=2).crossJoin(session.range(0, 400_000).toDF("b"))
    frame = slow.filter("(id * b) % 1000003 <> 1").selectExpr("CAST(id % 7 AS INT) AS x")
    budget = dp.Session(epsilon=10**15)
    query = budget.protect(frame, dp.Rows()).dp_sum("x", (0, 6))
    stopper = threading.Thread(target=_cancel_soon, args=(session, budget))
    stopper.start()
    with pytest.raises(dp.EngineError):
        query.collect(epsilon=1)
    stopper.join()
    assert budget.history["status"].to_list() == ["failed"]
    rows = budget.protect(session.range(3), dp.Rows())
    assert rows.dp_count().collect(epsilon=10**14).item() == 3


def _cancel_soon(session: Any, budget: dp.Session) -> None:
    while budget.history["status"].to_list() != ["charged"]:
        time.sleep(0.1)
    time.sleep(3)
    session.sparkContext.cancelAllJobs()


_KILLED = """
import json, sys
import dpframe as dp
from pyspark.sql import SparkSession
ledger, ready = sys.argv[1:]
made = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = made.config("spark.driver.host", "127.0.0.1").getOrCreate()
spark.sparkContext.setLogLevel("OFF")
slow = spark.range(0, 400_000).crossJoin(spark.range(0, 400_000).toDF("b"))
rows = slow.filter("(id * b) % 1000003 <> 1").selectExpr("CAST(id % 7 AS INT) AS x")
query = dp.Session(epsilon=1, ledger=ledger).protect(rows, dp.Rows()).dp_sum("x", (0, 6))
with open(ready, "w") as file:
    json.dump(spark.sparkContext._gateway.proc.pid, file)
try:
    print("released", query.collect(epsilon=0.5))
except dp.EngineError:
    print("engine error")
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.usefixtures("session")  # where Spark runs at all
@pytest.mark.parametrize("how", ["Ctrl-C", "its virtual machine is killed"])
def test_a_run_that_ends_in_the_middle_releases_nothing(how: str, tmp_path: Path) -> None:
    ledger, ready = tmp_path / "budget.db", tmp_path / "ready"
    process = subprocess.Popen(
        [sys.executable, "-c", _KILLED, str(ledger), str(ready)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        end = time.monotonic() + 120
        while not (ready.exists() and _statuses(ledger) == ["charged"]):
            assert process.poll() is None
            assert time.monotonic() < end, "the run did not begin in time"
            time.sleep(0.2)
        time.sleep(3)
        if how == "Ctrl-C":
            process.send_signal(signal.SIGINT)
        else:
            os.kill(json.loads(ready.read_text()), signal.SIGKILL)
        said, _ = process.communicate(timeout=120)
    finally:
        process.kill()
    assert said.strip() in ("interrupted", "engine error")
    assert _statuses(ledger) == ["failed"]
    assert dp.Session(epsilon=1, ledger=ledger).remaining == dp.PureDP("0.5")


def _statuses(ledger: Path) -> list[str]:
    if not ledger.exists():
        return []
    return dp.Session(epsilon=1, ledger=ledger).history["status"].to_list()


def test_files_and_frames_of_spark(session: Any, tmp_path: Any) -> None:
    FRAMES["f"].select("x", "s").write_parquet(tmp_path / "1.parquet")
    budget = dp.Session(epsilon=10**15)
    read = budget.protect(tmp_path / "1.parquet", dp.Rows(), engine="spark")
    assert read.dp_count().collect(epsilon=10**14).item() == FRAMES["f"].height


def test_types_of_folders_are_not_guessed(session: Any, tmp_path: Path) -> None:
    """One row of another day would make text of a number."""
    (tmp_path / "1.parquet" / "day=7").mkdir(parents=True)
    FRAMES["f"].select("x").write_parquet(tmp_path / "1.parquet" / "day=7" / "1.parquet")
    protect = dp.Session(epsilon=1).protect
    with pytest.raises(dp.UnsupportedOperation, match="names of folders"):
        protect(tmp_path / "1.parquet", dp.Rows(), engine="spark")
    stated = session.read.schema("x double, day string").parquet(str(tmp_path / "1.parquet"))
    assert protect(stated, dp.Rows()).schema["day"] == pl.String()


def test_names_that_spark_reads_otherwise(session: Any) -> None:
    frame = session.createDataFrame([(1, 2, 3)], ["a.b", "`c` d", "é 'x'"])
    people = dp.Session(epsilon=10**15).protect(frame, dp.Rows())
    sums = [pl.col(name).dp_sum((0, 9)) for name in people.columns]
    assert people.agg(*sums).collect(epsilon=10**15).row(0) == (1, 2, 3)


def test_the_guide_runs_on_spark(session: Any) -> None:
    """The script of the page, with the line for Spark."""
    page = ROOT / "docs" / "howto" / "scale.md"
    (code,) = re.findall(r"^```py\n([^`]*released\(frame\)[^`]*)^```$", page.read_text(), re.M)
    session.conf.set("spark.sql.ansi.enabled", "true")
    with beside_data():
        found: dict[str, Any] = {}
        for _ in run_page(page, found):
            pass
        exec(code.replace('"visits/', f'"{Path.cwd()}/visits/'), found)  # Java began elsewhere
        release = found["released"](found["frame"])
        assert release.plan.fingerprint == found["one"].plan.fingerprint
        assert release.frame["city"].to_list() == found["one"].frame["city"].to_list()


# -------------------------------------------------------------------------- without a session


def _engine(session: object) -> Any:
    engine = pytest.importorskip("dpframe.lower.engines.spark_engine").SparkEngine
    made = object.__new__(engine)
    made._session, made._process = session, os.getpid()
    return made


def test_a_process_that_did_not_open_the_session_is_refused() -> None:
    engine = _engine(object())
    engine.require_process()
    engine._process += 1
    with pytest.raises(dp.EngineError, match="forked"):
        engine.require_process()
    with pytest.raises(dp.EngineError, match="nothing was charged"):
        engine.empty(None, pl.Schema())


def test_frames_are_joined_within_one_session() -> None:
    one, other = object(), object()
    assert _engine(one).shares(_engine(one))
    assert not _engine(one).shares(_engine(other))
    assert not _engine(one).shares(POLARS)


def test_what_reading_files_quotes_is_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    spark_engine = pytest.importorskip("dpframe.lower.engines.spark_engine")
    seen: list[bool] = []

    class Reader:
        columns = ("x",)

        def format(self, kind: str) -> Reader:
            return self

        def option(self, name: str, value: str) -> Reader:
            return self

        def load(self, path: str) -> Reader:
            seen.append(spark_engine._WITHHELD.get())
            return self

    active = SimpleNamespace(getActiveSession=lambda: SimpleNamespace(read=Reader()))
    monkeypatch.setattr(spark_engine, "_sql", SimpleNamespace(SparkSession=active))
    spark_engine.read("people.csv", "csv")
    assert seen == [True, True]
    assert not spark_engine._WITHHELD.get()
