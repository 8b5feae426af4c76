"""Streams of frames that grow from night to night, and what is drawn of them without noise."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import strategies as st

import dpframe as dp
from dpframe.aggregates.draw import part_of
from dpframe.api.payer import Spend
from dpframe.api.query import PrivateQuery, parts
from dpframe.core.sensitivity import ExactSensitivity
from dpframe.frames.nights import Schedule
from dpframe.kernel import plan as kernel
from dpframe.kernel.moves import Column, column_of
from dpframe.lower import Execution
from dpframe.lower import execution as lower_execution
from dpframe.optimise.prepared import Prepared, tables_of
from dpframe.parse.parts import of_first_periods
from dpframe.workloads import PeriodTree, RunningSums
from dpframe.workloads.prefix_sums import coefficients

START = dt.date(2027, 1, 1)
SCHEMA = {"who": pl.Int64, "day": pl.Date, "key": pl.String, "x": pl.Int64}
KEYS = ["a", "b"]
SALTS = [night * 0x9E3779B97F4A7C15 % 2**64 for night in range(1, 101)]


def day(number: int) -> dt.date:
    return START + dt.timedelta(days=number)


@dataclass(frozen=True)
class Row:
    """A row, with the nights on which it is there."""

    who: int
    day: int | None
    key: str
    x: int | None
    nights: frozenset[int]


def frame_of(rows: Sequence[Row], night: int) -> pl.DataFrame:
    """What there is on a night."""
    there = [r for r in rows if night in r.nights]
    data = [(r.who, None if r.day is None else day(r.day), r.key, r.x) for r in there]
    return pl.DataFrame(data, schema=SCHEMA, orient="row")


def prepared_of(query: PrivateQuery, schedule: Schedule, **spend: Any) -> Prepared:
    asked, _, payer = parts(query)
    assert payer is not None
    return payer.prepare_stream(asked, schedule, Spend(**spend))


def vectors(
    prepared: Prepared, schedule: Schedule, rows: Sequence[Row], reads: Sequence[int]
) -> list[list[int]]:
    """For each vector all that is drawn through all nights, without noise; the row of night t is
    made of the frame of night reads[t]. Which rows limits keep depends on a salt for each night,
    the same whatever the rows are: the limits of others are not what moves.
    """
    found: list[list[int]] = [[] for _ in prepared.draws]
    for t, read in enumerate(reads):
        relation = prepared.query.relation
        groups = of_first_periods(prepared.query.groups, schedule, t + 1)
        frame = frame_of(rows, read)
        execution = Execution.of_public({relation.token: frame.lazy()})
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lower_execution, "fresh_salt", lambda night=t: SALTS[night])
            wanted = tables_of(one.measurement for one in prepared.draws)
            tables = execution.run(relation, groups, wanted)
        for number, one in enumerate(prepared.draws):
            part = part_of(one)
            exact = tables[part.table].dense(1).reshape(-1, t + 1)
            found[number] += part.sums.sums(exact, t).reshape(-1).tolist()
    return found


def column(sums: RunningSums, run: int) -> Column:
    """By how much an individual moves all nights whose contributions of at most 1 are in at most
    `run` periods, once in each, by the kernel's rule.
    """
    strategy = (
        kernel.Tree(sums.branching, sums.levels)
        if isinstance(sums, PeriodTree)
        else kernel.Root(tuple(coefficients(sums.periods)))
    )
    day = START.isoformat()
    return column_of(kernel.Nights(0, "day", "Date", "1d", day, sums.periods, strategy), run)


def moved(before: Sequence[int], after: Sequence[int]) -> ExactSensitivity:
    """By how much a vector moved."""
    apart = [abs(a - b) for a, b in zip(after, before, strict=True)]
    return ExactSensitivity(
        sum(1 for x in apart if x),
        Fraction(sum(apart)),
        Fraction(sum(x * x for x in apart)),
        Fraction(max(apart, default=0)),
    )


def assert_within(found: ExactSensitivity, declared: ExactSensitivity) -> None:
    assert found.l0 <= declared.l0
    assert found.l1 <= declared.l1
    assert found.l2_squared <= declared.l2_squared
    assert found.linf <= declared.linf


def reads_of(periods: int) -> st.SearchStrategy[list[int]]:
    """When the row of each night is made: on that night, or some nights later at once."""

    def caught_up(gaps: list[int]) -> list[int]:
        reads: list[int] = []
        for night, gap in enumerate(gaps):
            last = reads[-1] if reads else 0
            reads.append(max(night, last) if gap == 0 else max(night + gap, last))
        return reads

    return st.lists(st.sampled_from([0, 0, 0, 1, 2]), min_size=periods, max_size=periods).map(
        caught_up
    )


def session_of(spend: dict[str, Any]) -> dp.Session:
    return dp.Session(**spend)


def numbers(values: Sequence[int]) -> np.ndarray[Any, Any]:
    return np.array(values, dtype=np.int64)
