"""What it does to the errors of outputs to be measured in another way."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from dpframe.aggregates.aggregate import Output
from dpframe.aggregates.reconstruction import (
    Reconstruction,
    RelatedReconstruction,
)
from dpframe.describe import PAYS, gain_words
from dpframe.planning.prepared import Prepared

Together: TypeAlias = type[Reconstruction]
"""The aggregates that are measured with others."""
_NOTHING = 1e-200
"""Added to squared errors, which floats may hold as 0."""


@dataclass(frozen=True, slots=True)
class ExpectedError:
    """What is expected of one output.

    Parameters
    ----------
    squared
        Its squared error, relative to what one individual adds.
    weight
        How much it counts.
    """

    squared: float
    weight: float


def errors_of(prepared: Iterable[Prepared]) -> list[ExpectedError]:
    """What is expected of the outputs of queries."""
    return [
        ExpectedError(
            sum(a.squared_error(one.query.scope, laws) for a in output.aggregates.values()),
            float(sum(a.request.weight for a in output.aggregates.values())),
        )
        for one in prepared
        for laws in (one.laws,)
        for output in one.query.outputs
    ]


def relative_error(before: Sequence[ExpectedError], after: Sequence[ExpectedError]) -> float:
    """The mean over outputs, by their weights, of how many times the squared error is what it was;
    1 of no outputs.
    """
    whole = sum(error.weight for error in before)
    total = sum(b.weight * _ratio(a, b) for b, a in zip(before, after, strict=True))
    return total / whole if whole else 1.0


def least_expected(
    plans: Sequence[tuple[Prepared, ...]], before: Sequence[ExpectedError] | None
) -> tuple[Prepared, ...]:
    """The plans whose outputs have the least error together, all of the same queries: the least
    sum over outputs of their squared errors relative to what they are before, each by its weight.
    So it does not matter in which units outputs are.

    Parameters
    ----------
    before
        What is expected of the outputs separately, as the split says; None where that is the
        first of the plans.
    """
    if len(plans) == 1:
        return plans[0]
    errors = [errors_of(made) for made in plans]
    relative = [relative_error(errors[0] if before is None else before, one) for one in errors]
    chosen = relative.index(min(relative))
    return _telling_payers(plans[chosen], errors[chosen], errors)


def _telling_payers(
    made: Sequence[Prepared],
    after: Sequence[ExpectedError],
    ways: Sequence[Sequence[ExpectedError]],
) -> tuple[Prepared, ...]:
    """The plans, where outputs say that they would have smaller errors if all were measured in
    another way."""
    least = [min(found, key=lambda error: error.squared) for found in zip(*ways, strict=True)]
    notes = iter([_paid(_gain(b, a)) for b, a in zip(least, after, strict=True)])
    return tuple(_with_notes(one, [next(notes) for _ in one.query.outputs]) for one in made)


def _paid(gain: float) -> str:
    if gain >= PAYS:
        return ""
    alone = "by the way that is best for it alone, so that others err less"
    return f"{1 / gain:.3g} times more error than {alone}"


def _with_notes(made: Prepared, notes: Iterable[str]) -> Prepared:
    """The plan with a further note for each output, if it is not empty."""
    outputs = tuple(
        replace(output, note="; ".join(filter(None, (output.note, note))))
        for output, note in zip(made.plan.outputs, notes, strict=True)
    )
    return (
        made
        if outputs == made.plan.outputs
        else replace(made, plan=replace(made.plan, outputs=outputs))
    )


def _gain(before: ExpectedError, after: ExpectedError) -> float:
    """By what factor an output's error is smaller after."""
    return math.sqrt(_ratio(before, after))


def _ratio(above: ExpectedError, below: ExpectedError) -> float:
    return (above.squared + _NOTHING) / (below.squared + _NOTHING)


def telling_gains(
    made: Sequence[Prepared],
    at: Sequence[int],
    before: Sequence[ExpectedError],
    after: Sequence[ExpectedError],
    among: Collection[Together],
) -> tuple[Prepared, ...]:
    """The plans, with notes on how joint measurement changes the errors of their outputs.

    Parameters
    ----------
    made
        The plans.
    at
        The indices of the queries for `before` and `after`.
    before, after
        What is expected of their outputs separately, and together.
    among
        The kinds of aggregates that are measured together.
    """
    gains = iter([_gain(b, a) for b, a in zip(before, after, strict=True)])
    told = list(made)
    for number in at:
        asked = made[number].query.outputs
        told[number] = _with_notes(made[number], [_told(o, among, next(gains)) for o in asked])
    return tuple(told)


def _told(asked: Output, among: Collection[Together], gain: float) -> str:
    """The sentence about an output that is measured with others, or that pays for these."""
    kinds = {type(aggregate) for aggregate in asked.aggregates.values()}
    paying = gain < PAYS and RelatedReconstruction not in kinds  # these have a sentence already
    return "" if kinds.isdisjoint(among) and not paying else gain_words(gain)
