"""What follows from the class statement of an operation."""

from __future__ import annotations

import polars as pl
import pytest

from dpframe.core.dtypes import STRING
from dpframe.core.tree import Call, Column, Literal
from dpframe.errors import UnsupportedOperation
from dpframe.rows.arithmetic import Add, TrueDiv
from dpframe.rows.comparison import IsBetween
from dpframe.rows.fold import words
from dpframe.rows.horizontal import SumHorizontal
from dpframe.rows.logic import IsNotNull
from dpframe.rows.nested import ListGet, ToList
from dpframe.rows.operation import on, operation, spell_out
from dpframe.rows.strings import Find, Split, StripChars, StripPrefix, TextToText, ToLowercase
from dpframe.rows.temporal import DateOf

SOURCE, TEXT = Column("s"), Literal("a", STRING)


def test_a_class_has_its_name_its_functions_and_its_summary_from_its_statement() -> None:
    assert StripPrefix.name == "str_strip_prefix"
    assert StripPrefix.method == "str.strip_prefix"
    assert StripPrefix.reads == ("StringExpr.StripPrefix",)
    assert StripPrefix.summary == "The text without a constant prefix, where it has it."
    assert Find.summary.endswith(
        "begins: the bytes before it, as Int64; null where it does not occur."
    )
    assert IsNotNull.name == IsNotNull.method == "is_not_null"


def test_a_namespace_is_said_once() -> None:
    assert (ListGet.name, ListGet.method) == ("list_get", "list.get")
    assert ListGet.reads == ("ListExpr.Get", "ArrayExpr.Get")
    assert StripChars.name == "str_strip_chars"


def test_what_a_class_states_itself_stands() -> None:
    assert ToLowercase.reads == ("StringExpr.Lowercase",)
    assert (DateOf.name, DateOf.method) == ("dt_date", "dt.date")
    assert (ToList.name, ToList.method) == ("list_of_array", "arr.to_list")


def test_a_class_without_examples_is_a_base() -> None:
    assert not hasattr(TextToText, "name")

    @operation
    class Shout(TextToText):
        """Text that is loud.

        Nobody reads this paragraph.
        """

        examples = on("s", "str.shout()")

    assert (Shout.name, Shout.summary) == ("str_shout", "Text that is loud.")


def test_constants_are_operands_and_then_parameters() -> None:
    assert StripPrefix.read([SOURCE, TEXT], None) == StripPrefix("a").of(SOURCE)
    split = Split("a", inclusive=True).of(SOURCE)
    assert Split.read([SOURCE, TEXT], True) == split
    assert Split.read([SOURCE, TEXT], {"inclusive": True, "strict": False}) == split
    with pytest.raises(ValueError, match="longer"):
        StripPrefix.read([SOURCE, TEXT, TEXT], None)
    with pytest.raises(KeyError, match="inclusive"):
        Split.read([SOURCE, TEXT], {"strict": False})


def test_a_refusal_names_the_constant_and_the_method() -> None:
    with pytest.raises(UnsupportedOperation, match="the prefix of str"):
        StripPrefix.read([SOURCE, SOURCE], None)
    with pytest.raises(UnsupportedOperation, match="the separator of str"):
        Split.read([SOURCE, SOURCE], True)


def test_words_and_the_lowered_form_call_the_method_with_the_constants() -> None:
    split = Split("a", inclusive=True)
    assert words(split.of(SOURCE)).endswith('.str.split("a", inclusive=True)')
    assert words(Split("a", inclusive=False).of(SOURCE)).endswith('.str.split("a")')
    assert words(StripChars(None).of(SOURCE)).endswith(".str.strip_chars()")
    expected = pl.col("s").str.split("a", inclusive=True)
    assert split.apply(pl, pl.col("s")).meta.eq(expected)


def test_operators_and_functions_have_their_names_too() -> None:
    assert (Add.name, Add.reads, Add.arity) == ("add", ("Operator.Plus",), 2)
    assert TrueDiv.name == "truediv"
    assert (SumHorizontal.name, SumHorizontal.reads) == ("sum_horizontal", ("SumHorizontal",))
    assert IsBetween.reads == ("Boolean.IsBetween",)


def test_words_leave_out_a_constant_that_has_its_default() -> None:
    assert words(IsBetween("left").of(SOURCE, TEXT, TEXT)).endswith('("a", "a", closed="left")')
    assert words(IsBetween().of(SOURCE, TEXT, TEXT)).endswith('("a", "a")')
    total = SumHorizontal(ignore_nulls=False).of(SOURCE, SOURCE)
    assert words(total) == 'sum_horizontal(col("s"), col("s"), ignore_nulls=False)'
    assert words(SumHorizontal().of(SOURCE)) == 'sum_horizontal(col("s"))'


def test_a_function_has_as_many_operands_as_it_needs() -> None:
    assert Add.read([SOURCE, TEXT], None) == Call(Add(), (SOURCE, TEXT))
    with pytest.raises(LookupError, match="add"):
        Add.read([SOURCE], None)
    with pytest.raises(ValueError, match="longer"):
        Add.read([SOURCE, TEXT, TEXT], None)
    with pytest.raises(UnsupportedOperation, match="at least one column"):
        SumHorizontal.read([], {"ignore_nulls": True})


def test_examples_name_columns_outside_of_texts() -> None:
    assert on("s sb", "str.len_bytes()") == spell_out("s.str.len_bytes(); sb.str.len_bytes()")
    assert spell_out('pl.struct(a=f64, b=d); s.replace({"a": "b"}); d.dt.date() == d') == (
        'pl.struct(a=pl.col("f64"), b=pl.col("d"))',
        'pl.col("s").replace({"a": "b"})',
        'pl.col("d").dt.date() == pl.col("d")',
    )
