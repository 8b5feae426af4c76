"""Mechanisms as the kernel writes them."""

from __future__ import annotations

from dpframe.mechanisms import Mechanism, NoisyThreshold, WeighedThreshold

__all__ = ["number_law"]


def number_law(law: Mechanism) -> tuple[int, Mechanism] | None:
    """For groups that appear by a number of another draw: the threshold and the noise of that
    number; None for other mechanisms.
    """
    if isinstance(law, NoisyThreshold | WeighedThreshold):
        noise = law.noise_of_number()
        return None if noise is None else (law.threshold, noise)
    return None
