"""The laws of limits can fail: each wrong rule, planted in the product, is caught.

Fixed frames of individuals meet the rules as they are, and then each rule with one mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest

import dpframe as dp
import dpframe.aggregates.measurement
import dpframe.aggregates.request
import dpframe.frames.contribution_limits
import dpframe.frames.facts
import dpframe.lower.tables
from dpframe.aggregates.argmax import CategoryChoice
from dpframe.aggregates.request import QueryScope
from dpframe.aggregates.statistics import UnitCount, UnitRows, UnitTotal
from dpframe.core.sensitivity import ContributionBounds, ScoreRange
from dpframe.frames.contribution_limits import LimitGroups, LimitRows
from dpframe.frames.sampling import comparable, keep_first, keep_first_together, least_of_runs
from dpframe.kernel import frame, moves
from dpframe.kernel.frame import Bounds, Facts, GroupLimit, RowLimit, reach_of
from dpframe.kernel.moves import Addition, Norms
from dpframe.kernel.plan import Col, Values
from dpframe.lower.pairs import Pairs
from tests.laws import kernel_mistakes
from tests.laws.amounts import amounts
from tests.laws.individuals import KEYS, POOLS, check_limits, frame_of, query
from tests.laws.neighbours import Pair

Patch = pytest.MonkeyPatch
BY_G = f'f.group_by("g", keys={KEYS["g"]})'
BY_H = f'f.group_by("h", keys={KEYS["h"]})'
BY_BOTH = f'f.group_by("g", "h", keys={{"g": {KEYS["g"]}, "h": {KEYS["h"]}}})'
BY_X = 'f.group_by(g=pl.col("x") % 10, keys=[0, 1, 2, 3, 4, 5, 6, 7, 8, 9])'
GROUPS, CELLS = POOLS["g"], POOLS["e"]
OTHERS = [
    {
        "id": 2 + i % 37,
        "g": GROUPS[i % 4],
        "h": i % 3,
        "c": "z",
        "e": CELLS[i % 3],
        "x": i,
        "y": 1.0,
    }
    for i in range(111)
]


def person(turn: int) -> list[dict[str, Any]]:
    """One individual's rows: a few or many, in one group or all, equal or different."""
    rows = [
        {"g": g, "h": h, "c": c, "e": "p", "x": 100 + 7 * h + n, "y": 9.0}
        for g in (GROUPS if turn % 2 else GROUPS[:1])
        for h in range(3 if turn // 2 % 2 else 1)
        for c in (["a", "m"] if turn // 4 % 2 else ["a"])
        for n in range((1, 3, 30)[turn // 8 % 3])
    ]
    if turn // 24 % 2:
        rows = [{**row, "x": -50, "e": "q" if i % 2 else "p"} for i, row in enumerate(rows)]
    return [{"id": 1, **row} for row in rows]


@cache
def pairs() -> tuple[Pair, ...]:
    others = frame_of(OTHERS)
    return tuple(Pair(others, frame_of(person(turn) + OTHERS)) for turn in range(48))


Case = tuple[str, str, tuple[str, ...]]
"""The dp expression, the grouping, the steps."""


def check_all(case: Case, every: int = 1) -> None:
    text, grouping, steps = case
    asked = query([text], grouping, steps)
    for i in range(0, len(pairs()), every):
        check_limits(asked, pairs()[i], salt=i)


# ------------------------------------------------------------------------------- the mistakes


def function(module: Any, name: str, value: Any) -> Any:
    """Plants another function, method or property."""
    return lambda patch: patch.setattr(module, name, value)


def _spread(change: Callable[[Bounds], Bounds]) -> Any:
    """Plants another spread of rows."""
    return kernel_mistakes.bounds(lambda found, *_: change(found))


def _limits(change: Callable[[Sequence[Any], Mapping[str, str | None]], Sequence[Any]]) -> Any:
    """Plants other limits for a group-by to use. They follow from the names of the keys, and from
    the columns that these are.
    """

    def of_keys(_: Bounds, facts: Facts, keys: Any) -> Bounds:
        by = () if keys is None else keys.by
        names = {name: row.name if isinstance(row, Col) else None for name, row in by}
        limits = tuple(change(facts.limits, names))
        return kernel_mistakes.BOUNDS(replace(facts, limits=limits), keys, tuple(range(len(by))))

    return kernel_mistakes.bounds(of_keys)


def _norm(**wrong: Callable[[Any, ContributionBounds], Any]) -> Any:
    """Plants another norm of sums over disjoint sets of rows."""

    def rule(found: Norms, spread: ContributionBounds, _: Addition) -> Norms:
        return replace(found, **{name: change(found, spread) for name, change in wrong.items()})

    return kernel_mistakes.norms(rule)


def _columns_that_overlap(limits: Sequence[Any], groups: Mapping[str, str | None]) -> list[Any]:
    """As if a limit on one column were one on each grouping that has the column."""
    names = {name for name in groups.values() if name is not None}
    return [
        replace(limit, by=limit.by | names)
        if isinstance(limit, GroupLimit) and limit.by & names
        else limit
        for limit in limits
    ]


def _finer_rows(limits: Sequence[Any], groups: Mapping[str, str | None]) -> list[Any]:
    """As if a limit for each value of several columns held for each value of one."""
    names = frozenset(name for name in groups.values() if name is not None)
    return [
        replace(limit, by=names) if isinstance(limit, RowLimit) and names < limit.by else limit
        for limit in limits
    ]


def _named_alike(limits: Sequence[Any], groups: Mapping[str, str | None]) -> list[Any]:
    """As if a computed key were the column whose name it has."""
    names = {*groups}
    return [
        replace(limit, by=frozenset())
        if isinstance(limit, RowLimit) and limit.by <= names
        else limit
        for limit in limits
    ]


def _any_groups(limits: Sequence[Any], groups: Mapping[str, str | None]) -> list[Any]:
    """As if a limit on groups multiplied each limit on rows, whatever the columns."""
    values = min((limit.n for limit in limits if isinstance(limit, GroupLimit)), default=None)
    rows = [limit for limit in limits if isinstance(limit, RowLimit)]
    made = [] if values is None else [RowLimit(limit.n * values) for limit in rows]
    return [*limits, *made]


def _position_hash(
    frame: pl.LazyFrame,
    most: int,
    within: Sequence[str],
    order: Mapping[str, Any],
    salt: int,
    ns: Any,
    first: str | None = None,
    taken: Any = (),
) -> pl.LazyFrame:
    """Rows by a hash of their position."""
    rank = pl.col("index").hash(salt).rank("ordinal")
    rank = rank.over([comparable(pl, n, order[n]) for n in within])
    return frame.with_row_index("index").filter(rank <= most).drop("index")


def _ties(
    frame: pl.LazyFrame,
    most: int,
    within: Sequence[str],
    order: Mapping[str, Any],
    salt: int,
    ns: Any,
    first: str | None = None,
    taken: Any = (),
) -> pl.LazyFrame:
    """Equal rows in one place, so that all of them are kept."""
    values = [comparable(pl, n, dtype) for n, dtype in order.items()]
    rank = pl.struct(values).hash(salt).rank("dense")
    return frame.filter(rank.over([comparable(pl, n, order[n]) for n in within]) <= most)


def _for_everybody(
    frame: pl.LazyFrame,
    most: int,
    within: Sequence[str],
    order: Mapping[str, Any],
    salt: int,
    ns: Any,
    first: str | None = None,
    taken: Any = (),
) -> pl.LazyFrame:
    """The rows whose hashes come first among everybody's."""
    values = [comparable(pl, n, dtype) for n, dtype in order.items()]
    rank = pl.struct(values).hash(salt).rank("ordinal")
    others = [comparable(pl, n, order[n]) for n in within[1:]]
    return frame.filter((rank.over(others) if others else rank) <= most)


def _rows_and_groups(kept: Any) -> Any:
    """Plants another choice of rows and of groups."""

    def plant(patch: Patch) -> None:
        patch.setattr(dpframe.frames.contribution_limits, "keep_first", kept)
        patch.setattr(dpframe.frames.contribution_limits, "keep_first_of_many", kept)
        _kept_together_alike(patch)

    return plant


def _kept_together_alike(patch: Patch) -> None:
    """Pairs in memory are kept as others are."""

    def keep(self: LimitGroups, pairs: pl.DataFrame, *rest: Any) -> pl.DataFrame:
        return self.keep(pairs.lazy(), *rest, pl).collect()

    patch.setattr(LimitGroups, "keep_together", keep)


def _kept(keep: Any) -> Any:
    """Plants another choice of groups, however they are kept."""

    def plant(patch: Patch) -> None:
        patch.setattr(LimitGroups, "keep", keep)
        _kept_together_alike(patch)

    return plant


def _elsewhere(planted: Any) -> Any:
    """Plants the same where rows are grouped by the engine."""

    def plant(patch: Patch) -> None:
        planted(patch)
        patch.setattr(dpframe.lower.tables, "sortable", lambda _: False)

    return plant


def _one_more(frame: pl.LazyFrame, most: int, *rest: Any) -> pl.LazyFrame:
    return keep_first(frame, most + 1, *rest)


def _nulls_are_free(
    self: LimitGroups,
    pairs: pl.LazyFrame,
    names: Mapping[str, str],
    whose: Mapping[str, Any],
    before: Any,
    salt: int,
    ns: Any,
) -> pl.LazyFrame:
    """Null groups are kept beside the others."""
    known = pl.all_horizontal(pl.col([names[name] for name in self.by]).is_not_null())
    limited = KEEP_GROUPS(self, pairs.filter(known), names, whose, before, salt, ns)
    return pl.concat([limited, pairs.filter(~known)])


KEEP_GROUPS = LimitGroups.keep


def _unfollowed(limits: Sequence[Any], names: Mapping[str, str]) -> tuple[Any, ...]:
    """Limits keep the names of columns that were renamed, redefined or dropped."""
    return tuple(limits)


def _renamed_only(limits: Sequence[Any], names: Mapping[str, str]) -> tuple[Any, ...]:
    """Limits follow renamed columns, and hold of those that got other values."""
    return tuple(
        replace(limit, by=frozenset(names.get(t, t) for t in limit.by)) for limit in limits
    )


def _forgotten(limits: Sequence[Any], names: Mapping[str, str]) -> tuple[Any, ...]:
    """Columns that are no longer there are left out of limits."""
    return tuple(
        replace(limit, by=frozenset(names[t] for t in limit.by if t in names)) for limit in limits
    )


def _not_by_unit(pairs: Pairs, frame: pl.LazyFrame) -> tuple[pl.LazyFrame, list[pl.Expr]]:
    """Rows are not put together, and each counts as one individual."""
    numbered = list(enumerate(zip(pairs.statistics, pairs.columns, strict=True)))
    clamped = [s.clamp_per_unit(pl.col(name), pl).alias(f"p{i}") for i, (s, name) in numbered]
    return frame.with_columns(*clamped), [s.reduce(pl.col(f"p{i}"), pl) for i, (s, _) in numbered]


def _pairs(made: Callable[[Pairs, pl.LazyFrame], Any]) -> Any:
    """Plants other pairs."""

    def plant(patch: Patch) -> None:
        patch.setattr(Pairs, "of", lambda self, frame, *_: made(self, frame))
        patch.setattr(Pairs, "of_memory", lambda self, rows, *_: made(self, rows.lazy()))

    return plant


def _half_range(self: CategoryChoice, scope: QueryScope) -> ScoreRange:
    spread = self.spread(scope)
    b = Fraction(scope.rules.addition(self.tables[0]).largest)
    return ScoreRange(b, spread.l2_squared * b**2, b)


def _of_any_column(facts: Any, keys: Any, kept: Any, value: Any) -> int | None:
    """The least limit on rows that speaks of the column at all."""
    limits = [limit for limit in facts.limits if isinstance(limit, RowLimit)]
    return min((limit.n for limit in limits if value.name in limit.by), default=None)


def _one_value_in_each(facts: Facts, table: Any, *rest: Any) -> Any:
    """As if each cell were of one value."""
    cells = table.cells
    one = None if cells is None else Values(cells.row, (), other=False)
    return reach_of(facts, replace(table, cells=one), *rest)


def _each_row_of_individuals(patch: Patch) -> None:
    """Individuals add as many as they have rows."""
    patch.setattr(UnitCount, "counts_pairs", False)
    patch.setattr(UnitCount, "clamp_per_unit", lambda self, column, ns: column)


UNIT_SUM = 'pl.col("x").dp_sum((-3, 7), per="unit")'
THREE_GROUPS = ('f.limit_groups(3, by="g")', 'f.limit_rows(2, by="g")')
FILLED = 'f.with_columns(g=(pl.col("x") % 5).cast(pl.String))'
REST = 'f.group_by("g", keys=["0", "1", "2", "3", "4"])'

MISTAKES: dict[str, tuple[Any, Case]] = {
    "limits hold of redefined columns": (
        function(dpframe.frames.facts, "rename_limits", _renamed_only),
        ("dp.count()", REST, ('f.limit_rows(1, by="g")', FILLED)),
    ),
    "limits hold of other columns of the name": (
        function(dpframe.frames.facts, "rename_limits", _unfollowed),
        ("dp.count()", BY_G, ('f.limit_rows(1, by="g")', 'f.rename({"g": "c", "c": "g"})')),
    ),
    "limits on groups hold of other columns of the name": (
        function(dpframe.frames.facts, "rename_limits", _unfollowed),
        (UNIT_SUM, REST, ('f.limit_groups(1, by="g")', FILLED)),
    ),
    "dropped columns are left out of limits": (
        function(dpframe.frames.facts, "rename_limits", _forgotten),
        ("dp.count()", BY_H, ('f.limit_rows(1, by="g")', 'f.drop("g")')),
    ),
    "m in place of r": (
        _spread(lambda s: replace(s, rows=s.per_group)),
        ("dp.count()", BY_G, THREE_GROUPS),
    ),
    "as many rows as groups": (
        _spread(lambda s: replace(s, rows=s.groups)),
        ("dp.count()", "f", ("f.limit_rows(3)",)),
    ),
    "m forgets r": (
        _spread(lambda s: replace(s, per_group=1)),
        ("dp.count()", BY_G, ("f.limit_rows(3)",)),
    ),
    "L2 of full groups only": (
        _norm(l2_squared=lambda f, s: f.linf**2 * (s.tight[0] // s.tight[2])),
        ("dp.count()", BY_G, ('f.limit_rows(4, by="g")', "f.limit_rows(6)")),
    ),
    "L2 as if rows never met": (
        _norm(l2_squared=lambda f, s: f.l1),
        ("dp.count()", BY_G, ('f.limit_rows(4, by="g")',)),
    ),
    "Linf of one row": (
        _norm(linf=lambda f, s: f.linf / s.tight[2]),
        ("dp.count()", BY_G, THREE_GROUPS),
    ),
    "L1 of one group": (
        _norm(l1=lambda f, s: f.linf),
        ("dp.count()", BY_G, THREE_GROUPS),
    ),
    "L0 of one group": (
        _norm(l0=lambda f, s: 1),
        ("dp.count()", BY_G, THREE_GROUPS),
    ),
    "L0 forgets cells": (
        _norm(l0=lambda f, s: min(f.l0, s.tight[1])),
        ('pl.col("e").dp_histogram()', "f", ("f.limit_rows(9)",)),
    ),
    "any limit on groups bounds all rows": (
        _limits(_any_groups),
        ("dp.count()", "f", ('f.limit_rows(2, by="g")', 'f.limit_groups(1, by="c")')),
    ),
    "groups of one column for groups of two": (
        _limits(_columns_that_overlap),
        (UNIT_SUM, BY_BOTH, ('f.limit_groups(1, by="g")',)),
    ),
    "rows by two columns for rows by one": (
        _limits(_finer_rows),
        ("dp.count()", BY_G, ('f.limit_rows(1, by=["g", "h"])',)),
    ),
    "a computed key for the column of its name": (
        _limits(_named_alike),
        ("dp.count()", BY_X, ('f.limit_rows(1, by="g")',)),
    ),
    "rows by their position": (
        _rows_and_groups(_position_hash),
        ("dp.count()", BY_G, ("f.limit_rows(1)",)),
    ),
    "groups by their position": (
        _rows_and_groups(_position_hash),
        (UNIT_SUM, BY_G, ('f.limit_groups(1, by="g")',)),
    ),
    "equal rows are one": (
        _rows_and_groups(_ties),
        ("dp.count()", "f", ("f.limit_rows(2)",)),
    ),
    "so many rows of everybody": (
        _rows_and_groups(_for_everybody),
        ("dp.count()", BY_G, ("f.limit_rows(3)",)),
    ),
    "one row more": (
        _rows_and_groups(_one_more),
        ("dp.count()", "f", ("f.limit_rows(2)",)),
    ),
    "one group more": (
        _rows_and_groups(_one_more),
        (UNIT_SUM, BY_G, ('f.limit_groups(2, by="g")',)),
    ),
    "groups are not limited": (
        _kept(lambda self, pairs, *_: pairs),
        (UNIT_SUM, BY_G, ('f.limit_groups(2, by="g")',)),
    ),
    "null is no group": (
        _kept(_nulls_are_free),
        (UNIT_SUM, BY_G, ('f.limit_groups(2, by="g")',)),
    ),
    "totals are not clamped": (
        function(UnitTotal, "clamp_per_unit", lambda self, column, ns: column),
        (UNIT_SUM, "f", ()),
    ),
    "individuals count once per row": (
        _each_row_of_individuals,
        ('pl.col("id").dp_n_unique()', "f", ()),
    ),
    "rows of individuals are not clamped": (
        function(UnitRows, "clamp_per_unit", lambda self, column, ns: column),
        ('dp.count(per="unit", bounds=(0, 2))', "f", ()),
    ),
    "rows are clamped, and not totals": (
        _pairs(_not_by_unit),
        (UNIT_SUM, "f", ()),
    ),
    "an individual is in one group": (
        _spread(lambda s: replace(s, groups=1)),
        (UNIT_SUM, BY_G, ()),
    ),
    "an individual is in as many groups as it has rows in one": (
        _spread(lambda s: replace(s, groups=s.per_group)),
        (UNIT_SUM, BY_G, ('f.limit_rows(1, by="g")',)),
    ),
    "all other values are one that a limit is for": (
        function(moves, "reach_of", _one_value_in_each),
        (
            'pl.col("g").dp_histogram(["nobody"], other=True)',
            "f",
            ('f.limit_rows(1, by="g")', "f.limit_rows(5)"),
        ),
    ),
    "bins have one value": (
        function(moves, "reach_of", _one_value_in_each),
        (
            'pl.col("h").dp_histogram([0, 5])',
            "f",
            ('f.limit_rows(1, by="h")', "f.limit_rows(5)"),
        ),
    ),
    "a limit for each value of two columns is one of each": (
        function(frame, "_rows_in_cell", _of_any_column),
        (
            'pl.col("g").dp_histogram(["a", "b"])',
            "f",
            ('f.limit_rows(1, by=["g", "h"])', "f.limit_rows(5)"),
        ),
    ),
    "choices as if individuals had a row each": (
        function(CategoryChoice, "score_range", _half_range),
        ('pl.col("e").dp_argmax()', BY_G, THREE_GROUPS),
    ),
}
OF_PAIRS = [
    "groups by their position",
    "one group more",
    "groups are not limited",
    "null is no group",
    "rows are clamped, and not totals",
]
MISTAKES |= {
    f"{name}, where the engine groups": (_elsewhere(MISTAKES[name][0]), MISTAKES[name][1])
    for name in OF_PAIRS
}
MISTAKES["one group more, in memory alone"] = (
    function(
        dpframe.frames.contribution_limits,
        "keep_first_together",
        lambda rows, most, *rest: keep_first_together(rows, most + 1, *rest),
    ),
    MISTAKES["one group more"][1],
)
MISTAKES["one row more of pairs in memory"] = (
    function(
        dpframe.frames.contribution_limits,
        "least_of_runs",
        lambda hashed, start, most: least_of_runs(hashed, start, most + 1),
    ),
    ("dp.count()", BY_G, ('f.limit_rows(2, by="g")', 'f.limit_groups(2, by="g")')),
)
MISTAKES["rows of pairs in memory are not limited"] = (
    function(
        LimitRows, "keep_together", lambda self, rows, names, places, *_: np.arange(places.size)
    ),
    MISTAKES["one row more of pairs in memory"][1],
)


@pytest.mark.parametrize("case", dict.fromkeys(case for _, case in MISTAKES.values()), ids=str)
@amounts("every", 5, 1)
def test_the_true_rule_passes(case: Case, every: int) -> None:
    """Or refuses what the wrong one accepts."""
    with suppress(dp.UnboundedSensitivity):
        check_all(case, every)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_planted_mistake_is_caught(mistake: str, monkeypatch: Patch) -> None:
    plant, case = MISTAKES[mistake]
    plant(monkeypatch)
    with pytest.raises(AssertionError, match="declared"):
        check_all(case)
