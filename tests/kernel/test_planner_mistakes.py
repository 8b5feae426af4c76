"""Mistakes planted in the planner: the kernel refuses each plan that they change, before a charge.

The planner's own last look computes facts and sensitivities by the same functions, so it agrees
with most of these mistakes. The kernel does not use these functions.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

import dpframe as dp
from dpframe.accounting.losses import Composition
from dpframe.aggregates.joint_sums import JointSums
from dpframe.aggregates.nightly import NightlySums
from dpframe.aggregates.root_sums import RootSums
from dpframe.aggregates.statistics import GridSum, SquareSum
from dpframe.core.score_range import ScoreRange
from dpframe.core.sensitivity import Contribution, ExactSensitivity, additive_sensitivity
from dpframe.frames.contributions import spread_of
from dpframe.frames.join_public import JoinPublic
from dpframe.frames.limit_groups import LimitGroups
from dpframe.frames.limit_rows import LimitRows
from dpframe.mechanisms import DiscreteBox, DiscreteGaussian, DiscreteLaplace, NoisyThreshold
from dpframe.mechanisms.selection import ScaledSelection
from dpframe.planning import soundness
from dpframe.planning.physical import translate
from tests.kernel.plans import charged

Patch = Callable[[pytest.MonkeyPatch], None]
HALF = Fraction(1, 2)


def everywhere(patch: pytest.MonkeyPatch, function: Any, change: Callable[[Any], Any]) -> None:
    """Change what a function gives, in all modules that have it."""

    def changed(*args: Any, **options: Any) -> Any:
        return change(function(*args, **options))

    for name, module in [*sys.modules.items()]:
        if name.startswith("dpframe."):
            for known, value in [*vars(module).items()]:
                if value is function:
                    patch.setattr(module, known, changed)


def of(owner: type, name: str, change: Callable[[Any], Any]) -> Patch:
    """Change what a method gives."""
    method = vars(owner)[name]
    plain = getattr(method, "__func__", method)

    def changed(*args: Any, **options: Any) -> Any:
        return change(plain(*args, **options))

    kind = type(method) if isinstance(method, classmethod | staticmethod) else None
    return lambda patch: patch.setattr(owner, name, changed if kind is None else kind(changed))


def by(function: Any, change: Callable[[Any], Any]) -> Patch:
    return lambda patch: everywhere(patch, function, change)


def less(found: Contribution) -> Contribution:
    return replace(found, lo=found.lo * HALF, hi=found.hi * HALF)


def one_row(found: Any) -> Any:
    return replace(found, rows=1, groups=1, per_group=1)


def one_in_each(found: Any) -> Any:
    limits = tuple(replace(limit, n=1) for limit in found.limits)
    return replace(found, limits=limits)


def narrower(found: ScoreRange) -> ScoreRange:
    return ScoreRange(found.l1 * HALF, found.l2_squared * HALF**2, found.linf * HALF)


def halved(found: ExactSensitivity) -> ExactSensitivity:
    return found.scaled(HALF)


def with_less(**fields: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Change fields of what a function gives."""
    return lambda found: replace(found, **{n: f(getattr(found, n)) for n, f in fields.items()})


MISTAKES: dict[str, tuple[Patch, tuple[str, ...]]] = {
    "half a sensitivity": (
        by(additive_sensitivity, halved),
        ("counts person epsilon", "sum rows rho", "histogram changed delta", "cube rows epsilon"),
    ),
    "half a sensitivity of several sums": (
        of(JointSums, "sensitivity", halved),
        ("box person rho", "cube person delta"),
    ),
    "half a sensitivity of each night": (
        of(NightlySums, "sensitivity", halved),
        ("stream rows epsilon", "stream changed rho", "first rows person rho"),
    ),
    "half a sensitivity of sums up to a cell": (
        of(RootSums, "sensitivity", halved),
        ("levels rows rho",),
    ),
    "one row of each individual": (
        by(spread_of, one_row),
        ("counts person epsilon", "sum rows rho", "median rows epsilon", "found groups rows delta"),
    ),
    "a limit on rows that is 1": (
        of(LimitRows, "facts", one_in_each),
        ("sum person epsilon", "hull person epsilon", "first rows person rho"),
    ),
    "a limit on groups that is 1": (
        of(LimitGroups, "facts", one_in_each),
        ("counts person epsilon", "found groups person delta"),
    ),
    "a join that multiplies no rows": (
        of(JoinPublic, "facts", with_less(copies=lambda copies: 1)),
        ("joined rows epsilon", "joined changed rho"),
    ),
    "half of what rows add": (
        of(GridSum, "contribution", less),
        ("sum rows rho", "sum changed epsilon", "box person epsilon"),
    ),
    "half of what squares add": (
        of(SquareSum, "contribution", less),
        ("hull rows epsilon", "hull person rho"),
    ),
    "half a range of scores": (
        of(ScoreRange, "of_groups", narrower),
        ("winner person epsilon", "many draws person rho"),
    ),
    "half a range of one choice": (
        of(ScoreRange, "of_one", narrower),
        ("winner changed rho", "quartiles changed epsilon"),
    ),
    "a threshold that is lower": (
        of(NoisyThreshold, "for_delta", with_less(threshold=lambda least: least - 1)),
        ("found groups rows delta",),
    ),
    "losses that add up to less": (
        of(Composition, "epsilon", lambda epsilon: epsilon * 0.9),
        ("many draws rows delta", "gaussian numbers person delta", "deciles rows delta"),
    ),
    "half the Laplace noise": (
        of(DiscreteLaplace, "fitted", with_less(law=with_less(scale=lambda scale: scale / 2))),
        ("counts rows epsilon", "count person epsilon"),
    ),
    "half the Gaussian noise": (
        of(DiscreteGaussian, "fitted", with_less(law=with_less(sigma_squared=lambda v: v / 4))),
        ("gaussian rows rho", "gaussian rows delta"),
    ),
    "half a scale of choices": (
        of(ScaledSelection, "fitted", with_less(law=with_less(scale=lambda scale: scale / 2))),
        ("median rows epsilon", "winner person epsilon"),
    ),
    "half a box": (
        of(DiscreteBox, "fitted", with_less(law=with_less(epsilon=lambda epsilon: 2 * epsilon))),
        ("box rows epsilon",),
    ),
    "half a mu": (
        of(DiscreteLaplace, "mu_squared_cost", lambda mu_squared: mu_squared / 4),
        ("count rows mu", "histogram person mu"),
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_plans_with_a_mistake_are_refused(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, names = MISTAKES[mistake]
    right = [charged(name) for name in names]
    monkeypatch.setattr(soundness, "_differences", lambda prepared: iter(()))
    monkeypatch.setattr(soundness, "translate", translate)  # that of `tests.kernel.slack` looks too
    plant(monkeypatch)
    for name, plan in zip(names, right, strict=True):
        try:
            made = charged(name)
        except dp.Unsound as refused:
            assert "the kernel refuses" in str(refused)  # noqa: PT017
        else:
            pytest.fail(f"{name}: a plan that {'did not change' if made == plan else 'is charged'}")
