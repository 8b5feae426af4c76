"""Compares the exact numbers of real runs on Polars with those of the plain runner of their
physical plans.

`watch` does so for each query that runs while it is entered. `DPFRAME_PLAIN=FILE pytest ...` does
it for all tests, and appends to the file what was compared, what was not, and what differed.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from dpframe import runner, soundness
from dpframe.aggregates.draw import Draw
from dpframe.aggregates.keys import KeySelection
from dpframe.aggregates.margins import Margin, RootSums
from dpframe.aggregates.measurement import Additive, CellCounts, JointSums
from dpframe.frames.groups import Groups, digest_of_keys
from dpframe.frames.joins import JoinPublic
from dpframe.frames.per_individual import PerIndividual
from dpframe.frames.relation import Relation, frames_of
from dpframe.kernel import plan as p
from dpframe.kernel.plan import tables_of
from dpframe.lower import execution as lowering
from dpframe.lower.execution import CountedPart as Found
from dpframe.lower.execution import Execution
from dpframe.lower.tables import groups_of
from dpframe.optimise import physical as physical_plans
from dpframe.optimise.physical import Translation, alone
from dpframe.optimise.prepared import Prepared, PreparedTogether
from dpframe.optimise.prepared import tables_of as tables_of_measurements
from dpframe.plan.several import blocks_of
from dpframe.release.numbers import exact_numbers
from tests.kernel.plain import Counts, Given, NotSaid, Run, chosen_by_hash, lines

MOST = 20_000
"""Larger frames are not run."""


class NotCompared(Exception):
    """Why a run was not compared."""


@dataclass
class Seen:
    """What was compared.

    Parameters
    ----------
    runs, tables, vectors
        The number of runs, of their tables, and of vectors without their noise.
    left_out
        Why others were not compared.
    wrong
        What differed.
    nodes
        How often each node was in a plan that was compared.
    """

    runs: int = 0
    tables: int = 0
    vectors: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    nodes: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Round:
    """The exact number of each group that some are chosen among, and the groups that were found."""

    numbers: Counts
    found: pl.DataFrame


Change = Callable[[p.Plan], p.Plan]


@contextmanager
def watch(change: Change = lambda plan: plan) -> Iterator[Watch]:
    """Compare each query that runs while this is entered, with its plan after a change."""
    watching = Watch(change)
    before = runner._release, runner._count_parts, lowering.fresh_salt, lowering.choose_keys
    released, counted, fresh, choose = before

    def remember(prepared: PreparedTogether, *rest: Any, **options: Any) -> Any:
        with watching.running(prepared):
            return released(prepared, *rest, **options)

    def count(
        parts: Sequence[Prepared], translation: Translation, executions: Sequence[Execution]
    ) -> list[Found]:
        watching.salts.clear()
        watching.rounds.clear()
        found = counted(parts, translation, executions)
        watching.look(parts, translation, executions, found)
        return found

    def salt() -> int:
        watching.salts.append(fresh())
        return watching.salts[-1]

    def choose_and_record(chooser: Any, lowered: Any, results: Any, groups: Groups) -> Any:
        found = choose(chooser, lowered, results, groups)
        numbers = _numbers_of_groups(chooser, lowered, results, groups)
        watching.rounds.append(Round(numbers, found[0]))
        return found

    runner._release, runner._count_parts = remember, count
    lowering.fresh_salt, lowering.choose_keys = salt, choose_and_record
    try:
        yield watching
    finally:
        runner._release, runner._count_parts, lowering.fresh_salt, lowering.choose_keys = before


def compare_on(
    prepared: PreparedTogether,
    frames: Mapping[str, pl.DataFrame],
    change: Change = lambda plan: plan,
) -> Seen:
    """Count all that a plan needs of some frames, by their names, and compare."""
    with watch(change) as watching, watching.running(prepared):
        first = prepared if prepared.limits is None else alone(prepared.parts[0])
        options = () if prepared.limits is None else prepared.limits.options
        translated = soundness.require_verified(prepared)
        several = zip(
            [first.parts, *(option.parts for option in options)],
            [translated, *translated.options],
            strict=True,
        )
        for some, translation in several:
            relations = {one.token: one.name for one in _relations(some)}
            data = {token: frames[name].lazy() for token, name in relations.items()}
            runner._count_parts(some, translation, [Execution.of_public(data)] * len(some))
    return watching.seen


@dataclass
class Watch:
    """Looks at runs.

    Parameters
    ----------
    change
        What is done to each plan first.
    seen
        What was compared.
    whole
        The queries that run now.
    salts, rounds
        The salts of the frame that was counted last, and the choices of groups.
    """

    change: Change
    seen: Seen = field(default_factory=Seen)
    whole: list[PreparedTogether] = field(default_factory=list)
    salts: list[int] = field(default_factory=list)
    rounds: list[Round] = field(default_factory=list)

    @contextmanager
    def running(self, prepared: PreparedTogether) -> Iterator[None]:
        """What is counted while this is entered is of these queries."""
        self.whole.append(prepared)
        try:
            yield
        finally:
            self.whole.pop()

    def look(
        self,
        parts: Sequence[Prepared],
        translation: Translation,
        executions: Sequence[Execution],
        found: Sequence[Found],
    ) -> None:
        """Compare what was counted."""
        before = len(self.seen.wrong)
        try:
            self.compare(parts, translation, executions, found)
        except NotCompared as reason:
            self.seen.left_out[str(reason)] += 1
        except NotSaid as reason:
            self.seen.left_out[f"not said: {reason}"] += 1
        except Exception as error:  # a release hides what it raises
            self.seen.wrong.append(f"{type(error).__name__}: {error}"[:400])
        del self.seen.wrong[before + 1 :]  # one for each run
        test = os.environ.get("PYTEST_CURRENT_TEST", "")
        self.seen.wrong[before:] = [f"{test}: {wrong}" for wrong in self.seen.wrong[before:]]

    def compare(
        self,
        parts: Sequence[Prepared],
        translation: Translation,
        executions: Sequence[Execution],
        found: Sequence[Found],
    ) -> None:
        """Run the plan of what was counted on the same rows, and note what differs."""
        names: dict[int, str] = {}
        plan = _plan(self.whole[-1], parts, names)
        sources, public = _sources(executions, names), _public(parts)
        if len(self.rounds) > 1 and len(parts) > 1:
            raise NotCompared("rounds beside other queries")
        right, plan = plan, self.change(plan)
        groups_found = _find_groups(plan, parts, found)

        def run_with(salt: int, gone: pl.DataFrame | None) -> Run:
            return Run(plan, Given(sources, public, chosen_by_hash(salt), groups_found, gone))

        salts = [_salt(parts, [salt]) for salt in self.salts] or [_salt(parts, [])]
        run, gone = run_with(salts[0], None), None
        for salt, one in zip(salts, self.rounds, strict=False):
            run = run_with(salt, gone)
            place = next(d.what.table for d in plan.draws if isinstance(d.what, p.Appear))
            _check(self.seen, plan, place, run.table(place), one.numbers)
            gone = one.found if gone is None else pl.concat([gone, one.found])
        self.seen.runs += 1
        drawn = _draws(self.whole[-1], plan, parts, found)
        as_run = _draws(self.whole[-1], right, parts, found)
        for (what, one, _, counted), (in_run, *_) in zip(drawn, as_run, strict=True):
            for place, real in zip(tables_of(what), tables_of(in_run), strict=True):
                mine, stated = run.table(place), plan.tables[place].keys
                if isinstance(stated, p.Found):  # all groups, where these are chosen by the table
                    listed = {*lines(groups_found[stated.draw])}
                    mine = {at: number for at, number in mine.items() if at[0] in listed}
                keys = _keys_of(translation, real, counted)
                _check(self.seen, plan, place, mine, _real(counted.tables[real], keys))
            if isinstance(one.measurement, Additive | JointSums | Margin | RootSums):
                drawn_of = [counted.tables[real] for real in tables_of(in_run)]
                exact = exact_numbers(right, in_run, drawn_of)
                self.seen.vectors += 1
                if run.numbers(what) != exact.reshape(-1).tolist():
                    self.seen.wrong.append(f"{what}: other numbers are drawn")
        self.seen.nodes.update(_nodes(plan))


def _check(seen: Seen, plan: p.Plan, place: int, mine: Counts, theirs: Counts) -> None:
    seen.tables += 1
    if mine != theirs:
        seen.wrong.append(f"{plan.tables[place]}: {_difference(mine, theirs)}")


def _numbers_of_groups(chooser: Any, lowered: Any, results: Any, groups: Groups) -> Counts:
    """The exact number of each group, of those that some are chosen among."""
    for query, result in zip(lowered, results, strict=True):
        if query.cells is None and chooser.table.statistic in query.statistics:
            keys = lines(result.select(f"g{i}" for i in range(len(groups.by))))
            column = f"v{query.statistics.index(chooser.table.statistic)}"
            found = Counter[tuple[Any, Any]]()
            for key, number in zip(keys, result[column].to_list(), strict=True):
                found[key, None] += number
            return {at: number for at, number in found.items() if number}
    raise NotCompared("groups that nothing counts")


def _difference(mine: Counts, theirs: Counts) -> str:
    return "; ".join(
        f"{at}: {mine.get(at, 0)} in plain, {theirs.get(at, 0)} in the run"
        for at in [*mine.keys() | theirs.keys()]
        if mine.get(at, 0) != theirs.get(at, 0)
    )[:400]


def _nodes(plan: p.Plan) -> Iterator[str]:
    for frame in plan.frames:
        yield type(frame).__name__
    for table in plan.tables:
        yield type(table.keys).__name__
        yield type(table.cells).__name__
        yield type(table.adds).__name__


def _plan(whole: PreparedTogether, parts: Sequence[Prepared], names: dict[int, str]) -> p.Plan:
    """The physical plan of some parts."""
    plan = physical_plans.physical(whole, names)
    if whole.limits is None or parts[0] is whole.parts[0]:
        return plan
    for option, one in zip(whole.limits.options, plan.options, strict=True):
        if option.parts[0] is parts[0]:
            return one
    raise NotCompared("parts of no plan")


def _sources(executions: Sequence[Execution], names: Mapping[int, str]) -> dict[str, pl.DataFrame]:
    found: dict[str, pl.DataFrame] = {}
    for execution in executions:
        if execution.engine.name != "polars":
            raise NotCompared("another engine")
        for token, data in execution.data.items():
            if token not in names:
                continue
            frame = data if isinstance(data, pl.DataFrame | pl.LazyFrame) else None
            if frame is None:
                raise NotCompared("rows that are not in memory")
            first = frame.lazy().head(MOST + 1).collect()
            if first.height > MOST:
                raise NotCompared("many rows")
            found[names[token]] = first
    return found


def _relations(parts: Sequence[Prepared]) -> Iterator[Relation]:
    for part in parts:
        yield from frames_of(part.query.relation)


def _public(parts: Sequence[Prepared]) -> dict[str, pl.DataFrame]:
    """Public frames and keys by their digests."""
    public: dict[str, pl.DataFrame] = {}
    for relation in _relations(parts):
        for step, _ in relation.steps:
            if isinstance(step, JoinPublic):
                public[step.digest] = step.public
            if isinstance(step, PerIndividual) and step.digest is not None:
                assert step.listed is not None
                public[step.digest] = step.listed
    for part in parts:
        if part.query.groups is not None and not part.query.groups.discovered:
            for table in [None, *tables_of_measurements(d.measurement for d in part.draws)]:
                groups = groups_of(part.query.groups, None if table is None else table.kept)
                if groups is not None:
                    public[digest_of_keys(groups)] = groups.keys
    return public


def _find_groups(
    plan: p.Plan, parts: Sequence[Prepared], found: Sequence[Found]
) -> dict[int, pl.DataFrame]:
    """The groups that draws of the plan found, in the order of draws and parts."""
    draws = [n for n, draw in enumerate(plan.draws) if isinstance(draw.what, p.Appear)]
    keys = [
        counted.keys
        for part, counted in zip(parts, found, strict=True)
        if counted.keys is not None
        and any(isinstance(draw.measurement, KeySelection) for draw in part.draws)
    ]
    return dict(zip(draws, keys, strict=True))


def _salt(parts: Sequence[Prepared], salts: Sequence[int]) -> int:
    own = {part.query.relation.salt for part in parts} - {None}
    if len(own) > 1:
        raise NotCompared("several salts")
    return next((salt for salt in own if salt is not None), salts[0] if salts else 0)


def _draws(
    whole: PreparedTogether,
    plan: p.Plan,
    parts: Sequence[Prepared],
    found: Sequence[Found],
) -> Iterator[tuple[Any, Draw, Prepared, Found]]:
    """What the plan draws, with what the real run draws, and what that counted."""
    number = 0
    blocks = [part.plan for part in parts]
    if len(parts) == len(whole.parts) and whole.limits is None:
        blocks = list(blocks_of(whole.plan))
    for part, block, counted in zip(parts, blocks, found, strict=True):
        used = {(use.part, use.mechanism): n for n, use in enumerate(part.parts)}
        order = sorted(part.draws, key=lambda draw: block.releases[used[draw.keys[0]]].draw)
        for draw in order:
            what = plan.draws[number].what
            number += 1
            if isinstance(draw.measurement, KeySelection) and not counted.tables:
                continue  # found in rounds: the run gives the groups alone
            yield what, draw, part, counted


def _keys_of(translation: Translation, place: int, counted: Found) -> list[Any]:
    """The keys of the groups of a table."""
    every = (one for part in translation.tables for one in part if place in one.tables)
    groups = next(every).groups
    if groups is None:
        return [()]
    return lines(groups.keys if counted.keys is None else counted.keys)


def _real(counted: CellCounts, keys: list[Any]) -> Counts:
    values = counted.values.tolist()
    if counted.groups is None or counted.cells is None:
        pairs = ((i, None) for i in range(counted.size))
        return {(keys[i], c): v for (i, c), v in zip(pairs, values, strict=True) if v}
    entries = zip(counted.groups.tolist(), counted.cells.tolist(), values, strict=True)
    return {(keys[i], c): v for i, c, v in entries if v}


def watch_all() -> None:
    """Compare all queries of this process from now on, where the environment asks for it."""
    path = os.environ.get("DPFRAME_PLAIN")
    if path:
        import atexit

        entered = watch()
        watching = entered.__enter__()

        def report() -> None:
            entered.__exit__(None, None, None)
            with open(path, "a") as file:
                file.write(json.dumps(vars(watching.seen)) + "\n")

        atexit.register(report)
