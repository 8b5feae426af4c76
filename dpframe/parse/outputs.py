"""From dp expressions, as written, to the outputs of a query: columns resolved, names decided."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import polars as pl

from dpframe.aggregates.aggregate import AggregateSpec, Output, OutputSpec, written_arguments
from dpframe.aggregates.reconstruction import rolled
from dpframe.aggregates.registry import bind
from dpframe.aggregates.request import QueryScope, Request
from dpframe.core.domain import Columns
from dpframe.core.exact import nearest
from dpframe.core.tree import Named, Tree
from dpframe.errors import DPFrameError, UnsupportedOperation
from dpframe.frames.groups import GROUPING, SetGroups
from dpframe.parse.filtered import tree_or_null
from dpframe.parse.reader import read
from dpframe.parse.size import TooLargeError, serialised, too_large
from dpframe.rows.fold import words
from dpframe.rows.polars_dtypes import to_polars


def polars_schema(columns: Columns) -> dict[str, Any]:
    """The schema of a frame for the reader; types that dpframe does not know become Object."""
    return {n: to_polars(d.dtype) if d.dtype.is_known else pl.Object() for n, d in columns.items()}


def read_outputs(specs: Iterable[OutputSpec], scope: QueryScope) -> tuple[Output, ...]:
    """The outputs of a query, several where an expression names several columns.

    Parameters
    ----------
    specs
        The request, in order.
    scope
        The frame and groups of the query.

    Raises
    ------
    DPFrameError
        When an expression is refused, or two outputs have one name.
    """
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


def _expand(spec: OutputSpec, scope: QueryScope, schema: Mapping[str, Any]) -> list[Output]:
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
        bound = {p: rolled(bind(_named(r, name), scope), scope) for p, (r, _) in chosen.items()}
        about = _fill(spec.words, said), post_tree, spec.interval_optional
        outputs.append(Output(name, bound, spec.post, *about))
    return outputs


def _post_tree(post: pl.Expr, placeholders: Iterable[str], text: str) -> Tree:
    """Arithmetic on results as a tree.

    Raises
    ------
    DPFrameError
        For an operation that results do not have, and for arithmetic that is too large.
    """
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


def _named(request: Request, name: str) -> Request:
    return request if request.name == name else replace(request, name=name)


def _requests(spec: AggregateSpec, schema: Mapping[str, Any]) -> list[tuple[Request, str]]:
    """One request per column that the aggregate's expression names, with its words."""
    method = spec.aggregate.method
    score, scored = _score(spec, schema)
    below = _denominator(spec, schema)
    shown = _arguments(spec, scored, below)
    if spec.expression is None:
        name = spec.aggregate.name_without_column
        if name is None:
            raise UnsupportedOperation(
                f"dp_{method} needs a column",
                where=f"dp.{method}({shown})",
                remedy=f"write pl.col(column).dp_{method}(...)",
            )
        return [(_request(spec, name, None, score, below), f"dp.{method}({shown})")]
    given = spec.expression
    each = None if spec.counts_missing else tree_or_null
    named = (
        (given,)
        if isinstance(given, Named)
        else read(given, schema, what=f"dp_{method}", each=each)
    )
    return [
        (_request(spec, n.name, n.tree, score, below), f"{words(n.tree)}.dp_{method}({shown})")
        for n in named
    ]


def _request(
    spec: AggregateSpec,
    name: str,
    tree: Tree | None,
    score: Request | Tree | None,
    below: Tree | None,
) -> Request:
    return Request(spec.aggregate, name, tree, spec.weight, spec.mechanism, score, below)


def _denominator(spec: AggregateSpec, schema: Mapping[str, Any]) -> Tree | None:
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


def _score(spec: AggregateSpec, schema: Mapping[str, Any]) -> tuple[Request | Tree | None, str]:
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
    shown = written_arguments(spec.aggregate)
    if below is not None:
        shown.insert(0, words(below))
    if score:
        shown.append(f"score={score}")
    if spec.mechanism != "auto":
        shown.append(f'mechanism="{spec.mechanism}"')
    if spec.weight != 1:
        shown.append(f"weight={nearest(spec.weight):g}")
    return ", ".join(shown)
