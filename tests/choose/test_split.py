"""Shares of a spend: exact, in proportion, and nothing left over."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.choose import split
from dpframe.core.budget import Budget

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
