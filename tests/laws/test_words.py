"""What reviewers read of an expression says all of it: read as Python, it is the same again."""

from __future__ import annotations

import ast
import math
import re
import warnings
from datetime import date, datetime, time, timedelta
from typing import Any

import polars as pl
import pytest

from dpframe.parse.reader import read
from dpframe.rows.fold import words
from dpframe.rows.operation import Kind
from dpframe.rows.registry import OPERATIONS
from tests.laws.checking import tree_of
from tests.laws.frames import SCHEMA

_TAKE_NAMES = {
    *("coalesce", "min_horizontal", "max_horizontal", "concat_str", "then", "otherwise"),
    *("is_between", "arctan2", "fill_null"),
}
"""What takes a text for a column, or null for nothing: constants are `pl.lit` there."""


def _moment(kind: Any, made: Any) -> Any:
    return lambda *parts, **more: (
        kind.fromisoformat(parts[0])
        if parts and isinstance(parts[0], str)
        else made(*parts, **more)
    )


def _span(text: str | None = None, **parts: Any) -> Any:
    if text is None:
        return pl.duration(**parts)
    days, _, clock = text.rpartition(" days, ")
    hours, minutes, seconds = map(int, clock.split(":"))
    return timedelta(int(days or 0), seconds, 0, 0, minutes, hours)


NAMES: dict[str, Any] = {
    **{name: getattr(pl, name) for name in dir(pl) if not name.startswith("_")},
    **{unit: unit for unit in ("ms", "us", "ns")},
    "nan": math.nan,
    "inf": math.inf,
    "date": _moment(date, pl.date),
    "datetime": _moment(datetime, pl.datetime),
    "time": _moment(time, pl.time),
    "duration": _span,
}


class _Constants(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        if name in _TAKE_NAMES:
            literal = ast.Name("lit", ast.Load())
            node.args = [
                ast.Call(literal, [a], []) if isinstance(a, (ast.Constant, ast.UnaryOp)) else a
                for a in node.args
            ]
        return node


def as_python(text: str) -> Any:
    made = ast.fix_missing_locations(_Constants().visit(ast.parse(text, mode="eval")))
    return eval(compile(made, text, "eval"), dict(NAMES))


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda o: o.name)
def test_words_say_all_of_an_expression(operation: Kind) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for text in operation.examples:
            tree = tree_of(text)
            said = re.sub(r"Enum\(\d+ categories\)", _categories(text), words(tree))
            (found,) = read(as_python(said), SCHEMA)
            assert found.tree == tree, said


def _categories(text: str) -> str:
    """Which are counted, not listed."""
    listed = re.search(r"pl\.(Enum\(\[.*?\]\))", text)
    return listed[1] if listed else ""
