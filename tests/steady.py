"""The noise of `make test`: the same in each run, so that no test fails by chance on some days.

A test that says what holds 95 times in 100 fails now and then however right the code is, and with
thousands of tests somebody's change is refused for it. Hypothesis' examples are the same in each
run for that reason, too. `make test-nightly` draws anew.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from dpframe.samplers import source

_TRUE = os.urandom


class SteadyOS:
    """What the module of randomness knows of the operating system, for one test.

    Parameters
    ----------
    name
        Of the test: each has its own bits.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._made: tuple[int, np.random.Generator] | None = None

    def urandom(self, n: int) -> bytes:
        """Bytes that follow from the test's name, and in a forked process from its number as well;
        those of the system where a test has put something in its place.
        """
        if os.urandom is not _TRUE:
            return os.urandom(n)
        process = os.getpid()
        if self._made is None or self._made[0] != process:
            seed = [zlib.crc32(self._name.encode())] + ([process] if self._made else [])
            self._made = process, np.random.default_rng(seed)
        return self._made[1].bytes(n)


@contextmanager
def steady(name: str) -> Iterator[None]:
    """A test by that name draws the same bits each time."""
    source.os = SteadyOS(name)  # type: ignore[assignment]
    try:
        yield
    finally:
        source.os = os
