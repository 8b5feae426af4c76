"""Sums of values times weights."""

from __future__ import annotations

import numpy as np
import pytest

from dpframe.core.exact import weighted_sum


@pytest.mark.parametrize("shape", [(0,), (1,), (7,), (20_001,), (3, 20_001), (2, 3, 5)])
def test_they_are_products_with_vectors(shape: tuple[int, ...]) -> None:
    generator = np.random.default_rng(7)
    values, weights = generator.random(shape), generator.random(shape[-1])
    found = weighted_sum(values, weights)
    assert found.shape == shape[:-1]
    assert found == pytest.approx((values * weights).sum(axis=-1), rel=1e-12)
