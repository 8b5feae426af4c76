"""Numbers that others published or computed, against what dpframe computes.

`reference_values.json` has them with their sources. Each has a check here, by its name, or stands
in `NOT_YET` with the reason.

References for continuous noise are compared with noise on a fine grid: a sum of floats within
(0, 1) has 2**30 steps.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe import accounting, mechanisms
from dpframe.accounting.events import AnyEvent
from dpframe.accounting.gaussian_noise import largest_rho, log_delta_zcdp
from dpframe.core.exact import exact
from dpframe.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    NoisyThreshold,
    PermuteAndFlip,
    ReportNoisyMax,
    TruncatedGeometric,
)
from dpframe.mechanisms.noise import choose_each
from tests.aggregates.cases import each_alone
from tests.samplers.seeded import Seeded

Entry: TypeAlias = "dict[str, Any]"
Inputs: TypeAlias = "dict[str, Any]"

ENTRIES: list[Entry] = json.loads(
    (Path(__file__).parent / "reference_values.json").read_text(encoding="utf-8")
)
FINE = 2**30
SCHEMA: dict[str, Any] = {
    "id": pl.String,
    "g": pl.String,
    "x": pl.Int64,
    "y": pl.Float64,
    "e": pl.Enum(["a", "b"]),
}

NOT_YET: dict[str, set[int]] = {
    "individuals with an identifier come and go, and do not change": {155},
    "a variance is made of noisy sums, so it has no sensitivity of its own": {162},
}
"""Which entries do not apply, by the reason."""


# ------------------------------------------------------------------------------------- helpers


def release(
    text: str,
    unit: dp.Rows | None = None,
    part: str | None = None,
    groups: int = 0,
    steps: str = "f",
    **spend: Any,
) -> dp.NoisyAggregate:
    """The release (of that part) in the plan of one dp expression, grouped or not."""
    spend = {name: Fraction(value) for name, value in spend.items()}
    measure = {"rho": spend["rho"]} if "rho" in spend else spend
    protected = dp.Session(**measure).protect(pl.LazyFrame(schema=SCHEMA), unit=unit or dp.Rows())
    frame = eval(steps, {"f": protected, "pl": pl})
    if groups:
        frame = frame.group_by("g", keys=[str(i) for i in range(groups)])
    query = frame.agg(o=eval(text, {"pl": pl, "dp": dp}))
    with each_alone():  # the figures are of one part
        plan = query.plan(**spend)
    found = [r for r in plan.releases if part in (None, r.aggregate)]
    assert len(found) == 1
    return found[0]


def close(found: float, entry: Entry, rel: float = 0.0) -> None:
    """`found` is the expected number, within its tolerance or `rel`."""
    tolerance = {entry["kind"]: entry["tolerance"]}
    if rel:
        tolerance = {"rel": rel}
    assert found == pytest.approx(entry["expected"], **tolerance)


def fine_gaussian(sigma: float) -> DiscreteGaussian:
    return DiscreteGaussian(Fraction(sigma) ** 2 * FINE**2)


def confidence(inputs: Inputs) -> Fraction:
    return 1 - exact(inputs["alpha"])


# ------------------------------------------------------------------------------------ noise


def laplace_scale_of_a_count(entry: Entry, inputs: Inputs) -> None:
    rows = inputs.get("max_rows", inputs.get("max_groups", 1) * inputs.get("max_rows_per_group", 1))
    unit = dp.Rows(contributions=rows)
    close(release("dp.count()", unit, epsilon=inputs["epsilon"]).scale, entry)
    close(release("dp.count()", unit, groups=20, epsilon=inputs["epsilon"]).scale, entry)


def laplace_scale_of_a_sum(entry: Entry, inputs: Inputs) -> None:
    text = f'pl.col("x").dp_sum({tuple(inputs["bounds"])})'
    unit = dp.Rows(contributions=inputs["max_rows"])
    close(release(text, unit, epsilon=inputs["epsilon"]).scale, entry)


def laplace_scale_of_a_normalised_sum(entry: Entry, inputs: Inputs) -> None:
    unit = dp.Rows(contributions=inputs["max_groups"] * inputs["max_rows_per_group"])
    text = f'pl.col("x").dp_mean({tuple(inputs["bounds"])}, mechanism="discrete_laplace")'
    close(release(text, unit, "mean.sum", epsilon=2 * Fraction(inputs["epsilon"])).scale, entry)


def laplace_scales_of_a_mean(entry: Entry, inputs: Inputs) -> None:
    text = f'pl.col("x").dp_mean({tuple(inputs["bounds"])}, mechanism="discrete_laplace")'
    total = inputs["epsilon_total"]
    close(release(text, part="mean.sum", epsilon=total).scale, entry)
    assert release(text, part="mean.count", epsilon=total).scale == pytest.approx(20)


def laplace_deviation(entry: Entry, inputs: Inputs) -> None:
    unit = dp.Rows(contributions=inputs["max_groups"] * inputs["max_rows_per_group"])
    noise = release('pl.col("y").dp_sum((0, 1))', unit, epsilon=inputs["epsilon"])
    assert isinstance(noise.law, DiscreteLaplace)
    close(math.sqrt(noise.law.variance()) * float(noise.step), entry)


def classic_sigma_is_not_needed(entry: Entry, inputs: Inputs) -> None:
    """The classic formula asks for more noise than is needed, where it is valid at all."""
    text = 'dp.count(mechanism="discrete_gaussian")'
    found = release(text, epsilon=exact(inputs["epsilon"]), delta=exact(inputs["delta"]))
    assert found.mechanism == "discrete_gaussian"
    assert 0.5 * entry["expected"] < found.scale < 0.85 * entry["expected"]


def analytic_sigma(entry: Entry, inputs: Inputs) -> None:
    l2_squared = round(inputs["sensitivity_l2"] ** 2) * FINE**2
    l0 = 1 if l2_squared == FINE**2 else 3
    epsilon, delta = exact(inputs["epsilon"]), exact(inputs["delta"])
    law = DiscreteGaussian.for_approx(l0, Fraction(l2_squared), epsilon, delta)
    assert law.sigma / FINE >= entry["expected"] * (1 - 1e-12)
    close(law.sigma / FINE, entry, rel=1e-6)


def delta_at_the_exact_epsilon(entry: Entry, inputs: Inputs) -> None:
    k = inputs.get("k", 1)  # k releases are one vector of k entries
    found = fine_gaussian(inputs["sigma"]).delta(
        Fraction(entry["expected"]), k, Fraction(k * FINE**2)
    )
    assert found == pytest.approx(inputs["delta"], rel=1e-6)
    assert found >= inputs["delta"] * (1 - 1e-9)


def delta_of_a_gaussian(entry: Entry, inputs: Inputs) -> None:
    found = fine_gaussian(inputs["sigma"]).delta(
        Fraction(inputs["epsilon"]), 1, Fraction(FINE) ** 2
    )
    assert found >= entry["expected"] * (1 - 1e-12)
    close(found, entry, rel=1e-6)


def delta_of_a_discrete_gaussian(entry: Entry, inputs: Inputs) -> None:
    law = DiscreteGaussian(Fraction(inputs["sigma"]) ** 2)
    found = law.delta(Fraction(inputs["epsilon"]), 1, Fraction(1))
    assert found >= entry["expected"] * (1 - 1e-12)
    close(found, entry)


def zcdp_sigma(entry: Entry, inputs: Inputs) -> None:
    rho = Fraction(inputs["rho"])
    assert DiscreteGaussian.for_zcdp(Fraction(1), rho).sigma_squared == entry["expected"]
    found = release("dp.count()", rho=rho)
    assert (found.mechanism, found.scale**2) == ("discrete_gaussian", entry["expected"])


def discrete_law(inputs: Inputs) -> DiscreteLaplace | DiscreteGaussian:
    if "sigma" in inputs:
        return DiscreteGaussian(Fraction(inputs["sigma"]) ** 2)
    return DiscreteLaplace(Fraction(inputs["scale"]))


def mass_at_zero(entry: Entry, inputs: Inputs) -> None:
    """No error is as likely as 0 is."""
    law, mass = discrete_law(inputs), Fraction(entry["expected"])
    margin = Fraction(1, 10**11)
    assert [law.quantile(mass - margin), law.quantile(mass + margin)] == [0, 1]


def two_sided_tail(entry: Entry, inputs: Inputs) -> None:
    law, tail, a = discrete_law(inputs), Fraction(entry["expected"]), inputs["abs_greater_than"]
    margin = Fraction(1, 10**11)
    assert [law.quantile(1 - tail - margin), law.quantile(1 - tail + margin)] == [a, a + 1]


def discrete_variance(entry: Entry, inputs: Inputs) -> None:
    close(discrete_law(inputs).variance(), entry)


# ---------------------------------------------------------------------------------- accuracy


def discrete_accuracy(entry: Entry, inputs: Inputs) -> None:
    if "sigma" in inputs:
        found = release("dp.count()", rho=1 / (2 * Fraction(inputs["sigma"]) ** 2))
        assert found.mechanism == "discrete_gaussian"
    else:
        found = release("dp.count()", epsilon=1 / Fraction(inputs["scale"]))
    close(found.accuracy(confidence(inputs)), entry)


def continuous_accuracy(entry: Entry, inputs: Inputs) -> None:
    """In the units of the value, that is on the fine grid."""
    text = 'pl.col("y").dp_sum((0, 1), mechanism="{}")'
    if "sigma" in inputs or "gaussian" in entry["name"]:
        sigma = Fraction(inputs.get("sigma", inputs.get("scale")))
        found = release(text.format("discrete_gaussian"), rho=1 / (2 * sigma**2))
    else:
        epsilon = 1 / Fraction(inputs["scale"])
        groups = inputs.get("groups", 0)
        found = release(text.format("discrete_laplace"), groups=groups, epsilon=epsilon)
    close(found.accuracy(confidence(inputs), simultaneous="groups" in inputs), entry, rel=2e-9)


def discrete_accuracy_of_opendp(entry: Entry, inputs: Inputs) -> None:
    """OpenDP's least integer x has P(|X| >= x) <= alpha, so ours is one less."""
    gaussian = "gaussian" in entry["name"]
    law = discrete_law({"sigma" if gaussian else "scale": inputs["scale"]})
    assert law.quantile(confidence(inputs)) == math.ceil(entry["expected"]) - 1


