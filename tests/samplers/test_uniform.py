"""Uniform integers: rejection with scripted bits, and every value below an end."""

from __future__ import annotations

import numpy as np
import pytest

from dpframe.samplers import OS, uniform_below, uniforms_below
from dpframe.samplers.source import scaled_uniforms

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


def is_kept(word: int, end: int) -> bool:
    return word * end % (1 << 64) >= (1 << 64) % end


@pytest.mark.parametrize("end", [1, 2, 3, 7, 2**31, 2**32 - 1, 2**32 + 1, 3 * 2**61, 2**63 - 1])
def test_scaled_uniforms_are_the_upper_halves_of_products(end: int) -> None:
    words = [0, 1, (1 << 64) - 1, (1 << 63) + 12345, 0x0123456789ABCDEF]
    for word in words:
        candidates = [word, *(w for w in range(5, 50) if is_kept(w, end))]
        tried = candidates[:1] if is_kept(word, end) else candidates[:2]
        source = Script(u64=tried)
        assert scaled_uniforms(np.array([end], np.int64), source).tolist() == [
            tried[-1] * end >> 64
        ]
        assert source.exhausted()


def test_scaled_uniforms_have_as_many_words_for_each_value() -> None:
    """Of the words from 0 to 2**64 - 1 those are left that begin no value's surplus."""
    for end in (3, 5, 2**62 + 1):
        for value in (0, 1, end - 1):
            first = -(-(value << 64) // end)  # the least word that gives this value
            last = -(-(value + 1 << 64) // end) - 1
            kept = [w for w in (first, first + 1, last) if is_kept(w, end)]
            skipped = 0 if is_kept(first, end) else 1
            assert last - first + 1 - skipped == (1 << 64) // end
            assert first + skipped in kept


def test_scaled_uniforms_come_in_their_places() -> None:
    ends = np.array([1, 10, 2**40, 1, 6], np.int64)
    found = scaled_uniforms(np.tile(ends, 2000)).reshape(-1, 5)
    assert (found < ends).all()
    assert (found >= 0).all()
    assert found[:, [0, 1, 4]].max(axis=0).tolist() == [0, 9, 5]
    assert found[:, 2].mean() == pytest.approx(2**39, rel=0.1)
