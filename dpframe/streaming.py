"""Streams: planned as one query, drawn night after night, and what follows from what was drawn.

::

    plan    a query by keys and periods      -> Prepared
    draw    the rows that are due, once      -> Drawn, which is kept before anything is handed out
    total   estimates from all rows so far   -> RunningResults

`draw` alone touches data.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, fields, is_dataclass, replace
from fractions import Fraction
from typing import Any, Final, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe import pipeline
from dpframe.aggregates.aggregate import Query
from dpframe.aggregates.draw import Draw, Places, law_of, part_of
from dpframe.aggregates.nightly import NightlyAggregate, NightlySums
from dpframe.aggregates.reconstructed_error import RunningError
from dpframe.aggregates.statistics import UnitCount, ValueCount
from dpframe.core.budget import Budget
from dpframe.core.regular import canonical
from dpframe.core.units import Identifier
from dpframe.errors import EngineError, LedgerError, UnsupportedOperation
from dpframe.frames.definition import definition
from dpframe.frames.nights import PERIOD, Schedule, before_first_limits
from dpframe.kernel.plan import tables_of
from dpframe.ledger.streams import StreamKept
from dpframe.lower import Execution, PlanTables, mark_used
from dpframe.mechanisms import AdditiveMechanism
from dpframe.optimise.mechanisms import Split
from dpframe.optimise.prepared import Prepared
from dpframe.parse.parts import of_first_periods
from dpframe.plan.document import earlier_fingerprint
from dpframe.plan.types_read import TypesRead, types_read
from dpframe.release.draws import draw_period
from dpframe.report import Plan
from dpframe.rows.failures import FAILURES
from dpframe.workloads import RunningSums

__all__ = [
    "Drawn",
    "RunningResults",
    "definition_of",
    "describe_opening",
    "draw",
    "plan_stream",
    "rehearse",
    "results_of",
    "resume",
    "types_of",
    "with_rising_totals",
]

# Running totals from what was drawn night after night; all of it is post-processing.

Integers: TypeAlias = "NDArray[np.int64]"
Floats: TypeAlias = "NDArray[np.float64]"
Rows: TypeAlias = "list[Integers | None]"
"""What was drawn of one vector, for each period of shape (groups, rows); None where it was lost."""
Span: TypeAlias = tuple[int | None, int]
"""The numbers of the first and the last period of a window; without a first one a period and the
total up to it."""

_NEAR: Final = 7
"""From how many periods before it a lost one is guessed."""
_FINE: Final = 2.0**40
"""The fixed-point scale of factors."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """Rows for some periods that follow one another.

    Parameters
    ----------
    first
        The number of the first period.
    rows
        For each period, for each vector the noisy integers, group after group.
    seal
        A seal with the ledger's key for the stream of these rows. None where an earlier version
        drew them.
    """

    first: int
    rows: tuple[tuple[tuple[int, ...], ...], ...]
    seal: str | None = None

    @property
    def values(self) -> list[object]:
        """What is sealed of them."""
        return [self.first, json.dumps(self.rows, separators=(",", ":"))]

    @property
    def last(self) -> int:
        """The number of the last period."""
        return self.first + len(self.rows) - 1

    def to_bytes(self) -> bytes:
        """The content as bytes."""
        said = {"first": self.first, "rows": self.rows, "seal": self.seal}
        return json.dumps(said, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> Drawn | None:
        """What was kept; None where it makes no sense."""
        try:
            fields = json.loads(content)
            rows = tuple(tuple(tuple(map(int, one)) for one in each) for each in fields["rows"])
            seal = fields.get("seal")
            return cls(int(fields["first"]), rows, None if seal is None else str(seal))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None


@dataclass(frozen=True, slots=True)
class _Reach:
    """By how much numbers of one output may be off.

    Parameters
    ----------
    rule, law
        How they follow from what was drawn, and its noise.
    lost
        The numbers of periods whose draws are lost.
    """

    rule: RunningError
    law: AdditiveMechanism
    lost: frozenset[int]

    def of(self, kind: str, period: int, first: int, level: Fraction) -> int:
        """In whole steps, with that probability."""
        factors, rounded = _factors(self.rule.sums, self.lost, kind, period, first)
        return self.rule.reach(self.law, factors, level, rounded)


@dataclass(frozen=True, slots=True, eq=False)
class RunningResults:
    """What is released of a stream.

    Parameters
    ----------
    query, draws, schedule
        The query, by keys and periods, and what is drawn for it.
    monotone
        Whether totals never fall.
    """

    query: Query
    draws: Sequence[Draw]
    schedule: Schedule
    monotone: bool

    def rows_of(self, batches: Sequence[tuple[int, Drawn | None]]) -> list[Rows]:
        """What was drawn of each vector, from batches that follow one another, each with the number
        of its last period, and None for one that was lost.
        """
        result: list[Rows] = [[] for _ in self.draws]
        for last, batch in batches:
            for period in range(len(result[0]), last + 1):
                for number in range(len(self.draws)):
                    result[number].append(self._array(batch, period, number))
        return result

    @property
    def _groups(self) -> int:
        assert self.query.groups is not None
        return self.query.groups.size // self.schedule.periods

    def _array(self, batch: Drawn | None, period: int, number: int) -> Integers | None:
        if batch is None:
            return None
        rows = part_of(self.draws[number]).sums.rows_of(period)
        values = batch.rows[period - batch.first][number]  # sealed and recorded as this stream's
        return np.array(values, dtype=np.int64).reshape(self._groups, rows)

    def frame(self, rows: Sequence[Rows], span: Span) -> pl.DataFrame:
        """What is released of a period: keys, the period, and for each output its own estimate and
        the running total; of a window the sum of its periods alone.
        """
        first, last = span
        columns = self._columns(last)
        for name, aggregate, sums, number in self._outputs():
            drawn = fill_gaps(sums, rows[number][: last + 1], self._groups)
            own, total = self._numbers(sums, drawn, last)
            shown = {name: own, f"{name}_total": total}
            if first is not None:
                before = self._numbers(sums, drawn, first - 1)[1] if first else 0
                shown = {name: total - before}
            for column, values in shown.items():
                columns.append(aggregate.combine([values.reshape(-1, 1)]).alias(column))
        return pl.DataFrame(columns)

    def errors(self, span: Span, level: Fraction, lost: frozenset[int]) -> dict[str, float]:
        """By how much the numbers of a period or a window may be off by noise with that
        probability each, where what was drawn for some periods is lost.
        """
        result: dict[str, float] = {}
        missing = frozenset(period for period in lost if period <= span[1])
        for name, aggregate, _, number in self._outputs():
            one = self.draws[number]
            law, unit = law_of(one), part_of(one).part.step
            reach = _Reach(aggregate.rule, law, missing)
            errors = self._errors(name, reach, span, level)
            result |= {column: float(error * unit) for column, error in errors.items()}
        return result

    def _errors(self, name: str, reach: _Reach, span: Span, level: Fraction) -> dict[str, int]:
        first, last = span
        if self.monotone:  # by no more than the worst of all totals so far
            sure = 1 - (1 - level) / (last + 1)
            worst = max(reach.of("total", period, 0, sure) for period in range(last + 1))
            if first is not None:
                return {name: 2 * worst if first else worst}
            return {name: 2 * worst if last else worst, f"{name}_total": worst}
        if first is not None:
            return {name: reach.of("window", last, first, level)}
        own, total = (reach.of(kind, last, 0, level) for kind in ("own", "total"))
        return {name: own, f"{name}_total": total}

    def _columns(self, period: int) -> list[pl.Series]:
        assert self.query.groups is not None
        keys = self.query.groups.keys.gather_every(self.schedule.periods).drop(PERIOD)
        date = pl.repeat(self.schedule.first(period), self._groups, dtype=pl.Date, eager=True)
        return [*keys.get_columns(), date.alias(PERIOD)]

    def _outputs(self) -> Iterator[tuple[str, NightlyAggregate, RunningSums, int]]:
        """The name of each output, what it is, and the number of what is drawn for it."""
        places = {key: number for number, one in enumerate(self.draws) for key in one.keys}
        for output in self.query.outputs:
            (aggregate,) = output.aggregates.values()
            assert isinstance(aggregate, NightlyAggregate)
            number = places[aggregate.keys[0]]
            yield output.name, aggregate, part_of(self.draws[number]).sums, number

    def _numbers(
        self, sums: RunningSums, drawn: Sequence[Integers], period: int
    ) -> tuple[Integers, Integers]:
        """A period's own estimate and the total up to it, in whole steps."""
        if self.monotone:
            totals = _whole(sums.totals(drawn[: period + 1]))
            totals = np.maximum(np.maximum.accumulate(totals, axis=-1), 0)
            before = totals[..., period - 1] if period else np.zeros_like(totals[..., 0])
            return totals[..., period] - before, totals[..., period]
        total = _whole(sums.total(drawn, period))
        if not sums.adds_up:
            return _whole(sums.own(drawn, period)), total
        before = _whole(sums.total(drawn, period - 1)) if period else np.zeros_like(total)
        return total - before, total


