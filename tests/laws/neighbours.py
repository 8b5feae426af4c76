"""Neighbouring frames, and how far a part of a query moves between them.

Everything here is exact: integers and `Fraction`s, L2 squared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Literal

import numpy as np
import polars as pl
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpframe.aggregates.aggregate import Query
from dpframe.aggregates.draw import Places
from dpframe.aggregates.margins import Margin, RootSums
from dpframe.aggregates.measurement import (
    Additive,
    CellCounts,
    JointSums,
    Measurement,
    Rebuilt,
    Responses,
    Selection,
    Table,
)
from dpframe.aggregates.request import QueryScope
from dpframe.api.query import PrivateQuery, parts
from dpframe.core.sensitivity import ExactSensitivity
from dpframe.core.units import Rows
from dpframe.kernel import plan as kernel
from dpframe.kernel.plan import tables_of as release_tables
from dpframe.lower import Execution, Handles, PlanTables, Sources, lower_query, tables_of_plan
from dpframe.lower.tables import count_cells
from dpframe.mechanisms import Box
from dpframe.optimise.measurements import PlannedDraw, PlannedMeasurement, Way, ways_of
from dpframe.optimise.measurements import measurements_of as measured
from dpframe.optimise.physical import Lists, _of_columns_read
from dpframe.release.numbers import PointRuns
from dpframe.rows.failures import OPTIMIZATIONS
from dpframe.simulate import Exact, ExactTables
from tests.laws.frames import frames
from tests.laws.layouts import stored

Engine = Literal["in-memory", "streaming"]


class Counted(dict[Table, CellCounts]):
    """The exact tables of a query. What its parts are is read from a physical plan of them, as a
    release does.
    """

    def __init__(self, query: Query, tables: Mapping[Table, CellCounts]) -> None:
        super().__init__(tables)
        self.query = query

    def of(self, *parts: Measurement) -> ExactTables:
        """The same of some parts, as a plan of these has them."""
        exact = _exact(self.query, parts)
        return ExactTables(exact, {p: self[t] for p, t in tables_at(exact).items()})


@lru_cache(maxsize=64)
def _exact(query: Query, parts: tuple[Measurement, ...]) -> Exact:
    return exact_of(query, parts)[0]


def exact_of(query: Query, parts: Iterable[Measurement]) -> tuple[Exact, Handles]:
    """A plan of parts of a query, whether they are drawn or not."""
    lists = Lists()
    nodes = {part: lists.what(part, query) for part in parts}
    lasting = _of_columns_read(lists), tuple(lists.tables), ()
    unit, nothing = query.relation.facts.unit, Fraction(0)
    plan = kernel.Plan(unit.adjacency, *lasting, "epsilon", nothing, nothing, ())
    return Exact(Places(plan, {}), nodes, ()), lists.handles


def tables_at(exact: Exact) -> dict[int, Table]:
    """What the query has at each place of a table."""
    pairs = ((release_tables(node), part.tables) for part, node in exact.nodes.items())
    return {p: t for places, tables in pairs for p, t in zip(places, tables, strict=True)}


UNITS = [
    Rows(adjacency, contributions)
    for adjacency in ("add-remove", "change-one")
    for contributions in (1, 2, 3)
]


@dataclass(frozen=True)
class Pair:
    """Two frames that one individual tells apart."""

    before: pl.DataFrame
    after: pl.DataFrame


@dataclass(frozen=True)
class Moved:
    """How far a vector moved, and for selections how far scores moved apart in each group."""

    l0: int
    l1: int
    l2_squared: int
    linf: int
    ranges: tuple[int, ...] = ()


@st.composite
def neighbours(
    draw: st.DrawFn, unit: Rows, names: Sequence[str], max_rows: int = 7, max_pool: int = 6
) -> Pair:
    """Frames that differ in at most `unit.contributions` rows, in any order of rows.

    All rows come from a small pool, so that equal rows and whole moves of equal rows are common.
    """
    pool = draw(frames(min_rows=1, max_rows=max_pool, names=names))
    row = st.integers(0, pool.height - 1)
    kept = draw(st.lists(row, max_size=max_rows))
    moved = draw(st.integers(1, unit.contributions))
    some = st.lists(row, min_size=moved, max_size=moved) | row.map(lambda i: [i] * moved)
    one, other = draw(some), draw(some)
    if unit.adjacency == "add-remove":
        one, other = draw(st.sampled_from([(one, []), ([], one)]))
    before, after = draw(st.permutations(kept + one)), draw(st.permutations(kept + other))
    return Pair(pool[before], pool[after])


def query_of(query: PrivateQuery) -> Query:
    return parts(query)[0]


@lru_cache(maxsize=32)
def measurements_of(query: Query) -> tuple[PlannedMeasurement, ...]:
    """The parts of a query: the same for all frames, so a query that meets many asks once. Tests
    that plant a mistake make the query after it.
    """
    return measured(query)


@lru_cache(maxsize=64)
def planned_ways(query: Query, by: str) -> tuple[Way, ...]:
    """Ways to draw a query's parts, which are the same for all frames too."""
    return ways_of(query, measurements_of(query), by)


