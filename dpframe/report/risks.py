"""What is unusual about a plan, and what is routine: single people that it selects."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from dpframe.core.tree import Call, Column, Literal, Tree, column_names
from dpframe.core.units import Identifier, Rows
from dpframe.frames.definition import Json, objects_in
from dpframe.mechanisms import KeyMechanism
from dpframe.plan import PlanData
from dpframe.plan.looks import looks_identifying
from dpframe.plan.pieces import FAILS, NOBODY, is_risk
from dpframe.plan.reading import columns_in, named_in, trees_in
from dpframe.report.errors import Typical, too_wide, warnings_at
from dpframe.report.numbers import reword, shown
from dpframe.report.structure import calls_in, definitions_in, options_of, structural_risks

# Selections of single people, recognised by the definitions in plans.

_EQUAL = frozenset(("eq", "ne", "eq_missing", "ne_missing"))
_PICKING = frozenset(("inner", "semi", "anti"))
"""Joins with public rows that keep some rows and not others."""
_TESTS = frozenset(("str_contains", "str_starts_with", "str_ends_with"))
"""What a text is tested for."""
_COMPARED = _EQUAL | {"lt", "le", "gt", "ge", "is_between"}
_LOGIC = frozenset(("and", "or", "not", "xor"))
_OF_NULLS = frozenset(("is_null", "is_not_null"))


def single_people(plan: PlanData) -> Iterator[str]:
    """What a plan does that picks people: comparisons of the identifier with constants, groups by
    it, joins by it with public rows, and comparisons of what looks like one with a single constant.
    """
    names = _identifiers(plan)
    said: dict[str, None] = {}
    for part in _definitions(plan):
        for call in calls_in(part):
            said |= dict.fromkeys(_picked(call, names))
        for atom in _atoms(part):
            said |= dict.fromkeys(_computed(atom, names))
        if isinstance(part, dict):
            said |= dict.fromkeys(_of_step(part, names))
    said |= {f"has a group for each {c!r}": None for c in columns_in(plan.grouped_by) if c in names}
    yield from said


def _of_step(step: dict[str, Json], identifiers: set[str]) -> Iterator[str]:
    """Parts by the identifier, and joins by it with public rows that keep or leave out people."""
    if step.get("step") == "Part":
        yield from (f"divides the rows by {c!r}" for c in columns_in(step) if c in identifiers)
    elif step.get("step") == "JoinPublic" and step.get("how") in _PICKING:
        for name in _listed(step.get("left_on")):
            if _is_one_of(name, identifiers):
                yield f"picks rows by public rows with values of {name!r}"


def _identifiers(plan: PlanData) -> set[str]:
    """What the identifier is called, and what is computed from it alone, from the first step to
    the last.
    """
    if not isinstance(plan.unit, Identifier):
        return set()
    names = {plan.unit.column}
    for step in plan.steps:
        said = step.definition if isinstance(step.definition, dict) else {}
        for pair in _listed(said.get("mapping")) if said.get("step") == "Rename" else ():
            if isinstance(pair, list) and len(pair) == 2 and _is_one_of(pair[0], names):
                names.add(str(pair[1]))
        for named in named_in(said):
            used = {*column_names(named.tree)}
            if used and used <= names:
                names.add(named.name)
    return names


def _is_one_of(name: Json, names: set[str]) -> bool:
    """Whether this is one of some names; in a document it may be anything."""
    return isinstance(name, str) and name in names


def _listed(said: Json) -> list[Json]:
    return said if isinstance(said, list) else []


def _definitions(plan: PlanData) -> list[Json]:
    return [*definitions_in(plan), plan.grouped_by]


def _column(tree: Tree, through: str = "cast(") -> str | None:
    """The column that an operand is, perhaps cast to another type, or after operations whose names
    begin so.
    """
    while isinstance(tree, Call) and f"{tree.operation.name}(".startswith(("cast(", through)):
        if not tree.args:
            return None
        tree = tree.args[0]
    return tree.name if isinstance(tree, Column) else None


def _picked(call: Call, identifiers: set[str]) -> Iterator[str]:
    operands, op = call.args, call.operation.name
    columns = [name for operand in operands if (name := _column(operand)) is not None]
    constants = [operand for operand in operands if isinstance(operand, Literal)]
    if op in _TESTS or ((op in _COMPARED or op == "is_in") and not columns):
        texts = [n for operand in operands if (n := _column(operand, "str_")) in identifiers]
        yield from (f"picks rows by the text of {name!r}" for name in texts)
    if len(columns) != 1:
        return
    (name,) = columns
    if op in _COMPARED and len(constants) == len(operands) - 1:
        if name in identifiers:
            yield f"compares {name!r} with a constant"
        elif op in _EQUAL and looks_identifying(name):
            yield f"compares {name!r} with one constant"
    elif op == "is_in":
        if name in identifiers:
            yield f"picks rows by a list of values of {name!r}"
        elif len(_listed(options_of(call).get("values"))) == 1 and looks_identifying(name):
            yield f"compares {name!r} with one constant"


def _atoms(said: Json) -> Iterator[Call]:
    """What the conditions of filters and of when/then are put together from."""
    filters = [part for part in objects_in(said) if part.get("step") == "Filter"]
    conditions = [tree for part in filters for tree in trees_in(part.get("predicates"))]
    conditions += [call.args[0] for call in calls_in(said) if call.operation.name == "when"]
    while conditions:
        condition = conditions.pop(0)
        if isinstance(condition, Call) and condition.operation.name in _LOGIC:
            conditions = [*condition.args, *conditions]
        elif isinstance(condition, Call):
            yield condition


def _computed(atom: Call, identifiers: set[str]) -> Iterator[str]:
    """Conditions on values computed from the identifier, such as ``patient % 1000 == 7``.
    Comparisons of plain columns and tests for null select no single person.
    """
    operands, op = atom.args, atom.operation.name
    is_plain = op in _OF_NULLS or all(_column(operand) is not None for operand in operands)
    if is_plain and (op in _COMPARED | _OF_NULLS or op == "is_in"):
        return
    if next(_picked(atom, identifiers), None) is not None:  # which says more
        return
    columns = column_names(atom)
    for name in columns:
        if name in identifiers:
            yield f"picks rows by what it computes from {name!r}"
    others = [operand for operand in operands if isinstance(operand, Literal)]
    single = op in _EQUAL and others and len(columns) == 1
    if single and columns[0] not in identifiers and looks_identifying(columns[0]):
        yield f"compares what it computes from {columns[0]!r} with one constant"


# What is unusual about a plan, and what is routine: risks are to be decided on, notes are to be
# known.
#
# Risks follow from the rest of the plan whenever it is shown, so that documents of earlier versions
# have them too. The thresholds are rules of thumb, written here and nowhere else.

_LARGE: Final = {"epsilon": (Fraction(3), Fraction(5)), "rho": (Fraction(1, 5), Fraction(2, 5))}
"""Amounts that are large for a row, or a person in a window, and for a whole person. A rho of 1/5
and of 2/5 are epsilons of about 3.5 and 5 at a delta of 1e-6.
"""
_LARGE_MU: Final = (Fraction(3, 4), Fraction(11, 10))
_ROWS: Final = 500
"""More rows of one individual than these are unusual."""
_ONE: Final = (1, {"fraction": "1"})
"""How definitions write a norm of 1."""
_SETS: Final = ("group_by(rollup(", "group_by(cube(", "group_by(grouping_sets(")
"""How groups by several sets of columns begin."""
_FEW: Final = 6
"""Groups of fewer individuals than these should not appear with an even chance."""


def risks_of(plan: PlanData, typical: Typical = (), size: int | None = None) -> tuple[str, ...]:
    """What a reviewer must decide about a plan of one query. `typical` are further typical values,
    and `size` is a guess of the individuals in each group.
    """
    sized = () if size is None else warnings_at(plan, size)
    return tuple(dict.fromkeys((*_risks(plan, typical, size), *sized)))


def notes_of(plan: PlanData) -> tuple[str, ...]:
    """What a reviewer should know, but which is usual in plans."""
    return tuple(reword(sentence) for sentence in plan.remarks if not is_risk(sentence))


def _risks(plan: PlanData, typical: Typical, size: int | None) -> Iterator[str]:
    yield from _of_unit(plan)
    for words in single_people(plan):
        yield f"singles people out: the plan {words}, so a result may be about one person"
    yield from _of_cost(plan)
    yield from _of_limits(plan)
    yield from _of_weights(plan)
    yield from _of_sets(plan)
    yield from too_wide(plan, typical, size)
    yield from _of_thresholds(plan)
    yield from structural_risks(plan)
    remarks = (s for s in plan.remarks if is_risk(s) and not s.endswith((NOBODY, FAILS)))
    yield from map(reword, remarks)


def _of_unit(plan: PlanData) -> Iterator[str]:
    """Rows are protected where people may have several."""
    if not isinstance(plan.unit, Rows) or plan.unit.contributions > 1:
        return
    known = [
        one.column
        for one in plan.identifying
        if one.frame == plan.source or any(o.startswith(f"{one.frame}: ") for o in plan.others)
    ]
    read = filter(looks_identifying, columns_in(_definitions(plan)))
    names = list(dict.fromkeys([*known, *read]))
    if names:
        look = "looks like a person" if len(names) == 1 else "look like people"
        yield (
            f"one row is protected, and {' and '.join(map(repr, names))} {look}: a person with n "
            f"rows is protected n times less. Protect by that column (unit={names[0]!r}), or state "
            "the most rows of one person with dp.Rows(contributions=n)"
        )


def _of_cost(plan: PlanData) -> Iterator[str]:
    """The amount, by what an individual is, and delta."""
    cost = max(plan.cost, plan.requested, key=lambda budget: budget.slack)
    if cost.slack > Fraction(1, 10**5):
        yield f"delta {shown(cost.slack)} {FAILS}"
    spent = plan.cost
    for amount in (spent, plan.requested):
        if amount.currency == "epsilon" and amount.main > 10:
            yield f"epsilon {shown(amount.main)} {NOBODY}"
            return
    person = isinstance(plan.unit, Identifier) and plan.unit.window is None
    of_part, of_whole = _LARGE.get(spent.currency, _LARGE_MU)
    if spent.main <= (of_whole if person else of_part):
        return
    whom = "a person" if person else "one row"
    more = ""
    if not person:
        whom = "a person in one window" if isinstance(plan.unit, Identifier) else "one row"
        more = ", and a person who has several is protected less"
    if spent.currency == "epsilon":  # presence and absence are equally likely before
        sure = 1 / (1 + math.exp(-float(spent.main)))
        whom += f": an attacker who guesses whether it is there may then be {sure:.2%} sure"
    yield f"{spent.currency} {shown(spent.main)} is large for {whom}{more}"


def _of_limits(plan: PlanData) -> Iterator[str]:
    """How many rows of one individual may count."""
    if plan.found is not None:  # the query will find a limit; the plan shows the largest
        return
    found: dict[int, dict[str, float]] = {}
    for release in plan.releases:
        rows = release.spread.tight[0] if release.spread.is_bounded else 0
        weighed = release.spread.norm is not None
        if rows > _ROWS and not weighed and release.mechanism != "none":
            found.setdefault(rows, {}).setdefault(release.name, release.scale)
    for rows, names in found.items():
        words = ", ".join(map(repr, names))
        yield (
            f"one individual may have {shown(rows)} rows in {words}, and the noise hides as many: "
            f"with one row each it would be {shown(rows)} times less. Lower limits drop few rows "
            "where most people have few (frame.suggest_limits)"
        )


def _of_weights(plan: PlanData) -> Iterator[str]:
    """Weights of individuals, which make numbers too small."""
    norms = (s.definition for s in plan.steps if isinstance(s.definition, dict))
    numbers = any(not isinstance(release.law, KeyMechanism) for release in plan.releases)
    if (
        plan.groups is None
        and numbers
        and any(step.get("step") == "LimitNorm" and step.get("n") in _ONE for step in norms)
    ):
        yield (
            "limit_norm(1) weights individuals: a person in t groups counts 1 / sqrt(t) in each. "
            "So numbers are too small where people are in several groups, by more than the stated "
            "errors. Without limit_norm people count fully, under a limit that the query finds"
        )


def _of_sets(plan: PlanData) -> Iterator[str]:
    """Rows that are in no grouping set because one of their values is not a key."""
    if plan.grouping is not None and plan.grouping.startswith(_SETS):
        yield (
            "a row counts in a grouping set only if its values are keys in all columns of the "
            "group-by, also in those that the set leaves out. Totals miss the other rows: list "
            "null as a key, or use a query for each set"
        )


def _of_thresholds(plan: PlanData) -> Iterator[str]:
    """Unlisted groups with few people."""
    for release in plan.releases:
        if isinstance(release.law, KeyMechanism):
            half = release.law.size_at(Fraction(1, 2))
            if half < _FEW:
                yield (
                    f"groups of {half} {'people' if half != 1 else 'person'} appear half of the "
                    "time, and their keys show what these people have: list the keys, or spend less"
                )
