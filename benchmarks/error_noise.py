"""Errors of means and variances from the laws of noise that a plan states, by many draws of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpframe as dp
from dpframe.mechanisms import DiscreteBox
from dpframe.mechanisms.noise import noise

Floats = NDArray[np.float64]
LOW, HIGH = 17, 90
MIDDLE, HALF = (LOW + HIGH) / 2, (HIGH - LOW) / 2
DRAWS = 100_000


def errors_of_moments(plan: dp.Plan, ages: list[Floats]) -> dict[str, float]:
    """Root mean square errors of the means `m` or `mean_age` and the variance `v` of ages between
    the bounds, over groups and draws; only those that the plan has.
    """
    noise = _noises(plan)
    squares: dict[str, list[float]] = {}
    for values in ages:
        exact = np.clip(values, LOW, HIGH)
        for name, found, true in (
            *((name, _mean(exact, noise), exact.mean()) for name in ("m", "mean_age")),
            ("v", _variance(exact, noise), exact.var(ddof=1)),
        ):
            if found is not None and any(output.name == name for output in plan.outputs):
                squares.setdefault(name, []).append(float(np.mean((found - true) ** 2)))
    return {name: math.sqrt(np.mean(found)) for name, found in squares.items()}


def by_bernstein_sums(epsilon: float, values: Floats, degree: int) -> tuple[float, float]:
    """Errors of a mean, and of a variance if `degree` is 2, with continuous Laplace noise on sums
    of Bernstein polynomials, as in the first prototypes.
    """
    exact = np.clip(values, LOW, HIGH)
    t, rng = (exact - LOW) / (HIGH - LOW), np.random.default_rng(1)
    sums = [1 - t, t] if degree == 1 else [(1 - t) ** 2, 2 * t * (1 - t), t * t]
    noisy = [part.sum() + rng.laplace(0.0, 1.0 / epsilon, DRAWS) for part in sums]
    count = sum(noisy)
    first = noisy[1] / count if degree == 1 else (noisy[1] / 2 + noisy[2]) / count
    mean = LOW + 2 * HALF * first
    variance = (2 * HALF) ** 2 * np.clip(noisy[-1] / count - first**2, 0.0, 0.25)
    return tuple(
        float(np.sqrt(np.mean((found - true) ** 2)))
        for found, true in ((mean, exact.mean()), (variance, exact.var()))
    )  # type: ignore[return-value]


def _noises(plan: dp.Plan) -> dict[str, Floats]:
    """Draws of the noise of each part in its units, by what it is there."""
    vectors: dict[int, Any] = {}
    found = {}
    for release in plan.releases:
        law, joint = release.law, release.joint
        if release.draw not in vectors:
            if joint is None or isinstance(law, DiscreteBox):
                vectors[release.draw] = noise(law.kernel_law, DRAWS)
            else:
                size = len(joint.widths)
                drawn = noise(law.kernel_law, DRAWS * size)
                vectors[release.draw] = drawn.reshape(DRAWS, size)
        drawn = vectors[release.draw].astype(np.float64)
        if joint is not None:
            drawn = np.rint(drawn @ np.array(joint.factors, dtype=np.float64) / joint.divisor)
        found[release.aggregate] = drawn * float(release.step)
    return found


def _part(noise: dict[str, Floats], *roles: str) -> Floats | None:
    return next((noise[role] for role in roles if role in noise), None)


def _mean(exact: Floats, noise: dict[str, Floats]) -> Floats | None:
    count, total = _part(noise, "mean.count", "var.count", "count"), _part(noise, "mean.sum")
    if count is None or total is None:
        return None
    noisy = np.maximum(exact.size + count, 1.0)
    return np.clip(MIDDLE + ((exact - MIDDLE).sum() + total) / noisy, LOW, HIGH)


def _variance(exact: Floats, noise: dict[str, Floats]) -> Floats | None:
    count, total = (
        _part(noise, "var.count", "mean.count", "count"),
        _part(noise, "mean.sum", "var.sum"),
    )
    square = _part(noise, "var.sum_of_squares")
    if count is None or total is None or square is None:
        return None
    noisy = np.maximum(exact.size + count, 2.0)
    centred = exact - MIDDLE
    second = ((centred**2 - HALF**2 / 2).sum() + square) / noisy + HALF**2 / 2
    first = (centred.sum() + total) / noisy
    found: Floats = np.clip(second - first**2, 0.0, HALF**2) * noisy / (noisy - 1)
    return found
