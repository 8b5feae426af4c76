"""No noise."""

from __future__ import annotations

from dpframe.mechanisms import NoNoise
from dpframe.mechanisms.noise import noise as draw_noise


def test_nothing_is_added_and_nothing_is_charged() -> None:
    mechanism = NoNoise()
    assert mechanism.name == "none"
    assert mechanism.scale == mechanism.epsilon() == mechanism.rho() == 0
    assert mechanism.variance() == 0.0
    assert mechanism.quantile(0.95, 100) == 0
    assert draw_noise(mechanism.kernel_law, 3).tolist() == [0, 0, 0]
    assert draw_noise(mechanism.kernel_law, 3).dtype == "int64"
    assert mechanism == NoNoise()
