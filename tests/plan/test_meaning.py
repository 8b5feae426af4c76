"""What of a physical plan fingerprints are made of."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import islice, permutations

import polars as pl
import pytest

import dpframe as dp
from dpframe.kernel import Plan
from dpframe.plan.document import meaning
from tests.kernel.mutate import mutants
from tests.laws.amounts import amounts
from tests.plan.documents import ALL, plan_of

DATA = pl.DataFrame({"who": [1, 2], "town": ["a", "b"], "x": [0.5, 2.0], "unread": [1, 2]})
OUTPUTS = {
    "n": dp.count(),
    "mid": dp.median("x", (0, 9)),
    "bins": dp.col("x").dp_histogram([0, 1, 2]),
    "towns": dp.n_unique("town"),
}


def people(data: pl.DataFrame = DATA) -> dp.PrivateFrame:
    session = dp.Session(epsilon=9, delta="1e-6")
    return session.protect(data, unit=dp.Identifier("who"), name="people")


def physical(plan: dp.Plan) -> Plan:
    assert plan.physical is not None
    return plan.physical


def test_the_order_of_outputs_decides_nothing() -> None:
    rows = people().limit_rows(2).group_by("town", keys=["a", "b"])
    plans = [
        rows.agg(**{name: OUTPUTS[name] for name in names}).plan(epsilon=1)
        for names in permutations(OUTPUTS)
    ]
    assert len({physical(plan) for plan in plans}) > 1
    assert len({meaning(physical(plan), {}) for plan in plans}) == 1


def test_columns_that_nothing_reads_and_the_order_of_columns_decide_nothing() -> None:
    frames = [
        DATA,
        DATA.select(reversed(DATA.columns)),
        DATA.drop("unread"),
        DATA.with_columns(pl.col("unread").cast(pl.Float32), more=pl.lit("x")),
    ]
    plans = [
        people(data).with_columns(y=pl.col("x") * 2).limit_rows(2).dp_count().plan(epsilon=1)
        for data in frames
    ]
    assert len({physical(plan) for plan in plans}) == 1
    assert len({plan.fingerprint for plan in plans}) == 1
    read = people(DATA.with_columns(pl.col("x").cast(pl.Float32)))
    other = read.with_columns(y=pl.col("x") * 2).limit_rows(2).dp_count().plan(epsilon=1)
    assert other.fingerprint != plans[0].fingerprint


@pytest.mark.parametrize("name", ALL)
@amounts("number", 8, 40)
def test_every_other_change_decides(name: str, number: int) -> None:
    before = physical(plan_of(name))
    for mutant in islice(mutants(before, random.Random(name)), number):
        if of_places_that_exist(mutant) == meaning(before, {}):
            assert sorted(map(repr, mutant.draws)) == sorted(map(repr, before.draws))
            assert replace(mutant, draws=before.draws) == before


def of_places_that_exist(plan: Plan) -> str | None:
    """The meaning; None where the plan names what it does not have, which the kernel refuses."""
    try:
        return meaning(plan, {})
    except (LookupError, TypeError):
        return None
