"""No list of aggregates is kept by hand: entrances follow from the functions, and those from the
registry.
"""

from __future__ import annotations

import inspect
from inspect import signature
from typing import get_args

import polars as pl
import pytest

import dpframe as dp
from dpframe.aggregates.registry import BY_KIND
from dpframe.api.expressions import DPExpr, aggregate_of
from dpframe.api.functions import BY_NAME

ARGUMENTS = {"sum": ((0, 1),), "ratio": ("x",), "quantile": (0.5,), "histogram": ((0, 1, 2),)}


def kind_of(name: str) -> str:
    made = BY_NAME[name]("x", *ARGUMENTS.get(name, ()))
    assert isinstance(made, DPExpr)
    return aggregate_of(made, "it").aggregate.kind


def test_every_aggregate_has_a_function_and_no_function_another() -> None:
    assert {kind_of(name) for name in BY_NAME} == set(BY_KIND)


@pytest.mark.parametrize("name", BY_NAME)
def test_every_function_is_public_and_a_method(name: str) -> None:
    assert getattr(dp, name) is BY_NAME[name]
    assert name in dp.__all__
    assert callable(getattr(pl.col("x"), f"dp_{name}"))


def test_aggregates_that_clamp_are_those_with_bounds_of_values() -> None:
    bounded = {kind_of(name) for name, f in BY_NAME.items() if "bounds" in signature(f).parameters}
    others = {"count", "histogram", "argmax"}  # of individuals' rows, of edges, of a score
    frame = pl.LazyFrame(schema={"x": pl.Float64})
    people = dp.Session(epsilon=1).protect(frame, dp.Rows(), bounds={"x": (0, 1)})
    asked = [
        people.agg(f("x", *ARGUMENTS.get(name, ())))
        for name, f in BY_NAME.items()
        if kind_of(name) != "argmax"
    ]
    found = [aggregate for query in asked for aggregate in query._query.aggregates]
    assert {a.request.kind for a in found if a.clamps} == bounded - others


@pytest.mark.parametrize("name", BY_NAME)
def test_a_function_accepts_the_mechanisms_that_its_aggregate_has(name: str) -> None:
    function = inspect.unwrap(BY_NAME[name])
    hinted = getattr(inspect.getmodule(function), function.__annotations__["mechanism"])
    assert set(get_args(hinted)) == set(BY_KIND[kind_of(name)].mechanisms)
