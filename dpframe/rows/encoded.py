"""A text for each value of a list, array or struct that is equal exactly for equal values.

Such values have no order that all versions of an engine keep, and no hash. Their text has both:
it includes the length of each part, so that no two values have one text, and it is the same for
any other rows. Zeros have no sign in it.
"""

from __future__ import annotations

import polars as pl

from dpframe.core.dtypes import DType, list_type
from dpframe.rows.broadcast import unsigned_zero
from dpframe.rows.operation import Namespace

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
