"""What operations work on: each kind of column is taken, or refused in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest

from dpframe.core.tree import Call, Column, Literal, walk
from dpframe.errors import DPFrameError
from dpframe.rows import fold
from dpframe.rows.operation import Kind
from dpframe.rows.registry import OPERATIONS
from tests.laws.checking import tree_of
from tests.laws.frames import nasty_frame, wide_columns

COLUMNS = wide_columns(nasty_frame(0))
KINDS = {
    "real": "f64", "whole": "i64", "text": "s", "boolean": "b", "day": "d", "moment": "dt",
    "time": "t", "span": "dur", "list": "li", "struct": "st",
}  # fmt: skip
"""A column of each kind."""
NUMBERS = "real whole boolean"
ORDERED = "real whole text day moment time span"
SCALARS = "real whole text boolean day moment time span"
EVERYTHING = " ".join(KINDS)
TAKEN = {
    "add": "real whole text boolean span",
    "sub clip clip_between": "real whole boolean day moment time span",
    "mul neg truediv floordiv mod fill_nan sum_horizontal mean_horizontal abs sign sqrt cbrt exp "
    "log log1p is_nan is_not_nan is_finite is_infinite pow floor ceil round sin cos tan cot arcsin "
    "arccos arctan arctan2 sinh cosh tanh arcsinh arccosh arctanh degrees radians": NUMBERS,
    "cast eq ne lt le gt ge eq_missing ne_missing is_between": SCALARS,
    "min_horizontal max_horizontal": ORDERED,
    "coalesce fill_null is_null is_not_null struct": EVERYTHING,
    "is_in replace replace_strict": "real whole text boolean day moment",
    "any_horizontal all_horizontal when": "boolean",
    "and or xor not": "whole boolean",
    "cut": "real whole",
    "concat_list": f"{SCALARS} list",
    "list_len list_get list_contains list_slice list_of_array list_sum list_mean list_min list_max":
    "list",
    "field": "struct",
    "concat_str": "whole text boolean",
    "str_to_lowercase str_to_uppercase str_to_titlecase str_find str_count_matches str_len_chars "
    "str_len_bytes str_pad_start str_pad_end str_zfill str_replace str_extract str_contains "
    "str_starts_with str_ends_with str_slice str_head str_tail str_split str_strip_chars "
    "str_strip_chars_start str_strip_chars_end str_strip_prefix str_strip_suffix str_to_date "
    "str_to_time str_to_datetime str_to_integer": "text",
    "dt_date dt_month_start dt_month_end dt_combine dt_offset_by dt_year dt_iso_year dt_century "
    "dt_millennium dt_quarter dt_month dt_week dt_weekday dt_day dt_ordinal_day dt_days_in_month "
    "dt_is_leap_year dt_truncate dt_round dt_timestamp": "day moment",
    "dt_time dt_hour dt_minute dt_second dt_millisecond dt_microsecond dt_nanosecond":
    "moment time",
    "dt_total_days dt_total_hours dt_total_minutes dt_total_seconds dt_total_milliseconds "
    "dt_total_microseconds dt_total_nanoseconds": "span",
    "dt_to_string": "day moment time",
    "dt_cast_time_unit": "moment span",
    "dt_convert_time_zone dt_replace_time_zone": "moment",
    "datetime duration": "whole",
}  # fmt: skip
"""Which kinds operations take in one of their examples, where all columns are of that kind. What is
not listed takes the kinds of columns that its examples have.
"""
TAKEN_BY = {name: kinds for names, kinds in TAKEN.items() for name in names.split()}


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda o: o.name)
def test_each_operation_takes_its_kinds_of_columns(operation: Kind) -> None:
    nodes = {
        node
        for text in operation.examples
        for node in walk(tree_of(text))
        if isinstance(node, Call) and node.operation.name == operation.name
    }
    stated = TAKEN_BY.get(operation.name)
    expected = set(kinds_of(nodes) if stated is None else stated.split())
    assert expected == {
        kind for kind, name in KINDS.items() if any(takes(node, Column(name)) for node in nodes)
    }


def kinds_of(nodes: Iterable[Call]) -> Iterator[str]:
    """The kinds of the operands that examples have: all that the operation takes, unless it is said
    above what it takes beside them.
    """
    alike = {"Datetime": "moment", "Date": "day", "Duration": "span", "Array": "list"}
    for node in nodes:
        for arg in node.args:
            if isinstance(arg, Literal):
                continue
            dtype = fold.domain(arg, COLUMNS).dtype
            if dtype.is_numeric:
                yield "whole" if dtype.is_integer else "real"
            else:
                yield "text" if dtype.is_text else alike.get(dtype.name, dtype.name.lower())


def takes(node: Call, column: Column) -> bool:
    """Whether the operation has facts about results where all its operands are one column."""
    operands = tuple(arg if isinstance(arg, Literal) else column for arg in node.args)
    try:
        fold.domain(replace(node, args=operands), COLUMNS)
    except DPFrameError:
        return False
    return True