# ------------------------------------------------------------------------ budgets, conversions


def basic_composition(entry: Entry, inputs: Inputs) -> None:
    events = [accounting.LaplaceEvent(1, inputs["epsilon"])] * inputs["k"]
    close(accounting.BasicAccountant(events).epsilon(0), entry)
    total = dp.PureDP(0)
    for _ in range(inputs["k"]):
        total += dp.PureDP(inputs["epsilon"])
    assert total == dp.PureDP(entry["expected"])


def advanced_composition(entry: Entry, inputs: Inputs) -> None:
    events = [accounting.ApproxEvent(inputs["epsilon"], inputs["delta0"])] * inputs["k"]
    close(accounting.AdvancedAccountant(events).epsilon(inputs["delta_prime"]), entry)


def optimal_closed_form(entry: Entry, inputs: Inputs) -> None:
    events = [accounting.ApproxEvent(inputs["epsilon"], inputs["delta0"])] * inputs["k"]
    close(accounting.ClosedFormAccountant(events).epsilon(inputs["delta_prime"]), entry)


def optimal_composition(entry: Entry, inputs: Inputs) -> None:
    events = [accounting.ApproxEvent(inputs["epsilon"], inputs["delta0"])] * inputs["k"]
    found = accounting.OptimalAccountant(events).epsilon(inputs["delta"])
    assert found >= entry["expected"] * (1 - 1e-15)
    close(found, entry)


