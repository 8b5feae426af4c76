"""Operations on text against plain Python, on awkward text."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from dpframe.core.dtypes import (
    BOOLEAN,
    DATE,
    FLOAT64,
    INT64,
    STRING,
    Domain,
    domain_of_dtype,
    enum_type,
)
from dpframe.core.interval import interval
from dpframe.core.tree import Column, Literal
from dpframe.errors import UnsupportedOperation
from dpframe.rows import fold
from tests.calls import call
from tests.rows.running import X, apply, assert_as_reference, evaluate, refusal, refusal_of

TEXTS = [
    None,
    "",
    "a",
    "  a \t",
    "ab$ab",
    "e\u0301X",
    "é",
    "ß ŉ",
    "İı",
    "ΑΣ ΑΣ.",
    "😀👍🏽z",
    "\x00a\n",
    "\u00a0a\u200b\x1c",
    "aaaa",
    "A1b2",
    "日本語",
    "(",
]
COLUMN = pl.Series("x", TEXTS, dtype=pl.String)
NEEDLES = ["", "a", "$", "(", "é", "\u0301", "😀"]


@pytest.mark.parametrize(
    "op", ["str_len_chars", "str_len_bytes", "str_to_lowercase", "str_to_uppercase"]
)
def test_without_options(op: str) -> None:
    assert_as_reference(op, COLUMN)


@pytest.mark.parametrize("needle", NEEDLES)
def test_constants_are_literal(needle: str) -> None:
    assert_as_reference("str_contains", COLUMN, pattern=needle, literal=True)
    assert_as_reference("str_starts_with", COLUMN, prefix=needle)
    assert_as_reference("str_ends_with", COLUMN, suffix=needle)
    assert_as_reference("str_strip_prefix", COLUMN, prefix=needle)
    assert_as_reference("str_strip_suffix", COLUMN, suffix=needle)
    for n in (-1, 0, 1, 2):
        assert_as_reference("str_replace", COLUMN, pattern=needle, value="$0$$", literal=True, n=n)


@pytest.mark.parametrize("side", ["", "_start", "_end"])
@pytest.mark.parametrize("characters", [None, "", "a ", "é\u0301", "$("])
def test_strip(side: str, characters: str | None) -> None:
    assert_as_reference(f"str_strip_chars{side}", COLUMN, characters=characters)


@pytest.mark.parametrize(
    ("pattern", "group"),
    [("a", 0), ("(a)(b)?", 2), ("[^a-z]+", 0), ("(?i)B", 0), ("^a", 0), ("a$", 0), (r"(\d)", 1)],
)
@pytest.mark.parametrize("value", ["", "$0", "[$1]", "$$", "${0}x", "$9", "z"])
def test_regular_expressions(pattern: str, group: int, value: str) -> None:
    assert_as_reference("str_contains", COLUMN, pattern=pattern, literal=False)
    assert_as_reference("str_extract", COLUMN, pattern=pattern, group=group)
    for n in (-1, 1):
        assert_as_reference("str_replace", COLUMN, pattern=pattern, value=value, literal=False, n=n)


@pytest.mark.parametrize("offset", [0, 1, -1, -3, 5, -100, 100, 2**62, -(2**63), 2**63 - 1])
def test_slices(offset: int) -> None:
    assert_as_reference("str_head", COLUMN, n=offset)
    assert_as_reference("str_tail", COLUMN, n=offset)
    for length in (None, 0, 1, 2, 100, 2**62):
        assert_as_reference("str_slice", COLUMN, offset=offset, length=length)


def test_titlecase_starts_words_with_capitals() -> None:
    column = pl.Series(["hello big world", "", None, "ÉCOLE"])
    assert apply("str_to_titlecase", column) == ["Hello Big World", "", None, "École"]


@pytest.mark.parametrize("ignore_nulls", [False, True])
def test_concat_joins_text_integers_and_booleans(ignore_nulls: bool) -> None:
    frame = pl.DataFrame(
        {
            "s": pl.Series(["a", None, ""]),
            "i": pl.Series([1, -(2**63), None], dtype=pl.Int64),
            "b": pl.Series([True, None, False]),
            "e": pl.Series(["p", "q", None], dtype=pl.Enum(["p", "q"])),
        }
    )
    tree = call(
        "concat_str",
        *map(Column, frame.columns),
        Literal("!", STRING),
        separator="-",
        ignore_nulls=ignore_nulls,
    )
    wanted = [None, None] if not ignore_nulls else ["-9223372036854775808-q-!", "-false-!"]
    assert evaluate(tree, frame).to_list() == ["a-1-true-p-!", *wanted]


def test_categorical_values_are_their_text() -> None:
    column = pl.Series(["b", "a", None, "b"], dtype=pl.Categorical)
    assert apply("str_to_uppercase", column) == ["B", "A", None, "B"]


def categories_of(op: str, *values: str, **options: Any) -> Domain:
    return fold.domain(call(op, X, **options), {"x": domain_of_dtype(enum_type(values))})


def test_known_values_stay_known() -> None:
    assert categories_of("str_to_uppercase", "a", "A", "ß").categories == ("A", "SS")
    assert categories_of("str_head", "ab", "ac", "b", n=1).categories == ("a", "b")
    found = categories_of("str_extract", "a1", "b", pattern=r"\d", group=0)
    assert found.categories == ("1",)
    assert found.nullable
    lengths = categories_of("str_len_bytes", "a", "日本")
    assert lengths.interval == interval(1, 6)
    numbers = categories_of("str_to_integer", "7", "-3", "x", base=10, dtype=INT64)
    assert numbers.interval == interval(-3, 7)
    declared = Domain(STRING, nullable=False, categories=("x", "y"))
    tree = call("concat_str", X, X, separator="", ignore_nulls=False)
    assert fold.domain(tree, {"x": declared}).categories == ("xx", "xy", "yx", "yy")


def test_facts_without_known_values() -> None:
    text = Domain(STRING, nullable=False)
    length = fold.domain(call("str_len_chars", X), {"x": text})
    assert not length.nullable
    assert length.interval == interval(0, 2**32 - 1)
    found = fold.domain(call("str_starts_with", X, prefix="a"), {"x": text})
    assert (found.dtype, found.categories) == (BOOLEAN, (False, True))


def test_refusals_name_the_type_and_a_remedy() -> None:
    error = refusal(call("str_to_lowercase", X), x=INT64)
    assert isinstance(error, UnsupportedOperation)
    assert str(error) == (
        "str.to_lowercase works on text, not on Int64\n"
        '  in: col("x").str.to_lowercase()\n'
        "  instead: cast it first: .cast(pl.String)"
    )
    assert ".dt" in str(refusal(call("str_head", X, n=1), x=DATE))
    joined = call("concat_str", X, separator="", ignore_nulls=False)
    assert "Float64" in str(refusal(joined, x=FLOAT64))


@pytest.mark.parametrize("pattern", ["(", "(?=a)", r"(a)\1", "[", r"(\w{1000}){1000}"])
def test_patterns_that_do_not_compile_are_refused(pattern: str) -> None:
    for op, constants in {
        "str_contains": {"literal": False},
        "str_extract": {"group": 0},
        "str_replace": {"value": "$0", "literal": False, "n": -1},
        "str_find": {"literal": False},
        "str_count_matches": {"literal": False},
    }.items():
        assert isinstance(refusal_of(op, pattern=pattern, **constants), UnsupportedOperation)
    for op in ("str_contains", "str_find", "str_count_matches"):
        assert_as_reference(op, COLUMN, pattern=pattern, literal=True)


def test_groups_that_do_not_exist_are_refused() -> None:
    assert "no group 2" in str(refusal_of("str_extract", pattern="(a)", group=2))
    assert "length" in str(refusal_of("str_slice", offset=0, length=-1))


def test_words_are_what_the_analyst_writes() -> None:
    shown = {
        fold.words(call("str_replace", X, pattern="a", value='"', literal=True, n=-1)),
        fold.words(call("str_contains", X, pattern=r"\d", literal=False)),
        fold.words(call("str_slice", X, offset=-2, length=None)),
        fold.words(call("concat_str", X, X, separator="-", ignore_nulls=True)),
    }
    assert shown == {
        'col("x").str.replace_all("a", "\\"", literal=True)',
        'col("x").str.contains("\\\\d")',
        'col("x").str.slice(-2)',
        'concat_str(col("x"), col("x"), separator="-", ignore_nulls=True)',
    }


def test_replacing_categories_gives_text() -> None:
    """Also where nothing is replaced, and where all is."""
    column = pl.Series("x", ["a", "b", None, "c"], dtype=pl.Categorical)
    for old, new in (
        (("a",), ("z",)),
        (("?",), ("z",)),
        ((None, "a", "b", "c"), ("n", "1", "2", "3")),
    ):
        found = evaluate(call("replace", X, old=old, new=new), pl.DataFrame({"x": column}))
        assert found.dtype == pl.String
        table = dict(zip(old, new, strict=True))
        assert found.to_list() == [table.get(v, v) for v in column.to_list()]
