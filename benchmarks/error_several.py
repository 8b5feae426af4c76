"""The gain of several queries in one list: expected errors with separate noise for each, at its
share, over those of the plan of all.

    python benchmarks/error_several.py

Ratios of root mean square errors at equal privacy, from the variances of the planned noise, in the
order of the queries. `overall` is for the mean of the squared errors over the outputs, each
relative to its error before. No data are read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import polars as pl

import dpframe as dp
from dpframe.api.query import parts
from dpframe.core.budget import Budget
from dpframe.optimise.planning import RULES, Draft, Planning, errors_of
from dpframe.optimise.prepared import Prepared
from dpframe.optimise.queries import Place, Queries, merge

SPENDS: dict[str, Budget] = {
    "epsilon 1": dp.PureDP(1),
    "epsilon 1, delta 1e-6": dp.ApproxDP(1, "1e-6"),
    "rho 0.024": dp.ZCDP("0.024"),
}
KEYS = {"country": [f"country {i}" for i in range(42)], "sex": ["f", "m"]}


def frame(known: bool) -> Any:
    """A protected frame without rows; where keys are `known` to be all values."""
    texts: dict[str, Any] = {n: pl.Enum(k) if known else pl.String for n, k in KEYS.items()}
    schema = {**texts, "age": pl.Int64, "hours": pl.Int64}
    found = dp.Session(epsilon=1).protect(pl.LazyFrame(schema=schema), unit=dp.Rows())
    return found.drop_nulls(list(KEYS)) if known else found


def reports(people: Any) -> dict[str, list[Any]]:
    """The lists of queries, by name."""

    def by(*names: str) -> Any:
        return people.group_by(*names, keys={name: KEYS[name] for name in names})

    def histogram(cells: int) -> list[Any]:
        return [people.dp_histogram("age", cells, bounds=(0, 100)), people.dp_count()]

    def summed(groups: Any) -> Any:
        return groups.agg(s=pl.col("hours").dp_sum((0, 80)))

    return {
        "counts by 42 x 2, by 42, by 2, total": [
            by("country", "sex").dp_count(),
            by("country").dp_count(),
            by("sex").dp_count(),
            people.dp_count(),
        ],
        "sums by 42 x 2, by 42, by 2, total": [
            summed(by("country", "sex")),
            summed(by("country")),
            summed(by("sex")),
            summed(people),
        ],
        "counts by 2, total": [by("sex").dp_count(), people.dp_count()],
        "counts by 42, total": [by("country").dp_count(), people.dp_count()],
        **{f"histogram of {n}, count": histogram(n) for n in (2, 4, 10, 100)},
    }


def variances(prepared: Sequence[Prepared], places: Sequence[Place]) -> list[float]:
    """The expected squared error of the first output of each query."""
    found = [errors_of([one]) for one in prepared]
    return [found[place.block][place.outputs[0]].squared for place in places]


def gains(asked: Sequence[Any], spend: Budget) -> list[float]:
    """How many times less the error of each query is."""
    blocks, places = merge(Queries(tuple(parts(query)[0] for query in asked)))
    planning = Planning(spend, None, "least error", None)
    before = variances(planning.answer(Draft.first(blocks), RULES[2:]).prepared, places)
    answer = planning.answer(Draft.first(blocks, places))
    after = variances(answer.prepared, answer.draft.places)
    return [math.sqrt(b / a) for b, a in zip(before, after, strict=True)]


def main() -> None:
    """Print the table."""
    print(f"{'':48}{'':24}{'overall':>8}  each query")
    all_values = reports(frame(known=True))
    known = {f"{name}, all keys": all_values[name] for name in list(all_values)[:4]}
    for name, asked in {**reports(frame(known=False)), **known}.items():
        for words, spend in SPENDS.items():
            found = gains(asked, spend)
            overall = math.sqrt(len(found) / sum(gain**-2 for gain in found))
            shown = ", ".join(f"{gain:.2f}" for gain in found)
            print(f"{name:48}{words:24}{overall:8.2f}  {shown}")


if __name__ == "__main__":
    main()
