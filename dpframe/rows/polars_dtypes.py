"""Column types to and from Polars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from dpframe.core.dtypes import DType

_SIMPLE: dict[str, Any] = {
    name: getattr(pl, name)
    for name in (
        "Boolean",
        "Int8",
        "Int16",
        "Int32",
        "Int64",
        "Int128",
        "UInt8",
        "UInt16",
        "UInt32",
        "UInt64",
        "Float32",
        "Float64",
        "String",
        "Date",
        "Time",
        "Null",
        "Binary",
    )
} | {"Categorical": pl.Categorical()}  # a schema needs the type with its parameters


def from_polars(dtype: Any) -> DType:
    """The `DType` of a Polars type; an unknown type keeps its name and nothing else."""
    kind = dtype if isinstance(dtype, type) else type(dtype)
    name = kind.__name__
    match name:
        case "Datetime":
            unit = getattr(dtype, "time_unit", None) or "us"
            zone = getattr(dtype, "time_zone", None)
            return DType(name, unit=unit, zone=zone)
        case "Duration":
            return DType(name, unit=getattr(dtype, "time_unit", None) or "us")
        case "Enum":
            return DType(name, categories=tuple(dtype.categories.to_list()))
        case "Decimal":
            return DType(name, precision=dtype.precision or 38, scale=dtype.scale or 0)
        case "List":
            return DType(name, inner=from_polars(dtype.inner))
        case "Array":
            if len(getattr(dtype, "shape", (1,))) != 1:
                return DType("Array of arrays")
            return DType(name, inner=from_polars(dtype.inner), width=int(dtype.shape[0]))
        case "Struct":
            return DType(name, fields=tuple((f.name, from_polars(f.dtype)) for f in dtype.fields))
        case _:
            return DType(name)


def to_polars(dtype: DType) -> Any:
    """The Polars type of a `DType` that dpframe knows."""
    match dtype.name:
        case "Datetime":
            return pl.Datetime(dtype.unit or "us", dtype.zone)  # type: ignore[arg-type]
        case "Duration":
            return pl.Duration(dtype.unit or "us")  # type: ignore[arg-type]
        case "Enum":
            return pl.Enum(list(dtype.categories or ()))
        case "Decimal":
            return pl.Decimal(dtype.precision, dtype.scale or 0)
        case "List":
            assert dtype.inner is not None
            return pl.List(to_polars(dtype.inner))
        case "Array":
            assert dtype.inner is not None
            assert dtype.width is not None
            return pl.Array(to_polars(dtype.inner), dtype.width)
        case "Struct":
            return pl.Struct({n: to_polars(t) for n, t in dtype.fields or ()})
        case name:
            return _SIMPLE[name]


def schema_from_polars(schema: Mapping[str, Any]) -> dict[str, DType]:
    """Names and types of a Polars schema."""
    return {name: from_polars(dtype) for name, dtype in schema.items()}
