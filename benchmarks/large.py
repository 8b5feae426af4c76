"""Larger than memory: rows in files that no process may hold at once, on Polars and DuckDB.

    python benchmarks/large.py [ROWS] [MEGABYTES] [FOLDER] [ENGINES]

Each run is a process of its own, in a control group of the given memory where the machine allows
one (page cache counts there, and is given back when needed), otherwise with its peak measured only.
A tenth as many individuals as rows are in about six of 5,000 groups each; the private side limits
them to four groups and adds up totals, on Polars with `memory=` where that is limited. The exact
tables of limited runs are compared with those of unlimited ones, with one salt for all, so they
must be equal bit by bit. Temporary files are in the folder as well, which stays if one is given.
Ratios are of CPU time: private to plain, and limited to unlimited.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

ROWS = 200_000_000
MEGABYTES = 2048
PART = 10_000_000
GROUPS = 5000
_CGROUPS = Path("/sys/fs/cgroup/memory")
_SALT = 20_261_121
"""One salt for all runs, so that they keep the same groups; releases draw theirs."""


def write(folder: Path, rows: int) -> None:
    """Random rows, a file for each ten million."""
    import numpy as np
    import polars as pl

    for number, start in enumerate(range(0, rows, PART)):
        path = folder / f"part{number:03}.parquet"
        if path.exists():
            continue
        size = min(PART, rows - start)
        draw = np.random.default_rng(number)
        person = draw.integers(0, max(1, rows // 10), size)
        habit = np.minimum(draw.geometric(0.235, size), 40)
        group = (person * 7919 + habit * habit * 104729 + habit) % GROUPS
        columns = {
            "person": person,
            "group": group.astype(np.int32),
            "spent": np.round(draw.uniform(0, 70, size), 2),
        }
        pl.DataFrame(columns).write_parquet(path.with_suffix(".new"))
        path.with_suffix(".new").rename(path)


def plain(engine: str, files: str, megabytes: int) -> Any:
    """The group-by without privacy: individuals, and sums of clamped rows."""
    if engine == "duckdb":
        return (
            _connection(megabytes)
            .sql(
                f'SELECT "group", count(DISTINCT person), sum(least(greatest(spent, 0), 60)) '
                f"FROM '{files}' GROUP BY ALL ORDER BY ALL"
            )
            .fetchall()
        )
    if engine.startswith("spark"):
        from pyspark.sql import functions as sf

        clamped = sf.least(sf.greatest("spent", sf.lit(0.0)), sf.lit(60.0))
        grouped = spark().read.parquet(files).groupBy("group")
        return grouped.agg(sf.countDistinct("person"), sf.sum(clamped)).sort("group").collect()
    import polars as pl

    grouped = pl.scan_parquet(files).group_by("group")
    made = grouped.agg(pl.col("person").n_unique(), pl.col("spent").clip(0, 60).sum())
    return made.sort("group").collect(engine="streaming").rows()


def private(engine: str, files: str, megabytes: int) -> Any:
    """The exact tables of the private query, before noise."""
    import dpframe as dp
    from dpframe.api.query import parts
    from dpframe.optimise.measurements import measurements_of

    session = dp.Session(epsilon=1)
    if engine == "duckdb":
        frame: Any = _connection(megabytes).read_parquet(files)
    elif engine.startswith("spark"):
        frame = spark().read.parquet(files)
        combine = str(engine == "spark-combined").lower()
        spark().conf.set("spark.dpframe.pairs.combine", combine)
    else:
        import polars as pl

        frame = pl.scan_parquet(files)
    memory = f"{megabytes}MiB" if megabytes and engine == "polars" else None
    people = session.protect(frame, unit="person", memory=memory)
    query = (
        people.limit_groups(4, by="group")
        .group_by("group", keys=range(GROUPS))
        .agg(dp.n_unique("person").alias("people"), dp.sum("spent", (0, 120), per="unit"))
    )
    asked, source, _ = parts(query)
    place = source.opened(asked.relation.token, "streaming" if engine == "polars" else "auto")
    tables = list(dict.fromkeys(t for use in measurements_of(asked) for t in use.part.tables))
    found = place.run(replace(asked.relation, salt=_SALT), asked.groups, tables)
    return [found[table].values.tolist() for table in tables]


def spark() -> Any:
    """Spark on this machine's cores."""
    from pyspark.sql import SparkSession

    made = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false")
    made = made.config("spark.driver.memory", "4g").config("spark.sql.shuffle.partitions", "8")
    found = made.getOrCreate()
    found.sparkContext.setLogLevel("OFF")
    return found


