"""Several values joined into one text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

import polars as pl

from dpframe.core.domain import Domain, Scalar
from dpframe.core.dtypes import STRING, DType
from dpframe.core.engines import EVERYWHERE
from dpframe.core.tree import Literal, Tree
from dpframe.errors import UnsupportedOperation
from dpframe.rows.given import Operand, Reader, require_some
from dpframe.rows.operation import Kind, Namespace, ParametricOperation, operation
from dpframe.rows.polars_dtypes import to_polars
from dpframe.rows.quoted import quoted
from dpframe.rows.text import LONGEST_TEXT, bounded

_MOST_CATEGORIES = 1_000
_MOST_OPERANDS = 64
"""This many texts at their longest are still small."""


@operation
class ConcatStr(ParametricOperation):
    """Text, integers and Booleans; how floats and dates print differs between versions."""

    name = "concat_str"
    reads = ("StringExpr.ConcatHorizontal",)
    engines = EVERYWHERE
    summary = (
        "Texts, integers and Booleans joined by a constant separator; cut after 65536 characters."
    )
    examples = (
        'pl.concat_str("s", "sb", separator="-")',
        'pl.concat_str("s", "i8", "b", "e", separator="", ignore_nulls=True)',
        'pl.concat_str(pl.lit("x"), "i64")',
    )
    separator: str
    ignore_nulls: bool

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
        return cls(str(params["delimiter"]), bool(params["ignore_nulls"])).of(
            *require_some(cls.name, operands)
        )

    def domain(self, args: Sequence[Domain]) -> Domain:
        if len(args) > _MOST_OPERANDS:
            raise UnsupportedOperation(
                f"concat_str joins at most {_MOST_OPERANDS} expressions, not {len(args)}",
                remedy="join fewer, or in several steps",
            )
        for arg in args:
            _require_printable(arg.dtype)
        nullable = not self.ignore_nulls and any(arg.nullable for arg in args)
        return Domain(STRING, nullable=nullable, categories=self._joined(args))

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        texts = [bounded(arg.cast(to_polars(STRING), strict=False)) for arg in args]
        expression: pl.Expr = ns.concat_str(
            texts,
            separator=self.separator,
            ignore_nulls=self.ignore_nulls,
        )
        return bounded(expression)

    def words(self, args: Sequence[str]) -> str:
        extra = [f"separator={quoted(self.separator)}"] if self.separator else []
        extra += ["ignore_nulls=True"] if self.ignore_nulls else []
        return f"concat_str({', '.join([*args, *extra])})"

    def _joined(self, args: Sequence[Domain]) -> tuple[Scalar, ...] | None:
        """All results, where all values of all operands are known and are text."""
        choices: list[list[str | None]] = []
        for arg in args:
            if arg.categories is None or not arg.dtype.is_text:
                return None
            values: list[str | None] = [v for v in arg.categories if isinstance(v, str)]
            choices.append([*values, None] if self.ignore_nulls and arg.nullable else values)
        if prod(len(choice) for choice in choices) > _MOST_CATEGORIES:
            return None
        joined = (self.separator.join(v for v in row if v is not None) for row in product(*choices))
        return tuple(dict.fromkeys(text[:LONGEST_TEXT] for text in joined))


def _require_printable(dtype: DType) -> None:
    if dtype.is_text or dtype.is_integer or dtype.is_boolean:
        return
    raise UnsupportedOperation(
        f"concat_str joins text, integers and Booleans, not {dtype}",
        remedy="take one element of it first: .list.get(0)"
        if dtype.is_nested
        else "write it as text first: .dt.to_string(format)"
        if dtype.is_temporal
        else "cast it first: .cast(pl.String)",
    )


def read_format(operands: Sequence[Operand], params: Any) -> Tree:
    """`pl.format`: Polars keeps the text without its ``{}``, and the byte where each one was."""
    raw = params["format"].encode()
    pieces: list[Operand] = []
    start = 0
    for insertion, value in zip(params["insertions"], operands, strict=True):
        if insertion > start:
            pieces.append(Literal(raw[start:insertion].decode(), STRING))
        pieces.append(value)
        start = insertion
    if start < len(raw):
        pieces.append(Literal(raw[start:].decode(), STRING))
    return ConcatStr("", ignore_nulls=False).of(*pieces)


OPERATIONS: tuple[Kind, ...] = (ConcatStr,)
READERS: Mapping[str, Reader] = {"StringExpr.Format": read_format}
