"""What runs on which engine: lists that are closed. What is not on them is refused by name.

Everything on a list is covered by `tests/engines`, which compare exact tables bit by bit with those
of Polars. Being listed is not enough: types are checked as well, and expressions that an engine
cannot give the same meaning are refused while they are built, before anything is charged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from types import MappingProxyType

from dpframe.aggregates.part import Table
from dpframe.core.domain import Columns
from dpframe.core.dtypes import DType
from dpframe.core.tree import Call, Column, Literal, Named, Tree, walk
from dpframe.errors import UnsupportedOperation
from dpframe.frames.binary import Binary, frames_of
from dpframe.frames.groups import Groups
from dpframe.frames.relation import Relation
from dpframe.frames.step import Step
from dpframe.lower.engines.engine import Engine
from dpframe.rows.fold import domain, operation, words

_ARITHMETIC = ("add", "sub", "mul", "neg", "truediv", "floordiv", "mod", "abs", "sign")
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "eq_missing", "ne_missing")
_CONDITIONS = ("and", "or", "xor", "not", "when", "is_between", "is_in")
_NULLS = ("is_null", "is_not_null", "fill_null", "fill_nan", "coalesce")
_NAN = ("is_nan", "is_not_nan", "is_finite", "is_infinite")
_NUMBERS = ("cast", "clip", "clip_between", "floor", "ceil", "cut", "degrees", "radians")
_HORIZONTAL = (
    "min_horizontal",
    "max_horizontal",
    "sum_horizontal",
    "mean_horizontal",
    "any_horizontal",
)
_TEXT = (
    "str_len_chars",
    "str_starts_with",
    "str_ends_with",
    "str_contains",
    "str_head",
    "str_slice",
)
_DATES = ("dt_year", "dt_quarter", "dt_month", "dt_day", "dt_weekday", "dt_ordinal_day")
_CLOCK = ("dt_hour", "dt_minute", "dt_second", "dt_is_leap_year", "dt_date")
_CORE = frozenset(
    _ARITHMETIC + _COMPARISONS + _CONDITIONS + _NULLS + _NAN + _NUMBERS + _HORIZONTAL
) | frozenset(("all_horizontal", "replace", "replace_strict", *_TEXT, *_DATES, *_CLOCK))
_STEPS = frozenset(
    ("Filter", "WithColumns", "Select", "Rename", "Drop", "DropNulls", "Part")
) | frozenset(("LimitRows", "LimitGroups", "PerIndividual", "JoinPublic", "JoinPrivate", "Concat"))
_STATISTICS = frozenset(
    ("RowCount", "ValueCount", "GridSum", "SquareSum", "DistinctCount", "DistinctIndividuals")
) | frozenset(("UnitCount", "UnitRows", "UnitTotal"))
_CELLS = frozenset(("CategoryCells", "BinCells", "PointCells", "PositionCells"))
_NUMBER_TYPES = frozenset(("Boolean", "Int8", "Int16", "Int32", "Int64", "Float32", "Float64"))
_TYPES = _NUMBER_TYPES | frozenset(("String", "Enum", "Date", "Datetime(us)", "Null"))
_UNSIGNED = frozenset(("UInt8", "UInt16", "UInt32", "UInt64"))


@dataclass(frozen=True, slots=True)
class Support:
    """What an engine runs.

    Parameters
    ----------
    operations
        Row-wise operations, by their names in `dpframe.rows`.
    steps, statistics, cells
        Classes of `dpframe.frames` and `dpframe.aggregates`.
    types
        Types of columns and expressions; others may be in a frame, unused.
    """

    operations: frozenset[str]
    steps: frozenset[str]
    statistics: frozenset[str]
    cells: frozenset[str]
    types: frozenset[str]


SUPPORT: Mapping[str, Support] = MappingProxyType(
    {
        "duckdb": Support(_CORE, _STEPS, _STATISTICS, _CELLS, _TYPES | _UNSIGNED),
        "spark": Support(_CORE, _STEPS, _STATISTICS, _CELLS, _TYPES),
    }
)
"""By `Engine.name`. Polars is not among them: it runs everything."""


def require_supported(
    engine: Engine, relation: Relation, groups: Groups | None, tables: Sequence[Table]
) -> None:
    """Refuse what is not on the engine's lists.

    Raises
    ------
    UnsupportedOperation
        Naming the engine and what it was.
    """
    support = SUPPORT.get(engine.name)
    if support is None:
        return
    check = _Check(engine.label, support)
    for frame in frames_of(relation):
        if frame.source.identifier is not None:
            check.tree(Column(frame.source.identifier), frame.source.columns)
        for step, before in frame.steps:
            check.step(step, before.columns)
    columns = relation.facts.columns
    for named in () if groups is None else groups.by:
        check.tree(named.tree, columns)
    for table in tables:
        check.table(table, columns)


@dataclass(frozen=True, slots=True)
class _Check:
    label: str
    support: Support

    def step(self, step: Step, before: Columns) -> None:
        kind = type(step).__name__
        if kind not in self.support.steps:
            raise self._refused("the step", step.words())
        if kind in ("LimitRows", "Concat"):  # which use every column
            for name in before:
                self.tree(Column(name), before)
        if not isinstance(step, Binary):
            for tree in trees_of(step):
                self.tree(tree, before)

    def table(self, table: Table, columns: Columns) -> None:
        if type(table.statistic).__name__ not in self.support.statistics:
            raise self._refused("the statistic", table.statistic.words())
        if table.cells is not None and type(table.cells).__name__ not in self.support.cells:
            raise self._refused("the cells", table.cells.words())
        for part in (table.statistic, table.cells):
            for tree in trees_of(part):
                self.tree(tree, columns)

    def tree(self, tree: Tree, columns: Columns) -> None:
        for node in walk(tree):
            if isinstance(node, Call) and node.op not in self.support.operations:
                name = operation(node.op).name
                raise self._refused(f"the operation {name!r}", words(node))
            dtype = node.dtype if isinstance(node, Literal) else domain(node, columns).dtype
            if written(dtype) not in self.support.types:
                raise self._refused(f"the type {dtype}", words(node))

    def _refused(self, what: str, where: str) -> UnsupportedOperation:
        return UnsupportedOperation(
            f"{what} is not supported on {self.label}",
            where=where,
            remedy="compute it before the frame is protected, or protect a Polars frame",
        )


def written(dtype: DType) -> str:
    """A type as the lists have it."""
    return str(dtype) if dtype.name == "Datetime" else dtype.name


def trees_of(value: object) -> Iterator[Tree]:
    """The expressions of a step, statistic or cells, however they hold them."""
    match value:
        case Column() | Literal() | Call():
            yield value
        case Named(_, tree):
            yield tree
        case tuple():
            for item in value:
                yield from trees_of(item)
        case _ if is_dataclass(value) and not isinstance(value, type):
            for field in fields(value):
                if field.name not in ("domain", "public", "grid", "inner"):
                    yield from trees_of(getattr(value, field.name))
        case _:
            return
