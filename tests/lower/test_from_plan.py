"""Frames, groups and tables are read back from physical plans."""

from __future__ import annotations

import datetime as dt
import warnings
from dataclasses import replace
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe import pipeline
from dpframe.aggregates.aggregate import Query
from dpframe.core.windows import Windows
from dpframe.errors import DPFrameError
from dpframe.frames.partition import windows_read
from dpframe.frames.relation import Relation, frames_of
from dpframe.kernel import Refused
from dpframe.kernel import plan as p
from dpframe.lower import Handles, tables_of_plan
from dpframe.optimise.physical import Translation, translate
from dpframe.optimise.prepared import PreparedTogether
from dpframe.rows.registry import OPERATIONS
from tests.kernel import test_plain
from tests.laws import queries
from tests.laws.frames import SCHEMA
from tests.laws.neighbours import UNITS, query_of
from tests.lower.inverse import require_inverse, watch_translations
from tests.plan.documents import ALL

TOWNS = ["a", "b"]


@pytest.mark.parametrize("name", ALL)
def test_documents_say_all_that_decides_their_tables(name: str) -> None:
    with watch_translations() as found:
        ALL[name]()
    assert found
    for translation in found:
        require_inverse(translation)


@pytest.mark.parametrize("name", test_plain.query_names())
def test_plans_say_all_that_decides_their_tables(name: str) -> None:
    prepared = test_plain.prepare(name)
    translation = translate(prepared)
    require_inverse(translation)
    require_equal_facts(prepared, translation)


@given(
    st.sampled_from(UNITS),
    st.sampled_from(queries.GROUPINGS),
    queries.expressions(),
    st.lists(st.sampled_from(queries.STEPS), max_size=3),
)
def test_generated_plans_say_all_that_decides_their_tables(
    unit: Any, grouping: str, expression: str, steps: list[str]
) -> None:
    asked = queries.accepted(expression, unit, grouping, steps)
    if asked is None:
        return
    try:
        prepared = pipeline.alone(pipeline.plan(asked, dp.ApproxDP(1, Fraction(1, 10**6)), None))
    except DPFrameError:
        return
    translation = translate(prepared)
    require_inverse(translation)
    require_equal_facts(prepared, translation)


OSLO = "datetime(2024, 6, 1, 0, 30, tzinfo=ZoneInfo('Europe/Oslo'))"
LAGOS = "datetime(2024, 6, 1, 0, 30, tzinfo=ZoneInfo('Africa/Lagos'))"
LETTERS = 'pl.Enum(["x", "y"])'
WRITTEN = [
    f'pl.col("i8").replace_strict([5], [{OSLO}], default=None).dt.day()',
    f'pl.col("i8").replace_strict([5], [{OSLO}], default=None) == {LAGOS}',
    f'pl.when(pl.col("i8") > 3).then(pl.lit("x", dtype={LETTERS})).otherwise(pl.lit("y"))',
    f'pl.col("i8").replace_strict({{5: "x"}}, default="y").cast({LETTERS}) == "x"',
    f'pl.lit("x", dtype={LETTERS}).fill_null(pl.lit("y", dtype={LETTERS})).is_in(["x"])',
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "text", dict.fromkeys([*(t for one in OPERATIONS for t in one.examples), *WRITTEN])
)
def test_expressions_are_read_back_as_they_were_written(text: str) -> None:
    """With all that a constant is, also the name of its zone, which no plan has."""
    names = {**queries.NAMES, "datetime": dt.datetime, "ZoneInfo": ZoneInfo}
    schema = pl.DataFrame(schema=SCHEMA).lazy()
    frame = (
        dp.Session(epsilon=1).protect(schema, unit=dp.Rows()).with_columns(made=eval(text, names))
    )
    asked = query_of(frame.agg(n=pl.col("made").dp_count()))
    prepared = pipeline.alone(pipeline.plan(asked, dp.PureDP(1), None))
    translation = translate(prepared)
    places = [(translation.parts[0].draw_tables, None)]
    (((found,),)) = tables_of_plan(translation.plan, translation.handles, places)
    (step, _), *_ = asked.relation.steps
    (written,) = step.exprs
    read = [
        one.tree for step, _ in found.relation.steps for one in step.named if one.name == "made"
    ]
    assert [repr(tree) for tree in read] == [repr(written)]


