"""Audits by samples of numbers that are drawn together, of tables, and of distribution functions:
they prove nearly what is claimed, or what the worst neighbours reach of it, and never more.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from dpframe import pipeline
from dpframe.accounting.gaussian_noise import epsilon_of_rho, normal_epsilon
from dpframe.api.query import parts
from dpframe.audit import Audit
from dpframe.audit.evidence import claims_of
from dpframe.audit.likelihood import stated_loss
from dpframe.audit.neighbours import worst_neighbours
from tests.audit.test_audit import FRAME, half_the_scale, seeded

X, AGE = pl.col("x"), pl.col("age")
Ask = Callable[[Any], Any]
KEYS = {"sex": ["m", "f"], "city": ["a", "b", "c"]}


def joint(f: Any) -> Any:
    return f.agg(dp.count(), X.dp_sum((0, 4)).alias("s"), AGE.dp_mean((-3, 5)).alias("m"))


def cube(f: Any) -> Any:
    return f.group_by(dp.cube("sex", "city"), keys=KEYS).agg(n=dp.count())


def rolled(f: Any) -> Any:
    made = f.group_by(dp.rollup("sex", "city"), keys=KEYS)
    return made.agg(n=dp.count(), s=X.dp_sum((0, 4)), m=AGE.dp_mean((-3, 5)))


def few_edges(f: Any) -> Any:
    return f.dp_cdf("age", [0, 10, 20, 30, 50])


def many_edges(f: Any) -> Any:
    return f.dp_cdf("age", range(100))


def bins(f: Any) -> Any:
    return f.agg(dp.count().alias("n"), AGE.dp_histogram([0, 20, 40, 60]).alias("h"))


ASKED: dict[str, Ask] = {
    "bins": bins,
    "joint": joint,
    "cube": cube,
    "rolled": rolled,
    "few edges": few_edges,
    "many edges": many_edges,
}
SPENDS: dict[str, dict[str, Any]] = {
    "pure": {"epsilon": 1},
    "zcdp": {"rho": "0.5"},
    "with delta": {"epsilon": 1, "delta": "1e-3"},
}


def people(spend: dict[str, Any], unit: dp.Rows) -> dp.PrivateFrame:
    budget: dict[str, Any] = {"rho": 10**6} if "rho" in spend else {"epsilon": 1000, "delta": 0.5}
    return dp.Session(**budget).protect(FRAME, unit, name="people")


def audited(asked: str, spend: str, unit: dp.Rows, runs: int) -> Audit:
    made: Audit = ASKED[asked](people(SPENDS[spend], unit)).audit(
        **SPENDS[spend], runs=runs, confidence=0.99
    )
    return made


def lost(asked: str, spend: str, unit: dp.Rows) -> tuple[float, pipeline.Prepared]:
    """What the neighbours that an audit finds lose by the stated noise."""
    query = parts(ASKED[asked](people(SPENDS[spend], unit)))[0]
    amount: Any = dp.ZCDP("0.5") if spend == "zcdp" else dp.PureDP(1)
    prepared = pipeline.plan(query, amount, None)
    return stated_loss(prepared, *worst_neighbours(prepared)[0].counted), prepared


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("spend", ["pure", "zcdp"])
def test_rows_that_come_reach_all_that_is_claimed(asked: str, spend: str) -> None:
    """The epsilon, or the rho, exactly: no noise could be less."""
    found, prepared = lost(asked, spend, dp.Rows())
    assert 0.999 < found / float(prepared.plan.cost.main) < 1 + 1e-9


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("spend", ["pure", "zcdp"])
def test_rows_that_change_reach_all_that_is_claimed(asked: str, spend: str) -> None:
    """Each draw is charged for what moves it most, and some row moves all of them by that; but for
    tables of a roll-up some of which have their total beside them.
    """
    found, prepared = lost(asked, spend, dp.Rows("change-one"))
    least = 0.9 if asked == "rolled" else 0.999
    assert least < found / float(prepared.plan.cost.main) < 1 + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("spend", SPENDS)
@pytest.mark.parametrize("asked", ASKED)
def test_nearly_what_is_claimed_is_proved(
    asked: str, spend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the bits of one seed; of others more than is true would be proved once in 100 audits."""
    seeded(monkeypatch, 5)
    found = audited(asked, spend, dp.Rows(), 200_000)
    assert 0.85 * found.claimed < found.proved <= found.claimed


@pytest.mark.slow
@pytest.mark.parametrize("spend", ["pure", "zcdp"])
@pytest.mark.parametrize("asked", ASKED)
def test_nearly_what_rows_that_change_reach_is_proved(
    asked: str, spend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    unit = dp.Rows("change-one")
    reached, _ = lost(asked, spend, unit)
    seeded(monkeypatch, 5)
    found = audited(asked, spend, unit, 200_000)
    most = reached if spend == "pure" else normal_epsilon(2 * reached, found.delta)
    assert 0.85 * most < found.proved <= most * (1 + 1e-3)
    assert found.proved <= found.claimed


@pytest.mark.parametrize(
    "asked", ["joint", *(pytest.param(n, marks=pytest.mark.slow) for n in ("cube", "few edges"))]
)
def test_half_the_noise_is_refuted(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seeded(monkeypatch, 6)
    half_the_scale(monkeypatch)
    assert audited(asked, "zcdp", dp.Rows(), 6000).refuted


def test_a_distribution_function_is_audited_level_by_level() -> None:
    """Sums of neighbours are fewer numbers than there are steps."""
    found = audited("few edges", "zcdp", dp.Rows(), 500)
    assert not found.refuted
    assert found.reach.height > 1


def test_a_claim_in_rho_is_that_of_the_stated_noise() -> None:
    """At every delta below what the rho implies for any mechanism, and the exact one of Gaussian
    noise, of one draw or of several.
    """
    for asked in ("joint", "few edges"):
        _, prepared = lost(asked, "zcdp", dp.Rows())
        for delta, epsilon in claims_of(prepared.plan):
            rho = prepared.plan.cost.main
            exact = normal_epsilon(2 * float(rho), delta)
            assert exact * (1 - 1e-3) < epsilon < min(exact * 1.01, epsilon_of_rho(rho, delta))


def test_claims_in_rho_of_mechanisms_without_known_losses_are_converted() -> None:
    frame = people({"rho": 1}, dp.Rows())
    query = frame.group_by("sex").agg(n=dp.count())
    (prepared,) = (
        pipeline.plan(parts(query)[0], dp.ZCDP(Fraction(1, 2), Fraction(1, 10**6)), None),
    )
    assert all(0 < e <= epsilon_of_rho(Fraction(1, 2), d) for d, e in claims_of(prepared.plan))