def _whole(values: Floats) -> Integers:
    """The nearest integers, held far from the limits of Int64."""
    return np.rint(np.clip(values, -(2.0**62), 2.0**62)).astype(np.int64)


def fill_gaps(sums: RunningSums, drawn: Rows, groups: int) -> list[Integers]:
    """What was drawn, where what was lost is what a guess would make of it: that the period has as
    much as the few before it have on average, by their own estimates.
    """
    complete = all(one is not None for one in drawn)
    result: list[Integers] = []
    own: list[Floats] = []
    for period, one in enumerate(drawn):
        if one is None:
            near = own[-_NEAR:]
            guess = np.mean(near, axis=0) if near else np.zeros(groups)
            result.append(sums.sums(_whole(np.stack([*own, guess], axis=-1)), period))
        else:
            result.append(one)
        if not complete:
            own.append(sums.own(result, period))
    return result


def _factors(
    sums: RunningSums, lost: frozenset[int], kind: str, period: int, first: int
) -> tuple[Floats, Fraction]:
    """By what the noises in a number are multiplied, and what rounding it adds at most, in steps:
    half a step for each total, but of a tree, where they are whole.
    """
    half = Fraction(1, 2) if sums.adds_up and sums.unit > 1 else Fraction(0)
    rounded = half if kind == "total" or (kind == "window" and not first) else 2 * half
    if not lost:
        found = {
            "total": lambda: sums.total_factors(period),
            "own": lambda: sums.own_factors(period),
            "window": lambda: sums.window_factors(first, period),
        }[kind]()
        return found, rounded
    return _factors_by_draws(sums, lost, kind, period, first), 2 * half + Fraction(1, 2)


