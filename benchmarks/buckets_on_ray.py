"""A prototype: buckets of people on many machines, by an executor that Ray distributes.

    pip install ray
    python benchmarks/buckets_on_ray.py FILES [MEGABYTES] [TASKS]

`collect(engine=...)` is given a function with a method `collect_all`, so the LazyFrames of all
buckets come at once; each is a task of Ray, and only its small table of integers comes back. These
add up to the table of one pass, bit by bit, with one salt for both. Each task scans the files and
keeps the rows of its bucket, so what is spent grows with their number, and what each holds falls.
The files are those of `large.py`, and must be where each worker can read them.
"""

from __future__ import annotations

import resource
import sys
import time
from dataclasses import replace
from typing import Any

import polars as pl
import ray
from large import _SALT, GROUPS

import dpframe as dp
from dpframe.api.query import parts
from dpframe.optimise.measurements import measurements_of


@ray.remote
def table_of(frame: pl.LazyFrame) -> tuple[pl.DataFrame, float, float]:
    """The table of one bucket, and what the worker took: CPU seconds, and megabytes at its peak."""
    before = _cpu()
    found = frame.collect(engine="streaming")
    return found, _cpu() - before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class OnRay:
    """Runs LazyFrames as tasks of Ray, several at a time, as many as there are CPUs."""

    def __init__(self) -> None:
        self.tasks: list[tuple[float, float]] = []

    def __call__(self, frame: pl.LazyFrame) -> pl.DataFrame:
        return self.collect_all([frame])[0]

    def collect_all(self, frames: list[pl.LazyFrame]) -> list[pl.DataFrame]:
        """The tables of all."""
        found = ray.get([table_of.remote(frame) for frame in frames])
        self.tasks += [(cpu, peak) for _, cpu, peak in found]
        return [table for table, _, _ in found]


def tables(files: str, memory: str | None, engine: Any) -> list[Any]:
    """The exact tables of the private query of `large.py`, before noise."""
    session = dp.Session(epsilon=1)
    people = session.protect(pl.scan_parquet(files), unit="person", memory=memory, spill=False)
    query = (
        people.limit_groups(4, by="group")
        .group_by("group", keys=range(GROUPS))
        .agg(dp.n_unique("person").alias("people"), dp.sum("spent", (0, 120), per="unit"))
    )
    asked, source, _ = parts(query)
    place = source.opened(asked.relation.token, engine)
    wanted = list(dict.fromkeys(t for use in measurements_of(asked) for t in use.part.tables))
    found = place.run(replace(asked.relation, salt=_SALT), asked.groups, wanted)
    return [found[table].values.tolist() for table in wanted]


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main(files: str, megabytes: int, tasks: int) -> None:
    """Print what both ways took."""
    start, before = time.perf_counter(), _cpu()
    whole = tables(files, None, "streaming")
    print(f"one pass: {_cpu() - before:.1f} CPU s, {time.perf_counter() - start:.1f} s")
    ray.init(num_cpus=tasks, include_dashboard=False, logging_level="ERROR")
    ray.get([table_of.remote(pl.LazyFrame({"started": [1]})) for _ in range(tasks)])
    run, start = OnRay(), time.perf_counter()
    same = tables(files, f"{megabytes}MB", run) == whole
    cpu, peaks = sum(one for one, _ in run.tasks), [peak for _, peak in run.tasks]
    print(
        f"{len(run.tasks)} tasks on Ray, {tasks} at a time: {cpu:.1f} CPU s, "
        f"{time.perf_counter() - start:.1f} s, at most {max(peaks):,.0f} MB in a worker; "
        f"{'the same table' if same else 'ANOTHER TABLE'}"
    )


if __name__ == "__main__":
    megabytes, at_once = (*map(int, sys.argv[2:4]), *(600, 2)[len(sys.argv[2:4]) :])
    main(sys.argv[1], megabytes, at_once)
