"""Laws of joins, concatenation and explode: what is known afterwards holds of the rows, one
individual moves nothing further than declared whatever it has in all frames, and results are those
of plain Python.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import dpframe as dp
from dpframe.aggregates.aggregate import Query
from dpframe.core.dtypes import Domain
from dpframe.core.units import Identifier, Rows
from dpframe.frames.facts import FrameFacts
from dpframe.kernel.frame import GroupLimit, RowLimit
from dpframe.lower.tables import lower_rows
from dpframe.rows.failures import OPTIMIZATIONS
from tests.laws.amounts import examples
from tests.laws.individuals import frame_of
from tests.laws.layouts import stored
from tests.laws.neighbours import Engine, exact_tables, measurements_of, moved, query_of, violation

Row = dict[str, Any]
Tables = dict[str, list[Row]]
ENUM = pl.Enum(["b", "a", "z"])
SCHEMAS: dict[str, dict[str, Any]] = {
    "p": {"id": pl.Int64, "g": pl.String, "c": pl.Categorical, "h": pl.Int64, "x": pl.Int64},
    "q": {"who": pl.Int64, "g": pl.String, "h": pl.Int64, "y": pl.Int64, "b": pl.Boolean},
    "r": {"id": pl.Int64, "g": pl.String, "l": pl.List(pl.Int64), "a": pl.Array(pl.Int64, 2)},
}
LISTS = [None, [], [None], [1], [1, 1], [3, None, 5, 7], [2] * 6]
POOLS: dict[str, list[Any]] = {
    "g": ["a", "b", "z", None],
    "c": ["a", "b", "z", None],
    "h": [0, 1, None],
    "x": [0, 5, -9, None],
    "y": [1, 7, None],
    "b": [True, False, None],
    "l": LISTS,
    "a": [None, [1, 2], [3, None]],
}
PUBLIC = {
    "P": pl.DataFrame(
        {
            "g": ["a", "a", "b", None, "w"],
            "h": [0, 1, 0, None, 2],
            "v": [1, 2, 3, 4, None],
            "e": pl.Series(["b", "a", "z", "a", "b"], dtype=ENUM),
        }
    ),
    "C": pl.DataFrame({"g": ["a", "b", None], "x": [7, 8, 9]}, schema_overrides={"g": ENUM}),
    "L": pl.DataFrame({"g": ["a", "a", "b"], "t": [[1, 2, 3], [], [4, 4]]}),
    "EMPTY": pl.DataFrame(schema={"g": pl.String, "v": pl.Int64}),
}
JOINS = [
    f'p.join(P, {on}, how="{how}")'
    for on in ('on="g"', 'on=["g", "h"]', 'left_on="c", right_on="g"', 'left_on="c", right_on="e"')
    for how in ("inner", "left", "semi", "anti")
] + [
    'p.join(C, on="g")',
    'p.join(C, on="g", how="left", suffix="2").join(P, left_on="x2", right_on="v", how="left")',
    'p.join(P, on="g").join(P, on="h", suffix="_2")',
    'p.join(EMPTY, on="g")',
    'p.join(EMPTY, on="g", how="left")',
    'p.join(EMPTY, on="g", how="semi")',
    'p.join(EMPTY, on="g", how="anti")',
]
BOTH = 'q.rename({"who": "id"}).select("id", "g", "h", x="y")'
SAME = 'p.select("id", "g", "h", "x")'
CONCATS = [
    f"{SAME}.concat({BOTH})",
    f"{BOTH}.concat({SAME})",
    "p.concat(p)",
    'p.filter(pl.col("x") > 0).concat(p.filter(pl.col("x") <= 0))',
    f"{SAME}.concat({BOTH}).concat({SAME})",
]
EXPLODES = [
    'r.explode("l", max_length=1)',
    'r.explode("l", max_length=3)',
    'r.explode("a")',
    'r.explode("a", max_length=1).explode("l", max_length=2)',
]
PRIVATE = [
    'p.join(q, suffix="2")',
    'p.join(q, how="left")',
    'q.join(p, suffix="_p")',
    "p.join(p)",
    'p.join(p.filter(pl.col("h") == 0), how="left")',
    'r.drop("l", "a").join(q)',
    'p.join(q, left_on=["id", "g"], right_on=["who", "g"], suffix="2")',
    'p.join(q, left_on=["g", "id", "h"], right_on=["g", "who", "h"], how="left")',
    'q.join(p, left_on=["who", "g"], right_on=["id", "c"], suffix="_p")',
    'p.join(p, on=["id", "h"], how="left")',
    'p.join(q, how="semi")',
    'p.join(q.filter(pl.col("b")), how="anti")',
    'q.join(p, left_on=["who", "g"], right_on=["id", "c"], how="semi")',
    'p.join(q, left_on=["id", "g"], right_on=["who", "g"], how="anti")',
]
LIMITED = [  # the same with limits on either side
    'p.limit_rows(2).join(q.limit_rows(3), suffix="2")',
    'p.limit_rows(2, by="g").limit_groups(2, by="g").join(q.limit_rows(2, by="h"), how="left")',
    'p.limit_groups(1, by="g").join(q.limit_groups(2, by=["g", "h"]).limit_rows(4))',
    'p.limit_groups(2, by="h").join(q.limit_rows(1).drop("h"), how="left")',
    'p.join(q.limit_rows(2).limit_groups(1, by="b"))',
    'p.limit_rows(2).join(p.limit_rows(2, by="g"))',
    'p.limit_rows(2).join(P, on="g")',
    'p.limit_rows(1, by="g").limit_groups(3, by="g").join(P, on=["g"], how="left")',
    'p.limit_rows(3, by="h").join(P, on="h", how="anti")',
    f"{SAME}.limit_rows(2).concat({BOTH}.limit_rows(3))",
    f'{SAME}.limit_rows(1, by="g").limit_groups(2, by="g").concat({BOTH}.limit_rows(2, by="g")'
    '.limit_groups(1, by="g"))',
    f'{SAME}.limit_rows(2).concat({BOTH}.limit_rows(2, by="g").limit_groups(1, by="g"))',
    f'{SAME}.limit_groups(1, by="g").concat({BOTH}.limit_groups(2, by="g"))',
    'p.limit_groups(1, by="g").drop("g").concat(p.limit_groups(1, by="h").drop("g"))',
    'r.drop("l", "a").limit_rows(3).concat(r.drop("l", "a").limit_rows(1))',
    'p.limit_rows(2).limit_rows(1, by="h").join(L, on="g").explode("t", max_length=3)',
    'p.limit_rows(2).join(q.limit_rows(1, by="g"), left_on=["id", "g"], right_on=["who", "g"])',
    'p.limit_rows(2, by="g").join(q.limit_rows(3), left_on=["id", "g"], right_on=["who", "g"])',
    'p.limit_rows(1, by="h").join(q.limit_groups(1, by="g").limit_rows(2, by=["g", "b"])'
    '.limit_rows(4), left_on=["id", "h"], right_on=["who", "h"], suffix="2")',
    'p.limit_rows(3).join(q.limit_groups(1, by="g").limit_rows(1, by="g"), left_on=["id", "h"], '
    'right_on=["who", "h"], how="left", suffix="2")',
    'p.limit_groups(2, by="g").join(q.limit_rows(1, by=["g", "h"]), left_on=["id", "g", "h"], '
    'right_on=["who", "g", "h"], how="left")',
    'p.join(q.limit_groups(1, by="g").limit_rows(2), left_on=["id", "c"], right_on=["who", "g"])',
    'p.limit_rows(2, by="g").limit_groups(2, by="g").join(q.limit_rows(1), how="semi")',
    'p.limit_rows(3).join(q, left_on=["id", "h"], right_on=["who", "h"], how="anti")',
    'p.limit_rows(1, by="g").drop("g").join(q.limit_rows(2).limit_groups(1, by="b").drop("b"))',
    'r.limit_groups(2, by="g").explode("l", max_length=2)',
]
UNLIMITED = [*JOINS, *CONCATS, *EXPLODES]
THEN = [
    'f.limit_rows(2, by="g")',
    'f.limit_groups(1, by="g")',
    "f.limit_rows(3)",
    'f.limit_groups(2, by=["g", "h"])',
    'f.rename({"g": "h", "h": "g"})',
    'f.drop("h")',
    'f.with_columns(g=pl.lit("a"))',
    'f.with_columns(g=pl.col("h").cast(pl.String))',
    'f.filter(pl.col("g") != "b")',
    'f.join(P, on="g", suffix="_3")',
    'f.rename({"id": "who"})',
    "f.concat(f)",
]
G = '["a", "b", "z", None]'
GROUPINGS = [
    "f",
    f'f.group_by("g", keys={G})',
    f'f.group_by("g", "h", keys={{"g": {G}, "h": [0, 1, None]}})',
    'f.group_by("h", keys=[0, 1, 2, None])',
    'f.group_by("e")',
    'f.group_by("v", keys=[1, 2, 3, None])',
    f'f.group_by("g2", keys={G})',
    f'f.group_by("g_right", keys={G})',
    'f.group_by("l", keys=[1, 2, 3, None])',
]
TEXTS = [
    "dp.count()",
    'pl.col("x").dp_sum((-9, 5))',
    'pl.col("l").dp_sum((0, 4))',
    'pl.col("v").dp_count()',
    'pl.col("e").dp_histogram()',
    'pl.col("g").dp_n_unique()',
    'dp.count(per="unit", bounds=(0, 2))',
    "WHO",
]


class Frames:
    """The frames of one session, and what they hold."""

    def __init__(self, units: Mapping[str, Any] | None = None) -> None:
        self.session = dp.Session(epsilon=1, delta=1e-3)
        units = units or {"p": "id", "q": "who", "r": "id"}
        self.frames: dict[str, Any] = {
            name: self.session.protect(pl.LazyFrame(schema=schema), units[name], name=name)
            for name, schema in SCHEMAS.items()
        }

    def frame(self, text: str, steps: Iterable[str] = ()) -> Any:
        names = {**PUBLIC, "pl": pl, "dp": dp}
        found = eval(text, {**names, **self.frames})
        for step in steps:
            found = eval(step, {**names, "f": found})
        return found

    def data(self, tables: Tables) -> dict[int, pl.DataFrame]:
        return {
            frame._relation.token: frame_of(tables[name], SCHEMAS[name])
            for name, frame in self.frames.items()
        }

    def collected(
        self, frame: Any, tables: Tables, salt: int = 0, engine: Engine = "in-memory"
    ) -> pl.DataFrame:
        """The rows themselves."""
        sources = {token: stored(found).lazy() for token, found in self.data(tables).items()}
        lowered = lower_rows(frame._relation, sources, pl, salt)
        return lowered.collect(engine=engine, optimizations=OPTIMIZATIONS)


def text_of(frame: Any, text: str) -> Any:
    who = frame._relation.facts.identifier
    if who is None:
        text = text.replace("WHO", "dp.count()")
    return pl.col(who).dp_n_unique() if text == "WHO" else eval(text, {"pl": pl, "dp": dp})


@st.composite
def rows(draw: st.DrawFn, name: str, who: st.SearchStrategy[Any], most: int) -> list[Row]:
    first, *others = SCHEMAS[name]
    cells = {first: who, **{other: st.sampled_from(POOLS[other]) for other in others}}
    drawn = draw(st.lists(st.fixed_dictionaries(cells), max_size=5))
    pool = [{column: row[column] for column in SCHEMAS[name]} for row in drawn]
    again = draw(st.lists(st.integers(0, 9), max_size=most)) if pool else []
    return pool + [pool[i % len(pool)] for i in again]


@st.composite
def tables(draw: st.DrawFn, who: Any = (1, 1, 2, 3, None), most: int = 5) -> Tables:
    return {name: draw(rows(name, st.sampled_from(list(who)), most)) for name in SCHEMAS}


def of_individual(drawn: Tables, who: int) -> Tables:
    """All rows of one individual, in all frames."""
    return {
        name: [row for row in found if row[next(iter(SCHEMAS[name]))] == who]
        for name, found in drawn.items()
    }


def without(drawn: Tables, who: int) -> Tables:
    return {
        name: [row for row in found if row[next(iter(SCHEMAS[name]))] != who]
        for name, found in drawn.items()
    }


# ------------------------------------------------------------------- what is known afterwards


def check_facts(facts: FrameFacts, found: pl.DataFrame) -> None:
    assert list(facts.columns) == found.columns
    for name, domain in facts.columns.items():
        check_domain(domain, found[name])
    if facts.identifier is None:
        return
    for limit in facts.limits:
        if not all(isinstance(term, str) for term in limit.by):
            continue
        by = [str(term) for term in limit.by]
        owned = found.select(facts.identifier, pl.struct(facts.identifier, *by).alias("key"))
        if isinstance(limit, RowLimit):
            most = owned.group_by("key").len()["len"].max()
        else:
            assert isinstance(limit, GroupLimit)
            most = owned.unique().group_by(facts.identifier).len()["len"].max()
        assert int(most or 0) <= limit.n, limit  # type: ignore[arg-type]


def check_domain(domain: Domain, column: pl.Series) -> None:
    assert domain.nullable or not column.null_count()
    values = column.drop_nulls().to_list()
    if domain.categories is not None:
        assert set(values) <= set(domain.categories)
    if domain.dtype.is_integer and values:
        lo, hi = domain.interval.lo, domain.interval.hi
        assert (lo is None or lo <= min(values)) and (hi is None or max(values) <= hi)  # noqa: PT018
    for mark, downwards in (("SORTED_ASC", False), ("SORTED_DESC", True)):
        if column.flags[mark]:
            plain = pl.Series(column.to_list(), dtype=column.dtype).drop_nulls()
            assert plain.equals(plain.sort(descending=downwards))


chains = st.sampled_from([*JOINS, *CONCATS, *EXPLODES, *PRIVATE, *LIMITED])
engines = st.sampled_from(["in-memory", "streaming"])
then = st.lists(st.sampled_from(THEN), max_size=3)
salts = st.integers(0, 2**64 - 1)


def accepted(frames: Frames, text: str, steps: Iterable[str]) -> Any:
    """The frame after those steps that make sense."""
    frame = frames.frame(text)
    for step in steps:
        try:
            frame = eval(step, {**PUBLIC, "pl": pl, "dp": dp, "f": frame})
        except dp.DPFrameError:
            continue
    return frame


def test_all_chains_make_sense() -> None:
    for text in [*UNLIMITED, *PRIVATE, *LIMITED]:
        Frames().frame(text)
    for step in THEN:
        Frames().frame("p", [step])


@examples(40, 400)
@given(chains, then, tables(), salts, engines)
def test_what_is_known_holds(
    text: str, steps: list[str], drawn: Tables, salt: int, engine: Engine
) -> None:
    frames = Frames()
    frame = accepted(frames, text, steps)
    found = frames.collected(frame, drawn, salt, engine)
    check_facts(frame._relation.facts, found)
    again = frames.collected(frame, {n: t[::-1] for n, t in drawn.items()}, salt)
    assert counter(found) == counter(again)


@pytest.mark.parametrize("text", UNLIMITED)
@settings(max_examples=12)
@given(drawn=tables(), adjacency=st.sampled_from(["add-remove", "change-one"]))
def test_complete_means_as_many_rows(text: str, drawn: Tables, adjacency: Any) -> None:
    units = {name: Rows(adjacency) for name in SCHEMAS}
    frames = Frames(units)
    frame = frames.frame(text)
    found = frames.collected(frame, drawn)
    check_facts(frame._relation.facts, found)
    if frame._relation.facts.complete:
        assert found.height == len(drawn[text[0]])


def test_what_is_known_of_both_frames_holds_of_either() -> None:
    drawn: Tables = {"p": [{"id": 1, "x": x, "h": h} for x in (-9, 5) for h in (0, None)], "q": []}
    drawn["r"] = []
    for merged in (
        'p.filter(pl.col("x") > 0).concat(p.filter(pl.col("x") <= 0))',
        'p.drop_nulls("h").concat(p)',
        'p.with_columns(x=pl.col("x").clip(0, 1)).concat(p)',
        "p.with_columns(k=pl.lit(1)).concat(p.with_columns(k=pl.lit(2)))",
    ):
        frames = Frames()
        frame = frames.frame(merged)
        check_facts(frame._relation.facts, frames.collected(frame, drawn))


# ------------------------------------------------------------------------------ plain Python


def counter(found: pl.DataFrame) -> Counter[str]:
    return Counter(map(repr, found.rows()))


def python_join(
    left: list[Row], right: list[Row], on: Sequence[tuple[str, str]], how: str, suffix: str
) -> list[Row]:
    keys = {b for _, b in on}
    names = [n for n in (right[0] if right else {}) if n not in keys]
    made: list[Row] = []
    for row in left:
        there = [r for r in right if all(row[a] is not None and row[a] == r[b] for a, b in on)]
        if how in ("semi", "anti"):
            made += [row] if bool(there) == (how == "semi") else []
            continue
        for other in there or ([dict.fromkeys(names)] if how == "left" else []):
            taken = {(n + suffix if n in row else n): other[n] for n in names}
            made.append({**row, **taken})
    return made


def python_explode(given: list[Row], name: str, most: int) -> list[Row]:
    return [
        {**row, name: value} for row in given for value in (list(row[name] or [])[:most] or [None])
    ]


@examples(20, 160)
@given(tables(), st.sampled_from(["inner", "left", "semi", "anti"]), st.data())
def test_public_joins_equal_plain_python(drawn: Tables, how: str, data: st.DataObject) -> None:
    on = data.draw(
        st.sampled_from(
            [[("g", "g")], [("g", "g"), ("h", "h")], [("c", "g")], [("c", "e")], [("x", "v")]]
        )
    )
    public = PUBLIC["P"][data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=9))]
    frames = Frames({name: Rows() for name in SCHEMAS})
    left, right = [a for a, _ in on], [b for _, b in on]
    joined = frames.frames["p"].join(public, left_on=left, right_on=right, how=how, suffix="_r")
    expected = python_join(drawn["p"], public.rows(named=True), on, how, "_r")
    found = frames.collected(joined, drawn)
    assert counter(found) == Counter(repr(tuple(row.values())) for row in expected)
    most = max(Counter(public.select(right).drop_nulls().rows()).values(), default=1)
    assert joined._relation.facts.copies == (1 if how in ("semi", "anti") else most)


@examples(20, 160)
@given(tables(), st.sampled_from(["inner", "left", "semi", "anti"]))
def test_private_joins_equal_plain_python(drawn: Tables, how: str) -> None:
    frames = Frames()
    p, q = frames.frames["p"], frames.frames["q"]
    known = {n: [r for r in t if next(iter(r.values())) is not None] for n, t in drawn.items()}
    named = [dict(zip(SCHEMAS["q"], row.values(), strict=True)) for row in known["q"]]
    assume(named)
    expected = python_join(known["p"], named, [("id", "who")], how, "_q")
    found = frames.collected(p.join(q, how=how, suffix="_q"), drawn)
    assert counter(found) == Counter(repr(tuple(row.values())) for row in expected)


@examples(20, 160)
@given(tables(), st.integers(1, 7))
def test_explode_and_concat_equal_plain_python(drawn: Tables, most: int) -> None:
    frames = Frames({name: Rows() for name in SCHEMAS})
    r, p = frames.frames["r"], frames.frames["p"]
    for name, limit in (("l", most), ("a", min(most, 2))):
        expected = python_explode(drawn["r"], name, limit)
        found = frames.collected(r.explode(name, max_length=limit), drawn)
        assert counter(found) == Counter(repr(tuple(row.values())) for row in expected)
    both = frames.collected(frames.frame(CONCATS[0]), drawn)
    wanted = [(r["id"], r["g"], r["h"], r["x"]) for r in drawn["p"]]
    wanted += [(r["who"], r["g"], r["h"], r["y"]) for r in drawn["q"]]
    assert counter(both) == Counter(map(repr, wanted))
    assert frames.collected(p.concat(p), drawn).height == 2 * len(drawn["p"])


# ------------------------------------------------------------------------------ sensitivities


def asked_of(frame: Any, grouping: str, text: str) -> Query | None:
    """The first of these that is accepted: with limits, without groups, of a simpler aggregate."""
    for limits in ((), ("f.limit_rows(4)",), ('f.drop("l", "a").limit_rows(4)',)):
        for by in (grouping, "f"):
            for aggregate in (text, "dp.count()"):
                try:
                    limited = frame
                    for step in limits:
                        limited = eval(step, {"f": limited})
                    made = eval(by, {"f": limited})
                    return query_of(made.agg(o=text_of(limited, aggregate)))
                except dp.DPFrameError:
                    continue
    return None


def check(
    frames: Frames, frame: Any, grouping: str, text: str, one: Tables, other: Tables, salt: int
) -> None:
    asked = asked_of(frame, grouping, text)
    if asked is None:
        return
    before, after = (exact_tables(asked, frames.data(t), salt=salt) for t in (one, other))
    for use in measurements_of(asked):
        problem = violation(use.part, moved(use.part, before, after, asked.scope), asked.scope)
        assert problem is None, problem


people = {
    "text": chains,
    "steps": then,
    "grouping": st.sampled_from(GROUPINGS),
    "wanted": st.sampled_from(TEXTS),
    "drawn": tables(),
    "salt": salts,
}


def check_people(
    text: str, steps: list[str], grouping: str, wanted: str, drawn: Tables, salt: int
) -> None:
    frames = Frames()
    frame = accepted(frames, text, steps)
    check(frames, frame, grouping, wanted, drawn, without(drawn, 1), salt)
    whole = frames.collected(frame, drawn, salt)
    rest = frames.collected(frame, without(drawn, 1), salt)
    who = frame._relation.facts.identifier
    assert counter(rest) == counter(whole.filter(pl.col(who) != 1))


@examples(50, 400)
@given(**people)  # type: ignore[arg-type]
def test_an_individual_of_several_frames_moves_no_more_than_declared(**drawn: Any) -> None:
    check_people(**drawn)


@pytest.mark.slow
@settings(max_examples=6_000)
@given(**people)  # type: ignore[arg-type]
def test_an_individual_of_several_frames_never_moves_more(**drawn: Any) -> None:
    check_people(**drawn)


@st.composite
def of_rows(draw: st.DrawFn) -> tuple[dict[str, Rows], Tables, Tables]:
    """Tables that differ in as many rows of each as one individual owns there."""
    adjacency: Any = draw(st.sampled_from(["add-remove", "change-one"]))
    units = {name: Rows(adjacency, draw(st.integers(1, 3))) for name in SCHEMAS}
    one, other = draw(tables()), {}
    for name, unit in units.items():
        new = draw(rows(name, st.just(1), 3))[: unit.contributions]
        gone = len(new) if adjacency == "change-one" else 0
        if gone > len(one[name]):
            gone, new = 0, []
        other[name] = one[name][gone:] + new
    return units, one, other


@examples(30, 600)
@given(
    st.sampled_from(UNLIMITED),
    st.lists(st.sampled_from([s for s in THEN if "limit" not in s]), max_size=2),
    st.sampled_from(GROUPINGS),
    st.sampled_from(TEXTS[:-2]),
    of_rows(),
)
def test_rows_of_several_frames_move_no_more_than_declared(
    text: str,
    steps: list[str],
    grouping: str,
    wanted: str,
    drawn: tuple[dict[str, Rows], Tables, Tables],
) -> None:
    units, one, other = drawn
    frames = Frames(units)
    check(frames, accepted(frames, text, steps), grouping, wanted, one, other, 0)


BY_G = GROUPINGS[1]
ON_G = 'left_on=["id", "g"], right_on=["who", "g"]'
ON_GH = 'left_on=["id", "g", "h"], right_on=["who", "g", "h"]'
REACHED: dict[tuple[str, str], int] = {
    ('p.limit_rows(2).join(P, on="g")', "f"): 4,
    ('p.limit_rows(2).join(P, on="g", how="left")', BY_G): 4,
    ('p.limit_rows(2).join(P, on=["g", "h"])', "f"): 2,
    ('p.limit_rows(2).join(P, on="g", how="semi")', "f"): 2,
    ("p.limit_rows(2).join(q.limit_rows(3))", "f"): 6,
    ('p.limit_rows(2).join(q.limit_rows(3), how="left")', BY_G): 6,
    ('p.limit_rows(2, by="g").limit_groups(1, by="g").join(q.limit_rows(2))', BY_G): 4,
    ('p.limit_rows(2).join(q.limit_rows(3), suffix="2")', GROUPINGS[6]): 6,
    ('p.limit_rows(2).join(q, how="semi")', "f"): 2,
    ('p.limit_rows(2).join(q, how="anti")', BY_G): 2,
    (f'p.limit_rows(2).join(q, {ON_G}, how="semi")', "f"): 2,
    (f'p.limit_rows(2).join(q, {ON_G}, how="anti")', "f"): 2,
    ("p.limit_rows(2).concat(p.limit_rows(3))", "f"): 5,
    (f"{SAME}.limit_rows(2).concat({BOTH}.limit_rows(3))", BY_G): 5,
    (f'p.limit_rows(2).join(q.limit_rows(3, by="g"), {ON_G})', "f"): 6,
    (f'p.limit_rows(2).join(q.limit_rows(3, by="g"), {ON_GH}, how="left")', "f"): 6,
    (f'p.limit_rows(2, by="g").join(q.limit_rows(3), {ON_GH})', "f"): 6,
    (f'p.limit_rows(2).join(q.limit_rows(1, by=["g", "b"]), {ON_G})', "f"): -1,
    (f'p.limit_rows(2, by=["g", "x"]).join(q.limit_rows(3), {ON_G})', "f"): -1,
    (LIMITED[10], BY_G): 4,  # one row in each of two groups, and two in one
    (LIMITED[11], "f"): 4,
    ('r.drop("l").limit_groups(1, by="g").explode("a")', "f"): -1,
    ('r.select("id", "g", "a").explode("a").limit_rows(3)', "f"): 3,
}


@pytest.mark.parametrize(("text", "grouping"), REACHED)
def test_what_is_declared_is_reached(text: str, grouping: str) -> None:
    """By an individual with the same row many times in every frame, or in none but the first of an
    anti join, where a row there would drop its rows here; -1 where nothing bounds it.
    """
    frames = Frames()
    frame = frames.frame(text)
    if REACHED[text, grouping] < 0:
        with pytest.raises(dp.UnboundedSensitivity):
            query_of(frame.dp_count())
        return
    asked = query_of(eval(grouping, {"f": frame}).agg(n=dp.count()))
    (use,) = measurements_of(asked)
    assert use.sensitivity.l1 == REACHED[text, grouping]
    one: Tables = {
        "p": [{"id": 1, "g": "a", "c": "a", "h": 0}] * 9,
        "q": [{"who": 1, "g": "a", "h": 0}] * 9,
        "r": [{"id": 1, "g": "a", "a": [1, 1]}] * 9,
    }
    if 'how="anti"' in text:
        one["q"] = []
    other: Tables = {name: [] for name in one}
    before, after = (exact_tables(asked, frames.data(t)) for t in (one, other))
    most = moved(use.part, before, after, asked.scope)
    if (text, grouping) != (LIMITED[10], BY_G):
        assert most.l1 == use.sensitivity.l1
        assert most.linf == use.sensitivity.linf


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ('p.limit_rows(1, by="h").limit_rows(3).join(q.limit_rows(1, by="y"), {on})', RowLimit),
        ('p.limit_rows(4).join(q.limit_groups(1, by="y"), {on})', GroupLimit),
        ('p.limit_groups(3, by="h").join(q.limit_rows(2), {on})', GroupLimit),
    ],
)
def test_rows_that_meet_none_have_one_more_value(text: str, most: type) -> None:
    """Two rows find nobody with their key and have null there, one meets a row of its own."""
    tables_: Tables = {
        "p": [{"id": 1, "h": h} for h in (0, 1, None)],
        "q": [{"who": 1, "h": 0, "y": 7}],
        "r": [],
    }
    frames = Frames()
    on = 'left_on=["id", "h"], right_on=["who", "h"], how="left"'
    frame = frames.frame(text.format(on=on))
    found = frames.collected(frame, tables_)
    assert found["y"].to_list().count(None) == 2
    limits = [limit for limit in frame._relation.facts.limits if isinstance(limit, most)]
    assert limits
    check_facts(frame._relation.facts, found)


def test_elements_of_public_lists_are_counted() -> None:
    """Two rows meet two lists each, of which one has three elements and one none: 4 rows each, and
    12 are declared, for lists are not told apart.
    """
    frames = Frames()
    text = 'p.limit_rows(2).join(L, on="g").explode("t", max_length=3)'
    asked = query_of(frames.frame(text).dp_count())
    (use,) = measurements_of(asked)
    (found,) = exact_tables(
        asked, frames.data({"p": [{"id": 1, "g": "a"}] * 5, "q": [], "r": []})
    ).values()
    assert found.values.tolist() == [8]
    assert use.sensitivity.l1 == 2 * 2 * 3


def test_dropped_columns_of_two_frames_are_not_one() -> None:
    """One row for each of any number of values, and one value of something else."""
    with pytest.raises(dp.UnboundedSensitivity):
        query_of(Frames().frame(LIMITED[-2]).dp_count())


@pytest.mark.parametrize("contributions", [1, 2, 3])
@pytest.mark.parametrize("others", [1, 2, 5])
def test_rows_of_both_are_reached(contributions: int, others: int) -> None:
    frames = Frames(
        {"p": Rows("add-remove", contributions), "q": Rows("add-remove", others), "r": Rows()}
    )
    asked = query_of(frames.frame(CONCATS[0]).dp_count())
    (use,) = measurements_of(asked)
    tables_: Tables = {"p": [{}] * contributions, "q": [{}] * others, "r": []}
    (table,) = exact_tables(asked, frames.data(tables_)).values()
    reached = int(table.values.sum())
    assert reached == contributions + others
    assert reached <= use.sensitivity.l1 < reached + contributions


# --------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    "text",
    [
        'p.join(P, on="x", how="full")',
        'p.join(P, on="nothing")',
        "p.join(P)",
        'p.join(P, left_on=["g", "h"], right_on="g")',
        'p.join(P, left_on="x", right_on="g")',
        'p.join(P, left_on="g", right_on="v")',
        'p.join(pl.DataFrame({"h": pl.Series([1], dtype=pl.Int32)}), on="h")',
        'p.join(pl.DataFrame({"h": [1.0]}), on="h")',
        'p.with_columns(f=pl.col("h") / 2).join(pl.DataFrame({"f": [1.0]}), on="f")',
        'p.join(pl.DataFrame({"g": ["a"], "h": [1], "h2": [1]}), on="g", suffix="2")',
        'p.join(pl.DataFrame({"g": ["a"], "h": [1]}), on="g", suffix="")',
        'p.join(pl.DataFrame({"g": ["a"], "^x$": [1]}), on="g")',
        'p.join(pl.DataFrame({"g": ["a"], "x": [object()]}), on="g")',
        'p.join(q, on="g")',
        'p.join(q, left_on="id", right_on="g")',
        'p.join(q, how="full")',
        "p.join(1)",
        "p.concat(q)",
        "p.concat(P)",
        'p.concat(p.rename({"id": "g", "g": "id"}))',
        'p.concat(p.with_columns(pl.col("h").cast(pl.Int32)))',
        'r.explode("l")',
        'r.explode("g", max_length=2)',
        'r.explode("l", max_length=0)',
        'r.explode("l", max_length=True)',
        'r.explode(["l", "a"], max_length=2)',
        'r.explode("l", max_length=2).explode("l", max_length=2)',
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_before_any_data(text: str) -> None:
    with pytest.raises(dp.DPFrameError):
        Frames().frame(text)


def test_frames_of_other_sessions_and_units_are_refused() -> None:
    one, other = Frames(), Frames()
    for merge in ("join", "concat"):
        with pytest.raises(dp.UnsupportedOperation, match="sessions"):
            getattr(one.frames["p"], merge)(other.frames["p"])
    rows_ = Frames({name: Rows() for name in SCHEMAS})
    with pytest.raises(dp.UnsupportedOperation, match="identifier"):
        rows_.frame("p.join(q)")
    parts = one.session.partition(one.frame('p.limit_groups(1, by="g")'), "g", ["a", "b"])
    for merge in ("join", "concat"):
        with pytest.raises(dp.UnsupportedOperation, match="sessions"):
            getattr(parts["a"], merge)(parts["b"])
        with pytest.raises(dp.UnsupportedOperation, match="sessions"):
            getattr(parts["a"], merge)(one.frames["p"])
    assert isinstance(one.frames["p"]._relation.facts.unit, Identifier)


# ------------------------------------------------------------------------------ fingerprints

FINGERPRINTS = [
    'p.limit_rows(2).join(P, on="g").limit_rows(9)',
    'p.limit_rows(2).join(P, on="g", how="left").limit_rows(9)',
    'p.limit_rows(2).join(P.with_columns(v=pl.col("v") + 1), on="g").limit_rows(9)',
    'p.limit_rows(2).join(P.with_columns(pl.col("v").cast(pl.Int32)), on="g").limit_rows(9)',
    'p.limit_rows(2).join(P, on="g", suffix="_other").limit_rows(9)',
    'p.limit_rows(2).join(P, left_on="c", right_on="g").limit_rows(9)',
    'p.limit_rows(2).join(q.limit_rows(3)).limit_rows(9)',
    'p.limit_rows(2).join(q.limit_rows(3), how="left").limit_rows(9)',
    'p.limit_rows(2).join(q.filter(pl.col("y") > 0).limit_rows(3)).limit_rows(9)',
    'p.limit_rows(2).join(q.filter(pl.col("y") > 1).limit_rows(3)).limit_rows(9)',
    'p.limit_rows(2).join(q.join(P, on="h", how="semi").limit_rows(3)).limit_rows(9)',
    'p.limit_rows(2).join(q.join(C, on="g", how="semi").limit_rows(3)).limit_rows(9)',
    "p.concat(p).limit_rows(9)",
    'p.concat(p.filter(pl.col("h") > 0)).limit_rows(9)',
    'r.explode("l", max_length=2).drop("a").limit_rows(9)',
    'r.explode("l", max_length=3).drop("a").limit_rows(9)',
]  # fmt: skip


def fingerprint(text: str) -> str:
    found: str = Frames().frame(text).dp_count().plan(epsilon=1).fingerprint
    return found


def test_fingerprints_tell_frames_apart() -> None:
    found = [fingerprint(text) for text in FINGERPRINTS]
    assert len(set(found)) == len(found)
    assert [fingerprint(text) for text in FINGERPRINTS] == found
    code = "from tests.laws.test_several_frames import *; print(*map(fingerprint, FINGERPRINTS))"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout.split() == found


def test_fingerprints_tell_identifiers_of_other_frames_apart() -> None:
    found = {
        Frames({"p": "id", "q": who, "r": "id"})
        .frame('p.limit_rows(2).join(q.limit_rows(2), suffix="2").limit_rows(3)')
        .dp_count()
        .plan(epsilon=1)
        .fingerprint
        for who in ("who", "h", "y")
    }
    assert len(found) == 3


def test_the_form_of_a_public_frame_does_not_matter() -> None:
    p, public = Frames().frames["p"], PUBLIC["P"]
    forms = [
        public,
        public.lazy(),
        pl.concat([public[:2], public[2:]], rechunk=False),
        public.with_columns(pl.all().set_sorted()),
    ]
    plans = [p.join(f, on="g").limit_rows(1).dp_count().plan(epsilon=1) for f in forms]
    assert len({plan.fingerprint for plan in plans}) == 1


def test_plans_say_what_reviewers_need() -> None:
    frames = Frames()
    text = (
        'p.limit_rows(2).join(q.filter(pl.col("y") > 0).limit_rows(3)).join(P, on="g", suffix="_P")'
    )
    told = " ".join(frames.frame(text).dp_count().explain(details=True, epsilon=1).split())
    for wanted in (
        "join(q.filter(col(\"y\") > 0).limit_rows(3), on the identifier, how='inner')",
        "public frame of 5 rows (g, h, v, e)",
        "each row becomes at most 2",
        "at most 12 rows",
        "all rows of one person (column who), in q",
    ):
        assert wanted in told, told
