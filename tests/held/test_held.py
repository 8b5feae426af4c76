"""What is promised of errors holds as often as it is said to: intervals and accuracies of each kind
of release, over 3,000 numbers and more whose noise is independent. `python -m tests.held` prints
what comes out.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.audit.test_audit import seeded
from tests.held import CASES, KINDS
from tests.held.choices import by_weights_near
from tests.held.trial import LEAST, SPENDS, shares

QUICK = (
    "count, sums, mean and variance",
    "`limit_norm(1)`",
    '`per="unit"`',
    "ratios",
    "`shrink=True`, means that differ widely",
    "count, sum and mean by a roll-up",
    "related tables",
    "histogram with a count",
    "ranges of a histogram with a count",
    "ranges of a distribution function",
    "numbers of groups found by them, far above",
    "two winners by a noisy table, worst rows",
    "median, worst rows",
)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "spend"), CASES)
def test_it_holds_as_often_as_it_says(
    name: str, spend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one seed; of others a share of 0.95 of 3,000 is found below 0.94 once in 150."""
    seeded(monkeypatch, 1)
    kind = KINDS[name]
    found = shares(kind.make(SPENDS[spend]), kind.runs)
    off = {p: share for p, share in found.items() if not LEAST <= share <= kind.most(p)}
    assert not off


@pytest.mark.parametrize("name", QUICK)
def test_it_holds_nearly_as_often_as_it_says(name: str) -> None:
    """Of 150 numbers a share of 0.95 is found below 0.87 once in 10,000."""
    kind = KINDS[name]
    assert min(shares(kind.make(SPENDS[kind.spends[-1]]), 3).values()) > 0.87


def test_kinds_that_hold_more_often_say_why() -> None:
    for kind in KINDS.values():
        assert all(most > 0.97 and why for most, why in kind.worst.values())


def test_numbers_near_the_threshold_by_which_groups_appear_are_off_more_often() -> None:
    """That is no interval's promise: the plan warns of it."""
    plan, once = by_weights_near(SPENDS["delta"])
    assert any("their intervals hold less often than they say" in said for said in plan.warnings)
    held = np.concatenate([held for _ in range(12) for held in once().values()])
    assert held.size > 10
    assert held.mean() < 0.8
