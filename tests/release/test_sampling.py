"""Intervals that cover sampling as well as noise."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

import dpframe as dp

A, B = pl.col("arm") == "a", pl.col("arm") == "b"
X, SHARE = pl.col("x"), pl.col("share")


def sample(rng: np.random.Generator, size: int, people: int = 1) -> pl.DataFrame:
    """Rows of two arms with the same law; each individual has `people` rows that are alike."""
    each = np.repeat(np.arange(size // people), people)
    return pl.DataFrame(
        {
            "who": each,
            "arm": rng.choice(["a", "b"], size // people)[each],
            "share": (rng.random(size // people) < 0.1)[each],
            "x": rng.gamma(2, 10, size // people)[each],
        }
    )


QUERIES: dict[str, tuple[Callable[[dp.PrivateFrame], dp.PrivateQuery], float]] = {
    "difference of shares": (
        lambda f: f.agg(r=SHARE.filter(B).mean() - SHARE.filter(A).mean()),
        0.0,
    ),
    "difference of means": (
        lambda f: f.agg(r=X.filter(B).dp_mean((0, 200)) - X.filter(A).dp_mean((0, 200))),
        0.0,
    ),
    "ratio of shares": (lambda f: f.agg(r=SHARE.filter(B).mean() / SHARE.filter(A).mean()), 1.0),
    "share by counts": (lambda f: f.agg(r=dp.count(pl.when(SHARE).then(1)) / dp.count()), 0.1),
    "mean": (lambda f: f.agg(r=X.dp_mean((0, 200))), 20.0),
    "mean beside a variance": (
        lambda f: f.agg(r=X.dp_mean((0, 200)), v=X.dp_std((0, 200))),
        20.0,
    ),
    "count": (lambda f: f.agg(r=dp.count(pl.when(SHARE).then(1))), 400.0),
    "sum": (lambda f: f.agg(r=X.dp_sum((0, 200))), 80_000.0),
    "ratio of totals": (
        lambda f: f.agg(r=X.dp_ratio(1 + 0 * X, (0, 200), denominator_bounds=(0, 1))),
        20.0,
    ),
}


def misses(name: str, runs: int, *, people: int = 1) -> int:
    query, exact = QUERIES[name]
    rng, session, missed = np.random.default_rng(3), dp.Session(epsilon=10**6), 0
    for _ in range(runs):
        frame = sample(rng, 4000, people)
        unit = dp.Rows() if people == 1 else "who"
        rows = session.protect(frame, unit=unit)
        rows = rows if people == 1 else rows.limit_rows(people)
        found = query(rows).collect(epsilon=1, interval=0.95, sampling=True).row(0, named=True)
        missed += not found["r_low"] <= exact <= found["r_high"]
    return missed


@pytest.mark.parametrize("name", ["difference of shares", "share by counts"])
def test_two_arms_that_do_not_differ_seldom_differ(name: str) -> None:
    assert misses(name, 12) <= 3


@pytest.mark.slow
@pytest.mark.parametrize("people", [1, 4])
@pytest.mark.parametrize("name", QUERIES)
def test_intervals_hold_what_the_population_has(name: str, people: int) -> None:
    assert misses(name, 120, people=people) <= 12


def ends_of(query: dp.PrivateQuery, *, sampling: bool, epsilon: float = 10**6) -> tuple[float, ...]:
    frame = query.collect(epsilon=epsilon, interval=0.95, sampling=sampling)
    return frame.select(pl.nth(1) - pl.nth(0), pl.nth(2) - pl.nth(0)).row(0)


def protected(frame: pl.DataFrame, unit: str | None = None) -> dp.PrivateFrame:
    return dp.Session(epsilon=10**9).protect(frame, unit=unit or dp.Rows())


def test_without_noise_ends_are_those_of_textbooks() -> None:
    frame = sample(np.random.default_rng(1), 4000)
    rows = protected(frame)
    p = frame["share"].mean()
    half = 1.96 * float(np.sqrt(p * (1 - p) / 4000))  # type: ignore[operator]
    low, high = ends_of(rows.agg(r=SHARE.mean()), sampling=True)
    assert half < high < 1.15 * half
    assert -1.15 * half < low < -half
    low, high = ends_of(rows.agg(r=dp.count(pl.when(SHARE).then(1)) / dp.count()), sampling=True)
    assert half < high < 1.15 * half
    low, high = ends_of(rows.dp_count(), sampling=True)
    assert 1.96 * 4000**0.5 < high < 2.05 * 4000**0.5


def test_variances_are_covered_whatever_the_fourth_moment_is() -> None:
    """Without noise: the width of the bounds is 200, and there are 4000 rows."""
    frame = sample(np.random.default_rng(1), 4000)
    variance = frame["x"].var()
    assert isinstance(variance, float)
    fourth = 200**2 * variance / 4000 + (1.96 * 200**2 / 4000) ** 2
    for ask, half in ((dp.std, 1.96 * 100 / 4000**0.5), (dp.var, 1.96 * fourth**0.5)):
        low, high = ends_of(protected(frame).agg(ask("x", (0, 200)).alias("v")), sampling=True)
        assert high == pytest.approx(half, rel=1e-3)
        assert low == pytest.approx(-half, rel=1e-3)


def test_a_variance_beside_a_mean_makes_it_narrower() -> None:
    frame = sample(np.random.default_rng(1), 4000)
    rows = protected(frame)
    _, alone = ends_of(rows.agg(r=X.dp_mean((0, 200))), sampling=True)
    both = rows.agg(r=X.dp_mean((0, 200)), s=X.dp_std((0, 200)))
    frame_of_both = both.collect(epsilon=10**6, interval=0.95, sampling=True)
    beside = (frame_of_both["r_high"] - frame_of_both["r"]).item()
    assert beside == pytest.approx(1.96 * float(frame["x"].std() or 0) / 4000**0.5, rel=0.02)
    assert alone > 2 * beside


def test_an_individual_with_many_rows_is_one_of_the_sample() -> None:
    frame = sample(np.random.default_rng(1), 4000, people=4)
    _, rows = ends_of(protected(frame).agg(r=SHARE.mean()), sampling=True)
    _, people = ends_of(protected(frame, "who").limit_rows(4).agg(r=SHARE.mean()), sampling=True)
    assert people == pytest.approx(2 * rows, rel=0.1)


def test_nobody_differs_from_what_is_certain() -> None:
    rows = protected(pl.DataFrame({"share": [False] * 100}))
    low, high = ends_of(rows.agg(r=SHARE.mean()), sampling=True)
    assert low == 0
    assert 0.03 < high < 0.06  # Wilson has 0.037


REFUSED: dict[str, tuple[Callable[[dp.PrivateFrame], dp.PrivateQuery], bool, str]] = {
    "a quantile": (lambda f: f.agg(dp.count(), q=dp.median("x", (0, 9))), False, "'q' has no int"),
    "a winner": (
        lambda f: f.dp_argmax("arm", candidates=["a", "b"]),
        False,
        "only the chosen value",
    ),
    "a moved mean": (
        lambda f: f.group_by("arm", keys=["a", "b"]).agg(v=dp.mean("x", (0, 9), shrink=True)),
        True,
        "'v' has no known sampling error",
    ),
    "distinct values": (lambda f: f.agg(v=dp.n_unique("x")), True, "distinct values"),
    "a sum on both sides": (lambda f: f.agg(v=dp.sum("x", (-9, 9))), True, "add dp.count()"),
    "a ratio of what may be below 0": (
        lambda f: f.agg(v=X.dp_ratio(1 + 0 * X, (-1, 9), denominator_bounds=(0, 1))),
        True,
        "0 or more",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_outputs_without_an_interval_are_named_before_the_charge(name: str) -> None:
    query, sampling, said = REFUSED[name]
    session = dp.Session(epsilon=1)
    frame = session.protect(sample(np.random.default_rng(1), 100), unit=dp.Rows())
    with pytest.raises(dp.UnsupportedOperation) as refusal:
        query(frame).collect(epsilon=0.5, interval=0.95, sampling=sampling)
    assert said in str(refusal.value)
    assert refusal.value.remedy
    assert session.spent.words() == "epsilon 0"


def test_sums_beside_a_count_and_ratios_of_what_is_not_below_zero_are_covered() -> None:
    rows = protected(sample(np.random.default_rng(1), 100))
    query = rows.agg(
        dp.sum("x", (-9, 9)).alias("v"),
        X.dp_ratio(1 + 0 * X, (0, 9), denominator_bounds=(0, 1)).alias("w"),
        n=dp.count(),
    )
    found = query.collect(epsilon=10**6, interval=0.95, sampling=True)
    assert {"v_low", "v_high", "w_low", "w_high"} <= set(found.columns)


def test_sampling_is_a_truth_value() -> None:
    frame = dp.Session(epsilon=1).protect(pl.DataFrame({"x": [1]}), unit=dp.Rows())
    with pytest.raises(dp.UnsupportedOperation, match="is True or False"):
        frame.dp_count().collect(epsilon=1, interval=0.95, sampling="yes")  # type: ignore[arg-type]


def test_sampling_is_said_of_an_interval() -> None:
    frame = dp.Session(epsilon=1).protect(pl.DataFrame({"x": [1]}), unit=dp.Rows())
    with pytest.raises(dp.UnsupportedOperation, match="needs interval="):
        frame.dp_count().collect(epsilon=1, sampling=True)


@pytest.mark.parametrize("ask", [dp.var, dp.std])
def test_no_end_of_a_variance_is_below_zero(ask: Callable[..., pl.Expr]) -> None:
    """Of few rows, whose sampling error is as large as the variance."""
    rows = pl.DataFrame({"x": [0.0, 0.1, 9.0] * 4})
    frame = dp.Session(epsilon=10**6).protect(rows, unit=dp.Rows())
    query = frame.agg(ask("x", (0, 10)).alias("v"))
    low, high = query.collect(epsilon=1_000, interval=0.95, sampling=True)[
        0, ["v_low", "v_high"]
    ].row(0)
    assert 0 <= low < high
