"""Laws of quantiles at once, by which audits rank frames and score what is chosen."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe import pipeline
from dpframe.aggregates.measurement import CellCounts
from dpframe.api.query import parts
from dpframe.audit.audit import audit
from dpframe.audit.evidence import expected_share
from dpframe.audit.likelihood import TuplesApart, choices_apart
from dpframe.audit.neighbours import expected_of, worst_neighbours
from dpframe.core.budget import ZCDP, Budget, PureDP
from dpframe.mechanisms import JointExponential
from tests.audit.test_audit import seeded
from tests.release.at_once import QUARTILES, law_with_ties, planned

X: Any = pl.col("x")
PURE, OF_RHO = PureDP(Fraction(2)), ZCDP(Fraction(1, 2))


def by_stretches(law: dict[tuple[int, ...], float], points: list[int]) -> dict[Any, float]:
    """The same for which point of some each quantile is at, or between which of these."""
    found: dict[tuple[int, ...], float] = {}
    for chosen, mass in law.items():
        at = np.searchsorted(points, chosen).tolist()
        there = [c in points for c in chosen]
        key = tuple(2 * a + t for a, t in zip(at, there, strict=True))
        found[key] = found.get(key, 0.0) + mass
    return found


@pytest.mark.parametrize("counts", [[1, 0, 0, 2], [0, 2, 1, 0], [0, 0, 3, 0]])
@pytest.mark.parametrize("quantiles", [["1/3", "2/3"], QUARTILES], ids=str)
def test_law_of_floats_is_about_that_of_all_places(quantiles: Any, counts: list[int]) -> None:
    """Which takes gaps for equally long, instead of random."""
    found = planned(quantiles, 4, epsilon=3)
    rows = {point: count for point, count in enumerate(counts) if count}
    apart = TuplesApart(found.part, found.law, rows, rows)
    law = by_stretches(law_with_ties(found, counts, 4), [*rows])
    own = dict(zip(apart.outcomes, apart.masses[0].tolist(), strict=True))
    assert sum(own.values()) == pytest.approx(1, abs=1e-3)
    assert max(abs(own.get(key, 0) - law.get(key, 0)) for key in own.keys() | law.keys()) < 0.1


def test_law_of_floats_is_about_what_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    seeded(monkeypatch, 3)
    found, draws = planned(["1/3", "2/3"], 600, epsilon=3), 300
    rows = {100: 36, 200: 20, 301: 45}
    apart = TuplesApart(found.part, found.law, rows, {**rows, 200: 21})
    counted = CellCounts(
        np.repeat(np.arange(draws), 3),
        np.tile(np.array([*rows]), draws),
        np.tile(np.array([*rows.values()]), draws),
        draws,
    )
    chosen = found.drawn(counted, draws)
    seen: Counter[tuple[int, ...]] = Counter(map(tuple, chosen.tolist()))
    own = dict(zip(apart.outcomes, apart.masses[0].tolist(), strict=True))
    for key, share in by_stretches({k: n / draws for k, n in seen.items()}, [*rows]).items():
        assert abs(own.get(key, 0) - share) < 4.5 * math.sqrt(0.25 / draws)
    ones, others = (dict(zip(apart.outcomes, m.tolist(), strict=True)) for m in apart.masses)
    likeliest = max(own, key=lambda key: own[key])
    (at,) = np.array([[{1: 100, 2: 150, 3: 200, 4: 250, 5: 301}[s] for s in likeliest]])
    told = math.log(ones[likeliest] / others[likeliest])
    assert apart.ratios(np.array([at, [0, 599]])) == pytest.approx([told, 0.0])


def test_shares_of_claims_are_what_events_prove() -> None:
    one = np.array([0.5, 0.4, 0.1])
    other = np.array([0.25, 0.45, 0.3])
    whole = expected_share(one, other, 10**9, [(0.0, np.log(3))])
    assert whole == pytest.approx(1, abs=1e-3)  # the last one, three times as likely
    assert 0.8 < expected_share(one, other, 10_000, [(0.0, np.log(3))]) < 0.95
    assert expected_share(one, one, 10_000, [(0.0, 1.0)]) == 0
    with_slack = expected_share(one, other, 10**9, [(0.2, np.log(2))])
    assert with_slack == pytest.approx(np.log(1.2) / np.log(2), abs=1e-3)


SIXTHS = [f"{n}/6" for n in range(1, 6)]


def prepared(quantiles: Any, spend: Budget) -> pipeline.Prepared:
    session: Any = dp.Session(epsilon=100) if isinstance(spend, PureDP) else dp.Session(rho=100)
    people = session.protect(pl.LazyFrame(schema={"x": pl.Int64}), dp.Rows("change-one"))
    asked = people.agg(X.dp_quantile(quantiles, bounds=(0, 99)))
    return pipeline.plan(parts(asked)[0], spend, None)


def at_scale(plan: pipeline.Prepared, share: Fraction) -> pipeline.Prepared:
    """The same claim with a choice that is sharper than it may be."""
    (one,) = plan.draws
    assert isinstance(one.law, JointExponential)
    return replace(plan, draws=(replace(one, law=replace(one.law, scale=one.law.scale * share)),))


def test_laws_of_neighbours_that_are_found_prove_much_of_a_claim_and_no_more() -> None:
    """Not all of it: what comes near to e**epsilon times as likely on one side is seldom seen on
    either.
    """
    plan = prepared(QUARTILES, PURE)
    worst, *others = worst_neighbours(plan)
    expected = expected_of(plan, *worst.counted)
    assert expected >= max(expected_of(plan, *other.counted) for other in others)
    assert 0.55 < expected < 1
    for _, _, apart in choices_apart(plan, worst.counted):
        one, other = apart.masses
        likely = np.minimum(one, other) > 1e-4
        assert float(np.abs(np.log(one / other))[likely].max()) < 2 + 1e-6


@pytest.mark.slow
def test_laws_prove_much_of_a_rho_and_no_more() -> None:
    plan = prepared(SIXTHS, OF_RHO)
    assert 0.35 < expected_of(plan, *worst_neighbours(plan)[0].counted) < 1


@pytest.mark.slow
def test_at_half_the_scale_laws_prove_more_than_a_claim() -> None:
    half = at_scale(prepared(QUARTILES, PURE), Fraction(1, 2))
    assert expected_of(half, *worst_neighbours(half)[0].counted) > 1.1


@pytest.mark.slow
def test_runs_prove_about_what_laws_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the bits of one seed. Half of the runs are counted, with more confidence."""
    seeded(monkeypatch, 5)
    plan = prepared(QUARTILES, PURE)
    expected = expected_of(plan, *worst_neighbours(plan)[0].counted)
    found = audit(plan, 4000, 0.99999)
    assert 0.4 * expected * found.claimed < found.proved <= found.claimed
    sharp = at_scale(prepared(QUARTILES, PureDP(Fraction(1, 4))), Fraction(1, 16))
    assert audit(sharp, 1500, 0.99999).refuted
