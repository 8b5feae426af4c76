"""Whether the plan that people read agrees with the physical plan, which the kernel verifies.

The physical plan decides about privacy. The reading says much of it again, in other forms and with
words. A document in which the two differ would show a reviewer another release than the verified
one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from math import prod
from typing import Any, TypeAlias, cast

from dpframe.core.budget import Budget
from dpframe.core.units import Identifier, Unit
from dpframe.kernel import plan as kernel
from dpframe.kernel.frame import Facts, facts_of
from dpframe.kernel.moves import norms_of, ranges_of
from dpframe.plan.data import PlanData
from dpframe.plan.definition import Json
from dpframe.plan.laws import law_of, number_law, numbers_of, text_of
from dpframe.plan.noisy_aggregate import NoisyAggregate
from dpframe.plan.pieces import FoundLimit
from dpframe.plan.regular import numbers_of_rule
from dpframe.plan.several import after_search, blocks_of
from dpframe.plan.verified import nodes_of

__all__ = ["disagreement"]

Term: TypeAlias = tuple[object, ...]
"""An expression, or another part of a definition, in one form for both plans."""
_WINNERS, _OWNER = "winners", "owner"
"""How many a choice has; where numbers with noise decide, physical plans have the numbers only. And
the new name of the column that identifies individuals.
"""


def disagreement(plan: PlanData, physical: kernel.Plan) -> str | None:
    """The first statement of a plan that its physical plan contradicts, if any."""
    try:
        return next(_disagreements(plan, physical), None)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, kernel.Refused):
        return "its numbers"


def _disagreements(plan: PlanData, physical: kernel.Plan) -> Iterator[str]:
    if not _is_cost(plan.cost, physical):
        yield "cost"
    if plan.found is None:
        if physical.options:
            yield "found"
        if physical.composition != plan.composition:
            yield "composition"
        yield from _of_query(plan, physical, list(plan.draws), physical.draws)
        yield from _unsaid(plan, physical)
        return
    search, choices = next(blocks_of(plan)), plan.found.choices
    if len(physical.options) != len(choices):
        yield "found"
        return
    yield from _of_query(search, physical, list(search.draws), physical.draws)
    yield from _unsaid(search, physical)
    query = after_search(plan)
    for choice, option in zip(choices, physical.options, strict=True):
        if not _is_cost(choice.cost, option):
            yield f"found.choices (limit {choice.n})"
        if not any(_limit_of(frame) == choice.n for frame in option.frames):
            yield f"found.choices (limit {choice.n})"
        yield from _unsaid(query, option, _limits_found(plan.found, choice.n, option))
    last = physical.options[-1]
    if last.composition != plan.composition:
        yield "composition"
    yield from _of_query(query, last, list(query.draws), last.draws)


def _limits_found(found: FoundLimit, least: int, option: kernel.Plan) -> set[Term]:
    """The limits of an option that follow from the one that is found: that one, and weaker ones, by
    which it is found what that one drops.
    """
    limits = {term for frame in option.frames for term in _terms_of(frame)}
    like = found.step, found.by, None
    return {x for x in limits if (x[0], *x[2:]) == like and cast("int", x[1]) >= least}


def _limit_of(frame: kernel.Frame) -> int | None:
    return frame.n if isinstance(frame, kernel.KeepRows | kernel.KeepGroups) else None


def _is_cost(cost: Budget, physical: kernel.Plan) -> bool:
    measure = physical.measure if physical.composition == "sum" else "epsilon"
    return (cost.currency, cost.main, cost.slack) == (measure, physical.cost, physical.delta)


def _of_query(
    plan: PlanData,
    physical: kernel.Plan,
    releases: Sequence[NoisyAggregate],
    draws: Sequence[kernel.Draw],
) -> Iterator[str]:
    """What differs in the draws, and in the frames and tables that they are of."""
    if plan.unit.adjacency != physical.neighbours:
        yield "unit"
    if len(releases) != len(draws):
        yield "releases"
        return
    facts = facts_of(physical.frames)
    for release, draw in zip(releases, draws, strict=True):
        if not _covers_norms(release, draw, physical, facts):
            yield f"sensitivity of {release.name!r}"
        stated = release.cost
        if (stated.currency, stated.main, stated.slack) != (
            physical.measure,
            draw.cost,
            draw.delta,
        ):
            yield f"cost of {release.name!r}"
        if not _is_law(release, draw, draws):
            yield f"mechanism of {release.name!r}"
    known = _Known(physical)
    for block in blocks_of(plan):
        yield from known.contradicted(block)


def _covers_norms(
    release: NoisyAggregate, draw: kernel.Draw, physical: kernel.Plan, facts: Sequence[Facts]
) -> bool:
    """Whether an individual moves numbers or scores by what is stated, or by less."""
    what = draw.what
    if isinstance(what, kernel.Appear | kernel.Reports):  # their laws say all
        return True
    is_noisy = isinstance(draw.law, kernel.Laplace | kernel.Gaussian)
    if isinstance(what, kernel.Vector | kernel.Running | kernel.Nights) or (
        isinstance(what, kernel.Rank) and is_noisy
    ):
        norms = norms_of(physical, facts, what)
        exact = release.exact if release.joint is None else release.joint.exact
        return (
            exact.l1 >= norms.l1
            and exact.l2_squared >= norms.l2_squared
            and exact.linf >= norms.linf
        )
    ranges, scores = ranges_of(physical, facts, what), release.scores
    return scores is not None and (
        scores.l1 >= ranges.l1
        and scores.l2_squared >= ranges.squares
        and scores.linf >= ranges.linf
    )


def _is_law(release: NoisyAggregate, draw: kernel.Draw, draws: Sequence[kernel.Draw]) -> bool:
    by_number = number_law(release.law)
    if by_number is None:
        return draw.law == law_of(release.law)
    if not isinstance(draw.law, kernel.Threshold) or not 0 <= draw.law.draw < len(draws):
        return False
    threshold, noise = by_number
    return draw.law.least == threshold and draws[draw.law.draw].law == law_of(noise)


class _Known:
    """All that a physical plan has, to look up what a reading says.

    Parameters
    ----------
    physical
        The physical plan.
    """

    def __init__(self, physical: kernel.Plan) -> None:
        nodes = [*nodes_of(physical.frames), *nodes_of(physical.tables)]
        self.scans = [node for node in nodes if isinstance(node, kernel.Scan)]
        self.keys = [node for node in nodes if isinstance(node, kernel.Listed)]
        made = (n for n in nodes if isinstance(n, kernel.Scan | kernel.Map))
        self.columns = {name for node in made for name, _ in node.columns}
        self.terms = {term for node in nodes for term in _terms_of(node)}
        gathers = (node for node in nodes if isinstance(node, kernel.Gather))
        names = frozenset(name for gather in gathers for name, _ in gather.new)
        if names:  # a reading has the aggregates themselves in the place of these columns
            rows = (n for n in nodes if isinstance(n, kernel.Col | kernel.Lit | kernel.Call))
            self.terms |= {_of_row(row, names) for row in rows}

    def contradicted(self, plan: PlanData) -> Iterator[str]:
        """What the plan of one frame says that is not there."""
        mine = [scan for scan in self.scans if _is_named(scan.name, plan.source)]
        if not any(scan.unit == _unit(plan.unit) for scan in mine):
            yield "unit"
        for column in plan.columns or ():
            types = [
                kind
                for scan in self.scans
                if _is_named(scan.name, column.frame)
                for name, kind in scan.columns
                if name == column.name
            ]  # none of a column that nothing reads
            alike = (column.type == kind or _is_always(column.type, kind) for kind in types)
            if types and not any(alike):
                yield f"type of the column {column.name!r}"
        if plan.groups is not None:
            listed = (plan.keys_digest, plan.groups)
            if listed not in [(keys.digest, prod(keys.sizes)) for keys in self.keys]:
                yield "groups"
        elif plan.keys_digest is not None and plan.keys is not None:
            yield "groups"
        for place, step in enumerate(plan.steps):
            yield from self._missing(step.definition, f"steps[{place}].definition")
        yield from self._missing(plan.grouped_by, "grouped_by")
        for output in plan.outputs:
            found = output.definition
            if isinstance(found, list):  # formulas of what was released follow the measurements
                found = [one for one in found if not _is_expression(one)]
            yield from self._missing(found, f"definition of {output.name!r}")

    def _missing(self, definition: Json, where: str) -> Iterator[str]:
        terms = (term for term in _terms_in(definition) if term[0] not in (_WINNERS, _OWNER))
        if any(term not in self.terms and not self._is_unread(term) for term in terms):
            yield where

    def _is_unread(self, term: Term) -> bool:
        """Whether a step only passes on a column that nothing reads, which physical plans lack."""
        match term:
            case ("named", name, ("column", of)) if name == of:
                return name not in self.columns
            case ("column", name):
                return name not in self.columns
        return False


def _unsaid(
    plan: PlanData, physical: kernel.Plan, said: Collection[Term] = frozenset()
) -> Iterator[str]:
    """What happens to rows, and is no part of the plan that people read; `said` are parts that it
    has in other places.
    """
    blocks = list(blocks_of(plan))
    read = {*said}
    for block in blocks:
        found: list[Json] = [step.definition for step in block.steps]
        found += [block.grouped_by, *(output.definition for output in block.outputs)]
        read |= {*_terms_in(found)}
    for frame in physical.frames:
        if not isinstance(frame, kernel.Scan):
            continue
        if isinstance(frame.unit, kernel.Person):
            owner = "column", frame.unit.column
            read |= {("named", term[1], owner) for term in read if term[0] == _OWNER}
        if not any(_is_of(frame.name, b) for b in blocks):
            yield f"what it states of the source {frame.name!r}"
    made = {
        name if isinstance(name, str) else name[0]
        for frame in physical.frames
        if isinstance(frame, kernel.Gather | kernel.OneEach)
        for name in frame.new
    }
    for what, nodes in (("frame", physical.frames), ("table", physical.tables)):
        for place, node in enumerate(nodes):
            if any(term not in read for term in _done_by(node, made)):
                yield f"what it states of {what} {place}"
    for draw in physical.draws:
        if isinstance(draw.what, kernel.Choice) and (_WINNERS, draw.what.rounds) not in read:
            yield "what it states of winners"


def _done_by(node: kernel.Frame | kernel.Table, made: Collection[str]) -> Iterator[Term]:
    """The terms of a step or table that a plan must have which people read: all but expressions on
    their own, and what reads aggregates of an individual's rows.
    """
    for part in nodes_of((node,)):
        if isinstance(part, kernel.Col | kernel.Lit | kernel.Call):
            continue
        for term in _terms_of(part):
            stays = term[0] == "named" and term[2] == ("column", term[1])
            if not stays and not any(_reads(term, name) for name in made):
                yield term


def _reads(term: object, column: str) -> bool:
    """Whether a column is in a term."""
    if not isinstance(term, tuple):
        return False
    return term == ("column", column) or any(_reads(one, column) for one in term)


def _is_of(name: str, plan: PlanData) -> bool:
    """Whether a plan names a source. With all but the first one it states whom they protect."""
    others = (other.split(": ") for other in plan.others)
    stated = (": ".join(words[:n]) for words in others for n in range(1, len(words)))
    return any(_is_named(name, one) for one in (plan.source, *stated))


def _is_named(name: str, stated: str) -> bool:
    """Whether a source has a name, with a number where several sources do."""
    rest = name.removeprefix(stated)
    return name.startswith(stated) and re.fullmatch(r"( \([0-9]+\))?", rest) is not None


def _is_always(stated: str, kind: str) -> bool:
    """Whether a type is stated with the one value that a declaration leaves."""
    return stated.startswith(f"{kind}, always ")


def _unit(unit: Unit) -> kernel.Unit:
    if isinstance(unit, Identifier):
        return kernel.Person(unit.column, unit.window, unit.time)
    return kernel.Rows(unit.contributions)


_EXPRESSIONS = ("Column", "Literal", "Call")


def _is_expression(found: Json) -> bool:
    return isinstance(found, dict) and found.get("type") in _EXPRESSIONS


_OVER = "over_individual"
_AGGREGATE: Term = ("aggregate",)
"""Stands for an aggregate of one individual's rows in a larger expression."""


