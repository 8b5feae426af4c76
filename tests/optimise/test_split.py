"""Shares of a spend: exact, in proportion, and nothing left over."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.core.budget import Budget
from dpframe.optimise.mechanisms import least_error_weights, split

SPENDS: list[Budget] = [
    dp.PureDP("0.1"),
    dp.ApproxDP("1/3", "1e-8"),
    dp.ZCDP("0.7"),
    dp.ZCDP("0.7", "1e-9"),
]
weights = st.lists(st.fractions(min_value=0, max_value=100), min_size=1, max_size=12)


@pytest.mark.parametrize("spend", SPENDS, ids=str)
@given(weights=weights)
def test_shares_add_up_exactly(spend: Budget, weights: list[Fraction]) -> None:
    """A split that rounds up somewhere refuses itself; a peer's did."""
    shares = split(spend, weights)
    assert len(shares) == len(weights)
    total = spend.of(Fraction(0))
    for share in shares:
        assert type(share) is type(spend)
        total = total + share
    assert total == (spend if any(weights) else spend.of(Fraction(0)))


@pytest.mark.parametrize("spend", SPENDS, ids=str)
@given(weights=weights)
def test_shares_are_in_proportion(spend: Budget, weights: list[Fraction]) -> None:
    shares = split(spend, weights)
    for a, x in zip(shares, weights, strict=True):
        assert a.is_zero == (x == 0)
        for b, y in zip(shares, weights, strict=True):
            assert a.main * y == b.main * x
            assert a.slack * y == b.slack * x


def test_thirds_of_a_tenth() -> None:
    shares = split(dp.PureDP(0.1), [Fraction(1)] * 3)
    assert [share.main for share in shares] == [Fraction(1, 30)] * 3
    assert not split(dp.PureDP(1), [])


impacts = st.lists(st.fractions(min_value="1/1000", max_value=1000), min_size=1, max_size=6)


@pytest.mark.parametrize("shares_rho", [False, True])
@given(impacts=impacts, moves=st.lists(st.floats(0.5, 2), min_size=6, max_size=6))
def test_no_other_weights_have_less_error(
    impacts: list[Fraction], moves: list[float], shares_rho: bool
) -> None:
    def error(weights: list[float]) -> float:
        power, whole = 1 if shares_rho else 2, sum(weights)
        return sum(float(a) / (w / whole) ** power for a, w in zip(impacts, weights, strict=True))

    best = [float(w) for w in least_error_weights(impacts, shares_rho=shares_rho)]
    other = [w * m for w, m in zip(best, moves, strict=False)]
    assert error(best) <= error(other) * (1 + 1e-9)


def test_roots_are_whole_where_they_are() -> None:
    cubes = [Fraction(8), Fraction(1, 27), Fraction(1), Fraction(0), Fraction(1, 10**30)]
    found = least_error_weights(cubes, shares_rho=False)
    assert found[:1] + found[2:4] == [2, 1, 0]
    assert found[1] == pytest.approx(1 / 3, abs=1e-7)
    assert 0 < found[4] < 1e-6  # what costs something gets something
    assert least_error_weights([Fraction(9, 4)], shares_rho=True) == [Fraction(3, 2)]


@given(st.integers(0, 2**200))
def test_cube_roots_are_rounded_down(value: int) -> None:
    root = least_error_weights([Fraction(value, 2**72)], shares_rho=False)[0] * 2**24
    assert root == 1 or root**3 <= value < (root + 1) ** 3 or not value
