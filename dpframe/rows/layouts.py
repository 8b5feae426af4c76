"""How a column may come to be stored, and the one rule about it.

The same values reach an operation in many forms, and other rows decide in which:

- as one value for all rows: a constant, a key, a partition's column, a column of a joined or
  concatenated frame that has one value;
- as rows: in one piece, in many, in pieces of one row, or as a part of a longer column;
- in a frame, or a piece of a frame, that has one row;
- marked as sorted or not, with or without a mask of nulls, coded by a dictionary or plain.

**Equal values give equal results, however they are stored.** All operations on rows rest on this
rule: a row's result depends on that row alone only if it holds. Polars keeps it nearly everywhere;
what it does otherwise, and what is done about it, is listed in docs/decisions/0009-layouts.md. The
laws in `tests/laws/test_layouts.py` compare every operation in all of these forms.

If an operation does not keep the rule on its own, its operands are first put into one struct. Its
fields all have as many rows as the struct, so they are all rows or all one value. This needs to
know nothing about how an operand was stored, or why. It also computes each operand once, even if
a formula uses it several times.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import polars as pl

from dpframe.core.dtypes import FLOAT64
from dpframe.rows.operands import as_type
from dpframe.rows.operation import Namespace

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
