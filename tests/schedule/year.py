"""A year of nightly publishing in a folder: data that come day by day, a job for each night, and
what goes wrong on the way. Nights run in this process, and those that are killed or overlap in
processes of their own.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import io
import json
import os
import random
import runpy
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl

from dpframe.cli import main

COMMAND = ["-c", "import sys; from dpframe.cli import main; sys.exit(main())"]
AIMED = """
import os, signal, sys
from dpframe.api import reuse
from dpframe.cli import main
from dpframe.ledger.ledger import Ledger

point = sys.argv.pop(1)
charge = Ledger.charge

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

def charged(*given, **more):
    charge(*given, **more)
    die()

if point == "charged":
    Ledger.charge = charged
elif point == "computed":
    reuse.ReleaseCache._write = die
else:
    Ledger.settle = die
sys.exit(main())
"""
POINTS = ("charged", "computed", "written")
"""Where a run can die between its charge and the record that its result is kept: before data are
read, before the result is written beside the ledger, and before a record says so.
"""
START = dt.date(2026, 1, 1)
SITES = 400

NIGHTLY = """
import os
import polars as pl
import dpframe as dp

day = dp.parameter("day", pl.Date)
session = dp.Session(
    epsilon=2, delta="1e-9", composition="zcdp", ledger=os.environ["LEDGER"], name="visits",
    must_exist=True, keep_releases=True,
)
visits = session.protect("visits/*.parquet", dp.Rows(), name="visits")
tonight = session.partition(visits, "day", keys=[day.value])[day.value]
query = tonight.group_by("site", keys=range({sites})).agg(dp.count().alias("n"))
spend = {{"rho": "0.005"}}
output = f"published/{{day}}.parquet"
"""

TOTALS = """
import datetime as dt, os, sys
import dpframe as dp

