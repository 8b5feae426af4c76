"""Uniform integers: rejection with scripted bits, and every value below an end."""

from __future__ import annotations

import numpy as np
import pytest

from dpframe.samplers import OS, uniform_below, uniforms_below

from .scripted import Script

ONES = (1 << 64) - 1


@pytest.mark.parametrize("n", [1, 2, 3, 1000, (1 << 62) + 1])
def test_uniform_below(n: int) -> None:
    unused = 64 - (n - 1).bit_length()
    rejected = [ONES] if n & (n - 1) else []
    source = Script(single=[*rejected, (n - 1) << unused])
    assert uniform_below(n, source) == n - 1
    assert source.exhausted()


@pytest.mark.parametrize("n", [2, 3, 8, 1000, 2**53 + 1, 2**61, 2**62, 2**63 - 1])
def test_uniforms_below_take_as_many_bits_as_the_end_has(n: int) -> None:
    rejected = [ONES] if n & (n - 1) else []
    above = ONES ^ ((1 << (n - 1).bit_length()) - 1)  # bits that must not matter
    source = Script(u64=[*rejected, above | n - 1])
    assert uniforms_below(np.array([n, 1], np.int64), source).tolist() == [n - 1, 0]
    assert source.exhausted()


def test_uniform_numbers_stay_below_their_ends() -> None:
    ends = np.array([1, 2, 3, 5, 1000, 2**40 + 1] * 200, np.int64)
    drawn = uniforms_below(ends, OS)
    assert ((drawn >= 0) & (drawn < ends)).all()
    for end in (2, 3, 5):
        assert set(drawn[ends == end].tolist()) == set(range(end))


@pytest.mark.parametrize("bits", range(1, 63))
def test_no_bit_below_the_highest_is_lost(bits: int) -> None:
    """Of an end whose predecessor has one bit alone, so that all others come from that one."""
    wanted = [(1 << bits) - 1, 0, *(1 << place for place in range(bits))]
    source = Script(u64=wanted)
    ends = np.full(len(wanted), (1 << bits) + 1, np.int64)
    assert uniforms_below(ends, source).tolist() == wanted