def _factors_by_draws(
    sums: RunningSums, lost: frozenset[int], kind: str, period: int, first: int
) -> Floats:
    """The same by what becomes of one noise after another."""
    sizes = [0 if p in lost else sums.rows_of(p) for p in range(period + 1)]
    drawn: Rows = []
    start = 0
    for p, size in enumerate(sizes):
        if p in lost:
            drawn.append(None)
            continue
        one = np.zeros((sum(sizes), size), dtype=np.int64)
        one[start + np.arange(size), np.arange(size)] = int(_FINE)
        drawn.append(one)
        start += size
    if not start:
        return np.zeros(1)
    complete = fill_gaps(sums, drawn, sum(sizes))
    if kind == "own":
        factors = sums.own(complete, period)
    else:
        factors = sums.total(complete, period)
        if kind == "window" and first:
            factors = factors - sums.total(complete, first - 1)
    return np.asarray(factors / _FINE)


_REASON = "noise of its own on each sum, by the norm of a column of coefficients"
_RISING: Final = (
    "totals never fall: each estimate of a running total is raised to the largest before it, which "
    "biases totals upwards where they grow slowly"
)


def plan_stream(
    query: Query,
    schedule: Schedule,
    spend: Budget,
    remaining: Budget | None,
    split: Split = "least error",
    *,
    charged_in: type[Budget] | None = None,
) -> Prepared:
    """The plan of a stream, from its query by keys and periods."""
    prepared = pipeline.plan(query, spend, remaining, split, charged_in=charged_in)
    plan = prepared.plan
    releases = tuple(replace(release, reason=_REASON) for release in plan.releases)
    remarks = (*plan.remarks, _promise(query, schedule))
    return replace(prepared, plan=replace(plan, releases=releases, remarks=remarks))


