"""Steps, statistics and cells name every expression that they hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from fractions import Fraction
from functools import cache

import polars as pl

from dpframe.aggregates.cells import CategoryCells, Cells, WholeCells
from dpframe.aggregates.statistics import DistinctIndividuals, Statistic
from dpframe.core.tree import Call, Column, HasExprs, Literal, Named, Tree
from dpframe.frames.contribution_limits import LimitNorm
from dpframe.frames.group_by_individual import Gather, Least
from dpframe.frames.per_individual import Extremes, PerIndividual, WithoutFound
from dpframe.frames.relation import Binary, Relation, Step, frames_of
from dpframe.frames.row_steps import Explode
from tests.calls import call
from tests.engines.plans import PLANS, query
from tests.engines.test_operations_duckdb import classes
from tests.laws.neighbours import tables_of

OTHER = Column("other")


def holders() -> Iterator[HasExprs]:
    """What the plans that engines are compared by are made of."""
    for name in PLANS:
        asked, _ = query(PLANS[name])
        for frame in frames_of(asked.relation):
            yield from (step for step, _ in frame.steps)
        for table in tables_of(asked):
            yield table.statistic
            if table.cells is not None:
                yield table.cells


def held(value: object) -> Iterator[Tree]:
    """Expressions wherever they are in a value; those of another frame are that frame's."""
    match value:
        case Column() | Literal() | Call():
            yield value
        case tuple():
            for item in value:
                yield from held(item)
        case _ if is_dataclass(value) and not isinstance(value, (type, Relation)):
            for field in fields(value):
                yield from held(getattr(value, field.name))


X, Y = Column("x"), call("add", Column("y"), Column("z"))
OTHERS = [
    DistinctIndividuals(X),
    WholeCells(CategoryCells(Y, ("a",))),
    WithoutFound((Named("x", X), Named("g", Y)), 2, pl.DataFrame()),
    Gather((Named("g", Y),), (("m", Least(), (X,)),), beside=False),
    PerIndividual((Named("g", Y),), (Extremes(X, total=True), Extremes(Y, total=False))),
]


@cache
def all_holders() -> list[HasExprs]:
    """Not when this is imported, for to plan takes long."""
    return [*{repr(holder): holder for holder in (*holders(), *OTHERS)}.values()]


def test_every_expression_is_named() -> None:
    for holder in all_holders():
        assert holder.exprs == tuple(held(holder)), holder
        changed = holder.map_exprs(lambda _: OTHER)
        assert tuple(held(changed)) == (OTHER,) * len(holder.exprs), holder
        assert holder.map_exprs(lambda tree: tree) == holder


def test_there_is_one_of_each_kind() -> None:
    every = {k.__name__ for k in classes(Step) | classes(Statistic) | classes(Cells)}
    assert every - {type(holder).__name__ for holder in all_holders()} == {"Explode"}
    assert not Explode("l", 2).exprs
    assert not LimitNorm(Fraction(2)).exprs
    assert all(not h.exprs for h in all_holders() if isinstance(h, Binary))
