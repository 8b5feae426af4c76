"""Thirty nights together, on streams that differ in one person: what comes out tells no more than
is claimed, and nearly as much.

Each key is a pair of streams of its own: noise is independent from key to key, and so many keys
are so many runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

import dpframe as dp
from dpframe.aggregates.draw import law_of
from dpframe.audit.evidence import best_event, proved_epsilon
from dpframe.workloads import SquareRoot
from tests.streams.nights import START, day

NIGHTS = 30
DOUBT = 1e-5
Floats = NDArray[np.float64]


def streams(
    person: list[tuple[int, int]],
    spend: dict[str, Any],
    unit: Any,
    nights: list[int],
    keys: int,
    folder: Path,
) -> tuple[dp.Stream, Floats]:
    """What periods are said to have, by key and period, where the person has a row in each key with
    a date, from a night on: `person` has pairs of both. Only some nights are released.
    """
    session = dp.Session(**spend)
    file = folder / "rows.parquet"
    found = []
    stream: dp.Stream | None = None
    for night in nights:
        there = [date for date, since in person if since <= night]
        data = pl.DataFrame(
            {
                "key": np.tile(np.arange(keys), len(there)),
                "who": np.tile(np.arange(keys), len(there)),
                "day": np.repeat([np.datetime64(day(date)) for date in there], keys),
            },
            schema={"key": pl.Int64, "who": pl.Int64, "day": pl.Date},
        )
        data.write_parquet(file)
        frame = session.protect(file, unit=unit, name="v")
        if isinstance(unit, str):
            frame = frame.limit_groups(2, by="day", order_by="day").limit_rows(1, by="day")
        query = frame.group_by("key", keys=pl.Series("key", np.arange(keys))).agg(
            dp.count().alias("n")
        )
        stream = session.stream("s", query, by="day", start=START, periods=NIGHTS, **spend)
        found.append(stream.release(day(night))["n_total"].to_numpy())
    assert stream is not None
    handed_out = dict(zip(nights, found, strict=True))
    again = nights[:: len(nights) // 2]
    for night in [*again, *(set(range(NIGHTS)) - handed_out.keys())]:
        found_again = stream.release(day(night))["n_total"].to_numpy()
        assert (handed_out.setdefault(night, found_again) == found_again).all()
    released = [handed_out[night] for night in range(NIGHTS)]
    return stream, np.diff(np.stack(released, axis=1), axis=1, prepend=0).astype(np.float64)


def likelihood_ratio(stream: dp.Stream, own: Floats, person: list[tuple[int, int]]) -> Floats:
    """Of the stated law: the logarithm of how much likelier what came out is with the person."""
    (one,) = stream._asked.prepared.draws
    law, sums = law_of(one), SquareRoot(NIGHTS)
    if law.name == "discrete_laplace":  # each period by itself
        date = np.isin(np.arange(NIGHTS), [date for date, _ in person]).astype(np.float64)
        found: Floats = (np.abs(own) - np.abs(own - date)).sum(axis=1)
        return found
    weights = np.array(sums.coefficients, dtype=np.float64)
    drawn = np.stack(
        [(own[:, : t + 1] * weights[: t + 1][::-1]).sum(axis=1) for t in range(NIGHTS)], axis=1
    )
    moved = np.zeros(NIGHTS)
    for date, since in person:
        nights = np.arange(max(date, since), NIGHTS)
        moved[nights] += weights[nights - date]
    ratio: Floats = (drawn @ moved - moved @ moved / 2) / law.variance()
    return ratio


def proved(
    person: list[tuple[int, int]],
    spend: dict[str, Any],
    unit: Any,
    nights: list[int],
    keys: int,
    folder: Path,
) -> float:
    """A lower bound on epsilon that is surely right."""
    delta = float(spend.get("delta", 0))
    with_person, own = streams(person, spend, unit, nights, keys, folder)
    _, without = streams([], spend, unit, nights, keys, folder)
    scores = [likelihood_ratio(with_person, each, person) for each in (own, without)]
    half = keys // 2
    chosen = best_event([scores[0][:half]], [scores[1][:half]], [delta], [float(spend["epsilon"])])
    hits = [chosen.hits(score[half:]) for score in scores]
    if chosen.swapped:
        hits.reverse()
    return proved_epsilon(*hits, half, delta, DOUBT)


EVERY_NIGHT = list(range(NIGHTS))
CASES: dict[str, tuple[list[tuple[int, int]], dict[str, Any], Any, list[int]]] = {
    "a row on the first day": (
        [(0, 0)],
        {"epsilon": 1, "delta": "0.2"},
        dp.Rows(),
        EVERY_NIGHT,
    ),
    "nights that are left out": (
        [(0, 0)],
        {"epsilon": 1, "delta": "0.2"},
        dp.Rows(),
        [3, 4, 17, 29],
    ),
    "a person on two days": (
        [(0, 0), (1, 1)],
        {"epsilon": 1, "delta": "0.2"},
        "who",
        EVERY_NIGHT,
    ),
    "pure, a row on a later day": ([(7, 7)], {"epsilon": 1}, dp.Rows(), EVERY_NIGHT),
}


@pytest.mark.parametrize(
    ("keys", "least"), [(6_000, 0.25), pytest.param(160_000, 0.85, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("case", CASES)
def test_nights_prove_what_is_claimed_and_no_more(
    case: str, keys: int, least: float, tmp_path: Path
) -> None:
    """What so few keys as in the quick test prove for sure is less than what is lost."""
    assert least <= proved(*CASES[case], keys, tmp_path) <= 1.0


LATE: dict[str, tuple[list[tuple[int, int]], Any]] = {
    "a row that comes late": ([(0, 9)], dp.Rows()),
    "a day that comes late": ([(4, 4), (1, 9), (0, 12)], "who"),
}


@pytest.mark.parametrize("case", LATE)
@pytest.mark.parametrize(
    ("keys", "least"), [(6_000, 0.0), pytest.param(20_000, 0.05, marks=pytest.mark.slow)]
)
def test_late_rows_prove_less(case: str, keys: int, least: float, tmp_path: Path) -> None:
    """So few keys as in the quick test may prove nothing, but never too much."""
    person, unit = LATE[case]
    found = proved(person, {"epsilon": 2, "delta": "0.02"}, unit, EVERY_NIGHT, keys, tmp_path)
    assert least <= found <= 2.0