day = dt.date.fromisoformat(sys.argv[1])
session = dp.Session(
    epsilon=2, delta="1e-9", composition="zcdp", ledger=os.environ["LEDGER"], name="visits",
    must_exist=True,
)
visits = session.protect("visits/*.parquet", dp.Rows(), name="visits")
query = visits.group_by("site", keys=range({sites})).agg(dp.count().alias("n"))
totals = session.stream(
    "totals", query, by="day", every="1d", start=dt.date(2026, 1, 1), periods={nights}, rho="0.009"
)
totals.release(period=day).write_parquet(f"totals/{{day}}.parquet")
"""


class Year:
    """One folder, one ledger, and so many nights.

    Parameters
    ----------
    place
        The folder, which is made the working directory of all that runs.
    ledger
        Where the budget is.
    nights
        How many there are.
    seed
        Of what happens when; noise has none.
    """

    def __init__(self, place: Path, ledger: str, nights: int, seed: int) -> None:
        self.place = place
        self.ledger = ledger
        self.nights = nights
        self.chance = random.Random(seed)
        self.data = random.Random(seed + 1)
        self.lost: Counter[dt.date] = Counter()
        """How often a night was paid for and its result lost, by what was said of it."""
        self.kinds: Counter[str] = Counter()
        self.aimed: Counter[str] = Counter()
        """How many nights were killed at each of `POINTS`."""
        self.seconds: list[tuple[float, float]] = []
        """How long each night's day and total took to publish, in this process."""
        self.on_time: dict[dt.date, list[int]] = {}
        """Sites of each day's visits that were there on that day."""
        self.late = 0
        """How many came later."""
        for folder in ("visits", "published", "totals"):
            (place / folder).mkdir()
        (place / "nightly.py").write_text(NIGHTLY.format(sites=SITES))
        (place / "totals.py").write_text(TOTALS.format(sites=SITES, nights=nights))
        code, said = self.run(
            "ledger", "create", "--ledger", ledger, "--name", "visits", "--epsilon", "2",
            "--delta", "1e-9", "--composition", "zcdp", "--by", "the owner of the data",
        )  # fmt: skip
        assert code == 0, said

    @property
    def days(self) -> list[dt.date]:
        return [START + dt.timedelta(days=n) for n in range(self.nights)]

    # -- what runs ------------------------------------------------------------------------------

    def run(self, *arguments: str) -> tuple[int, str]:
        """A command in this process: its exit code, and all that it says."""
        said = io.StringIO()
        with (
            contextlib.chdir(self.place),
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(said),
            _with_ledger(self.ledger),
        ):
            try:
                code = main([*arguments])
            except SystemExit as end:
                code = int(end.code or 0)
        return code, said.getvalue()

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """The same in a process of its own."""
        return subprocess.Popen(
            [sys.executable, *arguments],
            cwd=self.place,
            env=os.environ | {"LEDGER": self.ledger},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def command(self, day: dt.date) -> list[str]:
        return ["run", "nightly.py", "--run-id", f"night {day}", "--param", f"day={day}"]

    # -- what comes -----------------------------------------------------------------------------

    def arrive(self, day: dt.date) -> None:
        """The visits of a day, and now and then some of a day before."""
        found = [self.data.randrange(SITES) for _ in range(300)]
        self.on_time[day] = found
        self._write(f"{day}", day, found)
        if day > START and self.data.random() < 0.2:
            earlier = START + dt.timedelta(days=self.data.randrange((day - START).days))
            late = [self.data.randrange(SITES) for _ in range(5)]
            self.late += len(late)
            self._write(f"late-{day}", earlier, late)

    def _write(self, name: str, day: dt.date, sites: list[int]) -> None:
        frame = pl.DataFrame({"day": [day] * len(sites), "site": sites})
        made = self.place / "visits" / f".{name}"
        frame.write_parquet(made)
        made.rename(self.place / "visits" / f"{name}.parquet")

    # -- one night ------------------------------------------------------------------------------

    def night(self, day: dt.date, kind: str, point: str | None = None) -> None:
        """Publish a day, whatever happens, and its totals; `point` is where a first run dies."""
        self.kinds[kind] += 1
        self.arrive(day)
        if point is not None:
            self._die_at(point, day)
        if kind == "killed":
            self._killed([*COMMAND, *self.command(day)])
            self._killed(["totals.py", str(day)])
        if kind == "overlapping":
            self._overlapping(day)
        began = time.monotonic()
        self.publish(day)
        published = time.monotonic()
        self.add_up(day)
        self.seconds.append((published - began, time.monotonic() - published))
        if kind == "again":
            self.publish(day)
            before = self.total(day)
            self.add_up(day)
            assert self.total(day).equals(before)

    def _killed(self, script: list[str]) -> None:
        process = self.start(*script)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(self.chance.uniform(0.2, 1.0) * self.duration)
        process.send_signal(signal.SIGKILL)
        process.communicate()

    def _die_at(self, point: str, day: dt.date) -> None:
        """Kill a run between its charge and `kept`. What was written is handed out by the next run
        for nothing; what was not is paid again, by who says --again and nobody else.
        """
        self.aimed[point] += 1
        process = self.start("-c", AIMED, point, *self.command(day))
        said, _ = process.communicate()
        assert process.returncode == -signal.SIGKILL, said
        before = self.spent()
        code, said = self.run(*self.command(day))
        assert self.spent() == before
        assert code == (0 if point == "written" else LOST), said
        assert ("--again" in said) == (point != "written")

    def _overlapping(self, day: dt.date) -> None:
        """Four schedulers at once: each ends with the result, or says that another has it."""
        four = [self.start(*COMMAND, *self.command(day)) for _ in range(4)]
        for process in four:
            said, _ = process.communicate()
            assert process.returncode in (0, BUSY), said
        assert any(process.returncode == 0 for process in four)

    def publish(self, day: dt.date) -> None:
        """As a scheduler does: once more, and once more after what was lost."""
        code, said = self.run(*self.command(day))
        if code == LOST and "--again" in said:
            self.lost[day] += 1
            code, said = self.run(*self.command(day), "--again")
        assert code == 0, said

    def add_up(self, day: dt.date) -> None:
        """Publish the totals up to a day."""
        with contextlib.chdir(self.place), _with_ledger(self.ledger), _with_arguments(str(day)):
            runpy.run_path("totals.py")

    def total(self, day: dt.date) -> pl.DataFrame:
        """The totals that were published on a day."""
        return pl.read_parquet(self.place / "totals" / f"{day}.parquet")

    def counted(self, day: dt.date) -> list[int]:
        """The exact totals of rows that came up to a day, on time."""
        found = Counter(site for d in self.days if d <= day for site in self.on_time.get(d, []))
        return [found[site] for site in range(SITES)]

    def measure(self) -> None:
        """How long a night takes in a process of its own, so that it is killed at any point."""
        found = []
        for _ in range(1 if self.nights < 100 else 3):  # the least: a machine may be busy once
            began = time.monotonic()
            code = self.start(*COMMAND, "run", "--help").wait()
            assert code == 0
            found.append(time.monotonic() - began)
        self.duration = 2.5 * min(found)

    # -- what must hold -------------------------------------------------------------------------

    def lose_disk(self) -> int:
        """Lose what was published, and take it from the ledger: nothing is paid for again."""
        before = self.spent()
        published = {p.name: pl.read_parquet(p) for p in (self.place / "published").iterdir()}
        shutil.rmtree(self.place / "published")
        (self.place / "published").mkdir()
        for name, frame in published.items():
            code, said = self.run(*self.command(dt.date.fromisoformat(Path(name).stem)))
            assert code == 0, said
            assert pl.read_parquet(self.place / "published" / name).equals(frame)
        assert self.spent() == before
        return len(published)

    def spent(self) -> Any:
        return self.shown()["spent"]

    def shown(self) -> dict[str, Any]:
        code, said = self.run("ledger", "show", "--ledger", self.ledger, "--json")
        assert code == 0, said
        found: dict[str, Any] = json.loads(said)["visits"]
        return found


BUSY, LOST = 7, 6
"""Exit codes of runs that are under way, and of runs whose result was lost."""


@contextlib.contextmanager
def _with_arguments(*arguments: str) -> Any:
    before = sys.argv
    sys.argv = ["totals.py", *arguments]
    try:
        yield
    finally:
        sys.argv = before


@contextlib.contextmanager
def _with_ledger(ledger: str) -> Any:
    before = os.environ.get("LEDGER")
    os.environ["LEDGER"] = ledger
    try:
        yield
    finally:
        os.environ.pop("LEDGER")
        if before is not None:
            os.environ["LEDGER"] = before
