"""Classes that documents call by several names: each name stands for some fields, and for these
alone.
"""

from __future__ import annotations

import itertools
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any

import pytest

from dpframe.aggregates.margins import Margin
from dpframe.aggregates.reconstructed_error import DistributionError, RunError
from dpframe.core.tree import form_of
from dpframe.frames.definition import definition
from dpframe.plan.codec import Malformed, decode, encode
from dpframe.plan.reading import value_of
from tests.plan.documents import plan_of

SETS = {"sizes": [4, 2, 12], "kept": [0, 2], "by": ["country", "step"]}
RUNS = {"branching": 2, "level": 1}
FIELDS: dict[str, dict[str, Any]] = {"LevelSums": RUNS, "Margin": SETS, "RunMargin": SETS | RUNS}
NAMES = list(itertools.product(FIELDS, ("", "WithTotal")))


def written(name: str, total: str) -> dict[str, Any]:
    """A margin as definitions have it."""
    (output,) = plan_of("ages_by_sets").outputs
    said: Any = output.definition
    return {"type": name + total, "table": said[0]["table"], **FIELDS[name]}


def read(said: dict[str, Any]) -> Any:
    return value_of(said, lambda edges, _: [Fraction(n) for n in edges["listed"]])


@pytest.mark.parametrize(("name", "total"), NAMES)
def test_margins_are_read_by_each_name_and_written_by_it(name: str, total: str) -> None:
    said = written(name, total)
    found = read(said)
    assert isinstance(found, Margin)
    assert found.has_total == bool(total)
    again: Any = definition(found)
    assert [*again] == [*said]
    assert {**again, "table": None} == {**said, "table": None}


@pytest.mark.parametrize(("name", "total"), NAMES)
def test_margins_by_another_name_are_refused(name: str, total: str) -> None:
    said = written(name, total)
    wrong = [{**said, "type": other} for other in FIELDS if other != name]
    wrong += [{**said, "has_total": bool(total)}, {**said, "branching": 0, "level": 0}]
    wrong += [{n: part for n, part in said.items() if n != left_out} for left_out in FIELDS[name]]
    for one in wrong:
        with pytest.raises((LookupError, TypeError, ValueError)):
            read(one)


def test_a_table_of_runs_keeps_its_cells() -> None:
    with pytest.raises(ValueError, match="keeps its cells"):
        read(written("RunMargin", "") | {"kept": [0], "by": ["country"]})


ALONE = DistributionError(
    cells=4, branching=2, levels=(0, 2), weights=(Fraction(1), Fraction(2)), shown=3
)
BY_SETS = replace(ALONE, sizes=(2,), sets=((0,), ()), measured=((), (0,)))


@pytest.mark.parametrize(
    ("rule", "kind"), [(ALONE, "DistributionError"), (BY_SETS, "DistributionSetsError")]
)
def test_errors_are_read_by_each_name_and_written_by_it(rule: Any, kind: str) -> None:
    said = encode(rule)
    assert (said["kind"], form_of(rule)[0]) == (kind, kind)
    assert decode(DistributionError, said, "") == rule
    left_out = {"sizes", "sets", "measured"} if rule is ALONE else set()
    assert said.keys() - {"kind"} == {field.name for field in fields(rule)} - left_out


def test_errors_by_another_name_are_refused() -> None:
    nothing = {"sizes": [], "sets": [[]], "measured": []}
    for wrong in (
        {**encode(ALONE), "kind": "DistributionSetsError"},
        {**encode(BY_SETS), "kind": "DistributionError"},
        {**encode(ALONE), **nothing},
        {**encode(ALONE), **nothing, "kind": "DistributionSetsError"},
        {**encode(BY_SETS), "measured": []},
    ):
        with pytest.raises(Malformed):
            decode(DistributionError, wrong, "")


def test_levels_of_one_group_rise() -> None:
    with pytest.raises(ValueError, match="rise"):
        replace(ALONE, levels=(2, 0))


def test_the_number_of_all_rows_has_no_grouping_sets() -> None:
    assert decode(RunError, encode(RunError(ALONE, 4)), "") == RunError(ALONE, 4)
    with pytest.raises(ValueError, match="number of cells"):
        RunError(BY_SETS, 4)