@lru_cache(maxsize=32)
def tables_of(query: Query) -> tuple[Table, ...]:
    """The exact tables that a query needs, each once, however its cost is divided."""
    ways = [way for by in ("equal", "least error") for way in planned_ways(query, by)]
    draws = [draw.measurement for way in ways for draw in way.draws]
    return tuple(dict.fromkeys(t for part in draws for t in part.tables))


def run(query: Query, frame: pl.LazyFrame) -> Counted:
    """The exact tables as the pipeline computes them."""
    execution = Execution.of_public({query.relation.token: frame})
    return Counted(query, execution.run(query.relation, query.groups, tables_of(query)))


def exact_tables(
    query: Query,
    frame: pl.DataFrame | Mapping[int, pl.DataFrame],
    engine: Engine = "in-memory",
    salt: int = 0,
) -> Counted:
    """The exact tables through the real lowering; whatever an engine raises gets through.

    The tables are read from a physical plan, as those of a release are. `frame` is the protected
    frame, or several by their tokens; each column is stored in a way of its own, which the values
    decide, so neighbours are mostly stored in different ways. With an even salt limits distinguish
    rows by the columns that something reads, as in a release of its own; with an odd one by all
    columns, as where releases share a choice of rows.
    """
    counted = Counted(query, {})
    several, names = planned_tables(query, salt % 2 == 1)
    source: Sources = (
        stored(frame).lazy()
        if isinstance(frame, pl.DataFrame)
        else {token: stored(found).lazy() for token, found in frame.items()}
    )
    for one in several:
        groups = one.groups
        if groups is not None and groups.discovered:
            groups = query.groups
        read = {table: names[place] for place, table in one.tables.items()}
        for lowered in lower_query(one.relation, groups, list(read), source, salt=salt):
            frame_of_groups = lowered.frame.collect(engine=engine, optimizations=OPTIMIZATIONS)
            cells = count_cells(lowered, lowered.group(frame_of_groups), groups)
            counted |= zip((read[table] for table in lowered.tables), cells, strict=True)
    return counted


@lru_cache(maxsize=32)
def planned_tables(
    query: Query, shares: bool = False
) -> tuple[list[PlanTables], Mapping[int, Table]]:
    """The tables of a query as a physical plan has them, and what the query has at each place. The
    choices of rows may be shared with other releases.
    """
    relation = replace(query.relation, salt=0) if shares else query.relation
    ways = [way for by in ("equal", "least error") for way in planned_ways(query, by)]
    draws = [draw for way in ways for draw in way.draws]
    asked = replace(query, relation=relation)
    exact, handles = exact_of(asked, (one.measurement for one in draws))
    plan = exact.places.plan
    (found,) = tables_of_plan(plan, handles, [(range(len(plan.tables)), None)])
    return found, tables_at(exact)


def same(one: Counted, other: Counted) -> bool:
    """Whether two runs gave the same tables."""
    return one.keys() == other.keys() and all(
        np.array_equal(one[t].groups, other[t].groups)
        and np.array_equal(one[t].cells, other[t].cells)
        and np.array_equal(one[t].values, other[t].values)
        and one[t].size == other[t].size
        for t in one
    )


def vector(part: Additive | Margin | Responses | RootSums, counted: Counted) -> list[int]:
    """All entries of an additive part, as plain integers."""
    found: list[int] = counted.of(part).numbers(part).ravel().tolist()
    return found


@dataclass(frozen=True)
class Ballot:
    """The candidates of one group: scores, weights if there are any, codes of first points."""

    scores: NDArray[np.int64]
    weights: NDArray[np.int64] | None
    starts: NDArray[np.int64]


