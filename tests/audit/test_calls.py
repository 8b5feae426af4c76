"""Releases that are drawn one by one: mistakes between calls of the noise are found, and good noise
is not suspected.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.audit.audit import differences
from dpframe.mechanisms import noise
from dpframe.samplers.source import OSBits
from tests.samplers.seeded import Seeded

Patch = pytest.MonkeyPatch


def by_sex() -> dp.PrivateQuery:
    schema = {"sex": pl.String, "age": pl.Float64}
    people = dp.Session(epsilon=1).protect(pl.DataFrame(schema=schema), dp.Rows())
    return people.group_by("sex", keys=["m", "f"]).agg(
        dp.count(mechanism="discrete_laplace").alias("n"),
        dp.sum("age", (0, 100), mechanism="discrete_laplace"),
    )


def a_source_anew_at_each_call(patch: Patch) -> None:
    true = noise.discrete_laplace

    def draw(scale: Any, size: Any, source: Any) -> Any:
        with Patch.context() as inner:
            again = Seeded(7)
            for name in ("u16", "u32", "u64", "bits", "int64bits"):
                inner.setattr(OSBits, name, lambda _, *n, name=name: getattr(again, name)(*n))
            return true(scale, size, source)

    patch.setattr(noise, "discrete_laplace", draw)


def no_noise_in_some_calls(patch: Patch) -> None:
    true, calls = noise.discrete_laplace, count()

    def draw(scale: Any, size: Any, source: Any) -> Any:
        drawn = true(scale, size, source)
        return np.zeros_like(drawn) if next(calls) // 2 % 25 == 3 else drawn  # two draws a release

    patch.setattr(noise, "discrete_laplace", draw)


def less_noise_for_small_draws(patch: Patch) -> None:
    true = noise.discrete_laplace

    def draw(scale: Any, size: Any, source: Any) -> Any:
        drawn = true(scale, size, source)
        return drawn // 2 if np.size(drawn) < 10 else drawn

    patch.setattr(noise, "discrete_laplace", draw)


@pytest.mark.parametrize(
    ("plant", "words"),
    [
        (a_source_anew_at_each_call, "a release repeats the one before"),
        (no_noise_in_some_calls, "one result comes more often"),
        (less_noise_for_small_draws, "a number has another distribution"),
    ],
)
def test_mistakes_between_calls_are_found(
    plant: Callable[[Patch], None], words: str, monkeypatch: Patch
) -> None:
    """Runs that are drawn together do not show them: nothing is proved against the claim."""
    plant(monkeypatch)
    found = by_sex().audit(epsilon=1, runs=5_000)
    assert found.calls == 1_000
    assert any(words in sentence for sentence in found.differences)
    assert found.proved <= found.claimed
    assert found.refuted
    assert words in found.words()


def test_good_noise_is_not_suspected() -> None:
    found = by_sex().audit(epsilon=1, runs=5_000, confidence=0.9999)
    assert found.differences == ()
    assert not found.refuted
    assert "calls    1000 releases drawn one by one: nothing unlike the runs" in found.words()


def test_no_more_calls_than_runs() -> None:
    assert by_sex().audit(epsilon=1, runs=100).calls == 100


@pytest.mark.parametrize("scale", [0.1, 1.0, 50.0])
def test_draws_of_one_law_differ_as_rarely_as_stated(scale: float) -> None:
    """Laws with atoms, and rows that are missing, too: 200 comparisons at a doubt of 1 in 20 may
    name 10, and 24 are less likely than 1 in 10,000.
    """
    generator = np.random.default_rng(17)

    def draws(size: int) -> np.ndarray[Any, Any]:
        noise = np.round(generator.laplace(0, scale, (size, 2)))
        return np.where(generator.random((size, 2)) < 0.1, np.nan, noise)

    named = sum(bool(differences(draws(100), draws(300), 0.05)) for _ in range(200))
    assert named < 24
