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
from dpframe import soundness
from dpframe.accounting.losses import Composition
from dpframe.aggregates import request
from dpframe.aggregates.request import Rules
from dpframe.core.sensitivity import ExactSensitivity, ScoreRange
from dpframe.frames.contribution_limits import LimitGroups, LimitRows
from dpframe.frames.contributions import changed_groups
from dpframe.frames.joins import JoinPublic
from dpframe.kernel.frame import Facts, RowLimit
from dpframe.kernel.moves import addition_of
from dpframe.mechanisms import DiscreteBox, DiscreteGaussian, DiscreteLaplace, NoisyThreshold
from dpframe.mechanisms.selection import ScaledSelection
from dpframe.optimise.physical import translate
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
    if isinstance(method, property):
        read = method.fget
        assert read is not None
        return lambda patch: patch.setattr(owner, name, property(lambda self: change(read(self))))
    plain = getattr(method, "__func__", method)

    def changed(*args: Any, **options: Any) -> Any:
        return change(plain(*args, **options))

    kind = type(method) if isinstance(method, classmethod | staticmethod) else None
    return lambda patch: patch.setattr(owner, name, changed if kind is None else kind(changed))


def by(function: Any, change: Callable[[Any], Any]) -> Patch:
    return lambda patch: everywhere(patch, function, change)


def one_row(found: list[Facts]) -> list[Facts]:
    return [replace(facts, rows=1, limits=(RowLimit(1),)) for facts in found]


def one_in_each(found: Any) -> Any:
    limits = tuple(replace(limit, n=1) for limit in found.limits)
    return replace(found, limits=limits)


def narrower(found: ScoreRange) -> ScoreRange:
    return ScoreRange(found.l1 * HALF, found.l2_squared * HALF**2, found.linf * HALF)


def halved(found: ExactSensitivity) -> ExactSensitivity:
    return found.scale(HALF)


def with_less(**fields: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Change fields of what a function gives."""
    return lambda found: replace(found, **{n: f(getattr(found, n)) for n, f in fields.items()})


def half_of_additions(patch: pytest.MonkeyPatch) -> None:
    """In the planner alone: the kernel has the rule as it is."""

    def less(end: int) -> int:
        return end if abs(end) <= 1 else end // 2

    half = with_less(lo=less, hi=less)
    patch.setattr(request, "addition_of", lambda *given: half(addition_of(*given)))


MISTAKES: dict[str, tuple[Patch, tuple[str, ...]]] = {
    "half a sensitivity": (
        of(Rules, "_norms", halved),
        (
            *("counts person epsilon", "sum rows rho", "histogram changed delta"),
            *("cube rows epsilon", "box person rho", "cube person delta", "levels rows rho"),
            *("stream rows epsilon", "stream changed rho", "first rows person rho"),
        ),
    ),
    "one row of each individual": (
        of(Rules, "_reach", one_row),
        ("counts person epsilon", "sum rows rho", "median rows epsilon"),
    ),
    "one row of each individual in groups that are found": (
        by(changed_groups, lambda groups: groups - 1),
        ("found groups rows delta",),
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
        half_of_additions,
        ("box person epsilon", "hull rows epsilon"),
    ),
    "half a range of scores": (
        of(Rules, "score_range", narrower),
        (
            "winner person epsilon",
            "many draws person rho",
            "winner changed rho",
            "quartiles changed epsilon",
        ),
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
        of(DiscreteLaplace, "fit", with_less(law=with_less(scale=lambda scale: scale / 2))),
        ("counts rows epsilon", "count person epsilon"),
    ),
    "half the Gaussian noise": (
        of(DiscreteGaussian, "fit", with_less(law=with_less(sigma_squared=lambda v: v / 4))),
        ("gaussian rows rho", "gaussian rows delta"),
    ),
    "half a scale of choices": (
        of(ScaledSelection, "fit", with_less(law=with_less(scale=lambda scale: scale / 2))),
        ("median rows epsilon", "winner person epsilon"),
    ),
    "half a box": (
        of(DiscreteBox, "fit", with_less(law=with_less(epsilon=lambda epsilon: 2 * epsilon))),
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