def optimal_composition_on_its_grid(entry: Entry, inputs: Inputs) -> None:
    """The theorem speaks of (k - 2 i) epsilon only: that is enough, and the one before is not."""
    epsilon, k = exact(inputs["epsilon"]), inputs["k"]
    counted = accounting.OptimalAccountant([accounting.ApproxEvent(epsilon, 0)] * k)
    grid = [(k - 2 * i) * epsilon for i in range(k // 2 + 1)]
    enough = [e for e in grid if counted.delta(e) <= inputs["delta"]]
    assert min(enough) == exact(entry["expected"])


def laplace_divergence(entry: Entry, inputs: Inputs) -> None:
    event = accounting.LaplaceEvent(inputs["scale"])
    found = accounting.RenyiAccountant([event]).curve(np.array([inputs["order"]]))
    close(float(found[0]), entry)


def gaussian_divergence(entry: Entry, inputs: Inputs) -> None:
    event = accounting.GaussianEvent(inputs["sigma"])
    found = accounting.RenyiAccountant([event]).curve(np.array([inputs["order"]]))
    close(float(found[0]), entry)


def loss_of_laplaces(entry: Entry, inputs: Inputs) -> None:
    """The reference is an upper bound on a grid of 1e-5; ours is nearer to the truth."""
    event = accounting.LaplaceEvent(inputs["scale"], inputs["sensitivity_l1"])
    found = accounting.PrivacyLossAccountant([event] * inputs["k"]).epsilon(inputs["delta"])
    assert found <= entry["expected"] * (1 + 1e-7)
    close(found, entry, rel=2e-6)


def loss_of_gaussians(entry: Entry, inputs: Inputs) -> None:
    delta_at_the_exact_epsilon(entry, inputs)
    events = [accounting.GaussianEvent(inputs["sigma"], inputs["sensitivity_l2"])] * inputs["k"]
    for kind in (accounting.GaussianDPAccountant, accounting.PrivacyLossAccountant):
        found = kind(events).epsilon(inputs["delta"])
        assert found >= entry["expected"] * (1 - 1e-15)
        close(found, entry, rel=1e-7)


def loss_of_a_mixture(entry: Entry, inputs: Inputs) -> None:
    noise = inputs["laplace"], inputs["gaussian"]
    events: list[AnyEvent] = [accounting.LaplaceEvent(noise[0]["scale"])] * noise[0]["k"]
    events += [accounting.GaussianEvent(noise[1]["sigma"])] * noise[1]["k"]
    close(accounting.PrivacyLossAccountant(events).epsilon(inputs["delta"]), entry, rel=1e-5)


def laplace_delta(entry: Entry, inputs: Inputs) -> None:
    counted = accounting.PrivacyLossAccountant([accounting.LaplaceEvent(inputs["scale"])])
    found = counted.delta(inputs["epsilon"])
    assert found >= entry["expected"] * (1 - 1e-15)
    close(found, entry, rel=1e-7)


def tight_conversion(entry: Entry, inputs: Inputs) -> None:
    counted = accounting.ZCDPAccountant([accounting.ZCDPEvent(inputs["rho"])])
    close(counted.epsilon(inputs["delta"]), entry)
    found = log_delta_zcdp(exact(inputs["rho"]), Fraction(entry["expected"]))
    assert found == pytest.approx(math.log(inputs["delta"]), abs=1e-7)


def loose_conversion(entry: Entry, inputs: Inputs) -> None:
    """An upper bound: ours is tighter."""
    counted = accounting.LooseZCDPAccountant([accounting.ZCDPEvent(inputs["rho"])])
    close(counted.epsilon(inputs["delta"]), entry)
    found = log_delta_zcdp(exact(inputs["rho"]), Fraction(entry["expected"]))
    assert found < math.log(inputs["delta"])


def rho_for_epsilon(entry: Entry, inputs: Inputs) -> None:
    found = largest_rho(exact(inputs["epsilon"]), math.log(inputs["delta"]))
    assert found <= entry["expected"] * (1 + 1e-9)
    close(float(found), entry)


def pure_to_zcdp(entry: Entry, inputs: Inputs) -> None:
    law = DiscreteLaplace.for_pure(Fraction(1), exact(inputs["epsilon"]))
    assert law.rho(Fraction(1)) == exact(entry["expected"])


def selection_to_zcdp(entry: Entry, inputs: Inputs) -> None:
    law = Exponential.for_pure(Fraction(2), exact(inputs["epsilon"]))
    assert law.rho(Fraction(4)) == exact(entry["expected"])


def group_privacy(entry: Entry, inputs: Inputs) -> None:
    """Noise for one row costs so much for a person who owns several."""
    law = DiscreteLaplace.for_pure(Fraction(1), exact(inputs["epsilon"]))
    assert law.epsilon(Fraction(inputs["group"])) == exact(entry["expected"])


def group_delta(entry: Entry, inputs: Inputs) -> None:
    """The general theorem is an upper bound on what Gaussian noise costs a group."""
    epsilon, delta, k = exact(inputs["epsilon"]), exact(inputs["delta"]), inputs["group"]
    law = DiscreteGaussian.for_approx(1, Fraction(FINE**2), epsilon, delta)
    assert delta < law.delta(k * epsilon, 1, Fraction(k * FINE) ** 2) <= entry["expected"]


# ------------------------------------------------------------------------------- selections


def selection(entry: Entry, inputs: Inputs) -> tuple[Exponential | PermuteAndFlip, list[int]]:
    """The mechanism, and scores as integers."""
    scores = inputs["scores"] if "scores" in inputs else [0, inputs["gap"]]
    units = 2 if any(s % 1 for s in scores) else 1
    reach = Fraction(inputs["sensitivity"]) * units * (1 if inputs.get("monotonic") else 2)
    kind = PermuteAndFlip if entry["name"].startswith("permute") else Exponential
    return kind.for_pure(reach, exact(inputs["epsilon"])), [int(s * units) for s in scores]


def law_of(mechanism: Exponential | PermuteAndFlip, scores: Sequence[int]) -> list[float]:
    """Probabilities, for permute-and-flip by the sets of candidates whose coins succeed."""
    weights = [math.exp((s - max(scores)) / mechanism.scale) for s in scores]
    if isinstance(mechanism, Exponential):
        return [w / math.fsum(weights) for w in weights]
    law = [0.0] * len(weights)
    for heads in product((False, True), repeat=len(weights)):
        chance = math.prod(w if h else 1 - w for w, h in zip(weights, heads, strict=True))
        for i, won in enumerate(heads):
            law[i] += chance / sum(heads) if won and chance else 0.0
    return law


def drawn_like(
    mechanism: Exponential | PermuteAndFlip | ReportNoisyMax, scores: list[int], law: list[float]
) -> None:
    """Choices as they are drawn are plausible under that law."""
    n, source = 3_000, Seeded(2)
    lines = np.tile(np.array(scores), (n, 1))
    found = Counter(choose_each(mechanism.kernel_law, lines, source).tolist())
    chi_square = sum((found[i] - p * n) ** 2 / (p * n) for i, p in enumerate(law))
    assert chi_square < 14  # one in a thousand, for three candidates


def selection_probabilities(entry: Entry, inputs: Inputs) -> None:
    mechanism, scores = selection(entry, inputs)
    law = law_of(mechanism, scores)
    assert law == pytest.approx(entry["expected"], rel=entry["tolerance"])
    drawn_like(mechanism, scores, law)


def best_of_two(entry: Entry, inputs: Inputs) -> None:
    mechanism, scores = selection(entry, inputs)
    law = law_of(mechanism, scores)
    close(law[1], entry)
    drawn_like(mechanism, scores, law)


def noisy_max(entry: Entry, inputs: Inputs) -> None:
    """Scores on a fine grid, as the reference has continuous noise."""
    scores = [s * 2**20 for s in inputs.get("scores", [0, int(inputs.get("gap", 0))])]
    mechanism = ReportNoisyMax.for_pure(
        Fraction(2 * inputs["sensitivity"] * 2**20), exact(inputs["epsilon"])
    )
    assert mechanism.scale == inputs["laplace_scale"] * 2**20
    expected = entry["expected"]
    drawn_like(mechanism, scores, expected if len(scores) > 2 else [1 - expected, expected])


def planned_selection(entry: Entry, inputs: Inputs) -> None:
    """Scores of one sign move together when a row comes, and apart when one changes."""
    adjacency: Any = "add-remove" if inputs["monotonic"] else "change-one"
    text = 'pl.col("e").dp_argmax(mechanism="exponential")'
    found = release(text, dp.Rows(adjacency), epsilon=exact(inputs["epsilon"]))
    assert found.law == selection(entry, inputs)[0]
    selection_probabilities(entry, inputs)


def randomised_response(entry: Entry, inputs: Inputs) -> None:
    """A report is the truth, but with probability p any category."""
    kind: Any = getattr(mechanisms, "RandomizedResponse", None)
    if kind is None:
        pytest.skip("there is no randomised response")
    law = kind(Fraction(entry["expected"]), inputs["num_buckets"])
    assert 1 - law.truthful == pytest.approx(inputs["noise_parameter"], rel=1e-9)


def expected_error(entry: Entry, inputs: Inputs) -> None:
    mechanism, scores = selection(entry, inputs)
    best = max(inputs["scores"])
    law = zip(law_of(mechanism, scores), inputs["scores"], strict=True)
    close(math.fsum(p * (best - score) for p, score in law), entry)


# ---------------------------------------------------------------------------- sensitivities


def sensitivity_of_limits(entry: Entry, inputs: Inputs) -> None:
    """Of one individual's rows under the limits that are given."""
    frame: Any = dp.Session(epsilon=1).protect(pl.LazyFrame(schema=SCHEMA), "id")
    if "max_groups" in inputs:
        frame = frame.limit_groups(inputs["max_groups"], by="g")
        frame = frame.limit_rows(inputs["max_rows_per_group"], by="g")
        if "max_rows" in inputs:
            frame = frame.limit_rows(inputs["max_rows"])
        frame = frame.group_by("g", keys=[str(i) for i in range(20)])
    match entry["name"]:
        case "sensitivity_grouped_sum":
            made = frame.agg(pl.col("x").dp_sum(tuple(inputs["bounds"])))
        case "sensitivity_grouped_count":
            made = frame.dp_count()
        case _:  # of individuals, whatever their rows
            made = frame.limit_rows(inputs["max_rows"]).agg(pl.col("id").dp_n_unique())
    (found,) = made.plan(epsilon=1).releases
    assert [found.sensitivity.l1, found.sensitivity.l2] == pytest.approx(
        entry["expected"], rel=entry["tolerance"]
    )


def noisy_threshold(entry: Entry, inputs: Inputs) -> None:
    """On integers the threshold is whole, and the noise reaches it a little more easily."""
    groups = inputs.get("max_groups", 1)
    scale = groups / Fraction(str(inputs["epsilon"]))
    delta = Fraction(str(inputs["delta"])) / groups
    found = NoisyThreshold.for_delta(DiscreteLaplace(scale), 1, delta)
    assert 0 <= found.threshold - entry["expected"] <= 2
    q = math.exp(-1 / scale)
    reached = [q ** (at - 1) / (1 + q) for at in (found.threshold, found.threshold - 1)]
    assert reached[0] <= delta < reached[1]  # the least that keeps delta


def appears(entry: Entry, inputs: Inputs) -> None:
    groups = inputs["max_groups"]
    law = TruncatedGeometric(
        Fraction(str(inputs["epsilon"])) / groups, Fraction(str(inputs["delta"])) / groups
    )
    chance = entry["expected"]
    assert law.size_at(chance * (1 - 1e-6)) == inputs["n_users"]
    assert law.size_at(chance * (1 + 1e-6)) == inputs["n_users"] + 1


def appears_from(entry: Entry, inputs: Inputs) -> None:
    """Both formulas give the size with an even chance here."""
    law = TruncatedGeometric(Fraction(str(inputs["epsilon"])), Fraction(str(inputs["delta"])))
    assert law.size_at(Fraction(1, 2)) == entry["expected"]


def sensitivity(entry: Entry, inputs: Inputs) -> None:
    adjacency: Any = "add-remove" if inputs["neighboring"] == "add_remove" else "change-one"
    unit = dp.Rows(adjacency, contributions=inputs.get("max_rows", 1))
    steps, part = "f", None
    match entry["name"]:
        case "sensitivity_count" | "sensitivity_count_unfiltered":
            text = "dp.count()"
        case "sensitivity_count_filtered":
            text, steps = "dp.count()", 'f.filter(pl.col("x") > 0)'
        case "sensitivity_sum":
            text = f'pl.col("x").dp_sum({tuple(inputs["bounds"])})'
        case "sensitivity_histogram_disjoint_bins":
            text = 'pl.col("e").dp_histogram()'
        case "sensitivity_centered_sum":
            text, part = f'pl.col("x").dp_mean({tuple(inputs["bounds"])})', "mean.sum"
        case _:
            raise AssertionError(f"no expression for {entry['name']}")
    found = release(text, unit, part, steps=steps, epsilon=1).sensitivity
    assert [found.l1, found.l2] == pytest.approx(entry["expected"], rel=entry["tolerance"])


def mean_of_known_size(entry: Entry, inputs: Inputs) -> None:
    """The number of rows is public and free, and the mean moves by the sum's share."""
    text, unit = f'pl.col("x").dp_mean({tuple(inputs["bounds"])})', dp.Rows("change-one")
    steps = 'f.with_columns(pl.col("x").fill_null(0))'
    assert release(text, unit, "mean.count", steps=steps, epsilon=1).mechanism == "none"
    found = release(text, unit, "mean.sum", steps=steps, epsilon=1)
    assert [
        found.sensitivity.l1 / inputs["n"],
        found.sensitivity.l2 / inputs["n"],
    ] == pytest.approx(entry["expected"], rel=entry["tolerance"])
    assert found.cost == dp.PureDP(1)


CHECKS: dict[str, Callable[[Entry, Inputs], None]] = {
    "laplace_scale_count": laplace_scale_of_a_count,
    "laplace_scale_count_max_rows": laplace_scale_of_a_count,
    "laplace_scale_grouped_count_L0_Linf": laplace_scale_of_a_count,
    "laplace_scale_pipelinedp_count": laplace_scale_of_a_count,
    "laplace_scale_sum_add_remove": laplace_scale_of_a_sum,
    "laplace_scale_sum_0_200_k20": laplace_scale_of_a_sum,
    "laplace_scale_pipelinedp_mean_normsum": laplace_scale_of_a_normalised_sum,
    "laplace_scale_mean_centered_sum_eps_half": laplace_scales_of_a_mean,
    "laplace_noise_std_pipelinedp": laplace_deviation,
    "gaussian_sigma_classic": classic_sigma_is_not_needed,
    "gaussian_sigma_analytic": analytic_sigma,
    "gaussian_sigma_analytic_sens": analytic_sigma,
    "gaussian_epsilon_exact": delta_at_the_exact_epsilon,
    "gaussian_delta_exact": delta_of_a_gaussian,
    "pld_gaussian_epsilon": loss_of_gaussians,
    "pld_laplace_epsilon": loss_of_laplaces,
    "pld_mixed_epsilon": loss_of_a_mixture,
    "laplace_delta_exact": laplace_delta,
    "laplace_rdp": laplace_divergence,
    "gaussian_rdp": gaussian_divergence,
    "advanced_composition_DR_3.20": advanced_composition,
    "kov_closed_form_3.4": optimal_closed_form,
    "kov_optimal_exact": optimal_composition,
    "kov_optimal_exact_grid": optimal_composition_on_its_grid,
    "zcdp_gaussian_sigma_squared": zcdp_sigma,
    "discrete_gaussian_delta": delta_of_a_discrete_gaussian,
    "discrete_gaussian_pmf0": mass_at_zero,
    "discrete_laplace_pmf0": mass_at_zero,
    "discrete_gaussian_two_sided_tail": two_sided_tail,
    "discrete_gaussian_variance": discrete_variance,
    "discrete_laplace_variance": discrete_variance,
    "discrete_laplace_accuracy_int": discrete_accuracy,
    "discrete_gaussian_accuracy_int": discrete_accuracy,
    "laplace_accuracy": continuous_accuracy,
    "gaussian_accuracy": continuous_accuracy,
    "laplace_simultaneous_accuracy": continuous_accuracy,
    "opendp_laplacian_scale_to_accuracy": continuous_accuracy,
    "opendp_gaussian_scale_to_accuracy": continuous_accuracy,
    "opendp_discrete_laplacian_scale_to_accuracy": discrete_accuracy_of_opendp,
    "opendp_discrete_gaussian_scale_to_accuracy": discrete_accuracy_of_opendp,
    "basic_composition": basic_composition,
    "zcdp_to_approxdp_tight": tight_conversion,
    "zcdp_to_approxdp_loose": loose_conversion,
    "zcdp_rho_for_eps_delta_tight": rho_for_epsilon,
    "pure_to_zcdp": pure_to_zcdp,
    "exponential_mechanism_zcdp": selection_to_zcdp,
    "group_privacy_pure": group_privacy,
    "group_privacy_approx_delta": group_delta,
    "exponential_mechanism_probs": planned_selection,
    "exponential_mechanism_probs_monotonic": planned_selection,
    "report_noisy_max_gumbel_probs": selection_probabilities,
    "report_noisy_max_laplace_probs": noisy_max,
    "report_noisy_max_laplace_two_candidates": noisy_max,
    "permute_and_flip_probs": selection_probabilities,
    "exponential_mechanism_two_candidates": best_of_two,
    "permute_and_flip_two_candidates": best_of_two,
    "exponential_mechanism_expected_error": expected_error,
    "permute_and_flip_expected_error": expected_error,
    "randomized_response_epsilon": randomised_response,
    "partition_selection_laplace_threshold": noisy_threshold,
    "partition_selection_geometric_threshold_tumult": noisy_threshold,
    "partition_selection_optimal_keep_probability": appears,
    "partition_selection_optimal_n1": appears_from,
    "partition_selection_optimal_min_users_keep_half": appears_from,
    "sensitivity_count": sensitivity,
    "sensitivity_count_filtered": sensitivity,
    "sensitivity_count_unfiltered": sensitivity,
    "sensitivity_sum": sensitivity,
    "sensitivity_histogram_disjoint_bins": sensitivity,
    "sensitivity_centered_sum": sensitivity,
    "sensitivity_mean_known_n": mean_of_known_size,
    "sensitivity_grouped_sum": sensitivity_of_limits,
    "sensitivity_grouped_count": sensitivity_of_limits,
    "sensitivity_count_distinct_users": sensitivity_of_limits,
}

LEFT_OUT = {i: reason for reason, ids in NOT_YET.items() for i in ids}
APPLY = [entry for entry in ENTRIES if entry["id"] not in LEFT_OUT]


def test_every_reference_is_checked_or_left_out_for_a_reason() -> None:
    ids = [entry["id"] for entry in ENTRIES]
    assert len(set(ids)) == len(ids) == 127
    assert set(LEFT_OUT) <= set(ids)
    assert sum(map(len, NOT_YET.values())) == len(LEFT_OUT)
    assert {entry["name"] for entry in APPLY} == set(CHECKS)
    assert len(APPLY) + len(LEFT_OUT) == len(ENTRIES)
    for entry in ENTRIES:
        assert entry["source"]
        assert entry["kind"] in ("rel", "abs")


@pytest.mark.parametrize("entry", APPLY, ids=lambda e: f"{e['id']} {e['name']}")
def test_reference_value(entry: Entry) -> None:
    CHECKS[entry["name"]](entry, entry["inputs"])


def test_what_is_left_out_does_not_exist() -> None:
    """Whoever adds one of these checks its references above."""
    with pytest.raises((TypeError, dp.UnsupportedOperation)):
        dp.Identifier("g", "change-one")  # type: ignore[call-arg]
