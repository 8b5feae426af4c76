"""Which queries are run as one by grouping sets, and what each output has of what they measure."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import polars as pl

import dpframe as dp
from dpframe.aggregates.reconstruction import SetReconstruction, _is_related, can_be_related
from dpframe.optimise.queries import related_blocks
from tests.laws.neighbours import query_of

SCHEMA = {"who": pl.Int64, "a": pl.String, "b": pl.Int64, "c": pl.Int64, "n": pl.Int64}
KEYS: dict[str, list[Any]] = {"a": ["p", "q"], "b": [0, 1], "c": list(range(50))}
EXACT = dp.Session(epsilon=1).protect(pl.LazyFrame(schema=SCHEMA), dp.Rows())
PEOPLE = dp.Session(rho=1).protect(pl.LazyFrame(schema=SCHEMA), dp.Identifier("who"))


def table(*by: str, **outputs: Any) -> Any:
    groups = EXACT.group_by(*by, keys={name: KEYS[name] for name in by}) if by else EXACT
    return query_of(groups.agg(**(outputs or {"n": dp.count()})))


def test_a_query_by_itself_is_related_to_none() -> None:
    assert [*related_blocks([table("a")])] == []
    assert [*related_blocks([table("a"), table("b")])] == []


def test_a_margin_is_of_the_table_with_the_fewest_groups() -> None:
    """Which fewest numbers are added up for."""
    for order in ((("a", "b"), ("a", "c"), ("a",)), (("a", "c"), ("a", "b"), ("a",))):
        asked = [table(*by) for by in order]
        ((one,),) = related_blocks(asked)
        assert set(one.numbers) == {order.index(("a", "b")), 2}


def test_what_does_not_add_up_is_no_margin() -> None:
    assert can_be_related(table("a"))
    assert not can_be_related(table("a", m=pl.col("n").dp_median((0, 9))))
    shrunk = pl.col("n").dp_mean((0, 9), shrink=True)
    query = table("a", m=shrunk)
    assert not can_be_related(query)
    assert not any(_is_related(aggregate, query.scope) for aggregate in query.aggregates)
    assert not can_be_related(table("a", n=dp.count(mechanism="discrete_laplace")))
    weighed = PEOPLE.limit_norm(2).group_by("a", keys=["p", "q"]).agg(n=dp.count())
    assert not can_be_related(query_of(weighed))


def test_portions_of_what_is_measured_of_one_statistic_add_up_to_one() -> None:
    """Whatever weights outputs have, and whichever of the common sets they show."""
    whole = EXACT.filter(pl.col("b").is_in([0, 1]), pl.col("c").is_in([2, 3]))
    mean = pl.col("n").dp_mean((0, 7), weight=2)
    asked = [
        query_of(whole.group_by(dp.cube("b", "c")).agg(n=dp.count(weight=7))),
        query_of(whole.group_by("b", "c").agg(n=dp.count(weight=3), s=mean)),
        query_of(whole.group_by("b").agg(n=dp.count(), t=pl.col("n").dp_sum((0, 7), weight=5))),
        query_of(whole.agg(n=dp.count(weight=2))),
    ]
    found = [one for many in related_blocks(asked) for one in many]
    assert any(one.numbers == (0, 1, 2, 3) for one in found)
    for one in found:
        sums: Counter[Any] = Counter()
        for aggregate in one.query.aggregates:
            assert isinstance(aggregate, SetReconstruction)
            assert aggregate.related is not None
            inner = getattr(aggregate.inner, "inner", aggregate.inner)
            for use, portion in zip(inner.uses, aggregate.related.portions, strict=True):
                sums[use.part.tables[0]] += portion
        assert {*sums.values()} == {Fraction(1)}
