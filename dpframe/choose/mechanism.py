"""Which mechanism releases a part, and with how much noise."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from typing import TypeVar

from dpframe.core.budget import Budget
from dpframe.core.edition import is_edition_before
from dpframe.errors import InvalidBudget, UnsupportedOperation
from dpframe.mechanisms import (
    ADDITIVE,
    KEYS,
    RECURSIVE,
    REPORTS,
    SELECTIONS,
    TOGETHER,
    VECTORS,
    AdditiveMechanism,
    AdditiveTask,
    Choice,
    DiscreteStaircase,
    KeyTask,
    Mechanism,
    MechanismTask,
    NoNoise,
    RecursiveTask,
    ResponseTask,
    SelectionTask,
    TogetherTask,
)

_Kind = TypeVar("_Kind", bound=Mechanism)


def choose(task: MechanismTask, share: Budget) -> Choice:
    """The mechanism with the least expected squared error at the given cost.

    Raises
    ------
    UnsupportedOperation
        When the requested mechanism does not exist in the session's measure.
    """
    if task.sensitivity.is_zero:
        return Choice(NoNoise(), share.of(Fraction(0)), "public: no individual can change it")
    match task:
        case AdditiveTask():
            return _additive(task, share)
        case RecursiveTask():
            return RECURSIVE[0].fitted(task, share)
        case TogetherTask():
            return TOGETHER[0].fitted(task, share)
        case SelectionTask():
            return _selection(task, share)
        case ResponseTask():
            return REPORTS[0].fitted(task, share)
        case KeyTask():
            return next(filter(None, (kind.fitted(task, share) for kind in KEYS)))


def _additive(task: AdditiveTask, share: Budget) -> Choice:
    if task.mechanism != "auto":
        return _asked(task, share)
    if task.box is not None:
        return next(filter(None, (kind.fitted(task, share) for kind in VECTORS)))
    found: list[Choice] = []
    for kind in ADDITIVE:
        if kind is DiscreteStaircase and is_edition_before():
            continue
        choice = kind.fitted(task, share)
        if choice is not None:
            found.append(choice)
            if kind.is_surely_least(task, share):
                break
    return min(found, key=_variance)


def _asked(task: AdditiveTask, share: Budget) -> Choice:
    kind = _named(task.mechanism, ADDITIVE)
    choice = kind.fitted(task, share)
    if choice is None:
        what, remedy = kind.unavailable
        where = f"{task.name}: mechanism={task.mechanism!r}"
        raise UnsupportedOperation(what, where=where, remedy=remedy)
    return Choice(choice.law, choice.cost, f"{kind.norm}, as asked")


def _variance(choice: Choice) -> float:
    assert isinstance(choice.law, AdditiveMechanism)
    return choice.law.variance()


def _selection(task: SelectionTask, share: Budget) -> Choice:
    if task.mechanism == "auto":
        kind = next(kind for kind in SELECTIONS if kind.is_preferred(task, share))
        found = [kind.fitted(task, share)]
        for rival in SELECTIONS:
            if rival.is_rival(task):
                with suppress(InvalidBudget):  # more noise than can be drawn
                    found.append(rival.fitted(task, share))
        return min(found, key=lambda choice: choice.law.log_noise(task.candidates))
    kind = _named(task.mechanism, SELECTIONS)
    if task.weighted and not kind.draws_points:
        raise UnsupportedOperation(
            f"{task.mechanism} does not draw points of an interval",
            where=f"{task.name}: mechanism={task.mechanism!r}",
            remedy=("list candidates=[...]", "leave mechanism= out"),
        )
    return kind.fitted(task, share)


def _named(name: str, kinds: Sequence[type[_Kind]]) -> type[_Kind]:
    return next(kind for kind in kinds if kind.name == name)
