"""The error of an output, from the laws of what it is released from."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpframe.aggregates.error import (
    MeanError,
    NoErrorBound,
    PartError,
    RankError,
    VarianceError,
)
from dpframe.aggregates.noise import Drawn, JointNoise, noise_law
from dpframe.aggregates.reconstructed_error import (
    DistributionError,
    EdgesError,
    OutputError,
    RebuiltError,
    RootError,
    RunError,
    RunningError,
    RunRankError,
)
from dpframe.errors import PlanMismatch
from dpframe.mechanisms import AdditiveMechanism, ReportMechanism
from dpframe.plan.noisy_aggregate import NoisyAggregate, needs_count


def error_of(
    rule: OutputError,
    used: Sequence[NoisyAggregate],
    level: Fraction,
    simultaneous: bool,
    count: float | None,
    guess: object,
) -> float:
    """A bound on the error that holds with probability `level`, between 0 and 1 exclusive; see
    `Plan.accuracy`. `used` has the releases in the order in which the output takes them. Groups,
    edges and sets that it holds for together are counted by the union bound.
    """
    match rule:
        case NoErrorBound():
            raise rule.refusal()
        case RankError() | RunRankError():
            laws = _of_levels(used, 1 if isinstance(rule, RankError) else 2)
            level = _each(level, used[-1].entries // rule.cells if simultaneous else 1)
            if isinstance(rule, RankError):
                return rule.quantile(laws[0], level)
            return rule.quantile(laws, level)
        case MeanError() | VarianceError():
            guessed = rule.read_guess(guess, count)
            groups = max(release.entries for release in used) if simultaneous else 1
            if len(used) != rule.parts:
                raise _no_such_parts()
            biases = [release.bias for release in used]
            return rule.quantile(noise_of(used), _each(level, groups), biases, guessed)
        case RebuiltError():
            by_set = errors_by_set(rule, used, level, simultaneous, count, guess)
            return max(error for _, error in by_set)
        case DistributionError() | RootError():
            by_edge = errors_by_edge(rule, used, level, simultaneous)
            return float(max(errors.max() for _, errors in by_edge))
        case RunError():
            return float(error_of_run(rule, used, level, simultaneous))
        case RunningError():
            if len(used) != 1 or not isinstance(used[0].law, AdditiveMechanism):
                raise _no_such_parts()
            sums = rule.sums  # the total of all periods has the largest error
            together = used[0].entries // sums.drawn_rows * sums.periods if simultaneous else 1
            worst = rule.worst(used[0].law, _each(level, together))
            return float(worst * used[0].step * sums.unit)
        case PartError():
            pass
    level = _each(level, len(used))
    if len(used) == 1 and isinstance(used[0].law, ReportMechanism):
        if count is None:
            raise needs_count((*used[0].users, used[0].name)[0])
        return used[0].law.error(level, count, used[0].entries if simultaneous else 1)
    return rule.bound([release.accuracy(level, simultaneous) for release in used])


def _each(level: Fraction, many: int) -> Fraction:
    """The level of each of several bounds that hold together (union bound)."""
    return 1 - (1 - level) / max(1, many)


def errors_by_set(
    rule: RebuiltError,
    used: Sequence[NoisyAggregate],
    level: Fraction,
    simultaneous: bool = False,
    count: float | None = None,
    guess: object = None,
) -> list[tuple[tuple[int, ...], float]]:
    """The columns of each grouping set, and a bound on the errors of its results."""
    drawn = _noises(used)
    if len(used) != rule.parts:
        raise _no_such_parts()
    groups = 1
    if simultaneous:  # of cells there are as many tables as groups
        groups = rule.groups * (used[0].entries // rule.entries)
    level = _each(level, groups)
    starts = itertools.accumulate(map(len, rule.measured[:-1]), initial=0)
    biases = [used[start].bias for start in starts]
    result = []
    for kept in rule.sets:
        noise = rule.noises(drawn, kept)
        if isinstance(rule.inner, PartError):
            error = noise.reach(0, level) * noise.unit(0)
        else:
            guessed = rule.inner.read_guess(guess, count)
            error = rule.inner.quantile(noise, level, biases, guessed)
        result.append((kept, error))
    return result


def errors_by_edge(
    rule: EdgesError,
    used: Sequence[NoisyAggregate],
    level: Fraction,
    simultaneous: bool = False,
) -> list[tuple[tuple[int, ...], NDArray[np.int64]]]:
    """The columns of each grouping set, and a bound on the error of the number of rows up to each
    edge; without grouping sets one set of no columns.
    """
    laws, groups = _of_levels(used, rule.parts), rule.groups(used[-1].entries)
    level = _each(level, groups * rule.shown if simultaneous else 1)
    return [(kept, rule.reaches(laws, level, kept)[: rule.shown]) for kept in rule.sets]


def error_of_run(
    rule: RunError, used: Sequence[NoisyAggregate], level: Fraction, simultaneous: bool = False
) -> int:
    """A bound on the error of the number of rows in some cells of each group."""
    laws, groups = _of_levels(used, rule.edges.parts), rule.edges.groups(used[-1].entries)
    noise = rule.edges.range_noise(laws, 0, rule.cells)
    return noise.quantile(level, max(1, groups) if simultaneous else 1)


def _of_levels(used: Sequence[NoisyAggregate], parts: int) -> list[AdditiveMechanism]:
    """The noise of each of this many levels."""
    laws = [release.law for release in used if isinstance(release.law, AdditiveMechanism)]
    if len(laws) != parts or len(used) != parts:
        raise _no_such_parts()
    return laws


def noise_of(used: Sequence[NoisyAggregate]) -> JointNoise:
    """The joint law of the noise of releases that it is added to. Raises `PlanMismatch` when one is
    not such a release, which is possible only in a made-up plan.
    """
    return noise_law(_noises(used))


def _noises(used: Sequence[NoisyAggregate]) -> list[Drawn]:
    """The noise of each release on its own, its step and the number of its draw."""
    parts = list[Drawn]()
    for release in used:
        noise = release.noise
        if not isinstance(noise, AdditiveMechanism):
            raise _no_such_parts()
        parts.append((noise, release.step, release.draw))
    return parts


def _no_such_parts() -> PlanMismatch:
    return PlanMismatch(
        "an output of the plan does not fit its noisy aggregates",
        remedy="plan the query again",
    )