def test_moments_that_differ_in_the_name_of_their_zone_alone_are_refused() -> None:
    """The plan has one text for both."""
    frame = dp.Session(epsilon=1).protect(pl.LazyFrame({"k": [5]}), unit=dp.Rows())
    at = dt.datetime(2024, 1, 15, 12)
    one, other = (at.replace(tzinfo=ZoneInfo(zone)) for zone in ("Europe/Oslo", "Europe/Berlin"))
    made = [pl.col("k").replace_strict([5], [moment], default=None) for moment in (one, other)]
    query = frame.filter(made[0].dt.hour() == 12, made[1].dt.hour() == 12).dp_count()
    with pytest.raises(dp.Unsound, match="differ in the name of their zone alone"):
        query.collect(epsilon=1)


def require_equal_facts(prepared: PreparedTogether, translation: Translation) -> None:
    """Check that the frames that are read back have the facts of those that were asked for, as far
    as lowering or a charge depends on them.
    """
    for places, part in zip(translation.parts, prepared.parts, strict=False):
        salt = part.query.relation.salt
        asked = [(places.draw_tables, salt)]
        (found,) = tables_of_plan(translation.plan, translation.handles, asked)
        for one in found:
            require_alike(one.relation, part.query.relation)
            assert one.relation.salt == salt
            for table in one.tables.values():
                assert table.cells is None or table.cells.size > 0
        read = {windows_read(one.relation, one.groups) for one in found}
        kept = {table.kept for one in part.draws for table in one.measurement.tables}
        assert read == windows_of(part.query, kept)


def windows_of(query: Query, sets: set[Any]) -> set[Windows | None]:
    groups: Any = query.groups
    by = [groups if kept is None else groups.margin(kept) for kept in sets]
    return {windows_read(query.relation, one) for one in by}


def require_alike(one: Relation, asked: Relation) -> None:
    mine, theirs = one.facts, asked.facts
    assert [f.token for f in frames_of(one)] == [f.token for f in frames_of(asked)]
    for name, known in mine.columns.items():
        assert repr(theirs.columns[name]) == repr(known)  # NaN is not itself
    assert (mine.unit, mine.time is None) == (theirs.unit, theirs.time is None)
    assert (mine.copies, mine.complete, mine.norm) == (theirs.copies, theirs.complete, theirs.norm)


# -- what a plan names -----------------------------------------------------------------------------


def planned(ask: Any, unit: Any = "who") -> Translation:
    frame = pl.LazyFrame(
        schema={"who": pl.Int64, "town": pl.String, "age": pl.Int64, "kind": pl.Enum(["x", "y"])}
    )
    session = dp.Session(epsilon=1, delta=Fraction(1, 10**6))
    here = session.protect(frame, unit=unit, name="here", bounds={"age": (0, 90)})
    with warnings.catch_warnings(action="ignore"), watch_translations() as found:
        ask(here).plan(epsilon=1)
    return found[-1]


def read(translation: Translation, plan: p.Plan | None = None, **handles: Any) -> None:
    plan = translation.plan if plan is None else plan
    given_frames = replace(translation.handles, **handles)
    tables_of_plan(plan, given_frames, [(range(len(plan.tables)), None)])


def counts_by_town(frame: Any) -> Any:
    return frame.limit_rows(2).group_by("town", keys=TOWNS).agg(dp.count())


ZONES = pl.DataFrame({"town": ["a", "a", "b"], "zone": [1, 2, 3]})


def with_frames(plan: p.Plan, kind: type, **fields: Any) -> p.Plan:
    frames = tuple(replace(f, **fields) if isinstance(f, kind) else f for f in plan.frames)
    assert frames != plan.frames
    return replace(plan, frames=frames)


def test_a_source_with_other_types_is_refused() -> None:
    counts = planned(counts_by_town)
    read(counts)
    other = (("town", "Int64"), ("who", "Int64"))
    with pytest.raises(Refused, match="another type"):
        read(counts, with_frames(counts.plan, p.Scan, columns=other))
    with pytest.raises(Refused, match="tables cannot be computed"):
        read(counts, with_frames(counts.plan, p.Scan, name="there"))


def test_rows_of_others_are_refused() -> None:
    counts = planned(counts_by_town)
    with pytest.raises(Refused, match="belong to others"):
        read(counts, with_frames(counts.plan, p.Scan, unit=p.Person("town", None, None)))
    owners = p.Owners("there", "town", "town")
    with pytest.raises(Refused, match="belong to others"):
        read(counts, with_frames(counts.plan, p.Scan, owners=owners))


def test_other_keys_are_refused() -> None:
    counts = planned(counts_by_town)
    (digest,) = counts.handles.public
    with pytest.raises(Refused, match="other public keys"):
        read(counts, public={digest: pl.DataFrame({"town": [*TOWNS, "c"]})})
    with pytest.raises(Refused, match="tables cannot be computed"):
        read(counts, public={})