def _is_aggregate(found: Mapping[str, Any]) -> bool:
    """Whether an expression is an aggregate of one individual's rows."""
    operation = found.get("op", "")
    return bool(operation == _OVER or operation.startswith("individual_"))


def _aggregates_in(found: Any) -> Iterator[Term]:
    """The aggregates of one individual's rows in an expression, and the keys that these are by."""
    if not isinstance(found, dict) or found.get("type") != "Call":
        return
    if not _is_aggregate(found):
        for one in found["args"]:
            yield from _aggregates_in(one)
    elif found["op"] != _OVER:
        yield _call_of(found["op"], found["args"], found["options"])
    else:
        (_, operation), *options = found["options"]
        arity = 0 if operation == "individual_len" else 1
        aggregate = _call_of(operation, found["args"][:arity], options)
        yield aggregate
        _, *keys = found["args"][arity:]  # the first one is the identifier
        yield "over", aggregate, tuple(map(_term_of, keys))


def _terms_in(found: Any) -> Iterator[Term]:
    """The expressions, grids, cells and limits of a definition, from the outermost in."""
    if isinstance(found, list):
        for item in found:
            yield from _terms_in(item)
    elif isinstance(found, dict):
        if _is_expression(found):
            yield from _aggregates_in(found)
        if found.get("step") == "PerIndividual":
            return  # the kernel knows only the columns of these numbers
        yield from _roles_in(found)
        term = _term_of(found)
        if term is not None:
            yield term
        if _is_expression(found) or found.get("step") == "Part":
            return
        # the kernel has the grid of the values, and the grid of their squares follows from it; the
        # grid of an individual's total, which is put into a cell, moves no number
        skipped = "grid" if found.get("type") in ("SquareSum", "TotalValue") else None
        for name, item in found.items():
            if name != skipped:
                yield from _terms_in(item)