def _promise(query: Query, schedule: Schedule) -> str:
    if isinstance(query.relation.facts.unit, Identifier):
        words = [step.words() for step in before_first_limits(query.relation, schedule.by)]
        steady = f"; nor may what {', '.join(words)} makes of them change" if words else ""
        return (
            "a stream: rows of one individual must neither vanish nor get another date from "
            f"night to night{steady}, a promise of the data owner; they may come late"
        )
    return (
        "a stream: the rows of one individual are counted over all nights, and one that gets "
        "another date is another row, a promise of the data owner; they may come late"
    )


def definition_of(prepared: Prepared, schedule: Schedule, monotone: bool) -> str:
    """A digest of everything that identifies a stream."""
    names = [output.name for output in prepared.query.outputs]
    remarks = tuple(remark for remark in prepared.plan.remarks if remark != _RISING)
    said = [
        earlier_fingerprint(replace(prepared.plan, remarks=remarks)),
        prepared.plan.source,
        schedule.by,
        schedule.every,
        schedule.start.isoformat(),
        schedule.periods,
        names,
        monotone,
    ]
    if prepared.query.relation.owners is not None:
        said.append(prepared.query.relation.owners.parts())
    return hashlib.sha256(canonical(said).encode("utf-8", "surrogatepass")).hexdigest()


def types_of(prepared: Prepared, schedule: Schedule) -> TypesRead:
    """The types of all columns that a stream reads."""
    query = prepared.query
    by = None if query.groups is None else definition(query.groups.by)
    asked = [output.definition for output in prepared.plan.outputs]
    return types_read(query.relation, by, schedule.by, *asked)


def rehearse(
    prepared: Prepared, schedule: Schedule, execution: Execution
) -> tuple[Places, PlanTables]:
    """Try what will be run on empty frames. Where the draws stand in the verified plan, and its
    tables.

    Raises
    ------
    Unsound
        When the kernel refuses the plan.
    UnsupportedOperation
        When the engine refuses the query.
    EngineError
        When the data cannot be read, or have other columns.
    """
    translation = pipeline.require_verified(pipeline.alone(prepared))
    (places,), ((tables,),) = translation.parts, translation.tables
    execution.rehearse_all([_of_first_periods(tables, schedule, 1)])
    execution.require_same_columns()
    return places, tables


def draw(
    prepared: Prepared, schedule: Schedule, execution: Execution, first: int, last: int
) -> Drawn:
    """The noisy rows of some periods, from one read of the data.

    Raises
    ------
    EngineError
        When the engine fails, without its text.
    """
    places, tables = rehearse(prepared, schedule, execution)
    mark_used()
    due = _of_first_periods(tables, schedule, last + 1)
    found = _draw_rows(prepared.draws, places, due, execution, (first, last))
    if isinstance(found, Drawn):
        return found
    if isinstance(found, EngineError):
        raise found
    if not issubclass(found, FAILURES):
        raise found
    raise EngineError(
        f"the stream failed after it read the data ({found.__name__})",
        why="its message is withheld because it may quote private data",
        remedy="release the period again, which costs nothing",
    )


