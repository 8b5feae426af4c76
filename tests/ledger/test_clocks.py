"""By which columns and zones the windows of a budget are counted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.core.windows import Windows
from dpframe.ledger.scopes import (
    Clock,
    Timeline,
    Totals,
    WindowScope,
    other_clock,
    require_clocks,
    required,
)

clocks = st.lists(
    st.builds(
        Clock,
        st.sampled_from(["v", "w", ""]),
        st.sampled_from(["t", "at"]),
        st.sampled_from(["", "UTC", "Europe/Berlin"]),
    ),
    min_size=1,
    max_size=2,
    unique_by=lambda clock: clock.frame,
).map(lambda found: tuple(sorted(found)))
ZERO = dp.PureDP(0)
ONE = dp.PureDP(1)


@given(st.lists(clocks, max_size=6))
def test_all_that_is_charged_is_read_by_one_calendar(asked: list[tuple[Clock, ...]]) -> None:
    """Whatever the order: of what was charged no frame has two columns, and there is one zone."""
    totals = Totals(ZERO, windows=Timeline("1mo", ZERO))
    charged = list[Clock]()
    for one in asked:
        scope = WindowScope(Windows("1mo"), one)
        assert WindowScope.read(scope.fields()) == scope
        try:
            amounts = required(scope, totals, ONE, dp.PureDP(99), dp.PureDP(99), None)
        except dp.LedgerError:
            assert scope.is_past(totals)
            continue
        scope.add(totals, amounts)
        charged += one
    assert len({clock.frame for clock in charged}) == len(set(charged))
    assert len({clock.zone for clock in charged} - {""}) <= 1
    again = Totals(ZERO, windows=Timeline("1mo", ZERO))
    if totals.state():
        again.restore(totals.state())
        assert again.clocks == totals.clocks


@pytest.mark.parametrize(
    ("before", "now", "remedy"),
    [
        (Clock("v", "t", "UTC"), Clock("v", "t", "Asia/Tokyo"), r"convert_time_zone\('UTC'\)"),
        (Clock("v", "t", "UTC"), Clock("w", "at", "Asia/Tokyo"), r"convert_time_zone\('UTC'\)"),
        (Clock("v", "t", ""), Clock("v", "t", "UTC"), "the type that it had"),
        (Clock("v", "t", ""), Clock("v", "at", ""), "time='t'"),
        (Clock("", "t", ""), Clock("", "at", ""), "give each frame a name"),
    ],
)
def test_refusals_say_what_to_do(before: Clock, now: Clock, remedy: str) -> None:
    known = {before.frame: before}
    assert other_clock(known, [before]) is None
    with pytest.raises(dp.LedgerError, match=remedy):
        require_clocks(known, [now])


@pytest.mark.parametrize(
    "made", [["v", "t"], ["v", "t", 1], 5, [["v", "t", "UTC"], ["v", "t", ""]]]
)
def test_what_no_ledger_writes_is_refused(made: object) -> None:
    found = {**Windows("1mo").fields(), "clocks": made}
    with pytest.raises((ValueError, TypeError)):
        WindowScope.read(found)
