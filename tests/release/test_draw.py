"""Selections in many groups: the same whichever pieces they are drawn in."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

import dpframe as dp
from dpframe import pipeline
from dpframe.aggregates.aggregate import Noisy
from dpframe.aggregates.measurement import Measurement
from dpframe.core.budget import ZCDP, PureDP
from dpframe.kernel import plan as kernel
from dpframe.mechanisms import Exponential, Mechanism, NoNoise, PermuteAndFlip, ReportNoisyMax
from dpframe.release.draws import CandidateScores, draw, draw_node
from dpframe.release.numbers import PointRuns
from dpframe.simulate import Exact
from tests.laws.neighbours import Counted, ballots, exact_tables, measurements_of, query_of

GROUPS = 23
RNG = np.random.default_rng(5)
FRAME = pl.DataFrame({"g": RNG.integers(0, GROUPS - 3, 90), "x": RNG.integers(-4, 14, 90)})
X = pl.col("x")
ASKED = {
    "points": X.dp_quantile("0.3", (0, 9)),
    "candidates": X.dp_quantile("0.3", candidates=[-2, 1, 2, 8]),
    "category": dp.argmax("x", candidates=range(-4, 14)),
    "winners": dp.argmax("x", candidates=range(-4, 14), k=3),
}
SURE = Fraction(1, 1 << 10)
AT_ONCE = pytest.mark.parametrize("at_once", [1, 30, 200, 10**6])


def drawn_alone(
    part: Measurement,
    law: Mechanism,
    counted: Counted,
    box: CandidateScores | None = None,
) -> Noisy:
    """One part that is drawn by itself."""
    found = counted.of(part)
    exact, tables = found.exact, found.of(part)
    return draw_node(exact.places.plan, exact.nodes[part], law.kernel_law, tables, box)


def drawn(name: str, law: Mechanism) -> tuple[NDArray[np.int64], list[list[set[int]]]]:
    """The codes of each group, and the codes that are best, second best, ..., by its ballot."""
    private = dp.Session(epsilon=1).protect(FRAME, dp.Rows())
    query = query_of(private.group_by("g", keys=range(GROUPS)).agg(ASKED[name]))
    (use,) = measurements_of(query)
    counted = exact_tables(query, FRAME)
    ranked = []
    for ballot in ballots(use.part, counted, query.scope):
        points: dict[int, set[int]] = {}
        for i, (score, start) in enumerate(
            zip(ballot.scores.tolist(), ballot.starts.tolist(), strict=True)
        ):
            length = 1 if ballot.weights is None else int(ballot.weights[i])
            points.setdefault(score, set()).update(range(start, start + length))
        order = [points[score] for score in sorted(points, reverse=True) for _ in points[score]]
        ranked.append(order)
    return drawn_alone(use.part, law, counted), ranked


@AT_ONCE
@pytest.mark.parametrize("name", ASKED)
def test_without_noise_a_best_code_of_each_group_comes_out(
    name: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(draw_node.__globals__, "_AT_ONCE", at_once)
    codes, ranked = drawn(name, NoNoise())
    assert codes.shape == (GROUPS, 3 if name == "winners" else 1)
    for row, order in zip(codes.tolist(), ranked, strict=True):
        assert len(set(row)) == len(row)
        assert all(code in best for code, best in zip(row, order, strict=False))
        assert row[0] == min(order[0])


@AT_ONCE
@pytest.mark.parametrize("law", [Exponential(SURE), PermuteAndFlip(SURE), ReportNoisyMax(SURE)])
@pytest.mark.parametrize("name", ASKED)
def test_at_a_small_scale_a_best_code_of_each_group_is_chosen(
    name: str, law: Mechanism, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scores differ by 1 at least, which is 1024 scales."""
    if name == "points" and not isinstance(law, Exponential):
        pytest.skip("only the exponential mechanism draws weighted points")
    monkeypatch.setitem(draw_node.__globals__, "_AT_ONCE", at_once)
    codes, ranked = drawn(name, law)
    for row, order in zip(codes.tolist(), ranked, strict=True):
        assert len(set(row)) == len(row)
        assert all(code in best for code, best in zip(row, order, strict=False))


def test_medians_of_many_groups_are_medians() -> None:
    rng = np.random.default_rng(7)
    frame = pl.DataFrame({"g": rng.integers(0, 3_000, 20_000), "x": rng.normal(size=20_000)})
    keys = pl.Series("g", range(3_000))
    private = dp.Session(epsilon=10**15).protect(frame, dp.Rows()).group_by("g", keys=keys)
    found = private.agg(median=X.dp_median((-4, 4))).collect(epsilon=10**15)
    about = frame.group_by("g").agg(
        low=X.quantile(0.5, "lower"), high=X.quantile(0.5, "higher"), n=pl.len()
    )
    both = found.join(about, on="g")
    step = 8 / 2**20
    inside = both.filter(pl.col("median").is_between(pl.col("low") - step, pl.col("high") + step))
    assert inside.height == both.height > 2_900


