"""Random nested expressions, grown from the examples that the operations state themselves.

An example is a template: each of its columns is replaced, now and then, by another template whose
result is of the same kind, down to a depth. Templates that do not fit together (their types have
nothing in common) are dropped by asking inference.
"""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from typing import Any

from hypothesis import strategies as st

from dpframe.core.dtypes import Columns, DType
from dpframe.core.tree import Column, Literal, Tree, column_names, substitute
from dpframe.errors import DPFrameError
from dpframe.rows.constants import constant
from dpframe.rows.failures import BUG
from dpframe.rows.fold import domain
from dpframe.rows.registry import OPERATIONS
from tests.laws.checking import tree_of
from tests.laws.frames import FLOATS, SCHEMA, nasty_frame, wide_columns

_COLUMNS = wide_columns(nasty_frame(0))


def kind(dtype: DType) -> str:
    """What a type can stand in for: numbers for numbers, moments only for their own kind."""
    if dtype.is_numeric:
        return "number"
    if dtype.is_text:
        return "text"
    if dtype.name == "Datetime":
        return "zoned" if dtype.zone else "moment"
    if dtype.is_nested:
        return str(dtype)
    return dtype.name


def _by_kind() -> dict[str, list[Tree]]:
    found: dict[str, list[Tree]] = {}
    for operation in OPERATIONS:
        for text in operation.examples:
            tree = tree_of(text)
            found.setdefault(kind(domain(tree, _COLUMNS).dtype), []).append(tree)
    return found


TEMPLATES = _by_kind()
LEAVES: dict[str, list[Tree]] = {}
for _name in SCHEMA:
    LEAVES.setdefault(kind(_COLUMNS[_name].dtype), []).append(Column(_name))

_CONSTANTS: dict[str, list[Any]] = {
    "number": [*FLOATS, 0, 1, -1, 2, 7, -(2**63), 2**63 - 1],
    "text": ["", "a", "12", "é"],
    "Boolean": [True, False],
    "Date": [date(1, 1, 1), date(2024, 2, 29), date(9999, 12, 31)],
    "moment": [datetime(1, 1, 1), datetime(2024, 3, 31, 2, 30), datetime(9999, 12, 31)],
    "Duration": [timedelta(0), timedelta(days=-1), timedelta(days=10**6)],
    "Time": [time(0), time(23, 59, 59, 999_999)],
}
for _kind, _values in _CONSTANTS.items():
    LEAVES[_kind] += [constant(value) for value in _values]
    LEAVES[_kind].append(Literal(None, DType("Null")))


@st.composite
def trees(draw: st.DrawFn, of: str | None = None, depth: int = 4) -> Tree:
    """A tree of a kind, or of any kind, nested at most `depth` operations deep."""
    wanted = of if of is not None else draw(st.sampled_from(sorted(TEMPLATES)))
    if depth == 0 or wanted not in TEMPLATES:
        return draw(st.sampled_from(LEAVES[wanted] if wanted in LEAVES else TEMPLATES[wanted]))
    template = draw(st.sampled_from(TEMPLATES[wanted]))
    replacements: dict[str, Tree] = {}
    for name in column_names(template):
        if draw(st.booleans()):
            replacements[name] = draw(trees(kind(_COLUMNS[name].dtype), depth - 1))
    return substitute(template, replacements)


def fits(tree: Tree, columns: Columns) -> bool:
    """Whether inference accepts the tree."""
    try:
        domain(tree, columns)
    except DPFrameError as refusal:
        if BUG in str(refusal):
            raise
        return False
    return True
