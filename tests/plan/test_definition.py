"""Definitions: nothing that decides what is computed is left out, and nothing is confused."""

from __future__ import annotations

import dataclasses
import importlib
import json
import pkgutil
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe.aggregates
import dpframe.frames
from dpframe.aggregates.cells import Cells
from dpframe.aggregates.measurement import Measurement
from dpframe.aggregates.statistics import Statistic
from dpframe.core.dtypes import Domain, DType
from dpframe.core.tree import Call, Column, Literal, Named, identity
from dpframe.frames.definition import definition
from dpframe.frames.relation import Step
from dpframe.rows.clip import Clip
from dpframe.rows.comparison import Eq, Ne


def load(package: ModuleType) -> None:
    """All of its modules, which are imported only when they are used."""
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(found.name)


for package in (dpframe.aggregates, dpframe.frames):
    load(package)


def all_subclasses(kind: type) -> Iterator[type]:
    for one in kind.__subclasses__():
        yield one
        yield from all_subclasses(one)


STEPS = [k for k in {*all_subclasses(Step)} if k.__module__.startswith("dpframe")]
TYPES = [
    kind
    for base in (Measurement, Statistic, Cells)
    for kind in {*all_subclasses(base)}
    if kind.__module__.startswith("dpframe")
]


@pytest.mark.parametrize("kinds", [STEPS, [*TYPES, Call, Column, Literal, Named, DType, Domain]])
def test_no_two_types_have_one_name(kinds: list[type]) -> None:
    places = {f"{kind.__module__}.{kind.__name__}" for kind in kinds}
    names = {kind.__name__ for kind in kinds}
    assert len(names) > 10
    assert len(names) == len(places)


def test_no_field_hides_the_name_of_a_type() -> None:
    for kind in [*STEPS, *TYPES]:
        if dataclasses.is_dataclass(kind):
            fields = {field.name for field in dataclasses.fields(kind)}
            assert ("step" if kind in STEPS else "type") not in fields, kind


def test_what_is_left_out_is_there_in_another_form() -> None:
    """A public frame by its digest, another private frame by its own steps; what rounds of one
    release find when it runs is no part of a plan. New names follow from a suffix, but where steps
    are read from a physical plan.
    """
    hidden = {
        (kind.__name__, field.name)
        for kind in [*STEPS, *TYPES]
        if dataclasses.is_dataclass(kind)
        for field in dataclasses.fields(kind)
        if not field.repr
    }
    assert hidden == {
        ("JoinPublic", "public"),
        ("JoinPrivate", "new"),
        ("JoinPrivateKeys", "new"),
        ("JoinPublic", "new"),
        ("WithoutFound", "found"),
        ("PerIndividual", "listed"),
        ("Binary", "other"),
        ("Concat", "other"),
        ("JoinPrivate", "other"),
        ("JoinPrivateKeys", "other"),
    }


def written(value: Any) -> str:
    return json.dumps(definition(value), sort_keys=True)


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=True)
    | st.sampled_from([0.0, -0.0, 0, 1, 1.0, True, "1", "1.0", b"1", Decimal("1"), Decimal("1.0")])
    | st.text(max_size=3)
    | st.binary(max_size=3)
    | st.decimals()
    | st.dates()
    | st.times()
    | st.datetimes(timezones=st.none() | st.just(UTC))
    | st.timedeltas()
)


@given(SCALARS, SCALARS)
def test_constants_are_told_apart(a: Any, b: Any) -> None:
    assert (written(a) == written(b)) == (identity(a) == identity(b))


@given(st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=5))
def test_definitions_are_json_that_any_reader_keeps(value: Any) -> None:
    found = definition(value)
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_values_of_unlike_types_are_unlike() -> None:
    values: list[Any] = [
        None, False, 0, 0.0, -0.0, "0", b"0", Decimal("0"), Decimal("0.0"), Decimal("-0"),
        Fraction(1, 2), 0.5, "1/2", float("nan"), "nan", float("inf"), 2**53, float(2**53),
        -(2**53), str(2**53), date(2020, 1, 1), datetime(2020, 1, 1),
        datetime(2020, 1, 1, tzinfo=UTC),
        "2020-01-01", time(0), timedelta(0), timedelta(microseconds=1), (), ((),),
        ("a", "b"), ("ab",), (1, (2, 3)), ((1, 2), 3),
        pl.DataFrame({"a": [1]}), pl.DataFrame({"a": [1.0]}),
        Column("a"), Literal("a", DType("String")), Literal(None, DType("String")),
        Named("a", Column("a")), Call(Eq(), ()), Call(Eq(), (Column("a"),)), Call(Ne(), ()),
        Call(Clip(1, None), ()), Call(Clip(True, None), ()), Call(Clip(1.0, None), ()),
        Call(Clip(None, 1), ()),
        {"a": 1}, {"a": 1, "b": 2}, {"b": 2, "a": 1},
    ]  # fmt: skip
    assert len({written(value) for value in values}) == len(values)


def test_numpy_does_not_change_how_a_number_is_written() -> None:
    assert written(np.float64(0.1)) == written(0.1)


@pytest.mark.parametrize("value", [{1, 2}, object(), np.int64(1), pl.Series([1]), frozenset()])
def test_what_has_no_order_or_no_form_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match="plans have no"):
        definition(value)
