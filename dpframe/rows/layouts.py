"""How a column may come to be stored, and what makes equal values give equal results.

The same values reach an operation in many forms, and other rows decide in which:

- as one value for all rows: a constant, a key, a partition's column, a column of a joined or
  concatenated frame that has one value;
- as rows: in one piece, in many, in pieces of one row, or as a part of a longer column;
- in a frame, or a piece of a frame, that has one row;
- marked as sorted or not, with or without a mask of nulls, coded by a dictionary or plain.

**Equal values give equal results, however they are stored.** All operations on rows rest on this
rule: a row's result depends on that row alone only if it holds. Polars keeps it nearly
everywhere; what it does otherwise, and what is done about it, is listed in
docs/decisions/0009-layouts.md. The laws in `tests/laws/test_layouts.py` compare every operation
in all of these forms.

If an operation does not keep the rule on its own, its operands are first put into one struct. Its
fields all have as many rows as the struct, so they are all rows or all one value. This needs to
know nothing about how an operand was stored, or why. It also computes each operand once, even if
a formula uses it several times.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import polars as pl

from dpframe.core.dtypes import FLOAT64, STRING, DType, list_type
from dpframe.rows.operands import as_type
from dpframe.rows.operation import Namespace
from dpframe.rows.polars_dtypes import to_polars

_VERSION = tuple(map(int, re.findall(r"\d+", pl.__version__)[:2]))
_BINDS = _VERSION >= (1, 37)
"""Whether Polars computes a struct once when its fields are used in `with_fields`. Before, each
field that a formula names stands for the whole struct, and nested formulas grow without limit.
"""
_LISTS_ARE_SOUND = _VERSION >= (2, 0)
"""Whether Polars finds items in a column of lists in several pieces, and makes lists of constants
and of columns without rows. Earlier versions confused some lists of numbers if one is null or
holds a null, and failed to make such lists.
"""
_RESULT = "result"


def together(
    ns: Namespace, operands: Sequence[pl.Expr], formula: Callable[..., pl.Expr]
) -> pl.Expr:
    """What a formula makes of operands that are all stored alike, and computed once each.

    The formula may use nothing but its arguments, constants and the operations of `ns`; it is an
    expression of the row's own values, as all others are.
    """
    if ns is not pl or not _BINDS or not any(e.meta.root_names() for e in operands):
        return formula(*operands)  # constants are one value in any case
    names = [str(i) for i in range(len(operands))]
    row = pl.struct(*(e.alias(name) for e, name in zip(operands, names, strict=True)))
    result = formula(*(pl.field(name) for name in names)).alias(_RESULT)
    return row.struct.with_fields(result).struct.field(_RESULT)


def divided(
    ns: Namespace,
    dividend: pl.Expr,
    divisor: pl.Expr,
    formula: Callable[[pl.Expr, pl.Expr], pl.Expr],
) -> pl.Expr:
    """What a formula makes of a Float64 and what divides it, which is null where it is zero.

    Polars divides rows by one value through its reciprocal, but rows by rows, and one value by
    another, exactly: 49.0 / 49.0 is then 0.9999999999999999 or 1.0. So a divisor must be rows
    wherever the dividend is. As fields of one struct they are rows together.
    """

    def known(a: pl.Expr, b: pl.Expr) -> pl.Expr:
        return formula(a, ns.when(b != 0).then(b))

    if ns is pl and not _BINDS:
        divisor = _as_rows(divisor, dividend)
    return together(ns, [dividend, divisor], known)


def _as_rows(divisor: pl.Expr, dividend: pl.Expr) -> pl.Expr:
    """The divisor as a full column, because some versions of Polars fail on a single value.

    A check for nulls gives a full column even for one value (for all types in 1.32 to 1.36, not in
    2.0), so zeros made from each column of the operands are added. The result does not depend on
    which of these columns the optimiser keeps.
    """
    names = dict.fromkeys([*dividend.meta.root_names(), *divisor.meta.root_names()])
    for name in names:
        divisor = as_type(pl.col(name).is_null(), FLOAT64) * 0.0 + divisor
    return divisor


def in_one_piece(ns: Namespace, lists: pl.Expr) -> pl.Expr:
    """Lists to be searched, as a column in one piece where Polars needs that: slicing makes one."""
    return lists if ns is not pl or _LISTS_ARE_SOUND else lists.list.slice(0)


def followed_by_null(ns: Namespace, floats: pl.Expr) -> pl.Expr:
    """Lists of Float64 to be added up, each with a null after its floats.

    Polars adds up a list from left to right where no list of the column has a null, and in another
    order where one has. With a null in each there is one order.
    """
    lists: pl.Expr = ns.concat_list(floats, ns.lit(None, dtype=pl.Float64))
    return lists


def spread(ns: Namespace, operands: Sequence[pl.Expr]) -> list[pl.Expr]:
    """Operands of a list, with constants as rows where Polars needs that: in a piece without rows
    it fails where a constant comes first, so rows could decide whether a query fails.
    """
    names = [name for operand in operands for name in operand.meta.root_names()]
    if ns is not pl or _LISTS_ARE_SOUND or not names:
        return list(operands)
    either = pl.when(pl.col(names[0]).is_null())
    return [e if e.meta.root_names() else either.then(e).otherwise(e) for e in operands]


# Removes differences between equal values: the sign of a zero, the mark of a sorted column.
#
# Polars does not change a column when it adds one value that is zero, and one row likewise: -0.0 +
# 0.0 is then -0.0 or 0.0. So no result may depend on a zero's sign.


def unsigned_zero(ns: Namespace, number: pl.Expr, dtype: DType) -> pl.Expr:
    """A float with zero for minus zero, for operations that distinguish them."""
    zero = ns.lit(0.0, dtype=to_polars(dtype))
    result: pl.Expr = ns.when(number == 0).then(zero).otherwise(number)
    return result


def unordered(ns: Namespace, expression: pl.Expr) -> pl.Expr:
    """The same values, which no engine considers sorted.

    Polars leaves the flag of a sorted column set after some operations that change the order. Later
    groups, comparisons or counts are then wrong, and the mistake depends on other rows. A field of
    a struct cannot have that flag, and taking it copies nothing.
    """
    result: pl.Expr = ns.struct(expression.alias("value")).struct.field("value")
    return result


# The form in which values are grouped: one form for equal values, for any other rows.
#
# Physical codes of categories depend on all rows. Integers and decimals of 128 bits were grouped by
# their last 64 bits alone, where they are the only key (met in Polars 1.32). So these are text.

GROUPED_AS_TEXT = (pl.Categorical, pl.Enum, pl.Int128, pl.Decimal)


def grouped_type(dtype: DType) -> DType:
    """The type of that form."""
    as_text = dtype.is_text or dtype.is_decimal or dtype.name == "Int128"
    return STRING if as_text else dtype


def type_of_keys(dtype: DType) -> pl.DataType:
    """The type that public keys have in Polars, for groups by values of a type."""
    return pl.String() if dtype.name == "Categorical" else to_polars(dtype)


def grouped(ns: Namespace, column: pl.Expr, dtype: DType) -> pl.Expr:
    """A column in that form, which no engine takes for sorted."""
    return unordered(ns, column if grouped_type(dtype) == dtype else column.cast(ns.String))


def distinct(rows: pl.DataFrame) -> pl.DataFrame:
    """Public rows, each once, in their order."""
    if rows.width == 1 and rows.dtypes[0] in GROUPED_AS_TEXT:
        return rows.filter(rows.to_series().cast(pl.String).is_first_distinct())
    if rows.width == 1 and _rises(rows.to_series()):
        return rows
    return rows.unique(maintain_order=True)


def _rises(column: pl.Series) -> bool:
    """Whether it is integers that are each larger than the one before."""
    if not column.dtype.is_integer() or column.null_count():
        return False
    return bool((column.slice(1) > column.head(-1)).all())


# A text for each value of a list, array or struct that is equal exactly for equal values.
#
# Such values have no order that all versions of an engine keep, and no hash. Their text has both:
# it includes the length of each part, so that no two values have one text, and it is the same for
# any other rows. Zeros have no sign in it.

_NULL = "n"


def is_encodable(dtype: DType) -> bool:
    """Whether values of the type have such a text: all of its parts are known."""
    if not dtype.is_known:
        return False
    if dtype.is_nested:
        parts = [dtype.inner] if dtype.fields is None else [t for _, t in dtype.fields]
        return all(part is not None and is_encodable(part) for part in parts)
    return True


def encoded(ns: Namespace, value: pl.Expr, dtype: DType) -> pl.Expr:
    """The text of a value; never null, for null has a text of its own.

    What ends a number occurs in none, text comes after its length, a list after the number of its
    elements, and a struct has as many fields as its type. So no text is the beginning of another.
    """
    text: pl.Expr = _present(ns, value, dtype)
    return text.fill_null(_NULL)


def _present(ns: Namespace, value: pl.Expr, dtype: DType) -> pl.Expr:
    """The text of a value that is not null."""
    joined: pl.Expr
    if dtype.name == "Array" and dtype.inner is not None:
        return _present(ns, value.arr.to_list(), list_type(dtype.inner))
    if dtype.name == "List" and dtype.inner is not None:
        items = value.list.eval(encoded(ns, ns.element(), dtype.inner))
        joined = ns.concat_str(_text(ns, value.list.len()), ns.lit("["), items.list.join(""))
        return joined
    if dtype.fields is not None:
        fields = [encoded(ns, value.struct.field(name), found) for name, found in dtype.fields]
        joined = ns.concat_str(ns.lit("{"), *fields)
        known: pl.Expr = ns.when(value.is_not_null()).then(joined)
        return known
    if dtype.is_text:
        text = _text(ns, value)
        joined = ns.concat_str(_text(ns, text.str.len_bytes()), ns.lit(":"), text)
        return joined
    if dtype.is_float:
        value = unsigned_zero(ns, value, dtype)
    elif dtype.is_temporal:
        value = value.cast(ns.Int64)
    plain = value.bin.encode("hex") if dtype.name == "Binary" else _text(ns, value)
    joined = ns.concat_str(plain, ns.lit(";"))
    return joined


def _text(ns: Namespace, value: pl.Expr) -> pl.Expr:
    return value.cast(ns.String)


# Columns of whole numbers in their order.
#
# NumPy sorts with AVX-512 wherever a processor has it, and on some, AMD's of the family 25 among
# them, its instructions take five times as long as the plain ones: 56 ns a number where 11 would
# do. Polars takes 16 ns on all. One thread takes little more than half of what all threads together
# do.


def in_order(numbers: pl.Series) -> pl.Series:
    """Integers without nulls, sorted."""
    return numbers.sort(multithreaded=False)
