"""From aggregates, as written, to the outputs of a query: columns resolved, names decided.

Aggregates as Polars has them, such as `pl.col("x").clip(0, 9).sum()`, mean what they mean in
Polars, where nulls and groups without values are concerned, or are refused with what to write. NaN
is left out as everywhere here: in Polars one NaN makes a whole sum NaN, which would reveal that
some row has one.

Rows that an expression leaves out before it aggregates (`filter`, `drop_nulls`, `drop_nans`):
``f(x.filter(c))`` has the values of ``f(x)`` where c is true, as f is row-wise. So conditions move
outwards, and what is aggregated is ``when(c).then(f(x))``, whose nulls private aggregates skip.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import polars as pl

from dpframe.aggregates.aggregate import (
    Aggregate,
    AggregateSpec,
    Output,
    OutputSpec,
    write_arguments,
)
from dpframe.aggregates.count import Count, DistinctValues
from dpframe.aggregates.mean import Mean, StandardDeviation, Variance
from dpframe.aggregates.quantile import Median, Quantile
from dpframe.aggregates.reconstruction import by_grouping_sets
from dpframe.aggregates.registry import bind
from dpframe.aggregates.request import QueryScope, Request
from dpframe.aggregates.sum import Sum
from dpframe.aggregates.values import or_declare
from dpframe.core.dtypes import Columns
from dpframe.core.exact import nearest
from dpframe.core.tree import Named, Tree, column_names
from dpframe.errors import DPFrameError, UnboundedSensitivity, UnsupportedOperation
from dpframe.frames.groups import GROUPING, SetGroups
from dpframe.parse.hints import (
    function_key,
    function_name,
    held,
    node_name,
    operands,
    refuse,
    with_parts,
)
from dpframe.parse.reader import read, read_literal, tree_of
from dpframe.parse.selectors import Schema, output_name
from dpframe.parse.size import SQL, TooLargeError, marked, serialised, too_large
from dpframe.rows.constants import constant
from dpframe.rows.fold import domain, known_bounds, outer_words, words
from dpframe.rows.logic import And, FillNull, IsNotNan, IsNotNull, IsNull, When
from dpframe.rows.operation import Node, Values
from dpframe.rows.polars_dtypes import to_polars

_NULLS, _NANS = "DropNulls", "DropNans"


@dataclass(frozen=True, slots=True)
class Kept:
    """Values, and which rows they are of."""

    values: Tree  # What each row has
    # The conditions of `filter`; rows for which all of them are true are kept.
    filters: tuple[Tree, ...] = ()
    # Values whose nulls or NaN were dropped, at the time when they were.
    nulls: tuple[Tree, ...] = ()
    nans: tuple[Tree, ...] = ()

    @property
    def conditions(self) -> tuple[Tree, ...]:
        """The conditions that a kept row meets."""
        present = tuple(IsNotNull().of(tree) for tree in self.nulls)
        numbers = tuple(FillNull().of(IsNotNan().of(tree), constant(True)) for tree in self.nans)
        return (*self.filters, *present, *numbers)

    @property
    def drops_nulls(self) -> bool:
        """Whether there is no null among the values."""
        return self.values in self.nulls

    @property
    def drops_nans(self) -> bool:
        """Whether there is no NaN among the values."""
        return self.values in self.nans

    @property
    def or_null(self) -> Tree:
        """The values, and null in rows that are left out."""
        if not self.conditions:
            return self.values
        both = reduce(lambda a, b: And().of(a, b), self.conditions)
        return When().of(both, self.values, constant(None))

    def without_missing(self) -> Kept:
        """The same for an aggregate that skips nulls and NaN on its own."""
        nulls = tuple(tree for tree in self.nulls if tree != self.values)
        nans = tuple(tree for tree in self.nans if tree != self.values)
        return replace(self, nulls=nulls, nans=nans)


def tree_or_null(node: Node, schema: Schema) -> Tree:
    """The tree for an aggregate that skips nulls: null in rows that the expression leaves out."""
    if not leaves_out(node):
        return tree_of(node, schema)
    return kept_rows(node, schema).without_missing().or_null


def kept_rows(node: Node, schema: Schema) -> Kept:
    """What an expression is of, where it may leave out rows."""
    return _Rows(schema).read(node)


class _Rows:
    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def read(self, node: Node) -> Kept:
        core, kept = self._split(node)
        return replace(kept, values=self._tree(core))

    def _tree(self, node: Node) -> Tree:
        return tree_of(node, self._schema)

    def _split(self, node: Node) -> tuple[Node, Kept]:
        """The node without what leaves out rows, and what does."""
        if not leaves_out(node):
            return node, Kept(constant(None))
        [(kind, body)] = node.items()
        if kind == "Filter":
            return self._filtered(body)
        if kind in ("Alias", "KeepName", "RenameAlias"):
            return self._split(operands(kind, body)[0])
        name = _dropping(node)
        if name is None:
            return self._computed(kind, body)
        core, kept = self._split(body["input"][0])
        tree = self._tree(core)
        if name == _NULLS:
            return core, replace(kept, nulls=(*kept.nulls, tree))
        return core, replace(kept, nans=(*kept.nans, tree))

    def _filtered(self, body: Node) -> tuple[Node, Kept]:
        if leaves_out(body["input"]):
            raise _unlike()
        return body["input"], Kept(constant(None), filters=(self._tree(body["by"]),))

    def _computed(self, kind: str, body: Node) -> tuple[Node, Kept]:
        """What is computed of values that were left out in part, and of constants."""
        found = operands(kind, body)
        (place, *more) = (i for i, part in enumerate(found) if leaves_out(part))
        if more or kind == "Ternary":
            raise _unlike()
        if not all(self._is_constant(p) for i, p in enumerate(found) if i != place):
            raise _unlike()
        found[place], kept = self._split(found[place])
        return with_parts(kind, body, found), kept

    def _is_constant(self, node: Node) -> bool:
        return "Literal" in node or not column_names(self._tree(node))


def leaves_out(node: Node) -> bool:
    """Whether an expression has other rows than its columns, if that can be read."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, dict):
            continue
        [(kind, body)] = node.items()
        if kind == "Filter" or _dropping(node) is not None:
            return True
        if kind == "Alias" and (body[1] == SQL or marked(body[1]) is not None):
            continue
        waiting.extend(operands(kind, body))
    return False


