"""What a ledger keeps of a stream's plan, so that later versions go on with what was paid for.

A version that chooses another scale, or writes another plan, makes another definition of the same
question. What was charged was the noise of the version that opened the stream, and it is what all
later nights are to have. So the plan is kept, and with each draw its law, its steps, its form,
and its stated sensitivity. If the request is the same, and no draw moves by more than stated
then, rows are drawn by the kept laws: they cost what was charged.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields, is_dataclass, replace
from fractions import Fraction
from typing import Any

from dpframe.aggregates.draw import Draw, law_of, part_of
from dpframe.aggregates.nightly import NightlySums
from dpframe.aggregates.statistics import UnitCount, ValueCount
from dpframe.core.budget import Budget
from dpframe.core.regular import canonical
from dpframe.errors import LedgerError
from dpframe.frames.schedule import Schedule
from dpframe.ledger.streams import StreamKept
from dpframe.mechanisms import AdditiveMechanism
from dpframe.planning.prepared import Prepared
from dpframe.report import Plan

_MOVED = ("l0", "l1", "l2_squared", "linf")


def kept_of(
    prepared: Prepared, schedule: Schedule, monotone: bool, spend: tuple[Any, ...]
) -> StreamKept:
    """What is kept with the opening of a stream. `prepared`, `schedule`, `monotone`: what it is.
    `spend`: the query to be spent on it, as plans write constants.
    """
    details = {
        "plan": prepared.plan.to_json(None),
        "draws": [_draw(one, prepared) for one in prepared.draws],
    }
    return StreamKept(_asked(prepared.plan, schedule, monotone, spend), canonical(details))


def _asked(plan: Plan, schedule: Schedule, monotone: bool, spend: tuple[Any, ...]) -> str:
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


def resumed(prepared: Prepared, kept: StreamKept, name: str, charged: Budget) -> Prepared:
    """The stream as it was planned when it was opened. `prepared`: the plan as it would be made
    now, for the same request. `kept`: what its opening kept. `name`: the name of the stream, for
    messages. `charged`: the cost as it would be now, whose measure the one that was charged has.
    Raises `LedgerError` when it cannot go on as it was.
    """
    try:
        details = json.loads(kept.details)
        plan = Plan.from_json(details["plan"])
        both = zip(prepared.draws, details["draws"], strict=True)
        draws = tuple(_resumed(one, before) for one, before in both)
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


def _resumed(one: Draw, before: dict[str, Any]) -> Draw:
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
