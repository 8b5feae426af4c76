"""The second judge computes how often all draws together reveal more than an epsilon, and finds
nothing that the kernel accepts and should not.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe.kernel import Plan, losses, verify
from dpframe.kernel import plan as p
from tests.kernel.edits import EDITS, edited, is_accepted, run
from tests.kernel.generate import at_losses
from tests.kernel.mutate import show
from tests.kernel.oracle import Hints, World, judge
from tests.kernel.pairs import Pair, centre_pair, delta_of, noise_pairs, pair_of, report_pair
from tests.kernel.test_oracle import FOUND, HONEST, ROUGH

F = Fraction
Chances = Sequence[tuple[Fraction, Fraction]]

COUNTS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=5)


def as_chances(counts: Sequence[tuple[int, int]]) -> Chances:
    """The chances of results that occur so often; one more result that both have."""
    one, other = (sum(side) + 1 for side in zip(*counts, strict=True))
    return [*((F(a, one), F(b, other)) for a, b in counts), (F(1, one), F(1, other))]


def as_pair(chances: Chances) -> Pair:
    logs = [[math.log(c) if c else -math.inf for c in side] for side in zip(*chances, strict=True)]
    return pair_of(*logs)


@settings(max_examples=25)
@given(st.lists(COUNTS, min_size=1, max_size=3), st.fractions(1, 5))
def test_no_more_is_found_than_is_lost_and_hardly_less(
    counts: list[list[tuple[int, int]]], grown: Fraction
) -> None:
    draws = [as_chances(each) for each in counts]
    exact = max(
        sum(
            (
                max(
                    F(),
                    math.prod(c[s] for c in result) - grown * math.prod(c[1 - s] for c in result),
                )
                for result in product(*draws)
            ),
            F(),
        )
        for s in (0, 1)
    )
    found = delta_of([as_pair(draw) for draw in draws], math.log(grown))
    assert found <= exact
    assert found >= exact - F(1, 500)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_noise_that_is_moved_loses_as_its_tails_say(epsilon: float) -> None:
    scale, move = 3, 2
    stairs = noise_pairs(p.Laplace(F(scale), 1), (move,))
    q = math.exp(-1 / scale)
    # all numbers below half a move are at least as likely as exp(epsilon) times the moved ones
    below = [math.tanh(1 / (2 * scale)) * q ** abs(x) for x in range(-200, 200)]
    moved = [math.tanh(1 / (2 * scale)) * q ** abs(x - move) for x in range(-200, 200)]
    exact = sum(max(0.0, a - math.exp(epsilon) * b) for a, b in zip(below, moved, strict=True))
    assert delta_of(stairs, epsilon) == pytest.approx(exact, rel=1e-6, abs=1e-12)
    assert delta_of(stairs, epsilon) <= exact + 1e-15
    wide = noise_pairs(p.Gaussian(F(10**6)), (1000,))
    normal = (math.erfc((epsilon - 0.5) / 2**0.5), math.erfc((epsilon + 0.5) / 2**0.5))
    assert delta_of(wide, epsilon) == pytest.approx(
        (normal[0] - math.exp(epsilon) * normal[1]) / 2, rel=1e-4
    )


@pytest.mark.parametrize("variance", [F(1, 4), F(1), F(9)])
def test_noise_on_a_number_that_moves_by_one_loses_what_its_law_says(variance: Fraction) -> None:
    """Against the sum over all whole numbers."""
    epsilon = F(1)
    v, far = float(variance), math.ceil(40 * math.sqrt(variance)) + 2
    weights = [math.exp(-x * x / (2 * v)) for x in range(-far, far + 1)]
    whole = math.fsum(weights)
    exact = math.fsum(
        max(0.0, a - math.exp(epsilon) * b) / whole
        for a, b in zip(weights, [*weights[1:], 0.0], strict=True)
    )
    found = float(losses.losses_delta(frozenset({(losses.Wholes(variance), 1)}), epsilon))
    assert exact <= found <= 1.01 * exact


LAWS: Sequence[tuple[p.Law, tuple[int, ...]]] = [
    (p.Laplace(F(5, 2), 1), (3,)),
    (p.Laplace(F(5, 2), 1025), (-3,)),
    (p.Staircase(F(1, 2), 3, 2), (4,)),
    (p.Box(F(1, 2), (4,), 1, ()), (3,)),
    (p.Box(F(1, 2), (4,), 64, ()), (3,)),
    (p.Box(F(3, 2), (2, 3), 2, ()), (-1, 3)),
    (p.Gaussian(F(9, 2)), (2,)),
]


@pytest.mark.parametrize(("law", "moves"), LAWS)
def test_chances_of_noise_add_up_and_are_mirrored(law: p.Law, moves: tuple[int, ...]) -> None:
    ((one, other),) = noise_pairs(law, moves)
    assert math.fsum(map(math.exp, one)) == pytest.approx(1, abs=1e-9)
    assert math.fsum(map(math.exp, other)) == pytest.approx(1, abs=1e-9)
    assert np.allclose(one, other[::-1], rtol=1e-9)
    assert max(one - other) > 0


def test_reports_of_two_rows_are_counted() -> None:
    found = report_pair(p.Response(F(1)), 3, {0: 2}, {0: 1, 2: 1})
    assert found is not None
    one, other = found
    assert len(one) == 6
    assert math.fsum(map(math.exp, one)) == pytest.approx(1)
    # both report cell 0: twice truly, or once truly and once not
    assert max(one - other) == pytest.approx(1)
    assert report_pair(p.Response(F(1)), 3, {0: 2}, {0: 1}) is None


def test_a_centre_reveals_no_more_than_its_box() -> None:
    law = p.Box(F(1, 2), (1, 2, 4), 2, ((0, 1, 2),))
    pair = centre_pair(law, 3)
    assert pair is not None
    assert math.fsum(map(math.exp, pair[0])) == pytest.approx(1)
    box = replace(law, arches=())
    assert 0 < delta_of([pair], 0.1) < delta_of(noise_pairs(box, (1, 2, 4)), 0.1)
    assert delta_of([pair], 3 * 0.5 / 2) == 0


TIGHT: dict[str, float] = {
    "map": 0.2,
    "meet": 0.2,
    "a fine grid": 0.2,
    "matrix": 0.2,
    "staircase": 0.2,
    "reports": 0.2,
    "gaussian": 0.2,
    "laplace in rho": 0.2,
    "box in rho": 0.2,
    "choice of cells": 0.2,
    "rounds": 0.2,
    "noisy rank in rho": 0.2,
    "groups by weights": 2,
    "the rule": 2,
    "a threshold": 2,
}
"""Plans, and how many deviations of their losses lie below the epsilon, about."""

KNOWN = {**HONEST, **ROUGH, **{name: plan for name, (plan, _) in FOUND.items()}}
LOOSE = {"staircase", "reports", "matrix", "gaussian", "rounds"}
"""Plans of which the kernel knows less than all."""
ALONE = {"groups by weights", "the rule", "a threshold"}
"""Plans whose worst individual is alone in a group: noise matters elsewhere."""


@pytest.mark.parametrize("name", TIGHT)
def test_the_judge_convicts_and_the_kernel_refuses(name: str) -> None:
    plan = at_losses(replace(KNOWN[name], measure="rho"), TIGHT[name])
    honest = judge(plan, 15, 25)
    assert not honest.unsafe
    assert honest.share > (0.4 if name in LOOSE else 0.99)

    def convicted(changed: Plan) -> bool:
        return World(changed, Hints(changed), honest.seed, honest.changes).loss()[0] > 1

    share = F(honest.share)
    lies = [replace(plan, delta=plan.delta * share * F(99, 100))]
    for edit in ("half the noise", "a draw that is not counted") if name not in ALONE else ():
        changed = edited(plan, EDITS[edit])
        assert changed is not None
        lies.append(replace(changed, delta=changed.delta * max(share, F(1, 2))))
    for lie in lies:
        assert convicted(lie)
        assert not is_accepted(lie)


def require_refused_where_convicted(number: int, seed: int, worlds: int, changes: int) -> None:
    outcome = run(number, seed, worlds, changes)
    assert not outcome.wrong, "\n\n".join(
        f"{name}, {share:.6g} of its delta\n{show(plan)}" for name, plan, share in outcome.wrong[:5]
    )
    assert outcome.convicted.total() > number
    assert max(outcome.shares) > 0.99


def test_the_kernel_refuses_what_the_judge_convicts() -> None:
    require_refused_where_convicted(3, 2, 8, 10)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_the_kernel_refuses_all_that_the_judge_convicts(seed: int) -> None:
    require_refused_where_convicted(100, seed, 30, 60)


def weaker(loss: losses.Loss) -> losses.Loss:
    """A loss that reveals about half as much."""
    match loss:
        case losses.Reported(epsilon) | losses.Ranged(epsilon):
            return replace(loss, epsilon=epsilon / 2)
        case losses.Geometrics(h):
            return replace(loss, h=h / 2)
        case losses.Normals(d_squared):
            return replace(loss, d_squared=d_squared / 4)
        case losses.Wholes(sigma_squared):
            return replace(loss, sigma_squared=sigma_squared * 4)
    raise AssertionError(loss)


def understated(known: frozenset[tuple[losses.Loss, int]], epsilon: Fraction) -> Fraction:
    """The delta of losses half as large."""
    return losses.losses_delta(frozenset((weaker(loss), n) for loss, n in known), epsilon)


def counted_once(known: frozenset[tuple[losses.Loss, int]], epsilon: Fraction) -> Fraction:
    """The delta of each loss once."""
    return losses.losses_delta(frozenset((loss, 1) for loss, _ in known), epsilon)


def never_fails(numbers: object, start: Fraction) -> Fraction:
    """The probability that no draw fails, of a kernel that forgets them."""
    return start


MISTAKES: list[tuple[str, object, str]] = [
    *(("losses_delta", understated, name) for name in TIGHT if name not in ALONE),
    ("losses_delta", counted_once, "map"),
    ("losses_delta", counted_once, "rounds"),
    *(("prod", never_fails, name) for name in ("the rule", "a threshold")),
]
"""Mistakes in the kernel, and plans for which it then states too little."""


@pytest.mark.parametrize(("function", "wrong", "name"), MISTAKES)
def test_the_judge_notices_a_kernel_that_is_wrong(
    monkeypatch: pytest.MonkeyPatch, function: str, wrong: object, name: str
) -> None:
    plan = replace(KNOWN[name], measure="rho")
    if wrong is counted_once:
        plan = replace(plan, draws=plan.draws * 2, cost=2 * plan.cost)
    monkeypatch.setattr(sys.modules["dpframe.kernel.verify"], function, wrong)
    stated = at_losses(plan, TIGHT[name])
    assert verify(stated).delta == stated.delta
    assert judge(stated, 20, 40).unsafe