def _dropping(node: Node) -> str | None:
    function = node.get("Function")
    key = None if function is None else function_key(function["function"])[0]
    return key if key in (_NULLS, _NANS) else None


def _unlike() -> UnsupportedOperation:
    return UnsupportedOperation(
        "the expression filters some operands and not others, so their numbers of rows differ",
        remedy=(
            "put all conditions into one .filter(...), right before the aggregate",
            "filter the frame: frame.filter(...)",
        ),
    )


# -- Outputs --------------------------------------------------------------------------------------


def polars_schema(columns: Columns) -> dict[str, pl.DataType]:
    """The schema of a frame for the reader; types that dpframe does not know become Object."""
    return {n: to_polars(d.dtype) if d.dtype.is_known else pl.Object() for n, d in columns.items()}


def read_outputs(specs: Iterable[OutputSpec], scope: QueryScope) -> tuple[Output, ...]:
    """The outputs of a query, several where an expression names several columns."""
    schema = polars_schema(scope.facts.columns)
    outputs = [output for spec in specs for output in _expand(spec, scope, schema)]
    if not outputs:
        raise UnsupportedOperation(
            "the query asks for no output",
            remedy="pass at least one dp expression, such as dp.count()",
        )
    seen = set(() if scope.groups is None else scope.groups.names)
    if isinstance(scope.groups, SetGroups):
        seen.add(GROUPING)
    for output in outputs:
        if output.name in seen:
            raise UnsupportedOperation(
                f"two result columns would be named {output.name!r}",
                where=output.words,
                remedy="name one of them with .alias(...) or a keyword",
            )
        seen.add(output.name)
    return tuple(outputs)