@pytest.mark.parametrize("given", [{"bounds": (1, 9)}, {"candidates": range(1, 10)}])
def test_quantiles_of_values_that_tie_are_exact(given: dict[str, Any]) -> None:
    """600 ratings from 1 to 9, of which 5 in 12 are 9."""
    ratings = pl.DataFrame({"x": [1, 2, 3, 4, 5, 6, 7] * 25 + [8] * 175 + [9] * 250})
    private = dp.Session(epsilon=10**9).protect(ratings, dp.Rows())
    found = private.agg(X.dp_quantile([0, 0.1, 0.5, 0.6, 0.9, 1], **given)).collect(epsilon=10**9)
    assert found["x"].to_list() == [[1, 3, 8, 9, 9, 9]]


@pytest.mark.parametrize("seed", range(6))
def test_the_exact_quantile_of_samples_with_ties_is_chosen_without_noise(seed: int) -> None:
    """Each value that has the rank q n among its own, and no other, has the best score."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, rng.integers(2, 12), rng.integers(1, 60))
    at = np.arange(-1, 13)
    below, upto = ((values < at[:, None]).sum(1), (values <= at[:, None]).sum(1))
    query = query_of(
        dp.Session(epsilon=1)
        .protect(pl.DataFrame({"x": values}), dp.Rows())
        .agg(**{f"{where}{q}": X.dp_quantile(f"{q}/7", **given)  # type: ignore[arg-type]
                for q in range(8)
                for where, given in {"p": {"bounds": (-1, 12)}, "c": {"candidates": at}}.items()})
    )  # fmt: skip
    counted = exact_tables(query, pl.DataFrame({"x": values}))
    for number, use in enumerate(measurements_of(query)):
        q = number // 2
        exact = np.flatnonzero((7 * below <= q * values.size) & (q * values.size <= 7 * upto))
        (ballot,) = ballots(use.part, counted, query.scope)
        best = ballot.scores == ballot.scores.max()
        lengths = np.ones_like(ballot.scores) if ballot.weights is None else ballot.weights
        points = np.repeat(best, lengths)
        assert np.flatnonzero(points).tolist() == exact.tolist()
        assert drawn_alone(use.part, NoNoise(), counted).item() == exact[0]


@AT_ONCE
@pytest.mark.parametrize("room", [0, 40, 10**6])
@pytest.mark.parametrize("name", ASKED)
def test_remembered_ballots_are_those_that_would_be_made_again(
    name: str, room: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With so little noise that a best code comes out, however often scores are used."""
    monkeypatch.setitem(draw_node.__globals__, "_AT_ONCE", at_once)
    private = dp.Session(epsilon=1).protect(FRAME, dp.Rows())
    query = query_of(private.group_by("g", keys=range(GROUPS)).agg(ASKED[name]))
    (use,) = measurements_of(query)
    counted = exact_tables(query, FRAME)
    law = Exponential(SURE) if name == "points" else PermuteAndFlip(SURE)
    _, ranked = drawn(name, NoNoise())
    box = CandidateScores(room=room)
    for _ in range(3):
        codes = drawn_alone(use.part, law, counted, box)
        for row, order in zip(codes.tolist(), ranked, strict=True):
            assert all(code in best for code, best in zip(row, order, strict=False))
    remembered = sum(
        len(kept.scores) if isinstance(kept, PointRuns) else kept.size for kept in box.kept.values()
    )
    assert box.room == room - remembered >= 0
    assert room != 0 or not box.kept
    assert room != 10**6 or box.kept


@pytest.mark.parametrize("spend", [{"epsilon": 1}, {"rho": 1}], ids=str)
def test_draws_follow_the_verified_plan_and_not_the_objects_it_was_made_of(
    spend: dict[str, Any],
) -> None:
    """A mechanism that changes after the check changes nothing."""
    private = dp.Session(**spend).protect(FRAME, dp.Rows())
    query = query_of(private.group_by("g", keys=range(GROUPS)).agg(X.dp_sum((0, 9)).alias("s")))
    share = PureDP(1) if "epsilon" in spend else ZCDP(1)
    prepared = pipeline.plan(query, share, None)
    (places,) = pipeline.require_sound(pipeline.alone(prepared)).parts
    (one,) = prepared.draws
    counted = Exact.of(prepared).count({query.relation.token: FRAME.lazy()}).tables
    object.__setattr__(one, "law", NoNoise())
    drawn = [draw(one, places, counted)[one.keys[0]].ravel().tolist() for _ in range(8)]
    assert len({*map(tuple, drawn)}) == 8


def test_a_law_that_no_draw_has_is_refused() -> None:
    private = dp.Session(epsilon=1).protect(FRAME, dp.Rows())
    query = query_of(private.group_by("g", keys=range(GROUPS)).agg(ASKED["category"]))
    (use,) = measurements_of(query)
    counted = exact_tables(query, FRAME)
    found = counted.of(use.part)
    exact, tables = found.exact, found.of(use.part)
    for law in (kernel.Staircase(Fraction(1), 1, 1), kernel.Threshold(3, 0)):
        with pytest.raises(kernel.Refused, match="drawn"):
            draw_node(exact.places.plan, exact.nodes[use.part], law, tables)
