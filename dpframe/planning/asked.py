"""What is drawn for one query, or for several that share a cost, as mechanisms are requested
it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate

from dpframe.aggregates.aggregate import Query
from dpframe.aggregates.measurement import Rebuilt
from dpframe.choose import (
    AskedWay,
    ChosenWay,
    ComposedChoice,
    choose_together,
    choose_with_keys,
    least_error_weights,
)
from dpframe.core.budget import Budget
from dpframe.infer import Effects, PlannedDraw, PlannedMeasurement, Way
from dpframe.mechanisms import Mechanism, MechanismTask
from dpframe.release import Draw, number_of


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """A query, the parts that it needs, and one way to draw them.

    Parameters
    ----------
    query, parts, effects, way
        These, and what the noise of parts does to the errors of outputs.
    """

    query: Query
    parts: tuple[PlannedMeasurement, ...]
    effects: Effects
    way: Way

    def drawn_by(self, laws: Sequence[Mechanism]) -> tuple[Draw, ...]:
        """What is drawn, with the mechanism of each draw."""
        return tuple(
            _draw_of(draw, law, self.parts) for draw, law in zip(self.way.draws, laws, strict=True)
        )

    def knowing(self, draws: Sequence[Draw]) -> Query:
        """The query, where it is known how it is drawn."""
        if not self.query.depends_on_noise:
            return self.query
        return self.query.knowing({k: law for one in draws for k, law in one.noises().items()})


def asked_of(planned: Sequence[Planned], by: str) -> AskedWay:
    """What mechanisms are requested, by all queries together.

    Parameters
    ----------
    planned
        The queries.
    by
        The rule that divides the cost.
    """
    draws = [draw for one in planned for draw in one.way.draws]
    weights, rho_weights = _weights(draws, by)
    tasks = list[MechanismTask]()
    parts = list[tuple[int, Rebuilt | None]]()
    outputs: list[list[tuple[int, float]]] = []
    wanted = list[Fraction]()
    for one in planned:
        rebuilt = {
            part: (len(tasks) + number, None if draw.rebuilt is None else draw.rebuilt[place])
            for number, draw in enumerate(one.way.draws)
            for place, part in enumerate(draw.parts)
        }
        outputs += [[(len(parts) + part, e) for part, e in found] for _, found in one.effects]
        wanted += [weight for weight, _ in one.effects]
        parts += [rebuilt[number] for number in range(len(one.parts))]
        tasks += [
            draw.measurement.task(draw.name, draw.sensitivity, draw.mechanism, one.query.scope)
            for draw in one.way.draws
        ]
    whole = sum(wanted, Fraction(0))
    importance = [float(weight / whole) for weight in wanted]
    return AskedWay(tasks, weights, rho_weights, parts, outputs, importance)


def choose_for(planned: Sequence[Planned], asked: AskedWay, spend: Budget) -> ComposedChoice:
    """Mechanisms for the draws of all queries.

    Raises
    ------
    DPFrameError
        When a part cannot be released within its share.
    """
    about = asked.tasks, asked.weights, spend, asked.rho_weights
    starts = accumulate((len(one.way.draws) for one in planned), initial=0)
    choosing = [
        (one, start)
        for one, start in zip(planned, starts, strict=False)
        if one.query.groups is not None and one.query.groups.discovered
    ]
    if len(choosing) != 1:  # several choices of groups each have a rule of their own
        return choose_together(*about)
    ((one, start),) = choosing
    measured = [draw.measurement for draw in one.way.draws]
    end, size = start + len(measured), len(asked.tasks)
    order = [*range(start, end), *range(start), *range(end, size)]
    tasks = [asked.tasks[place] for place in order]
    weights = [asked.weights[place] for place in order]
    rho_weights = [asked.rho_weights[place] for place in order]
    number = number_of(measured[0], measured)
    chosen = choose_with_keys(tasks, weights, spend, rho_weights, number)
    placed = dict(zip(order, chosen.choices, strict=True))
    return replace(chosen, choices=tuple(placed[place] for place in range(size)))


def chosen_apart(planned: Sequence[Planned], chosen: ChosenWay) -> list[ChosenWay]:
    """What was chosen for each query; the cost is that of all together."""
    found, draws, parts = list[ChosenWay](), 0, 0
    for one in planned:
        choices = chosen.together.choices[draws : draws + len(one.way.draws)]
        gains = chosen.gains[parts : parts + len(one.parts)]
        own = replace(chosen.together, choices=choices)
        found.append(ChosenWay(chosen.number, own, gains))
        draws, parts = draws + len(choices), parts + len(gains)
    return found


def _draw_of(draw: PlannedDraw, law: Mechanism, parts: Sequence[PlannedMeasurement]) -> Draw:
    keys = tuple((parts[number].part, parts[number].mechanism) for number in draw.parts)
    return Draw(draw.measurement, law, keys, draw.rebuilt)


def _weights(draws: Sequence[PlannedDraw], by: str) -> tuple[list[Fraction], list[Fraction]]:
    """Relative costs of what is drawn, of epsilon and of rho."""
    if by != "least error":
        weights = [draw.weight for draw in draws]
        return weights, weights
    return (
        least_error_weights([draw.impact for draw in draws], shares_rho=False),
        least_error_weights([draw.rho_impact for draw in draws], shares_rho=True),
    )