def _expand(spec: OutputSpec, scope: QueryScope, schema: Schema) -> list[Output]:
    """One output per column that the expression names."""
    requests = {p: _requests(a, schema) for p, a in spec.aggregates.items()}
    if not all(requests.values()):
        raise UnsupportedOperation(
            "a dp expression selects no column",
            where=spec.words,
            remedy="name a column that the frame has",
        )
    width = max(len(found) for found in requests.values())
    first = _fill(spec.words, {p: found[0][1] for p, found in requests.items()})
    if any(len(found) not in (1, width) for found in requests.values()):
        raise UnsupportedOperation(
            "the aggregates in one expression name different numbers of columns",
            where=first,
            remedy="write one expression per output",
        )
    if width > 1 and spec.alias is not None:
        raise UnsupportedOperation(
            f"{width} columns cannot all be named {spec.alias!r}",
            where=f"{first}, and {width - 1} more",
            remedy=("name the columns one by one", "leave the alias out"),
        )
    post_tree = None if spec.post is None else _post_tree(spec.post, spec.aggregates, first)
    outputs = []
    for i in range(width):
        chosen = {p: found[i] if len(found) == width else found[0] for p, found in requests.items()}
        said = {p: text for p, (_, text) in chosen.items()}
        own = spec.alias if spec.alias is not None else next(iter(chosen.values()))[0].name
        name = spec.prefix + own + spec.suffix
        bound = {
            p: by_grouping_sets(bind(replace(r, name=name), scope), scope)
            for p, (r, _) in chosen.items()
        }
        about = _fill(spec.words, said), post_tree, spec.interval_optional
        outputs.append(Output(name, bound, spec.post, *about))
    return outputs


def _post_tree(post: pl.Expr, placeholders: Iterable[str], text: str) -> Tree:
    """Arithmetic on results as a tree."""
    try:
        serialised(post)
    except TooLargeError:
        raise too_large("agg") from None
    try:
        (named,) = read(
            post, {placeholder: pl.Float64() for placeholder in placeholders}, what="agg"
        )
    except DPFrameError as error:
        error.where = text
        raise
    return named.tree


def _fill(template: str, said: Mapping[str, str]) -> str:
    for placeholder, text in said.items():
        template = template.replace("{" + placeholder + "}", text)
    return template


def _requests(spec: AggregateSpec, schema: Schema) -> list[tuple[Request, str]]:
    """One request per column that the aggregate's expression names, with its words."""
    method = spec.aggregate.method
    score, scored = _score(spec, schema)
    below = _denominator(spec, schema)
    asked = spec.weight, spec.mechanism, score, below
    shown = _arguments(spec, scored, below)
    if spec.expression is None:
        name = spec.aggregate.name_without_column
        if name is None:
            raise UnsupportedOperation(
                f"dp_{method} needs a column",
                where=f"dp.{method}({shown})",
                remedy=f"write pl.col(column).dp_{method}(...)",
            )
        return [(Request(spec.aggregate, name, None, *asked), f"dp.{method}({shown})")]
    given = spec.expression
    each = None if spec.counts_missing else tree_or_null
    named = (
        (given,)
        if isinstance(given, Named)
        else read(given, schema, what=f"dp_{method}", each=each)
    )
    return [
        (Request(spec.aggregate, n.name, n.tree, *asked), f"{words(n.tree)}.dp_{method}({shown})")
        for n in named
    ]


def _denominator(spec: AggregateSpec, schema: Schema) -> Tree | None:
    """The expression below the line of a ratio."""
    if spec.denominator is None:
        return None
    named = read(spec.denominator, schema, what=f"dp_{spec.aggregate.method}(denominator=...)")
    if len(named) != 1:
        raise UnsupportedOperation(
            f"a denominator is one expression, and this makes {len(named)}",
            where=f"dp_{spec.aggregate.method}(denominator=...)",
            remedy=("name one column", "write one ratio for each"),
        )
    return named[0].tree


def _score(spec: AggregateSpec, schema: Schema) -> tuple[Request | Tree | None, str]:
    """The score of a selection, with its words; it may use the columns of a public frame of
    candidates.
    """
    if spec.score is None:
        return None, ""
    candidates = spec.aggregate.arguments().get("candidates")
    if isinstance(candidates, pl.DataFrame):
        both = [name for name in candidates.columns if name in schema]
        if both:
            raise UnsupportedOperation(
                f"the candidates and the protected frame both have a column {both[0]!r}",
                where="dp_argmax(candidates=<frame>)",
                remedy="rename one of them, so that a score can distinguish them",
            )
        schema = {**schema, **candidates.schema}
    if isinstance(spec.score, AggregateSpec):
        found = _requests(spec.score, schema)
        if len(found) != 1:
            raise _several_scores(len(found))
        return found[0]
    named = read(spec.score, schema, what="dp_argmax(score=...)")
    if len(named) != 1:
        raise _several_scores(len(named))
    return named[0].tree, words(named[0].tree)