def test_a_public_table_with_more_rows_is_refused() -> None:
    joined = planned(lambda f: f.limit_rows(2).join(ZONES, on="town").agg(dp.sum("zone", (0, 3))))
    read(joined)
    with pytest.raises(Refused, match="another number of rows"):
        read(joined, with_frames(joined.plan, p.Lookup, most=1))


def test_other_bounds_of_an_individual_are_refused() -> None:
    totals = planned(
        lambda f: f.group_by("who").agg(age=pl.col("age").sum()).agg(dp.sum("age", (0, 99)))
    )
    read(totals)
    with pytest.raises(Refused, match="other bounds"):
        read(totals, with_frames(totals.plan, p.Gather, bounds=((Fraction(0), Fraction(9)),)))


def test_a_shared_choice_of_rows_has_all_columns() -> None:
    """They are stated, and the frame has these and no others."""
    counts = planned(counts_by_town)
    read(counts, with_frames(counts.plan, p.KeepRows, of=("town", "who")))
    with pytest.raises(Refused, match="chosen by other columns"):
        read(counts, with_frames(counts.plan, p.KeepRows, of=("who",)))


def test_keys_have_the_width_of_their_column() -> None:
    """A digest does not tell it: two columns may have the same keys."""
    frame = pl.LazyFrame(schema={"n": pl.Int8, "x": pl.Int64})
    rows = dp.Session(epsilon=1).protect(frame, unit=dp.Rows(), name="rows")
    with watch_translations() as found:
        rows.group_by("n", keys=[1, 2]).agg(dp.count()).plan(epsilon=1)
    plan, handles = found[-1].plan, found[-1].handles
    (digest,) = handles.public
    wide = Handles(handles.sources, handles.names, {digest: pl.DataFrame({"n": [1, 2]})})
    (((one,)),) = tables_of_plan(plan, wide, [([0], None)])
    assert one.groups is not None
    assert one.groups.keys.schema == {"n": pl.Int8}


def test_moments_are_on_the_clocks_of_their_column() -> None:
    zone = ZoneInfo("Europe/Zurich")
    twice = [dt.datetime(2026, 10, 25, 2, 30, tzinfo=zone, fold=fold) for fold in (0, 1)]
    frame = pl.LazyFrame(schema={"at": pl.Datetime("us", "Europe/Zurich"), "x": pl.Int64})
    rows = dp.Session(epsilon=1).protect(frame, unit=dp.Rows(), name="rows")
    with watch_translations() as found:
        rows.filter(pl.col("at") > twice[0], pl.col("at") < twice[1]).dp_count().plan(epsilon=1)
    plan, handles = found[-1].plan, found[-1].handles
    (((one,)),) = tables_of_plan(plan, handles, [([0], None)])
    ((step, _),) = one.relation.steps
    calls: list[Any] = [*step.exprs]
    moments = [call.args[1].value for call in calls]
    assert moments == twice
    assert [at.fold for at in moments] == [0, 1]
    assert {at.tzinfo for at in moments} == {zone}


def test_frames_without_columns_have_their_rows() -> None:
    """Only the number of rows is read of both."""
    frame = pl.DataFrame({"x": [1, 2, 3]})
    session = dp.Session(epsilon=10**9)
    one, other = (session.protect(frame, unit=dp.Rows(), name=name) for name in ("one", "other"))
    both = one.with_columns(y=pl.col("x") + 1).select("y").concat(other.select(y="x"))
    assert both.agg(dp.count()).collect(epsilon=10**6).item() == 6


def test_margins_charge_the_windows_that_they_read() -> None:
    """One without the months reads all of them."""
    frame = pl.LazyFrame(schema={"who": pl.Int64, "day": pl.Date, "town": pl.String, "x": pl.Int64})
    session = dp.Session(epsilon=1, per="1mo")
    unit = dp.Identifier("who", window="1mo", time="day")
    rows = session.protect(frame, unit=unit, name="rows").limit_rows(1)
    month = pl.col("day").dt.month_start().alias("month")
    keys = {"town": TOWNS, "month": [dt.date(2026, 1, 1)]}
    median = dp.col("x").dp_median((0, 9))
    listed = rows.group_by("town", month, keys=keys).agg(median).plan(epsilon=1)
    cubed = rows.group_by(dp.cube("town", month), keys=keys).agg(median).plan(epsilon=1)
    assert listed.windows == Windows("1mo", 24312, 24312, without=False)
    assert cubed.windows == Windows("1mo")
