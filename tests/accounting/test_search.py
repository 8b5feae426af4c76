"""Points that searches find were tried, and are near the first that is right."""

from __future__ import annotations

import math

import pytest

from dpframe.accounting.gaussian_noise import least_reaching


@pytest.mark.parametrize("root", [1e-3, 0.3, 0.999999, 40.0])
@pytest.mark.parametrize("start", [1e-6, 0.31, 50.0])
@pytest.mark.parametrize("steep", [1.0, 40.0, 1e5])
def test_a_point_was_tried_and_is_near(root: float, start: float, steep: float) -> None:
    def f(x: float) -> float:
        tried.add(x)
        return -2.0 - steep * (x - root) * (1 + x)

    def stairs(x: float) -> float:
        tried.add(x)
        return -1.0 if x < root else -math.inf if steep > 1 else -3.0

    for falling in (f, stairs):
        tried: set[float] = set()
        found = least_reaching(falling, -2.0, start, 1e-9)
        assert found in tried
        assert falling(found) <= -2.0 < falling(found * (1 - 3e-9))


def test_a_function_may_start_below_its_target_or_never_reach_it() -> None:
    assert least_reaching(lambda x: -3.0 - x, -2.0, 1.0, 1e-9) == 0.0
    assert least_reaching(lambda x: -1.0, -2.0, 1.0, 1e-9) == math.inf


def test_smooth_functions_need_few_values() -> None:
    tried = []

    def f(x: float) -> float:
        tried.append(x)
        return -(x**2) - math.log1p(x)

    found = least_reaching(f, -18.0, 4.4, 1e-9)
    assert f(found) <= -18.0 < f(found * (1 - 2e-9))
    assert len(tried) <= 8