def _several_scores(count: int) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"a score is one expression, and this makes {count}",
        where="dp_argmax(score=...)",
        remedy=("name one column", "combine them: pl.sum_horizontal(...)"),
    )


def _arguments(spec: AggregateSpec, score: str, below: Tree | None) -> str:
    """The arguments of an aggregate as they were written, defaults left out."""
    shown = write_arguments(spec.aggregate)
    if below is not None:
        shown.insert(0, words(below))
    if score:
        shown.append(f"score={score}")
    if spec.mechanism != "auto":
        shown.append(f'mechanism="{spec.mechanism}"')
    if spec.weight != 1:
        shown.append(f"weight={nearest(spec.weight):g}")
    return ", ".join(shown)


# -- Polars' aggregates ---------------------------------------------------------------------------


_ONE = constant(1)
_INTERPOLATIONS = ("Nearest", "Linear")
_FUNCTIONS = re.compile(r"(?<![\w.\"'])(col|when|lit|coalesce|struct|\w+_horizontal)\(")


@dataclass(frozen=True, slots=True)
class PlainAggregate:
    """One aggregate of Polars as a private one."""

    aggregate: Aggregate  # Which one
    # What is aggregated, under the name that Polars gives to the result; None for rows.
    values: Named | None
    name: str  # That name


def read_plain(node: Node, columns: Columns) -> PlainAggregate | None:
    """The private aggregate that a node means; None for what is no aggregate."""
    if node == "Len":
        return PlainAggregate(Count(), None, "len")
    [(kind, body)] = node.items()
    if kind == "Agg":
        name, inner, said = held(body)
        return _Asked(node_name(kind, body), inner, columns).read(name, said)
    if kind != "Function":
        return None
    key, params = function_key(body["function"])
    asked = _Asked(function_name(key, params), body["input"][0] if body["input"] else None, columns)
    if key == "Quantile":
        return asked.read(key, {"quantile": body["input"][1], **params})
    return asked.read(key, None) if key == "NullCount" else None


def _ranks(node: Node) -> Any:
    """The rank of a quantile, or a list of several; None for what is no constant."""
    try:
        [(kind, body)] = node.items()
        found = read_literal(body) if kind == "Literal" else None
    except (AttributeError, ValueError):
        return None
    values = list(found.values) if isinstance(found, Values) else [getattr(found, "value", None)]
    if not values or not all(type(value) in (int, float) for value in values):
        return None
    return tuple(values) if isinstance(found, Values) else values[0]


