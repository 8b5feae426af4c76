"""Constants of every type and size, in every operation: planned and rehearsed, or refused in words.

What dpframe or Polars fails at is a refusal too, but asks for a report; no constant needs that one.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from datetime import datetime, time, timedelta
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpframe as dp
from dpframe import pipeline
from dpframe.core.tree import Literal, Named, Tree, column_names, substitute
from dpframe.core.units import Rows
from dpframe.frames.facts import FrameFacts
from dpframe.frames.relation import Relation
from dpframe.frames.row_steps import WithColumns
from dpframe.lower.tables import lower_rows
from dpframe.parse.reader import read
from dpframe.rows.failures import BUG, FAILURES, OPTIMIZATIONS
from dpframe.rows.fold import words
from dpframe.rows.polars_dtypes import schema_from_polars
from dpframe.rows.registry import OPERATIONS
from tests.laws.amounts import examples
from tests.laws.checking import tree_of
from tests.laws.frames import FLOATS, SCHEMA, nasty_frame, wide_columns

NASTY = nasty_frame(12)
COLUMNS = wide_columns(NASTY)
OLD = tuple(map(int, pl.__version__.split(".")[:2])) < (1, 36)
ZONES = ["UTC", "Europe/Amsterdam", "America/New_York", "Asia/Kathmandu", "Pacific/Apia"]
UTC = pl.Datetime("us", "UTC")
MOMENTS = [
    datetime(1, 1, 1),
    datetime(1, 1, 1, 12),
    datetime(1677, 9, 21),
    datetime(1883, 11, 18, 12, 3),
    datetime(1970, 1, 1),
    datetime(2024, 3, 31, 2, 30),
    datetime(2024, 10, 27, 2, 30),
    datetime(2262, 4, 12),
    datetime(9999, 1, 1),
    datetime(9999, 12, 31, 23, 59, 59, 999_999),
]


def constants() -> Iterator[tuple[str, Any]]:
    """Expressions without columns, and how they are made."""
    for value in (*FLOATS, math.nan, 0, 1, -1, 2**31, 2**63 - 1, -(2**63), 2**64 - 1, 2**127 - 1):
        yield f"{value!r}", lambda v=value: pl.lit(v)
        for numeric in (pl.Int8, pl.UInt64, pl.Int128, pl.Float32, pl.Decimal(38, 2)):
            yield f"{value!r} as {numeric}", lambda v=value, t=numeric: pl.lit(v).cast(t)
    for text in ("0", "1.50", "-0.00", "9" * 38, "0." + "9" * 38, "1E+30", "1E-38"):
        yield f"Decimal {text}", lambda v=text: pl.lit(Decimal(v))
    for moment in MOMENTS:
        yield f"{moment}", lambda v=moment: pl.lit(v)
        yield f"{moment} day", lambda v=moment: pl.lit(v.date())
        for zone in ZONES:
            yield (
                f"{moment} in {zone}",
                lambda v=moment, z=zone: pl.lit(v).dt.replace_time_zone(z),
            )
            for choice in ("earliest", "latest"):
                yield (
                    f"{moment} in {zone} {choice}",
                    lambda v=moment, z=zone, a=choice: pl.lit(v).dt.replace_time_zone(
                        z, ambiguous=a, non_existent="null"
                    ),
                )
            yield (
                f"{moment} to {zone}",
                lambda v=moment, z=zone: pl.lit(v, pl.Datetime("us", "UTC")).dt.convert_time_zone(
                    z
                ),
            )
        for unit in ("ms", "us", "ns"):
            yield f"{moment} in {unit}", lambda v=moment, u=unit: pl.lit(v).cast(pl.Datetime(u))
            yield f"{moment} of {unit}", lambda v=moment, u=unit: pl.lit(v, pl.Datetime(u))
            yield (
                f"{moment} made in {unit}",
                lambda v=moment, u=unit: pl.datetime(
                    v.year, v.month, v.day, v.hour, v.minute, microsecond=999_999, time_unit=u
                ),
            )
            yield f"{moment} unit {unit}", lambda v=moment, u=unit: pl.lit(v).dt.cast_time_unit(u)
    for span in (timedelta.min, timedelta.max, timedelta(0), timedelta(microseconds=-1)):
        yield f"{span!r}", lambda v=span: pl.lit(v)
        for unit in ("ms", "us", "ns"):
            yield f"{span!r} in {unit}", lambda v=span, u=unit: pl.lit(v).cast(pl.Duration(u))
    for clock in (time(0), time(23, 59, 59, 999_999)):
        yield f"{clock!r}", lambda v=clock: pl.lit(v)
    for word in ("", "a", "\x00", "日本語🙂", "9" * 400, '"{[', "\\"):
        yield f"{word[:9]!r}", lambda v=word: pl.lit(v)
        for kind in (pl.Int64, pl.Float64, pl.Date, pl.Time, pl.Categorical, pl.Enum([word, "b"])):
            yield f"{word[:9]!r} as {kind}", lambda v=word, t=kind: pl.lit(v).cast(t)
    for other in (None, True, b"\xff", [], [1, None], {"a": 1}, dt.UTC):
        yield f"{other!r}", lambda v=other: pl.lit(v)
    for nothing in (pl.Int8, pl.Date, pl.Duration("ns"), pl.Categorical, pl.Decimal(5, 1), pl.Null):
        yield f"None of {nothing}", lambda t=nothing: pl.lit(None, dtype=t)


def in_words(refusal: dp.DPFrameError, of: object) -> None:
    """A refusal that was foreseen."""
    assert BUG not in str(refusal), of


def literals() -> list[Tree]:
    """The constants, as they are read; those that are refused are."""
    found: dict[Tree, None] = {}
    for name, make in constants():
        try:
            expression = make()
        except Exception:  # Polars itself has no such constant
            continue
        try:
            (named,) = read(expression, SCHEMA)
            found[named.tree] = None
        except dp.DPFrameError as refusal:
            in_words(refusal, name)
    return list(found)


LITERALS = literals()
TEMPLATES = [tree_of(text) for operation in OPERATIONS for text in operation.examples]
PLACES = [(tree, name) for tree in TEMPLATES for name in column_names(tree)]


def check(trees: list[Tree]) -> None:
    """Planned, lowered and run without rows, and with some."""
    accepted: list[Tree] = []
    for tree in trees:
        try:
            words(tree)
            Relation.of("data", FrameFacts(COLUMNS, Rows())).then(
                WithColumns((Named("out", tree),))
            )
            accepted.append(tree)
        except dp.DPFrameError as refusal:
            in_words(refusal, tree)
    accepted = [tree for tree in accepted if rehearsed(tree)] if OLD else accepted
    if accepted:
        run(accepted, NASTY.clear())
        run(accepted, NASTY)


def rehearsed(tree: Tree) -> bool:
    """Whether old Polars runs it without rows; what it does not is refused before a charge."""
    try:
        run([tree], NASTY.clear())
    except FAILURES:
        return False
    return True


def run(trees: list[Tree], frame: pl.DataFrame) -> None:
    made = tuple(Named(f"out {i}", tree) for i, tree in enumerate(trees))
    relation = Relation.of("data", FrameFacts(COLUMNS, Rows())).then(WithColumns(made))
    lowered = lower_rows(relation, frame.lazy(), pl, 0)
    found = schema_from_polars(lowered.collect(optimizations=OPTIMIZATIONS).schema)
    assert found == schema_from_polars(pl.Schema(pipeline.schema_of(relation)))


def test_constants_alone() -> None:
    check([tree for tree in LITERALS if isinstance(tree, Literal)])
    assert len(LITERALS) > 250


@pytest.mark.parametrize("number", range(8))
def test_constants_in_every_operation(number: int) -> None:
    """Each operand of each operation, each with some of the constants."""
    made = []
    for i, (tree, name) in enumerate(PLACES[number::8]):
        for j in range(3):
            literal = LITERALS[(37 * i + 101 * j + 7 * number) % len(LITERALS)]
            made.append(substitute(tree, {name: literal}))
    check(made)


@st.composite
def nested(draw: st.DrawFn, depth: int = 3) -> Tree:
    tree, _ = draw(st.sampled_from(PLACES))
    replacements: dict[str, Tree] = {}
    for name in column_names(tree):
        choice = draw(st.integers(0, 2))
        if choice == 0:
            replacements[name] = draw(st.sampled_from(LITERALS))
        elif choice == 1 and depth:
            replacements[name] = draw(nested(depth - 1))
    return substitute(tree, replacements)


@examples(30, 240)
@given(st.lists(nested(), min_size=1, max_size=6))
def test_constants_in_random_nestings(trees: list[Tree]) -> None:
    check(trees)


@pytest.mark.slow
@settings(max_examples=5_000)
@given(st.lists(nested(), min_size=1, max_size=6))
def test_constants_in_many_random_nestings(trees: list[Tree]) -> None:
    check(trees)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(40))
def test_every_constant_in_every_operation(number: int) -> None:
    made = [substitute(t, {n: v}) for t, n in PLACES for v in LITERALS]
    chosen = made[number::40]
    for start in range(0, len(chosen), 200):
        check(chosen[start : start + 200])


def test_schemas_of_every_type() -> None:
    schema = {**SCHEMA, "cat": pl.Categorical(), "bin": pl.Binary(), "null": pl.Null()}
    frame = dp.Session(epsilon=1).protect(pl.LazyFrame(schema=schema), dp.Rows())
    assert frame.schema.keys() == schema.keys()
    assert frame.schema["cat"] == pl.Categorical


def test_what_fails_inside_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake in one operation's rule is no traceback of another kind."""
    from dpframe.rows.registry import BY_NAME

    frame = dp.Session(epsilon=1).protect(pl.LazyFrame(schema={"x": pl.Float64}), dp.Rows())
    for error in (
        KeyError("x"),
        pl.exceptions.PanicException("x"),
        OverflowError(),
        AssertionError(),
    ):

        def fail(*_: Any, failed: BaseException = error) -> Any:
            raise failed

        monkeypatch.setattr(type(BY_NAME["sqrt"]), "domain", fail)
        with pytest.raises(dp.UnsupportedOperation, match=type(error).__name__):
            frame.with_columns(y=pl.col("x").sqrt())
