"""Several columns as one, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import struct_type
from dpframe.core.tree import Constant, Tree
from dpframe.errors import UnknownColumn, UnsupportedOperation
from dpframe.rows.given import Operand
from dpframe.rows.operation import Kind, Namespace, ParametricOperation, operation
from dpframe.rows.quoted import quoted
from dpframe.rows.suggest import did_you_mean


@operation
class StructOf(ParametricOperation):
    """Never null itself, even where all fields are."""

    name = "struct"
    reads = ("AsStruct",)
    summary = "One column of named fields."
    examples = (
        'pl.struct("i8", "s")',
        'pl.struct(a=pl.col("f64"), b=pl.col("d"))',
        'pl.struct("st", "li")',
    )
    names: tuple[str, ...]

    def check(self) -> None:
        if not self.names or len(set(self.names)) != len(self.names):
            raise UnsupportedOperation(
                "pl.struct needs at least one field, and a name of its own for each",
                remedy="name the fields: pl.struct(a=..., b=...)",
            )

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
        """The parameters are the names of the fields."""
        return cls(tuple(params)).of(*operands)

    def domain(self, args: Sequence[Domain]) -> Domain:
        fields = tuple(zip(self.names, args, strict=True))
        dtype = struct_type(tuple((name, domain.dtype) for name, domain in fields))
        return Domain(dtype, nullable=False, fields=fields)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        names = self.names
        expression: pl.Expr = ns.struct(
            [arg.alias(name) for name, arg in zip(names, args, strict=True)]
        )
        return expression

    def words(self, args: Sequence[str]) -> str:
        names = self.names
        shown = (
            arg if arg == f'col("{name}")' else f"{arg}.alias({quoted(name)})"
            for name, arg in zip(names, args, strict=True)
        )
        return f"struct({', '.join(shown)})"


@operation
class Field(ParametricOperation):
    name = "field"
    reads = ("StructExpr.FieldByName",)
    summary = "One field of a struct; null where the struct is."
    examples = (
        'pl.col("st").struct.field("x")',
        'pl.struct("i8", "s").struct.field("s")',
    )
    field: str

    @property
    def constants(self) -> tuple[tuple[str, Constant], ...]:
        return (("name", self.field),)

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
        return cls(str(params)).of(*operands)

    def domain(self, args: Sequence[Domain]) -> Domain:
        operand = args[0]
        name = self.field
        if operand.dtype.fields is None or operand.fields is None:
            raise UnsupportedOperation(
                f"struct.field works on structs, not on {operand.dtype}",
                remedy="write the column itself",
            )
        fields = dict(operand.fields)
        if name not in fields:
            raise UnknownColumn(
                f"the struct has no field {name!r}", remedy=did_you_mean(name, fields)
            )
        found = fields[name]
        return replace(found, nullable=found.nullable or operand.nullable)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        return args[0].struct.field(self.field)

    def words(self, args: Sequence[str]) -> str:
        return f"{args[0]}.struct.field({quoted(self.field)})"


OPERATIONS: tuple[Kind, ...] = (StructOf, Field)