class _Asked:
    """One aggregate: how Polars calls it, and of what it is."""

    def __init__(self, method: str, inner: Node, columns: Columns) -> None:
        self._method = method
        self._name = output_name(inner)
        self._columns = columns
        self._schema = polars_schema(columns)
        self._inner = inner

    def read(self, name: str, said: Node) -> PlainAggregate:
        match name, said:
            case "Sum", _:
                return self._of(Sum(), "sum()")
            case "Mean", _:
                return self._of(Mean(), "mean()")
            case "Median", _:
                return self._of(Median(0.5), "median()")
            case (("Var" | "Std"), [int(ddof)]):
                return self._spread(name, ddof)
            case "Quantile", Mapping():
                return self._quantile(said)
            case "Count", _:
                return self._count()
            case "NUnique", _:
                return self._distinct()
            case "NullCount", _:
                return self._nulls()
            case _:
                raise refuse(self._method)

    def _spread(self, name: str, ddof: int) -> PlainAggregate:
        said = "" if ddof == 1 else f"ddof={ddof}"
        if name == "Var":
            return self._of(Variance(ddof=ddof), f"var({said})")
        return self._of(StandardDeviation(ddof=ddof), f"std({said})")

    def _quantile(self, said: Node) -> PlainAggregate:
        q = _ranks(said["quantile"])
        if q is None:
            raise UnsupportedOperation(
                "the quantile is not a constant",
                why="ranks are public, and not read from rows",
                remedy="write .quantile(0.9), or .quantile([0.1, 0.9]) for several",
            )
        if said["method"] not in _INTERPOLATIONS:
            raise UnsupportedOperation(
                f"quantile with interpolation={said['method'].lower()!r} has no private form",
                why="the noise hides which of two neighbouring values it takes",
                remedy=f"leave the interpolation out: .quantile({q})",
            )
        return self._of(Quantile(q), f"quantile({list(q) if isinstance(q, tuple) else q})")

    def _of(self, aggregate: Aggregate, written: str) -> PlainAggregate:
        """An aggregate of numbers, which skips nulls."""
        kept = self._kept()
        found = domain(kept.values, self._columns)
        if found.dtype.is_ordered and known_bounds(kept.values, self._columns) is None:
            raise self._unbounded(kept, aggregate.kind, written)
        return self._made(aggregate, kept.without_missing())

    def _count(self) -> PlainAggregate:
        """`len` counts nulls and NaN, `count` counts NaN."""
        kept = self._kept()
        if self._method == "len":
            if not kept.conditions:
                return PlainAggregate(Count(), None, self._name)
            return self._made(Count(), replace(kept, values=_ONE))
        if not domain(kept.values, self._columns).nan:
            return self._made(Count(), kept.without_missing())
        return self._rows_where(kept, IsNotNull().of(kept.values))

    def _nulls(self) -> PlainAggregate:
        kept = self._kept()
        return self._rows_where(kept, IsNull().of(kept.values))

    def _rows_where(self, kept: Kept, condition: Tree) -> PlainAggregate:
        """How many of the rows that are kept fulfil a condition."""
        return self._made(Count(), replace(kept, values=_ONE, filters=(*kept.filters, condition)))

    def _distinct(self) -> PlainAggregate:
        kept = self._kept()
        found = domain(kept.values, self._columns)
        for possible, what, method in (
            (found.nullable and not kept.drops_nulls, "null", "drop_nulls"),
            (found.nan and not kept.drops_nans, "NaN", "drop_nans"),
        ):
            if possible:
                raise UnsupportedOperation(
                    f"n_unique of Polars counts {what} as a value, and dp_n_unique does not",
                    remedy=f"write {self._line(kept, f'{method}().n_unique()')}",
                )
        return self._made(DistinctValues(), kept.without_missing())

    def _kept(self) -> Kept:
        if self._inner == "Len" or "Agg" in self._inner:
            raise UnsupportedOperation(
                f"{self._method} of an aggregate is not available inside the query",
                why="an aggregate is one number in each group already",
                remedy="compute the rest with the released numbers, such as shares of a total: "
                '.collect(...).with_columns(share=pl.col("len") / pl.col("len").sum())',
            )
        kept = kept_rows(self._inner, self._schema)
        if not column_names(kept.values):
            raise UnsupportedOperation(
                f"{self._method} of a constant is not possible",
                why="it is one value, and not one for each row",
                remedy="write pl.len() for the number of rows",
            )
        domain(kept.values, self._columns)
        return kept

    def _made(self, aggregate: Aggregate, kept: Kept) -> PlainAggregate:
        return PlainAggregate(aggregate, Named(self._name, kept.or_null), self._name)

    def _unbounded(self, kept: Kept, kind: str, written: str) -> DPFrameError:
        line = self._line(kept, f"clip(low, high).{written}")
        write = f"write {line} with the range that you expect; values outside it are clipped to it"
        return UnboundedSensitivity(
            f"the values have no known bounds, so one individual could change the {kind} by any "
            "amount",
            remedy=or_declare(write, kept.values, "bounds", "(low, high)"),
        )

    def _line(self, kept: Kept, ending: str) -> str:
        """The expression as it should be written."""
        filters = "".join(f".filter({_as_polars(outer_words(c))})" for c in kept.filters)
        return f"{_as_polars(words(kept.values))}{filters}.{ending}"


def _as_polars(text: str) -> str:
    """An expression in the form written with ``import polars as pl``."""
    return _FUNCTIONS.sub(r"pl.\1(", text)