def _roles_in(found: Any) -> Iterator[Term]:
    """What an object of a definition does with expressions and columns."""
    match found.get("type", found.get("step")):
        case "Filter":
            for one in found["predicates"]:
                if not any(_aggregates_in(one)):
                    yield "filter", _term_of(one)
        case "DropNulls":
            for name in found["names"]:
                yield "filter", ("call", "is_not_null", (("column", name),), "[]")
        case "Rename":
            for old, new in found["mapping"]:
                yield "named", new, ("column", old)
        case "GroupByIndividual":
            yield _OWNER, found["who"]
        case "Named":
            if not any(_aggregates_in(found["tree"])):
                yield "named", found["name"], _term_of(found["tree"])
        case "JoinPublic":
            on = tuple(zip(found["left_on"], found["right_on"], strict=True))
            yield "join", found["digest"], on, found["how"]
        case "JoinPrivate" | "JoinPrivateKeys":
            yield "meet", found["how"], tuple(map(tuple, found.get("on", [])))
        case "Concat":
            yield ("union",)
        case "Explode":
            yield "explode", found["column"]
        case "ValueCount" | "DistinctCount" as kind:
            yield kind, _term_of(found["tree"])
        case "GridSum":
            yield "sum", _term_of(found["value"]["tree"]), _term_of(found["grid"])
        case "CategoryCells":
            yield "cell", _term_of(found["tree"])
        case "BinCells" | "PointCells" | "PositionCells" | "UpToCells":
            yield "cell", _term_of(found["value"]["tree"])
        case "CategoryChoice" | "ScoredChoice":
            yield _WINNERS, found["winners"]


