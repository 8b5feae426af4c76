"""Plans that no planner makes: they are refused, and soon, with no other error than a refusal."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction as F

import pytest

from dpframe.kernel import plan as p
from dpframe.kernel import render as rendering
from dpframe.kernel.frame import facts_of
from dpframe.kernel.losses import Ranged, Reported, losses_delta
from dpframe.kernel.moves import level_choices, parts_of_row
from dpframe.kernel.plan import Plan, Refused
from dpframe.kernel.verify import verify

COLUMNS = tuple((name, "Int64") for name in ("who", *"abcdefghijkl"))
PEOPLE = p.Scan("people", COLUMNS, p.Person("who", None, None), None)
ROWS = p.Scan("rows", COLUMNS, p.Rows(1), None)


def _count(*frames: p.Frame, **fields: object) -> Plan:
    """The number of rows of the last frame."""
    vector = p.Vector((0,), ((1,),), (), 0, total=False)
    draw = p.Draw(vector, p.Laplace(F(1), 1), F(1), F(0))
    table = p.Table(len(frames) - 1, None, None, p.One())
    plan = Plan("add-remove", frames, (table,), (draw,), "epsilon", F(1), F(0), ())
    return replace(plan, **fields)  # type: ignore[arg-type]


def test_limits_of_a_frame_that_is_united_with_itself_do_not_multiply() -> None:
    frames: list[p.Frame] = [PEOPLE, p.KeepRows(0, 3, ("a",), None), p.KeepRows(1, 2, ("a",), None)]
    for place in (2, 3, 4):
        frames.append(p.Union(place, place))
    limits = [limit.n for limit in facts_of(frames)[-1].limits]
    assert limits == [16]  # the stricter one of the two, doubled three times


def test_limits_of_a_frame_that_meets_itself_do_not_multiply_without_end() -> None:
    names = list("abcdefghijkl")
    frames: list[p.Frame] = [PEOPLE]
    for first in range(6):
        by = tuple(sorted(names[first:] + names[: first // 2])[:5])
        frames.append(p.KeepRows(first, 1, by, None))
    for turn in range(1, 12):
        place, other = len(frames) - 1, names[turn:] + names[:turn]
        other[0], other[turn % 11 + 1] = other[turn % 11 + 1], other[0]
        frames.append(p.Meet(place, place, tuple(zip(names, other, strict=True)), "inner", ()))
    with pytest.raises(Refused, match="too many limits"):
        facts_of(frames)


@pytest.mark.parametrize(
    "more", [lambda place: p.Union(place, place), lambda place: p.Explode(place, "a", 1 << 20)]
)
def test_more_rows_than_can_be_counted_are_refused(more: Callable[[int], p.Frame]) -> None:
    frames: list[p.Frame] = [ROWS]
    for place in range(200):
        frames.append(more(place))
    with pytest.raises(Refused, match="more rows than can be counted"):
        facts_of(frames)


def test_what_no_draw_needs_is_refused() -> None:
    """Else a plan could show a reader limits and filters that its results do not have."""
    limited = (PEOPLE, p.KeepRows(0, 1, (), None))
    verify(_count(*limited))
    aside = _count(*limited, p.Filter(1, (p.Col("a"),)))
    table = replace(aside.tables[0], frame=1)
    with pytest.raises(Refused, match="no draw needs frame 2"):
        verify(replace(aside, tables=(table,)))
    with pytest.raises(Refused, match="no draw needs one of the tables"):
        verify(replace(_count(*limited), tables=(table, replace(table, adds=p.People()))))
    zero = p.Draw(p.Vector((0, 1), ((1, 0),), (), 0, total=False), p.Laplace(F(1), 1), F(1), F(0))
    two = (replace(table, frame=0), replace(table, frame=0, adds=p.Valued(p.Col("a"))))
    with pytest.raises(Refused, match="a table that no number needs"):
        verify(_count(ROWS, tables=two, draws=(zero,)))


def test_a_wide_draw_next_to_narrow_choices_needs_no_long_table() -> None:
    """The step of a table for choices is a part of their range, and its length that of all."""
    wide, price = Reported(F(5), 2), F(9, 2)
    alone = losses_delta(frozenset({(wide, 1)}), price)
    both = losses_delta(frozenset({(wide, 1), (Ranged(F(1, 10**7)), 3)}), price)
    exact = -math.expm1(-0.5) / (1 + math.exp(-5))
    assert exact <= alone <= both < exact * 1.0001


def test_no_report_is_free() -> None:
    """Of a tiny epsilon 110 digits lose all."""
    cells = p.Whole(p.Edges(p.Col("a"), (F(0), F(1), F(2)), False))
    table = p.Table(0, None, cells, p.One())
    for epsilon, known in ((F(1, 1 << 100), True), (F(1, 10**115), False)):
        draw = p.Draw(p.Reports(0), p.Response(epsilon), F(1), F(0))
        plan = _count(ROWS, tables=(table,), draws=(draw,), measure="rho", neighbours="change-one")
        if known:
            assert verify(plan).costs[0] > epsilon**2 / 10
        else:
            with pytest.raises(Refused, match="whose cost is not known"):
                verify(plan)


def test_reports_of_very_many_cells_are_refused() -> None:
    table = p.Table(0, None, p.Whole(p.Points(p.Col("a"), F(0), F(1), 10**300)), p.One())
    draw = p.Draw(p.Reports(0), p.Response(F(1)), F(9), F(0))
    plan = _count(
        ROWS,
        tables=(table,),
        draws=(draw,),
        measure="mu_squared",
        neighbours="change-one",
        cost=F(9),
    )
    with pytest.raises(Refused, match="no cost can be computed"):
        verify(plan)


def test_a_grid_of_any_length_is_shown() -> None:
    large = 10**3900
    grid = p.Grid(F(large), F(0), -large, large)
    table = p.Table(0, None, None, p.Placed(p.Col("a"), grid))
    draw = p.Draw(p.Vector((0,), ((1,),), (), 0, total=False), p.Laplace(F(1), 1), F(large), F(0))
    plan = _count(ROWS, tables=(table,), draws=(draw,), cost=F(large))
    verify(plan)
    other = replace(table, adds=p.Placed(p.Col("a"), replace(grid, step=F(large + 1))))
    text = rendering.render(plan)
    assert text != rendering.render(replace(plan, tables=(other,)))
    assert text.isascii()


def test_parts_of_a_time_follow_from_its_window_without_options_only() -> None:
    """With a time zone, say, a date may lie in two windows."""
    columns = (("who", "Int64"), ("t", "Datetime(us)"))
    scan = p.Scan("visits", columns, p.Person("who", "1d", "t"), None)
    frames = (scan, p.KeepRows(0, 3, (), None))

    def plan(options: str) -> Plan:
        date = p.Call("dt_date", (p.Col("t"),), options)
        keys = p.Listed((("day", date),), (9,), "digest")
        vector = p.Vector((0,), ((1,),), (0,), 1, total=False)
        draw = p.Draw(vector, p.Laplace(F(1), 1), F(1), F(0))
        return _count(*frames, tables=(p.Table(1, keys, None, p.People()),), draws=(draw,))

    verify(plan("[]"))
    with pytest.raises(Refused, match="draw 0 costs more"):
        verify(plan('[["zone","Pacific/Auckland"]]'))


def test_quantiles_of_many_levels() -> None:
    """What is around a quantile is found among all that were chosen before."""
    n = 1 << 7
    quantiles = [F(i, n) for i in range(1, n)]
    levels = [[i - 1 for i in range(n >> k, n, 2 * n >> k)] for k in range(1, n.bit_length())]
    choices = level_choices(quantiles, levels, changes=False, alone=True)
    assert max(one.range for one in choices.values()) * parts_of_row(quantiles) == n
    with pytest.raises(Refused, match="among the same rows"):
        level_choices(quantiles, [[*range(n - 1)]], changes=False, alone=True)
