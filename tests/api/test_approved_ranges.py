"""What is said of a plan that an approval of a range does not cover."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from fractions import Fraction

import polars as pl
import pytest

import dpframe as dp
from dpframe.api.payer import nearest_approval, planned
from dpframe.ledger.approvals import Approval, read_range
from dpframe.plan import PlanTypical
from dpframe.plan.document import earlier_fingerprint, template_fingerprint
from tests.plan.documents import visits


def plan(day: date, epsilon: str = "0.5") -> dp.Plan:
    given = dp.parameter("day", pl.Date, default=day)
    chosen = visits().drop("tags").filter(pl.col("day") >= given).limit_rows(2)
    return chosen.dp_count().plan(epsilon=epsilon)


MONDAY, TUESDAY = plan(date(2026, 11, 23)), plan(date(2026, 11, 24))


def approval(found: dp.Plan, *, ranged: bool, fingerprint: str | None = None) -> Approval:
    values = read_range("2026-11-01..2026-11-30", found.parameters[0].kind)
    assert values is not None
    allowed = (("day", values),) if ranged else ()
    words = {"day": values.words}
    made = template_fingerprint(found, words) if ranged else found.fingerprint
    time = datetime(2026, 11, 1, tzinfo=UTC)
    by = ("default", fingerprint or made, "Ann", time, found.to_json(None), None)
    return Approval(*by, id="1", number=1, allowed=allowed)


def test_values_that_a_range_covers_are_no_difference() -> None:
    other = plan(date(2026, 11, 24), "0.6")
    (_, words) = nearest_approval(other, [approval(MONDAY, ranged=True)]) or (None, "")
    assert "epsilon of the plan 0.5 -> 0.6" in words
    assert "2026-11-2" not in words
    (_, words) = nearest_approval(other, [approval(MONDAY, ranged=False)]) or (None, "")
    assert "2026-11-23" in words
    (_, words) = nearest_approval(plan(date(2026, 12, 1)), [approval(MONDAY, ranged=True)]) or (
        None,
        "",
    )
    assert "2026-12-01" in words


def of_before(found: dp.Plan, *, ranged: bool) -> Approval:
    """As the edition before recorded it: its documents have neither types nor a physical plan."""
    stated = replace(found, columns=None, physical=None)
    made = earlier_fingerprint(stated)
    if ranged:
        words = {"day": approval(found, ranged=True).allowed[0][1].words}
        made = template_fingerprint(stated, words, earlier=True)
    return replace(approval(stated, ranged=ranged), fingerprint=made)


@pytest.mark.parametrize("ranged", [False, True])
def test_an_approval_of_the_edition_before_counts_for_what_its_document_says(ranged: bool) -> None:
    earlier = of_before(MONDAY, ranged=ranged)
    covered = planned(MONDAY).covered(earlier)
    assert covered is not None
    assert earlier.allows(MONDAY.fingerprint, covered)
    assert not earlier.allows(MONDAY.fingerprint, None)
    assert (planned(TUESDAY).covered(earlier) is not None) is ranged
    assert planned(plan(date(2026, 11, 23), "0.6")).covered(earlier) is None


@pytest.mark.parametrize("ranged", [False, True])
def test_one_of_a_document_that_had_lost_its_risks_does_not(ranged: bool) -> None:
    risky = replace(MONDAY, typical=(PlanTypical("visits", "cost", Fraction(3)),))
    earlier = of_before(MONDAY, ranged=ranged)
    assert earlier_fingerprint(risky) == earlier_fingerprint(MONDAY)
    assert planned(risky).covered(earlier) is None
    assert planned(risky).covered(of_before(risky, ranged=ranged)) is not None