def _roles_of(node: object) -> Iterator[Term]:
    """What a node does, in the form of `_roles_in`."""
    match node:
        case kernel.Filter(_, conditions):
            yield from (("filter", _of_row(row)) for row in conditions)
        case kernel.Gather(_, keys, aggregates, True):  # the keys have names of the planner's own
            by = tuple(_of_row(row) for _, row in keys)
            yield from (("over", _of_row(call), by) for _, call in aggregates)
        case kernel.Map(_, named) | kernel.Gather(_, named):
            yield from (("named", name, _of_row(row)) for name, row in named)
        case kernel.Listed(named) | kernel.Found(named):
            yield from (("named", name, _of_row(row)) for name, row in named)
        case kernel.Lookup(_, digest, on, how):
            yield "join", digest, on, how
        case kernel.Meet(_, _, on, how):
            yield "meet", how, on
        case kernel.Union():
            yield ("union",)
        case kernel.Explode(_, column):
            yield "explode", column
        case kernel.Valued(row):
            yield "ValueCount", _of_row(row)
        case kernel.Distinct(row):
            yield "DistinctCount", _of_row(row)
        case kernel.Placed(row, grid):
            yield from (("sum", _of_row(row), term) for term in _terms_of(grid))
        case (
            kernel.Edges(row)
            | kernel.Values(row)
            | kernel.Points(row)
            | kernel.Between(row)
            | kernel.UpTo(row)
        ):
            yield "cell", _of_row(row)