def ballots(part: Selection, counted: Counted, scope: QueryScope) -> list[Ballot]:
    """The ballot of each group, from all groups at once, and the same in pieces."""
    groups, exact = part.entries(scope), counted.of(part)
    found = _split(exact.scores(part, 0, groups))
    alone = [b for i in range(groups) for b in _split(exact.scores(part, i, i + 1))]
    assert len(found) == groups
    for one, other in zip(found, alone, strict=True):
        np.testing.assert_equal(one.scores, other.scores)
        np.testing.assert_equal(one.weights, other.weights)
        np.testing.assert_equal(one.starts, other.starts)
    return found


def _split(made: NDArray[np.int64] | PointRuns) -> list[Ballot]:
    if not isinstance(made, PointRuns):
        return [Ballot(row, None, np.arange(row.size)) for row in made]
    ends = np.cumsum(made.sizes).tolist()
    assert (ends[-1] if ends else 0) == made.scores.size
    pieces = [slice(a, b) for a, b in zip([0, *ends], ends, strict=False)]
    return [Ballot(made.scores[p], made.weights[p], made.starts[p]) for p in pieces]


def _runs(ballot: Ballot, points: int) -> Iterator[tuple[int, int, int]]:
    """(first point, point after the last, score) of each candidate."""
    weights = np.ones_like(ballot.scores) if ballot.weights is None else ballot.weights
    assert int(weights.sum()) == points
    for start, weight, score in zip(
        ballot.starts.tolist(), weights.tolist(), ballot.scores.tolist(), strict=True
    ):
        yield start, start + weight, score


def score_changes(before: Ballot, after: Ballot, points: int) -> list[tuple[int, int]]:
    """(change of the score, how many points change so), over all points."""
    old, new = list(_runs(before, points)), list(_runs(after, points))
    changes, i, j, at = [], 0, 0, 0
    while at < points:
        end = min(old[i][1], new[j][1])
        changes.append((new[j][2] - old[i][2], end - at))
        i, j, at = i + (old[i][1] == end), j + (new[j][1] == end), end
    return changes


def moved(part: Measurement, before: Counted, after: Counted, scope: QueryScope) -> Moved:
    """How far the part's vector (of scores, for selections) is between two frames."""
    ranges: list[int] = []
    if isinstance(part, Additive | Margin | Responses | RootSums):
        pairs = zip(vector(part, before), vector(part, after), strict=True)
        changes = [(b - a, 1) for a, b in pairs]
    elif isinstance(part, JointSums):
        changes = _each(joint_changes(part, before, after))
    else:
        assert isinstance(part, Selection)
        changes = []
        for a, b in zip(ballots(part, before, scope), ballots(part, after, scope), strict=True):
            found = score_changes(a, b, part.candidates)
            changes += found
            ranges.append(max(c for c, _ in found) - min(c for c, _ in found))
    return _sizes(changes, ranges)


def _each(changes: list[list[int]]) -> list[tuple[int, int]]:
    return [(change, 1) for vector in changes for change in vector]


def _sizes(changes: Sequence[tuple[int, int]], ranges: Sequence[int] = ()) -> Moved:
    return Moved(
        l0=sum(n for c, n in changes if c),
        l1=sum(abs(c) * n for c, n in changes),
        l2_squared=sum(c * c * n for c, n in changes),
        linf=max((abs(c) for c, _ in changes), default=0),
        ranges=tuple(ranges),
    )


def joint_changes(part: JointSums, before: Counted, after: Counted) -> list[list[int]]:
    """How far the vector of each group moves."""
    found: list[list[int]] = (joint_vector(part, after) - joint_vector(part, before)).tolist()
    return found


def joint_vector(part: JointSums, counted: Counted) -> NDArray[np.int64]:
    """The vector of each group."""
    return counted.of(part).numbers(part)


def outside_box(
    part: JointSums, box: Box, changes: Sequence[Sequence[int]], shrink: Fraction = Fraction(1)
) -> str | None:
    """What moved by more boxes, or hulls, than are declared (times `shrink`), over all groups."""
    moves = sum(_moves(vector, box) for vector in changes)
    if moves > box.rows * shrink:
        return f"{part.words()}: moved by {moves} boxes, declared {box.rows}"
    return None