def _of_first_periods(tables: PlanTables, schedule: Schedule, count: int) -> PlanTables:
    return replace(tables, groups=of_first_periods(tables.groups, schedule, count))


def _draw_rows(
    draws: Iterable[Draw],
    places: Places,
    due: PlanTables,
    execution: Execution,
    span: tuple[int, int],
) -> Drawn | EngineError | type[BaseException]:
    """The rows, or the kind of failure. The failure itself is not passed on, because the frames
    of its traceback hold exact tables; an error of the engine is made again without them.
    """
    first, last = span
    try:
        tables = execution.run(due.relation, due.groups, list(due.tables.values()))
        periods = []
        for period in range(first, last + 1):
            vectors = []
            for node in map(places.node, draws):
                (place,) = tables_of(node.what)
                table = tables[due.tables[place]].dense(1).reshape(-1, last + 1)
                vectors.append(tuple(draw_period(node, table, period).reshape(-1).tolist()))
            periods.append(tuple(vectors))
        return Drawn(first, tuple(periods))
    except EngineError as error:
        return copy(error)  # without its traceback
    except BaseException as error:
        return type(error)


def with_rising_totals(prepared: Prepared) -> Prepared:
    """A stream whose totals never fall, which its plan says.

    Raises
    ------
    UnsupportedOperation
        When one may fall; names the output.
    """
    query, plan = prepared.query, prepared.plan
    for aggregate in query.aggregates:
        (use,) = aggregate.uses
        assert isinstance(use.part, NightlySums)
        if query.scope.rules.addition(use.part.table).lo < 0:
            raise UnsupportedOperation(
                f"the running total of {aggregate.name!r} may fall",
                where="monotone=True",
                why="rows may add negative values",
                remedy=("leave monotone= out", "use bounds from 0 on: bounds=(0, high)"),
            )
    return replace(prepared, plan=replace(plan, remarks=(*plan.remarks, _RISING)))


def results_of(prepared: Prepared, schedule: Schedule, monotone: bool) -> RunningResults:
    """What follows from what was drawn."""
    return RunningResults(prepared.query, prepared.draws, schedule, monotone)


# What a ledger keeps of a stream's plan, so that later versions go on with what was paid for.
#
# A version that chooses another scale, or writes another plan, makes another definition of the same
# question. What was charged was the noise of the version that opened the stream, and it is what all
# later nights are to have. So the plan is kept, and with each draw its law, its steps, its form,
# and its stated sensitivity. If the request is the same, and no draw moves by more than stated
# then, rows are drawn by the kept laws: they cost what was charged.

_MOVED = ("l0", "l1", "l2_squared", "linf")


def describe_opening(
    prepared: Prepared, schedule: Schedule, monotone: bool, spend: tuple[Any, ...]
) -> StreamKept:
    """What is kept with the opening of a stream. `prepared`, `schedule`, `monotone`: what it is.
    `spend`: the query to be spent on it, as plans write constants.
    """
    details = {
        "plan": prepared.plan.to_json(None),
        "draws": [_draw(one, prepared) for one in prepared.draws],
    }
    return StreamKept(_request_digest(prepared.plan, schedule, monotone, spend), canonical(details))


def _request_digest(plan: Plan, schedule: Schedule, monotone: bool, spend: tuple[Any, ...]) -> str:
    """The digest of the request, which does not include the choice of noise."""
    periods: list[Any] = [
        schedule.by,
        schedule.every,
        schedule.start.isoformat(),
        schedule.periods,
    ]
    if schedule.delay is not None:  # openings without one are what they were before there was any
        periods.append(schedule.delay.words())
    said: list[Any] = [
        "dpframe stream 1",
        plan.source,
        plan.unit.kind,
        plan.unit.words(),
        [step.definition for step in plan.steps],
        plan.grouped_by,
        plan.keys_digest,
        [[output.name, output.definition] for output in plan.outputs],
        periods,
        monotone,
        spend,
    ]
    return hashlib.sha256(canonical(said).encode("utf-8", "surrogatepass")).hexdigest()


