"""The kernel accepts what the planner makes, and refuses it where one fact is another."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from math import exp, isqrt
from typing import Literal

import pytest

from dpframe.kernel import Plan, Refused, verify
from dpframe.kernel.laws import tail_of
from dpframe.kernel.plan import (
    Appear,
    Between,
    Box,
    Call,
    Cells,
    Choice,
    Col,
    Draw,
    Edges,
    Exact,
    Exponential,
    Filter,
    Found,
    Frame,
    Gather,
    Gaussian,
    Grid,
    KeepGroups,
    KeepRows,
    Laplace,
    Law,
    Listed,
    Map,
    Nights,
    One,
    People,
    Person,
    PersonTotal,
    Placed,
    Points,
    Rank,
    Ranks,
    Root,
    Row,
    Rows,
    Scan,
    Squared,
    Table,
    Threshold,
    Tree,
    Union,
    Values,
    Vector,
    Weigh,
    WeighedThreshold,
    Without,
    read,
    write,
)
from tests.kernel.plans import names, plans
from tests.kernel.slack import shares

LEAST = Fraction(98, 100)
NAMES = names()


@pytest.mark.parametrize("name", NAMES)
def test_plans_cost_what_they_state(name: str) -> None:
    plan = plans()[name]
    verified = verify(plan)
    stated = zip(verified.costs, verified.deltas, plan.draws, strict=True)
    assert all(cost <= draw.cost and delta <= draw.delta for cost, delta, draw in stated)
    assert all(LEAST <= share <= 1 for _, share in shares(plan))


@pytest.mark.parametrize("name", NAMES)
def test_plans_are_read_as_they_are_written(name: str) -> None:
    plan = plans()[name]
    assert read(write(plan)) == plan


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_that_states_a_little_less_is_refused(name: str) -> None:
    plan = plans()[name]
    exact = plan.composition == "sum"
    less = Fraction(999_999, 1_000_000) if exact else Fraction(95, 100)
    if plan.cost:
        with pytest.raises(Refused, match="cost more" if exact else "fail more often"):
            verify(replace(plan, cost=plan.cost * less))
    if plan.composition == "numerical":  # costs of draws only say how the whole is divided
        return
    for number, (cost, draw) in enumerate(zip(verify(plan).costs, plan.draws, strict=True)):
        if cost:
            with_delta = draw.delta and isinstance(draw.law, Gaussian | WeighedThreshold)
            part = Fraction(95, 100) if with_delta else less
            cheaper = replace(draw, cost=cost * part)
            with pytest.raises(Refused, match=f"draw {number} costs more"):
                verify(_with_draw(plan, number, cheaper))


def _with_draw(plan: Plan, number: int, draw: Draw) -> Plan:
    return replace(plan, draws=(*plan.draws[:number], draw, *plan.draws[number + 1 :]))


def _with_law(change: Callable[[Law], Law | None]) -> Callable[[Plan], Plan | None]:
    """Another law of the first draw."""

    def changed(plan: Plan) -> Plan | None:
        law = change(plan.draws[0].law)
        return None if law is None else _with_draw(plan, 0, replace(plan.draws[0], law=law))

    return changed


def _less_noise(law: Law) -> Law | None:
    match law:
        case Laplace(scale, _):
            return replace(law, scale=scale / 1000)
        case Gaussian(sigma_squared):
            return replace(law, sigma_squared=sigma_squared / 1000)
        case Box(epsilon):
            return replace(law, epsilon=epsilon * 1000)
        case _:
            return None


def _narrow(law: Law) -> Law | None:
    if isinstance(law, Box) and max(law.widths) > 1:
        return replace(law, widths=(1,) * len(law.widths), arches=())
    return None


def _larger_factors(plan: Plan) -> Plan | None:
    what = plan.draws[0].what
    if not isinstance(what, Vector) or not verify(plan).costs[0]:
        return None
    matrix = tuple(tuple(1000 * factor for factor in row) for row in what.matrix)
    return _with_draw(plan, 0, replace(plan.draws[0], what=replace(what, matrix=matrix)))


def _wider(grid: Grid) -> Grid:
    return replace(grid, lo=1000 * grid.lo, hi=1000 * grid.hi)


def _wider_clamps(plan: Plan) -> Plan | None:
    def wider(table: Table) -> Table:
        match table.adds:
            case Placed(_, grid) as adds:
                return replace(table, adds=replace(adds, grid=_wider(grid)))
            case PersonTotal(Placed(_, grid) as of):
                return replace(table, adds=PersonTotal(replace(of, grid=_wider(grid))))
            case _:
                return table

    tables = tuple(map(wider, plan.tables))
    used = isinstance(plan.draws[0].what, Vector) and tables != plan.tables
    return replace(plan, tables=tables) if used else None


def _without_limits(plan: Plan) -> Plan | None:
    """Each limit keeps everything."""
    if not any(isinstance(frame, KeepRows | KeepGroups) for frame in plan.frames):
        return None
    frames = tuple(
        replace(frame, n=10_000) if isinstance(frame, KeepRows | KeepGroups) else frame
        for frame in plan.frames
    )
    listed = [t.keys.sizes for t in plan.tables if isinstance(t.keys, Listed)]
    return None if listed and max(map(max, listed)) < 2 else replace(plan, frames=frames)


def _more_contributions(plan: Plan) -> Plan | None:
    first = plan.frames[0]
    if not isinstance(first, Scan) or not isinstance(first.unit, Rows) or not plan.cost:
        return None
    if not any(verify(plan).costs):
        return None
    unit = Rows(first.unit.contributions + 1)
    return replace(plan, frames=(replace(first, unit=unit), *plan.frames[1:]))


def _smaller_delta(plan: Plan) -> Plan | None:
    """The first draw with a delta, with a thousandth of it."""
    for number, draw in enumerate(plan.draws):
        if draw.delta:
            changed = _with_draw(plan, number, replace(draw, delta=draw.delta / 1000))
            return replace(changed, delta=plan.delta - draw.delta * Fraction(999, 1000))
    return None


def _wrong_measure(plan: Plan) -> Plan | None:
    """A measure in which Gaussian noise costs more."""
    others: dict[str, Literal["epsilon", "mu_squared"]] = {
        "rho": "mu_squared",
        "mu_squared": "epsilon",
    }
    found = others.get(plan.measure)
    if found is None or plan.options or not any(verify(plan).costs):
        return None
    if not all(isinstance(draw.law, Gaussian) for draw in plan.draws):
        return None
    return replace(plan, measure=found)


CORRUPTIONS: dict[str, Callable[[Plan], Plan | None]] = {
    "noise a thousandth": _with_law(_less_noise),
    "no noise": lambda plan: (
        _with_draw(plan, 0, replace(plan.draws[0], law=Exact())) if verify(plan).costs[0] else None
    ),
    "a box of ones": _with_law(_narrow),
    "factors a thousand times larger": _larger_factors,
    "clamps a thousand times wider": _wider_clamps,
    "limits that keep everything": _without_limits,
    "cost a thousandth": lambda plan: replace(plan, cost=plan.cost / 1000) if plan.cost else None,
    "delta a thousandth": _smaller_delta,
    "delta of the plan a thousandth": lambda plan: (
        replace(plan, delta=plan.delta / 1000) if plan.delta else None
    ),
    "another measure": _wrong_measure,
    "one row more of each individual": _more_contributions,
}


@pytest.mark.parametrize("corruption", CORRUPTIONS)
def test_corrupted_plans_are_refused(corruption: str) -> None:
    changed = {name: CORRUPTIONS[corruption](plan) for name, plan in plans().items()}
    made = {name: plan for name, plan in changed.items() if plan is not None}
    assert len(made) >= 4
    for plan in made.values():
        with pytest.raises(Refused):
            verify(plan)


def _sum_of_persons() -> Plan:
    """One sum of one row of each person, of a column that is computed."""
    columns = (("who", "Int64"), ("x", "Int64"))
    kept = (("who", Col("who")), ("x", Call("abs", (Col("x"),), "[]")))
    return Plan(
        "add-remove",
        (
            Scan("people", columns, Person("who", None, None), None),
            KeepRows(0, 1, (), None),
            Map(1, kept),
        ),
        (Table(2, None, None, Placed(Col("x"), Grid(Fraction(1), Fraction(0), 0, 10))),),
        (
            Draw(
                Vector((0,), ((1,),), (), 1, total=False),
                Laplace(Fraction(10), 1),
                Fraction(1),
                Fraction(0),
            ),
        ),
        "epsilon",
        Fraction(1),
        Fraction(0),
        (),
    )


def test_a_limit_by_a_column_that_was_replaced_bounds_no_groups() -> None:
    plan = _sum_of_persons()
    limits = KeepGroups(0, 1, ("x",), None), KeepRows(1, 2, (), None)
    replaced = Map(2, (("who", Col("who")), ("x", Call("abs", (Col("x"),), "[]"))))
    keys = Listed((("x", Col("x")),), (4,), "digest")
    vector = Vector((0,), ((1,),), (0,), 1, total=False)
    counted = replace(
        plan,
        frames=(plan.frames[0], *limits),
        tables=(Table(2, keys, None, People()),),
        draws=(Draw(vector, Laplace(Fraction(1), 1), Fraction(1), Fraction(0)),),
    )
    assert verify(counted).costs == (Fraction(1),)
    with pytest.raises(Refused, match="draw 0 costs more"):
        verify(_with_frames(counted, *counted.frames, replaced))


@pytest.mark.parametrize(
    ("wrong", "change"),
    [
        ("the owner is gone", lambda f: (*f[:2], Map(1, (("x", Col("x")),)))),
        ("no limit", lambda f: (f[0], Map(0, f[2].columns), f[2])),
        ("a later frame", lambda f: (f[0], KeepRows(2, 1, (), None), f[2])),
        ("no such column", lambda f: (*f[:2], Map(1, (("who", Col("who")), ("x", Col("y")))))),
        ("two columns of one name", lambda f: (*f[:2], Map(1, (*f[2].columns, ("x", Col("x")))))),
        ("no owner", lambda f: (replace(f[0], unit=Rows(1)), *f[1:])),
    ],
)
def test_wrong_frames_are_refused(wrong: str, change: Callable[..., tuple[Frame, ...]]) -> None:
    plan = _sum_of_persons()
    assert verify(plan).costs == (Fraction(1),)
    with pytest.raises(Refused):
        verify(replace(plan, frames=change(plan.frames)))


def _edited(change: Callable[[dict[str, object]], object]) -> str:
    said = json.loads(write(_sum_of_persons()))
    change(said)
    return json.dumps(said, separators=(",", ":"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "[" * 100_000,
        write(_sum_of_persons()) + " ",
        write(_sum_of_persons()).replace('"cost":"1"', '"cost":"2/2"'),
        write(_sum_of_persons()).replace('"cost":"1"', '"cost":1'),
        write(_sum_of_persons()).replace('"cost":"1"', '"cost":"1/0"'),
        write(_sum_of_persons()).replace('"n":1', '"n":1.0'),
        write(_sum_of_persons()).replace('"n":1', '"n":true'),
        write(_sum_of_persons()).replace('"n":1', '"n":1,"n":2'),
        write(_sum_of_persons()).replace("KeepRows", "KeepAll"),
        write(_sum_of_persons()).replace("add-remove", "remove"),
        _edited(lambda said: said.pop("options")),
        _edited(lambda said: said.update(more=1)),
        _edited(lambda said: said.update(draws=None)),
    ],
)
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        read(text)


def test_one_source_has_one_owner_of_each_row() -> None:
    plan = _sum_of_persons()
    other = Scan("people", (("who", "Int64"), ("x", "Int64")), Person("x", None, None), None)
    twice = replace(plan, frames=(*plan.frames, other))
    with pytest.raises(Refused, match="other owners"):
        verify(twice)
    with pytest.raises(Refused, match="other owners"):
        verify(replace(plan, options=(replace(plan, frames=(other, *plan.frames[1:])),)))


@pytest.mark.parametrize("unit", [Rows(1), Person("who", "1d", "x")])
def test_options_protect_whom_the_plan_protects(unit: Rows | Person) -> None:
    plan = _sum_of_persons()
    whole = replace(plan, cost=Fraction(2), options=(plan,))
    assert verify(whole).costs == (Fraction(1),)
    other = Scan("others", (("who", "Int64"), ("x", "Int64")), unit, None)
    with pytest.raises(Refused, match="sources"):
        verify(replace(whole, options=(replace(plan, frames=(other, *plan.frames[1:])),)))


@pytest.mark.parametrize(
    "cells",
    [
        Points(Col("x"), Fraction(0), Fraction(0), 3),
        Points(Col("x"), Fraction(0), Fraction(1), 0),
        Between(Col("x"), (Fraction(1), Fraction(0))),
        Edges(Col("x"), (Fraction(1),), other=True),
        Edges(Col("x"), (Fraction(1), Fraction(1)), other=False),
        Values(Col("x"), ("1", "1"), other=False),
    ],
)
@pytest.mark.parametrize("what", [Choice((0,), "cells", 1), Rank(0, Fraction(1, 2))])
def test_malformed_cells_are_refused(cells: Cells, what: Choice | Rank) -> None:
    plan = _sum_of_persons()
    draw = Draw(what, Exponential(Fraction(1000)), Fraction(1), Fraction(0))
    with pytest.raises(Refused):
        verify(replace(plan, tables=(Table(2, None, cells, One()),), draws=(draw,)))


def test_deep_expressions_and_long_numbers_are_refused() -> None:
    plan = _sum_of_persons()
    row: Row = Col("x")
    for _ in range(3000):
        row = Call("abs", (row,), "[]")
    deep = replace(plan, frames=(*plan.frames[:2], Map(1, (("who", Col("who")), ("x", row)))))
    with pytest.raises(Refused, match="deep"):
        verify(deep)
    for text in ("1e300000", "1e999999999", "0.5", "9" * 5000, " 1", "1_0"):
        with pytest.raises(Refused):
            read(write(plan).replace('"cost":"1"', f'"cost":"{text}"'))


def test_groups_appear_by_the_number_that_is_drawn() -> None:
    by = (("x", Col("x")),)
    limits = KeepGroups(0, 1, ("x",), None), KeepRows(1, 1, (), None)
    frames = (*_sum_of_persons().frames[:1], *limits)
    counts = Table(2, Found(by, 1), None, People())
    sums = Table(2, Found(by, 1), None, Placed(Col("x"), Grid(Fraction(1), Fraction(0), 0, 10)))
    vector = Vector((0,), ((1,),), (0,), 1, total=False)
    appear = Draw(Appear(0, 1), Threshold(41, 0), Fraction(0), Fraction(1))
    plan = Plan(
        "add-remove",
        frames,
        (counts,),
        (Draw(vector, Laplace(Fraction(1), 1), Fraction(1), Fraction(0)), appear),
        "epsilon",
        Fraction(1),
        Fraction(1),
        (),
    )
    assert 0 < verify(plan).deltas[1] < Fraction(1, 10**16)
    plan = replace(plan, tables=(counts, sums))
    with pytest.raises(Refused, match="no draw needs one of the tables"):
        verify(plan)
    other = Draw(replace(vector, tables=(1,)), Laplace(Fraction(10), 1), Fraction(1), Fraction(0))
    with pytest.raises(Refused, match="another number"):
        verify(replace(plan, draws=(other, appear)))


def _stream() -> Plan:
    """The first three rows of each person, counted on nine days."""
    columns = (("who", "Int64"), ("day", "Date"), ("x", "Int64"))
    frames = (
        Scan("visits", columns, Person("who", None, None), None),
        Filter(0, (Col("x"),)),
        KeepRows(1, 3, (), "day"),
    )
    keys = Listed((("period", Col("day")),), (9,), "digest")
    nights = Nights(0, "day", "Date", "1d", "2027-03-01", 9, Tree(3, 2))
    draw = Draw(nights, Laplace(Fraction(6), 1), Fraction(1), Fraction(0))
    table = Table(2, keys, None, One())
    return Plan("add-remove", frames, (table,), (draw,), "epsilon", Fraction(1), Fraction(0), ())


def _with_nights(plan: Plan, **fields: object) -> Plan:
    what = plan.draws[0].what
    assert isinstance(what, Nights)
    changed = replace(what, **fields)  # type: ignore[arg-type]
    return _with_draw(plan, 0, replace(plan.draws[0], what=changed))


def _with_frames(plan: Plan, *frames: Frame) -> Plan:
    table = replace(plan.tables[0], frame=len(frames) - 1)
    return replace(plan, frames=frames, tables=(table,))


def _date_of(row: Row) -> Row:
    return Call("dt_date", (row,), "[]")


STREAMS_THAT_MOVE_MORE: Mapping[str, Callable[[Plan], Plan]] = {
    "a limit by a hash": lambda p: _with_frames(p, *p.frames[:2], KeepRows(1, 3, (), None)),
    "another order": lambda p: _with_frames(p, *p.frames[:2], KeepRows(1, 3, (), "x")),
    "a limit before it": lambda p: _with_frames(
        p, *p.frames[:2], KeepRows(1, 9, (), None), KeepRows(2, 3, (), "day")
    ),
    "other dates after it": lambda p: _with_frames(
        p,
        *p.frames,
        Map(2, (("who", Col("who")), ("day", _date_of(Col("x"))), ("x", Col("x")))),
    ),
    "rows that depend on others": lambda p: _with_frames(
        p,
        p.frames[0],
        Gather(0, (), (("n", Call("individual_len", (), "[]")),), (None,), beside=True),
        *p.frames[2:],
    ),
    "rows of other frames": lambda p: _with_frames(p, p.frames[0], Union(0, 0), *p.frames[2:]),
    "rows that earlier draws left": lambda p: _with_frames(
        p, p.frames[0], Without(0, (Col("x"),)), *p.frames[2:]
    ),
    "weighed rows": lambda p: _with_frames(p, *p.frames, Weigh(2, Fraction(1))),
    "another type of dates": lambda p: _with_nights(p, dtype="Datetime(us)"),
    "longer periods": lambda p: _with_nights(p, every="1w"),
    "periods of another column": lambda p: _with_nights(p, by="x"),
    "more periods than keys": lambda p: _with_nights(p, periods=10),
    "wider sums": lambda p: _with_nights(p, sums=Tree(3, 3)),
    "no sums": lambda p: _with_nights(p, sums=Tree(1, 2)),
    "factors that rise": lambda p: _with_nights(p, sums=Root((1,) * 8 + (2,))),
    "factors of fewer periods": lambda p: _with_nights(p, sums=Root((1,) * 8)),
    "negative factors": lambda p: _with_nights(p, sums=Root((1,) * 8 + (-1,))),
}


@pytest.mark.parametrize("wrong", STREAMS_THAT_MOVE_MORE)
def test_streams_that_move_more_are_refused(wrong: str) -> None:
    plan = _stream()
    assert verify(plan).costs == (Fraction(1),)
    assert verify(_with_nights(plan, sums=Root((2, 0, 0, 0, 0, 0, 0, 0, 0)))).costs == (1,)
    with pytest.raises(Refused):
        verify(STREAMS_THAT_MOVE_MORE[wrong](plan))


@pytest.mark.parametrize(
    ("dtype", "holds"),
    [("Datetime(us)", True), ("Datetime(us, UTC)", True), ("Datetime(us, Europe/Berlin)", False)],
)
def test_first_moments_are_first_dates_unless_clocks_go_back(dtype: str, holds: bool) -> None:
    plan = _with_nights(_stream(), dtype=dtype)
    scan = plan.frames[0]
    assert isinstance(scan, Scan)
    scan = replace(scan, columns=(("who", "Int64"), ("day", dtype), ("x", "Int64")))
    keys = Listed((("period", _date_of(Col("day"))),), (9,), "digest")
    plan = replace(plan, frames=(scan, *plan.frames[1:]), tables=(Table(2, keys, None, One()),))
    if holds:
        assert verify(plan).costs == (Fraction(1),)
        return
    with pytest.raises(Refused, match="no limit holds"):
        verify(plan)


def test_a_tail_of_a_wide_gaussian_is_a_little_above_its_own() -> None:
    for sigma in (64, 300):
        for deviations in (1, 2, 4, 7):
            least = sigma * deviations
            whole = 2 * sum(exp(-(x**2) / (2 * sigma**2)) for x in range(1, 12 * sigma)) + 1
            exact = sum(exp(-(x**2) / (2 * sigma**2)) for x in range(least, 14 * sigma)) / whole
            found = float(tail_of(Gaussian(Fraction(sigma**2)), least))
            assert 0.999999 * exact < found < 1.01 * exact


def _weights(most: int = 4) -> Plan:
    frames = (
        *_sum_of_persons().frames[:1],
        KeepGroups(0, most, ("x",), None),
        Weigh(1, Fraction(2)),
    )
    table = Table(2, Found((("x", Col("x")),), 0), None, People())
    law = WeighedThreshold(((1 << 16, Fraction(1 << 26)),))
    draw = Draw(Appear(0, 1), law, Fraction(1, 2), Fraction(1, 10**12))
    return Plan(
        "add-remove",
        frames,
        (table,),
        (draw,),
        "rho",
        Fraction(1, 2),
        Fraction(1, 10**12),
        (),
    )


def test_groups_by_weights_cost_what_their_norm_and_their_threshold_say() -> None:
    verified = verify(_weights())
    assert verified.costs == (Fraction(8192**2, 2 << 26),)
    alone = [
        t * float(tail_of(Gaussian(Fraction(1 << 26)), (1 << 16) - min(4096, 8192 // isqrt(t))))
        for t in (1, 4)
    ]
    assert float(verified.deltas[0]) == pytest.approx(max(alone), rel=1e-9)


@pytest.mark.parametrize(
    ("wrong", "change"),
    [
        ("no norm", lambda p: _with_frames(p, *p.frames[:2])),
        (
            "a larger norm",
            lambda p: _with_frames(
                p, p.frames[0], KeepGroups(0, 9, ("x",), None), Weigh(1, Fraction(3))
            ),
        ),
        ("no groups", lambda p: _with_frames(p, p.frames[0], Weigh(0, Fraction(2)))),
        ("more groups", lambda p: _weights(10**6)),
        ("rows", lambda p: replace(p, tables=(replace(p.tables[0], adds=One()),))),
        ("no round", lambda p: _with_rounds(p, ())),
        ("a lower threshold", lambda p: _with_rounds(p, ((1 << 15, Fraction(1 << 26)),))),
        ("less noise", lambda p: _with_rounds(p, ((1 << 16, Fraction(1 << 25)),))),
        ("one round more", lambda p: _with_rounds(p, ((1 << 16, Fraction(1 << 26)),) * 2)),
    ],
)
def test_groups_by_other_weights_are_refused(wrong: str, change: Callable[[Plan], Plan]) -> None:
    assert verify(_weights()).costs
    with pytest.raises(Refused):
        verify(change(_weights()))


def _with_rounds(plan: Plan, rounds: tuple[tuple[int, Fraction], ...]) -> Plan:
    return _with_draw(plan, 0, replace(plan.draws[0], law=WeighedThreshold(rounds)))


def _rows(table: Table, what: Vector | Choice | Rank, law: Law) -> Plan:
    scan = Scan("x", (("c", "String"), ("v", "Int64")), Rows(1), None)
    draw = Draw(what, law, Fraction(1), Fraction(0))
    return Plan("add-remove", (scan,), (table,), (draw,), "epsilon", Fraction(1), Fraction(0), ())


@pytest.mark.parametrize("beyond", [False, True])
def test_scores_fit_into_64_bits(beyond: bool) -> None:
    """With up to 2**32 rows: unlike a sum with noise, a score that wraps decides who wins."""
    h = 1 << (32 if beyond else 31)
    cells = Values(Col("c"), ('"a"', '"b"'), False)
    added = Table(0, None, cells, Placed(Col("v"), Grid(Fraction(1), Fraction(0), 0, h)))
    b = (1 << (31 if beyond else 30)) - 1
    ranks = Table(0, None, Between(Col("v"), (Fraction(1), Fraction(2), Fraction(3))), One())
    for plan in (
        _rows(added, Choice((0,), "cells", 1), Exponential(Fraction(h))),
        _rows(ranks, Rank(0, Fraction(1, b)), Exponential(Fraction(2 * (b - 1)))),
        _rows(ranks, Ranks(0, (Fraction(1, b),)), Exponential(Fraction(4 * b))),
    ):
        if beyond:
            with pytest.raises(Refused, match="beyond 64 bits"):
                verify(plan)
        else:
            verify(plan)


def test_squares_fit_into_64_bits() -> None:
    for h, shift in ((1 << 30, 29), (1 << 32, 33)):
        grid = Grid(Fraction(1), Fraction(0), -h, h)
        top = h * h >> shift
        table = Table(0, None, None, Squared(Col("v"), grid, shift))
        plan = _rows(table, Vector((0,), ((1,),), (), 1, False), Laplace(Fraction(top), 1))
        if h > 1 << 31:
            with pytest.raises(Refused, match="squares beyond 64 bits"):
                verify(plan)
        else:
            verify(plan)


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("dated", [False, True])
def test_numbers_of_a_person_are_of_one_window(beside: bool, dated: bool) -> None:
    """A row would otherwise depend on rows of windows that the person is not protected in."""
    scan = Scan("x", (("u", "Int64"), ("t", "Date")), Person("u", "1mo", "t"), None)
    by = (("t", Col("t")),) if dated else ()
    gather = Gather(0, by, (("n", Call("individual_len", (), "[]")),), (None,), beside)
    table = Table(2, None, None, One())
    draw = Draw(
        Vector((0,), ((1,),), (), 1, False), Laplace(Fraction(1), 1), Fraction(1), Fraction(0)
    )
    frames = (scan, gather, KeepRows(1, 1, (), None))
    cost = Fraction(1)
    plan = Plan("add-remove", frames, (table,), (draw,), "epsilon", cost, Fraction(0), ())
    if dated:
        verify(plan)
    else:
        with pytest.raises(Refused, match="several windows"):
            verify(plan)
