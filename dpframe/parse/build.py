"""Builds calls, and takes the constants that operations need out of operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from dpframe.core.domain import Scalar
from dpframe.core.tree import Call, Literal, Option, Tree, call
from dpframe.errors import UnsupportedOperation
from dpframe.parse.literals import Values, single

Operand: TypeAlias = "Tree | Values"
Handler: TypeAlias = "Callable[[Sequence[Operand], Any], Tree]"
"""Makes the tree of a function from its operands and its parameters in Polars' form."""

_NAMES = """
add sub mul truediv floordiv mod pow neg
abs sign sqrt cbrt exp log log1p round floor ceil clip clip_between
sin cos tan cot arcsin arccos arctan arctan2 sinh cosh tanh arcsinh arccosh arctanh degrees radians
eq ne lt le gt ge eq_missing ne_missing and or xor not is_in is_between when
fill_null fill_nan is_null is_not_null is_nan is_not_nan is_finite is_infinite coalesce
min_horizontal max_horizontal sum_horizontal mean_horizontal any_horizontal all_horizontal
cast replace replace_strict struct field
str_len_chars str_len_bytes str_to_lowercase str_to_uppercase str_to_titlecase
str_contains str_starts_with str_ends_with str_slice str_head str_tail
str_strip_chars str_strip_chars_start str_strip_chars_end str_strip_prefix str_strip_suffix
str_find str_count_matches str_pad_start str_pad_end str_zfill str_split
str_replace str_extract concat_str str_to_date str_to_datetime str_to_time str_to_integer
dt_year dt_iso_year dt_quarter dt_month dt_week dt_weekday dt_day dt_ordinal_day
dt_hour dt_minute dt_second dt_millisecond dt_microsecond dt_nanosecond
dt_century dt_millennium dt_is_leap_year dt_days_in_month dt_date dt_time
dt_month_start dt_month_end dt_truncate dt_round dt_offset_by dt_timestamp
dt_cast_time_unit dt_convert_time_zone dt_replace_time_zone
dt_total_days dt_total_hours dt_total_minutes dt_total_seconds
dt_total_milliseconds dt_total_microseconds dt_total_nanoseconds
datetime duration dt_combine dt_to_string
list_len list_get list_contains list_sum list_mean list_min list_max list_slice list_of_array
concat_list cut
"""
OPERATIONS = frozenset(_NAMES.split())
"""Every operation that an expression can be read into."""


def make(op: str, *operands: Operand, **options: Option) -> Call:
    """A call of one of the `OPERATIONS`; a Series of one value becomes a constant."""
    if op not in OPERATIONS:
        raise AssertionError(f"{op} is not an operation")
    return call(op, *map(operand, operands), **options)


def operand(value: Operand) -> Tree:
    """An operand as a tree: several constants at once are refused."""
    return single(value) if isinstance(value, Values) else value


def simple(op: str) -> Handler:
    """The handler of a function without parameters."""

    def handle(operands: Sequence[Operand], params: Any) -> Tree:
        return make(op, *operands)

    return handle


def constant(value: Operand, what: str) -> Scalar:
    """The constant that an operation needs.

    Raises
    ------
    UnsupportedOperation
        When it is computed from columns.
    """
    tree = operand(value)
    if isinstance(tree, Literal):
        return tree.value
    raise UnsupportedOperation(
        f"{what} must be a constant, not a column or an expression",
        remedy="write a constant, or one pl.when(...).then(...) branch per constant",
    )


def text(value: Operand, what: str) -> str:
    found = constant(value, what)
    if isinstance(found, str):
        return found
    raise _wrong(what, "a text")


def text_or_none(value: Operand, what: str) -> str | None:
    return None if constant(value, what) is None else text(value, what)


def integer(value: Operand, what: str) -> int:
    found = constant(value, what)
    if isinstance(found, int) and not isinstance(found, bool):
        return found
    raise _wrong(what, "an integer")


def integer_or_none(value: Operand, what: str) -> int | None:
    return None if constant(value, what) is None else integer(value, what)


def _wrong(what: str, kind: str) -> UnsupportedOperation:
    return UnsupportedOperation(f"{what} is not {kind}", remedy=f"write {kind}")