def _draw(one: Draw, prepared: Prepared) -> dict[str, Any]:
    part, law = part_of(one), law_of(one)
    moved = part.sensitivity(prepared.query.scope)
    return {
        "mechanism": law.name,
        "law": {field.name: str(getattr(law, field.name)) for field in _parameters(law)},
        "step": str(part.step),
        "form": _form(part),
        "adds": _adds(part, prepared),
        "moved": {name: str(getattr(moved, name)) for name in _MOVED},
    }


def _form(part: NightlySums) -> list[int]:
    return [part.periods, part.branching, part.levels]


def _adds(part: NightlySums, prepared: Prepared) -> list[str]:
    """The least and the most that a row adds to its period."""
    found, statistic = prepared.query.scope.rules.addition(part.table), part.table.statistic
    may_be_none = isinstance(statistic, ValueCount | UnitCount)  # which openings have said so far
    return ["0" if may_be_none else str(found.lo), str(found.hi)]


def _parameters(law: AdditiveMechanism) -> tuple[Any, ...]:
    """What a law was made with; the noise of a stream has its scale alone."""
    return fields(law) if is_dataclass(law) else ()


def resume(prepared: Prepared, kept: StreamKept, name: str, charged: Budget) -> Prepared:
    """The stream as it was planned when it was opened. `prepared`: the plan as it would be made
    now, for the same request. `kept`: what its opening kept. `name`: the name of the stream, for
    messages. `charged`: the cost as it would be now, whose measure the one that was charged has.
    Raises `LedgerError` when it cannot go on as it was.
    """
    try:
        details = json.loads(kept.details)
        plan = Plan.from_json(details["plan"])
        both = zip(prepared.draws, details["draws"], strict=True)
        draws = tuple(_resume_draw(one, before) for one, before in both)
        for one, before in zip(draws, details["draws"], strict=True):
            _require_alike(one, before, prepared)
        if plan.cost.measure != charged.measure:
            raise ValueError
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
        raise _cannot(name, "sums or noise of another kind are drawn now") from None
    except _MovesMore:
        raise _cannot(name, "one individual is known to move it by more now") from None
    return replace(prepared, plan=plan, draws=draws)


class _MovesMore(Exception):
    """An individual moves a draw by more than stated when it was paid for."""


def _resume_draw(one: Draw, before: dict[str, Any]) -> Draw:
    """A draw with the law that it had."""
    part, law = part_of(one), law_of(one)
    same = (law.name, str(part.step), _form(part))
    if same != (before["mechanism"], before["step"], before["form"]):
        raise ValueError
    names = [field.name for field in _parameters(law)]
    if sorted(names) != sorted(before["law"]):
        raise ValueError
    if not names:
        return one
    scales = {name: Fraction(before["law"][name]) for name in names}
    return replace(one, law=replace(law, **scales))  # type: ignore[type-var]


def _require_alike(one: Draw, before: dict[str, Any], prepared: Prepared) -> None:
    if before["adds"] != _adds(part_of(one), prepared):
        raise ValueError
    moved = part_of(one).sensitivity(prepared.query.scope)
    for name in _MOVED:
        if getattr(moved, name) > Fraction(before["moved"][name]):
            raise _MovesMore


def _cannot(name: str, why: str) -> LedgerError:
    return LedgerError(
        f"the stream {name!r} was opened by another version of dpframe, and {why}",
        where="session.stream(...)",
        remedy=("go on with the version that opened it", "open a new stream, which is charged"),
    )