def _moves(vector: Sequence[int], box: Box) -> int:
    """The least number of rows that may move a vector so far."""
    rows = max(-(-abs(change) // width) for change, width in zip(vector, box.widths, strict=True))
    while not all(
        is_in_arch(*(Fraction(vector[i], rows * box.widths[i]) for i in arch))
        for arch in box.arches
        if rows
    ):
        rows += 1
    return rows


def is_in_arch(a: Fraction, x: Fraction, y: Fraction) -> bool:
    """Whether p parts of what rows may add and q = 1 - p of what they may take away make (a, x, y):
    rows add (1, t, s) with 2 t**2 - 1 <= s <= 1, so the first p 1 at most, and the second at least
    q (2 v**2 - 1), with as small a |v| as leaves p for the rest of x.
    """
    p, q = (1 + a) / 2, (1 - a) / 2
    if not (0 <= p <= 1 and abs(x) <= 1 and abs(y) <= 1):
        return False
    added, taken = (max(Fraction(0), abs(x) - part) for part in (q, p))
    most = p + q - (2 * taken**2 / q if q else 0)
    least = -q - p + (2 * added**2 / p if p else 0)
    return least <= y <= most


def violation(
    part: Measurement, found: Moved, scope: QueryScope, shrink: Fraction = Fraction(1)
) -> str | None:
    """What moved further than the part declares (times `shrink`, to test the law itself)."""
    declared: ExactSensitivity = part.sensitivity(scope)
    if isinstance(part, Additive):  # whose exact tables are in parts where individuals are weighed
        declared = declared.scale(Fraction(scope.parts))
    limits: list[tuple[str, int, Fraction]] = [
        ("L0", found.l0, Fraction(declared.l0)),
        ("L1", found.l1, declared.l1 * shrink),
        ("L2 squared", found.l2_squared, declared.l2_squared * shrink**2),
        ("Linf", found.linf, declared.linf * shrink),
    ]
    if isinstance(part, Selection):
        allowed = part.score_range(scope)
        squares = sum(r * r for r in found.ranges)
        limits += [
            ("sum of ranges", sum(found.ranges), allowed.l1 * shrink),
            ("sum of squared ranges", squares, allowed.l2_squared * shrink**2),
        ]
    for name, reached, limit in limits:
        if reached > limit:
            return f"{part.words()}: {name} is {reached}, declared {limit}"
    return None


def check_sensitivities(query: Query, pair: Pair) -> tuple[Counted, Counted]:
    """Every part moves no further than it declares, whatever the order of rows.

    Returns
    -------
    tuple of Counted
        The exact tables of both frames.
    """
    before, after = exact_tables(query, pair.before), exact_tables(query, pair.after)
    for use in measurements_of(query):
        assert use.sensitivity == use.part.sensitivity(query.scope)
        problem = violation(use.part, moved(use.part, before, after, query.scope), query.scope)
        assert problem is None, f"{use.name}: {problem}"
    check_joint_draws(query, before, after)
    return before, after


@lru_cache(maxsize=32)
def joint_draws(query: Query) -> tuple[PlannedDraw, ...]:
    """What each way draws for several parts at once, equal draws once."""
    ways = [way for by in ("least error", "equal") for way in planned_ways(query, by)]
    return tuple(dict.fromkeys(d for way in ways for d in way.draws if d.rebuilt is not None))


def check_joint_draws(query: Query, before: Counted, after: Counted) -> None:
    """Vectors of several parts move no further than they declare, and parts follow from them."""
    parts, scope = measurements_of(query), query.scope
    for draw in joint_draws(query):
        part = draw.measurement
        assert isinstance(part, JointSums)
        assert draw.rebuilt is not None
        assert draw.sensitivity == part.sensitivity(scope)
        vectors = [joint_vector(part, counted) for counted in (before, after)]
        changes: list[list[int]] = (vectors[1] - vectors[0]).tolist()
        problem = violation(part, _sizes(_each(changes)), scope)
        task = part.task("", draw.sensitivity, draw.mechanism, scope)
        if task.box is not None:
            problem = problem or outside_box(part, task.box, changes)
        assert problem is None, problem
        for number, rebuilt in zip(draw.parts, draw.rebuilt, strict=True):
            single = parts[number].part
            assert isinstance(single, Additive | Margin)
            for found, counted in zip(vectors, (before, after), strict=True):
                check_rebuilt(rebuilt, found, vector(single, counted), scope.parts)


def check_rebuilt(
    rebuilt: Rebuilt, vectors: NDArray[np.int64], expected: list[int], parts: int
) -> None:
    """A part is rebuilt from vectors without noise as it is by itself."""
    whole, half = rebuilt.of(vectors)
    if parts == 1:
        assert whole.tolist() == expected, "a part does not follow from its vector"
        assert not half.any()
    else:  # weighed sums are rounded to the nearest integer, halves by a coin
        rest = whole * parts - expected
        assert (2 * abs(rest) <= parts).all()
        assert (half == (2 * rest == -parts)).all()
