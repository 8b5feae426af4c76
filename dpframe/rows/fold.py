"""Folds over a tree: its domain, its words, and its lowered expression."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import polars as pl
from polars.expr.whenthen import ChainedThen, Then

from dpframe.core.dtypes import Columns, Domain
from dpframe.core.interval import EVERYTHING
from dpframe.core.tree import Call, Column, Literal, Tree
from dpframe.errors import DPFrameError, UnsupportedOperation
from dpframe.rows.constants import literal_domain, literal_lower, literal_words
from dpframe.rows.failures import FAILURES, unexpected
from dpframe.rows.operation import Namespace
from dpframe.rows.suggest import unknown_column


def domain(tree: Tree, columns: Columns) -> Domain:
    """What is known of `tree` over a frame with these `columns`. Columns that the frame does not
    have, and types for which an operation is not defined, are refused.
    """
    try:
        return _domain(tree, columns)
    except DPFrameError:
        raise
    except FAILURES as error:
        raise unexpected("planned", error) from None


def _domain(tree: Tree, columns: Columns) -> Domain:
    match tree:
        case Column(name):
            found = columns.get(name)
            if found is None:
                raise unknown_column(name, columns, words(tree))
            if not found.dtype.is_known:
                raise UnsupportedOperation(
                    f"column {name!r} has type {found.dtype}, which dpframe does not support",
                    where=words(tree),
                    remedy="leave the column out, or convert it before the frame is protected",
                )
            return found
        case Literal():
            return literal_domain(tree)
        case Call(operation, args):
            domains = [_domain(arg, columns) for arg in args]
            try:
                return operation.domain(domains)
            except DPFrameError as error:
                raise error.at(words(tree)) from None


def known_bounds(tree: Tree, columns: Columns) -> tuple[Fraction, Fraction] | None:
    """The bounds of the values of `tree`, None without any. The range of a type of 32 bits, and
    what follows from it, does not count: noise for such a range would hide every real value.
    """
    known = domain(tree, columns).bounds
    if known is None or max(map(abs, known)) < 2**31 - 1:
        return known
    try:
        return known if _without_ranges(tree, columns).bounds is not None else None
    except DPFrameError:
        return None


def _without_ranges(tree: Tree, columns: Columns) -> Domain:
    """The domain of `tree` as if integers of 32 bits had any size."""
    if isinstance(tree, Call):
        known = tree.operation.domain([_without_ranges(arg, columns) for arg in tree.args])
    else:
        known = _domain(tree, columns)
    return replace(known, interval=EVERYTHING) if known.is_range_of_type else known


def words(tree: Tree) -> str:
    """The tree as the analyst would write it in Polars."""
    match tree:
        case Column(name):
            return f'col("{name}")'
        case Literal():
            return literal_words(tree)
        case Call(operation, args):
            return operation.words([words(arg) for arg in args])


def outer_words(tree: Tree) -> str:
    """`words` without brackets around the whole, for places where nothing follows."""
    text = words(tree)
    return text[1:-1] if isinstance(tree, Call) and _encloses(text) else text


def _encloses(text: str) -> bool:
    """Whether the first bracket closes at the end; brackets in quoted text do not count."""
    if not text.startswith("("):
        return False
    depth, quote, escaped = 0, "", False
    for position, character in enumerate(text):
        if quote:
            quote = "" if character == quote and not escaped else quote
            escaped = character == "\\" and not escaped
        elif character in "\"'":
            quote, escaped = character, False
        elif character in "()":
            depth += 1 if character == "(" else -1
            if depth == 0:
                return position == len(text) - 1
    return False


def lower(tree: Tree, columns: Columns, ns: Namespace = pl) -> pl.Expr:
    """The tree as a total, row-wise expression of the engine behind `ns`."""
    try:
        return _lowered(tree, columns, ns)[0]
    except DPFrameError:
        raise
    except FAILURES as error:
        raise unexpected("lowered", error) from None


def _lowered(tree: Tree, columns: Columns, ns: Namespace) -> tuple[pl.Expr, Domain]:
    """The expression, and what is known of it, each node once."""
    if not isinstance(tree, Call):
        known = domain(tree, columns)
        return (ns.col(tree.name) if isinstance(tree, Column) else literal_lower(tree, ns)), known
    lowered, domains = [], []
    for arg in tree.args:
        expression, known = _lowered(arg, columns, ns)
        lowered.append(expression)
        domains.append(known)
    result = tree.operation.lower(ns, lowered, domains)
    if isinstance(result, Then | ChainedThen):
        # `when(...).then(...)` is of a subclass of `Expr`, and Python turns `a == b` and `a < b`
        # round where only `b` is. A constant that an operation put second comes first then, and
        # Polars compares a constant with a column kept as one value in one row, not in all: a
        # filter keeps that row.
        result = result.otherwise(None)
    return result, tree.operation.domain(domains)