def _terms_of(node: object) -> Iterator[Term]:
    """What a node is in the form of `_term_of`."""
    yield from _roles_of(node)
    match node:
        case kernel.Col() | kernel.Lit() | kernel.Call():
            yield _of_row(node)
        case kernel.Grid(step, centre, lo, hi):
            yield "grid", step, centre, lo, hi
        case kernel.Edges(_, edges, other):
            yield "bins", edges, other
        case kernel.Values(_, listed, other):
            yield "values", listed, other
        case kernel.Points(_, low, step, number):
            yield "points", low, step, number
        case kernel.Between(_, candidates):
            yield "candidates", candidates
        case kernel.KeepRows(_, n, by, first):
            yield "limit_rows", n, by, first
        case kernel.KeepGroups(_, n, by, first):
            yield "limit_groups", n, by, first
        case kernel.Weigh(_, norm):
            yield "limit_norm", norm
        case kernel.Part(_, by, key):
            yield "part", tuple(map(_of_row, by)), tuple(map(_of_row, key))
        case _:
            return


def _of_row(row: kernel.Row, aggregates: Collection[str] = ()) -> Term:
    """An expression, in which columns with these names stand for aggregates."""
    match row:
        case kernel.Col(name):
            return _AGGREGATE if name in aggregates else ("column", name)
        case kernel.Lit(_, value, parameter):
            return "literal", value, parameter
        case kernel.Call(operation, operands, constants):
            inner = tuple(_of_row(one, aggregates) for one in operands)
            return "call", operation, inner, constants


def _call_of(operation: str, operands: Sequence[Any], constants: Json) -> Term:
    return "call", operation, tuple(map(_term_of, operands)), text_of(constants)


def _term_of(found: Mapping[str, Any]) -> Term | None:
    """The expression, grid, cells or limit that an object of a definition is; None for others."""
    kind = found.get("type", found.get("step"))
    match kind:
        case "Column":
            return "column", found["name"]
        case "Literal":
            named = found.get("parameter")
            of = None if named is None else named["name"]
            return "literal", text_of(found.get("value")), of
        case "Call":
            if _is_aggregate(found):
                return _AGGREGATE
            return _call_of(found["op"], found["args"], found["options"])
        case "Grid":
            lo, hi = (_integer(found[end]) for end in ("lo", "hi"))
            return "grid", _fraction(found["step"]), _fraction(found["centre"]), lo, hi
        case "BinCells":
            return "bins", _numbers(found["edges"]), found["other"]
        case "CategoryCells":
            return "values", tuple(map(text_of, found["categories"])), found["other"]
        case "PointCells":
            low, step = _fraction(found["lo"]), _fraction(found["step"])
            return "points", low, step, _integer(found["points"])
        case "PositionCells":
            return "candidates", _numbers(found["candidates"])
        case "LimitRows":
            return "limit_rows", found["n"], tuple(found["by"]), found.get("order_by")
        case "LimitGroups":
            return "limit_groups", found["n"], tuple(found["by"]), found.get("order_by")
        case "LimitNorm":
            return "limit_norm", _fraction(found["n"])
        case "Part":
            by = tuple(_term_of(one["tree"]) for one in found["by"])
            key = tuple(
                _term_of(one) if _is_expression(one) else ("literal", text_of(one), None)
                for one in found["key"]
            )
            return "part", by, key
    return None


def _integer(found: Any) -> int:
    return int(found["int"]) if isinstance(found, dict) else found


def _numbers(found: Any) -> kernel.Numbers:
    """Edges or candidates as physical plans have them."""
    listed = isinstance(found, list)
    return numbers_of([*map(_fraction, found)] if listed else numbers_of_rule(found))


def _fraction(found: Any) -> Fraction:
    return Fraction(found["fraction"] if isinstance(found, dict) else found)
