"""Parts of a growing frame that keep each individual's first parts."""

from __future__ import annotations

from dataclasses import replace

from dpframe.core.tree import Column, Named
from dpframe.errors import UnsupportedOperation
from dpframe.frames.nights import before_first_limits, first_limits, require_rowwise
from dpframe.frames.part import Part
from dpframe.frames.relation import Relation
from dpframe.frames.step import Step
from dpframe.kernel.frame import GroupLimit, RowLimit
from dpframe.rows.fold import domain

__all__ = ["first_parts", "steady_steps"]


def first_parts(relation: Relation, by: tuple[Named, ...]) -> int | None:
    """In how many parts an individual's rows can be, for any added rows, if parts are charged in
    the order of their keys; None if unknown.

    Proof
    -----
    Let a limit keep the rows of an individual's first n dates (or its first n rows by date), and
    let the result of each earlier step for a row depend on this row alone. Let k_1 < k_2 < ... <
    k_m be the parts in which plans find rows of an individual, in the order of their last charge.
    When k_m is read, rows with the dates k_1 to k_{m-1} exist, because they existed before and no
    row vanishes. The limit keeps k_m only if it is among the first n dates, so m is at most n. A
    row that no longer passes a filter before the limit has vanished, so the results of the steps
    before the limit must not change.
    """
    if len(by) != 1 or relation.facts.unit.kind != "identifier":
        return None
    tree = by[0].tree
    dtype = domain(tree, relation.facts.columns).dtype
    if not isinstance(tree, Column) or not (dtype.is_integer or dtype.name == "Date"):
        return None
    if any(isinstance(step, Part) for step, _ in relation.steps):
        return None
    try:
        require_rowwise(relation)
    except UnsupportedOperation:
        return None
    limits = first_limits(relation, tree.name)
    of_dates = [x.n for x in limits if isinstance(x, GroupLimit) and x.by == {tree.name}]
    of_rows = [x.n for x in limits if isinstance(x, RowLimit) and not x.by]
    return min([*of_dates, *of_rows], default=None)


def steady_steps(relation: Relation) -> list[Step] | None:
    """The steps before the limit that keeps an individual's first parts. Their results for a row
    must not change while parts are charged. None if the query reads no part that lasts: parts that
    were made together with one for null do not last (a stricter rule than necessary).
    """
    for number, (step, before) in enumerate(relation.steps):
        if isinstance(step, Part):
            whole = replace(relation, steps=relation.steps[:number], facts=before)
            if not relation.named or None in step.values or first_parts(whole, step.by) is None:
                return None
            (by,) = step.by
            assert isinstance(by.tree, Column)
            return before_first_limits(whole, by.tree.name)
    return None