def _connection(megabytes: int) -> Any:
    """DuckDB, with half of the memory for its tables where it is limited."""
    import duckdb

    made = duckdb.connect()
    if megabytes:
        made.execute(f"SET memory_limit = '{megabytes // 2}MB'")
        made.execute("SET preserve_insertion_order = false")
        made.execute(f"SET temp_directory = '{tempfile.mkdtemp()}'")
    return made


def _import(engine: str) -> None:
    """What starts before the clock does, the same for both sides."""
    import dpframe.infer
    import polars  # noqa: F401

    import dpframe as dp
    import dpframe.api.query

    if engine == "duckdb":
        import dpframe.lower.engines.duckdb_engine
    elif engine.startswith("spark"):
        import dpframe.lower.engines.spark_engine

        dp.Session(epsilon=1).protect(
            spark().range(1), dp.Rows()
        )  # runs the query of constants, once


def child(side: str, engine: str, files: str, megabytes: int) -> None:
    """Run one side, and print its results and cost."""
    _import(engine)
    machine = spark().sparkContext._gateway.proc.pid if engine.startswith("spark") else None
    before, start = cpu(machine), time.perf_counter()
    result = (plain if side == "plain" else private)(engine, files, megabytes)
    wall, used = time.perf_counter() - start, cpu(machine) - before
    if machine:
        spark().stop()
    report = {
        "wall": wall,
        "cpu": used,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "digest": hashlib.sha256(json.dumps(result).encode()).hexdigest(),
    }
    print(json.dumps(report))


def cpu(machine: int | None = None) -> float:
    """Seconds of this process, and of Spark's virtual machine, on Linux."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = used.ru_utime + used.ru_stime
    if machine and (found := Path(f"/proc/{machine}/stat")).exists():
        ticks = found.read_text().rpartition(")")[2].split()[11:13]
        seconds += sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
    return seconds


@contextmanager
def limited(megabytes: int) -> Iterator[list[str]]:
    """A command that runs another in this much memory, if the machine allows it."""
    group = _CGROUPS / f"dpframe{os.getpid()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(megabytes << 20))
    except OSError:
        print("no control group can be made: memory is measured, and not limited")
        yield []
        return
    try:
        yield ["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh"]
    finally:
        group.rmdir()


def run(side: str, engine: str, files: str, megabytes: int) -> dict[str, Any] | None:
    """One side in its own process; None where it did not come to its end."""
    command = [sys.executable, __file__, "--child", side, engine, files, str(megabytes)]
    with limited(megabytes) if megabytes else nullcontext([]) as prefix:
        done = subprocess.run(
            [*prefix, *command],
            capture_output=True,
            text=True,
            env=os.environ | {"TMPDIR": str(Path(files).parent)},
        )
    if done.returncode:
        print(f"  {side} on {engine}: ended with {done.returncode} {done.stderr[-200:]}")
        return None
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main(rows: int, megabytes: int, folder: Path, engines: Sequence[str]) -> None:
    """Print the table."""
    write(folder, rows)
    size = sum(path.stat().st_size for path in folder.glob("*.parquet")) >> 20
    print(
        f"{rows:,} rows of {rows // 10:,} people, {size:,} MB of files, {megabytes:,} MB of memory"
    )
    print(f"{'':30}{'wall s':>8}{'CPU s':>8}{'peak MB':>9}{'plain':>7}{'all':>7}  result")
    files = str(folder / "*.parquet")
    first: dict[str, dict[str, Any]] = {}
    for engine in engines:
        for limit in (0, megabytes):
            base = None
            for side in ("plain", "private"):
                found = run(side, engine, files, limit)
                name = f"{side} on {engine}, {'limited' if limit else 'unlimited'}"
                if found is None:
                    print(f"{name:30}  did not come to its end", flush=True)
                    continue
                base = found if side == "plain" else base
                show(
                    name, found, base if side == "private" else None, first.get(f"{side} {engine}")
                )
                first.setdefault(f"{side} {engine}", found)


def show(
    name: str,
    found: dict[str, Any],
    plain: dict[str, Any] | None,
    unlimited: dict[str, Any] | None,
) -> None:
    """Print a row of the table."""
    ratios = "".join(
        f"{found['cpu'] / other['cpu']:7.2f}" if other else " " * 7 for other in (plain, unlimited)
    )
    words = ""
    if unlimited and plain:
        words = "the same" if unlimited["digest"] == found["digest"] else "DIFFERENT"
    print(
        f"{name:30}{found['wall']:8.1f}{found['cpu']:8.1f}{found['peak']:9,.0f}{ratios}  {words}",
        flush=True,
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]))
    else:
        given = sys.argv[1:] + [None] * 4
        with tempfile.TemporaryDirectory() as made:
            main(
                int(float(given[0] or ROWS)),
                int(given[1] or MEGABYTES),
                Path(given[2]) if given[2] else Path(made),
                (given[3] or "polars,duckdb").split(","),
            )
