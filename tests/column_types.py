"""Writes dpframe/api/column_types.pyi, what type checkers know of `dp.col`:
``python -m tests.column_types``.

Its methods are those of the installed Polars that private frames support.
"""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import polars as pl

import dpframe as dp
from dpframe.api.registration import AGGREGATES
from tests.polars_page import outcomes

PLACE = Path(dp.__file__).parent / "api/column_types.pyi"
_SPACES = {
    "str": ("Text", "string", "ExprStringNameSpace"),
    "dt": ("Time", "datetime", "ExprDateTimeNameSpace"),
    "list": ("List", "list", "ExprListNameSpace"),
    "arr": ("Array", "array", "ExprArrayNameSpace"),
    "struct": ("Struct", "struct", "ExprStructNameSpace"),
    "name": ("Name", "name", "ExprNameNameSpace"),
}
_OF_ROWS = ("filter", "drop_nulls", "drop_nans")
"""They leave rows out of one aggregate, which comes after them."""
_BINARY = "add sub mul truediv floordiv mod pow and or"
_COMPARE = "lt le gt ge"
_UNARY = "neg pos abs invert"
_HEAD = '''"""The types of `dp.col(...)`; `python -m tests.column_types` writes them.

The methods of Polars that private frames support give a column, which has the ``dp_`` methods.
Editors show the docstrings of Polars.
"""

from collections.abc import Iterable
from typing import Any

import polars as pl'''


def column_types() -> str:
    """The module, as it should be."""
    lines = [_HEAD]
    lines += [f"from polars.expr.{module} import {name}" for _, module, name in _imports()]
    lines += ["", "from dpframe.api import functions"]
    lines += ["from dpframe.api.expressions import DPExpr, IntoBounds, Noise, Per"]
    lines += ["from dpframe.api.functions import Choice"]
    lines += ["from dpframe.core.exact import Number", ""]
    for space, (name, _, base) in _SPACES.items():
        owner = type(getattr(pl.col("a"), space))
        lines += ["", f"class {name}({base}):"]
        lines += [f'    """The namespace `.{space}` of a column."""', ""]
        lines += [_method(owner, method) for method in _supported(space)]
    lines += ["", "class Column(pl.Expr):"]
    lines += ['    """A Polars expression whose ``dp_`` methods type checkers know."""', ""]
    lines += [_aggregate(name) for name in sorted(AGGREGATES)]
    lines.append("")
    for space, (name, _, _) in _SPACES.items():
        lines += ["    @property", f"    def {space}(self) -> {name}: ..."]
    lines += [f"    def __{name}__(self, other: Any) -> Column: ..." for name in _binary()]
    lines += [f"    def __{name}__(self) -> Column: ..." for name in _UNARY.split()]
    lines += [
        f"    def __{name}__(self, other: object) -> Column: ...  # type: ignore[override]"
        for name in ("eq", "ne")
    ]
    lines += [_method(pl.Expr, name) for name in sorted([*_supported(""), *_OF_ROWS])]
    return _formatted("\n".join(lines) + "\n")


def _aggregate(name: str) -> str:
    """A function as a method: mypy binds none whose first argument may be left out."""
    signature = inspect.signature(getattr(dp, name))
    column, *options = signature.parameters.values()
    if column.default is column.empty:
        return f"    dp_{name} = functions.{name}"
    given = [column.replace(name="self", default=column.empty, annotation=column.empty)]
    given += [one.replace(default=_Omitted, annotation=_Name(one.annotation)) for one in options]
    returned = _Name(signature.return_annotation)
    return f"    def dp_{name}{inspect.Signature(given, return_annotation=returned)}: ..."


def _imports() -> list[tuple[str, str, str]]:
    return sorted(_SPACES.values(), key=lambda one: one[1])


def _binary() -> list[str]:
    both = [f"{side}{name}" for name in _BINARY.split() for side in ("", "r")]
    return [*both, *_COMPARE.split()]


def _supported(space: str) -> list[str]:
    names = [o.name for o in outcomes() if o.status == "supported"]
    mine = [n.rpartition(".")[2] for n in names if n.rpartition(".")[0] == space]
    return [name for name in mine if name != "unnest"]


def _method(owner: type, name: str) -> str:
    """A method with Polars' arguments, that gives a column."""
    given = [
        one.replace(
            annotation=_Name("Any"),
            default=inspect.Parameter.empty if one.default is one.empty else _Omitted,
        )
        for one in inspect.signature(getattr(owner, name)).parameters.values()
    ]
    given[0] = given[0].replace(annotation=inspect.Parameter.empty)
    return f"    def {name}{inspect.Signature(given)} -> Column: ..."


class _Name(str):
    """Text that signatures show without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


_Omitted = _Name("...")


def _formatted(text: str) -> str:
    done = subprocess.run(
        [Path(sys.executable).parent / "ruff", "format", "--stdin-filename", PLACE, "-"],
        input=text,
        capture_output=True,
        text=True,
        check=True,
        cwd=PLACE.parents[2],
    )
    return done.stdout


if __name__ == "__main__":
    PLACE.write_text(column_types())
