"""What one individual contributes to a group-by, from the limits in force."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from dpframe.core.sensitivity import ContributionBounds
from dpframe.core.tree import Column, Tree, column_names
from dpframe.core.units import Identifier
from dpframe.errors import UnboundedSensitivity
from dpframe.frames.facts import FrameFacts
from dpframe.frames.groups import Groups
from dpframe.frames.nodes import keys_of
from dpframe.kernel.frame import GroupLimit, bounds_of

__all__ = ["changed_groups", "effects_of_limit", "once_in_each", "spread_of", "unlimited_refusal"]


def spread_of(facts: FrameFacts, groups: Groups | None) -> ContributionBounds:
    """How the rows of one individual may lie among the groups, from the limits in force, by the
    kernel's rules.
    """
    if not isinstance(facts.unit, Identifier):
        return ContributionBounds.of_rows(facts.unit, facts.copies)
    keys = None if groups is None else keys_of(groups, digest="")
    kept = tuple(range(0 if groups is None else len(groups.by)))
    bounds = bounds_of(facts.reach, keys, kept)
    return ContributionBounds(bounds.rows, bounds.groups, bounds.per_group)


def once_in_each(
    facts: FrameFacts, groups: Groups | None, tree: Tree, values: int
) -> ContributionBounds:
    """In how many pairs of a group and a value of an expression one individual may be, at most, and
    once in each: no more than rows, groups and values allow, or a limit on the pairs themselves.

    Parameters
    ----------
    tree
        The expression, with this many listed `values`.
    """
    found = replace(spread_of(facts, groups), per_group=1)
    if not found.is_bounded:
        raise unlimited_refusal(facts, groups, found)
    of_values = set(column_names(tree))
    of_pairs = of_values | {
        name for n in (() if groups is None else groups.by) for name in column_names(n.tree)
    }
    limits = [limit for limit in facts.limits if isinstance(limit, GroupLimit)]
    listed = _least([values, *(limit.n for limit in limits if of_values <= limit.by)])
    assert listed is not None
    pairs = found.tight[1] * listed
    known = _least(limit.n for limit in limits if of_pairs <= limit.by)
    most = min(n for n in (pairs, known, spread_of(facts, groups).rows) if n is not None)
    return ContributionBounds(most, most, 1)


def effects_of_limit(number: int, facts: FrameFacts, groups: Groups | None) -> tuple[str, ...]:
    """What would not hold of one individual's rows in the groups without one of the limits.

    Parameters
    ----------
    number
        Which of the limits in force.
    """
    others = (*facts.limits[:number], *facts.limits[number + 1 :])
    found = _bounds(spread_of(facts, groups))
    looser = _bounds(spread_of(replace(facts, limits=others), groups))
    named = (("row", ""), ("group", ""), ("row", " in each group"))[: 1 if groups is None else 3]
    return tuple(
        f"at most {least} {noun}{'' if least == 1 else 's'}{where}"
        for (noun, where), least, most in zip(named, found, looser, strict=False)
        if least is not None and (most is None or least < most)
    )


def _bounds(spread: ContributionBounds) -> tuple[int | None, int | None, int | None]:
    return spread.tight if spread.is_bounded else (spread.rows, spread.groups, spread.per_group)


def changed_groups(facts: FrameFacts, groups: Groups) -> int:
    """In how many groups neighbouring frames differ, at most.

    The groups that an individual's rows are in; twice as many where rows change, because each may
    leave a group for another.
    """
    found = replace(spread_of(facts, groups), per_group=1)
    if not found.is_bounded:
        raise unlimited_refusal(facts, groups, found)
    _, in_groups, _ = found.tight
    most = 2 * in_groups if found.changes else in_groups
    return most if groups.discovered else min(most, groups.size)


_SUGGEST = "find a limit first, with query.suggest_limits(epsilon=0.1)"
_UNIT_TOTALS = {
    "count": 'dp.count(per="unit", bounds=(0, n))',
    "sum": '.dp_sum((low, high), per="unit")',
}
"""What clamps all that an individual adds to a group, and so needs no limit of rows, by kind."""


def unlimited_refusal(
    facts: FrameFacts,
    groups: Groups | None,
    found: ContributionBounds,
    kinds: Collection[str] = (),
) -> UnboundedSensitivity:
    """The refusal of an aggregate that one individual could change by any amount.

    The message shows the limit to write, and then an aggregate that needs no limit. Computed groups
    must become a column first, because limits name columns.

    Parameters
    ----------
    facts, groups
        The groups of the query.
    found
        What bounds there are.
    kinds
        The kinds of all aggregates of the query, if known: further advice is for these.
    """
    who = facts.identifier
    if groups is None:
        ways = _per_unit(kinds)
        if "count" in kinds:
            ways.append(f'count individuals with pl.col("{who}").dp_n_unique()')
        return UnboundedSensitivity(
            f"one individual ({who!r}) may have any number of rows",
            remedy=(
                "add .limit_rows(n) before it, where n is the most rows that count of one "
                "individual: 1 where each has one row",
                [*ways, _SUGGEST][0],
            ),
        )
    missing, limits, numbers = [], [], []
    ways, by = list[str](), _by(groups)
    computed = [n.name for n in groups.by if n.tree != Column(n.name)]
    if found.groups is None:
        missing.append("be in any number of groups")
        limits.append(f".limit_groups(g, {by})")
        numbers.append("g is the most groups")
    if found.per_group is None:
        missing.append("have any number of rows in each group")
        ways += [*_per_unit(kinds), _SUGGEST]
        limits.append(f".limit_rows(n, {by})")
        numbers.append("n is the most rows in each group")
    made = f".with_columns({', '.join(f'{name}=...' for name in computed)})" if computed else ""
    grouped = f", and group by {by.removeprefix('by=')}" if computed else ""
    other = ways[0] if ways else "which then need no limit"
    if found.groups is None:
        other = f"list the groups with keys=[...], {'and ' if ways else ''}{other}"
    return UnboundedSensitivity(
        f"one individual ({who!r}) may {' and '.join(missing)}",
        where=groups.words(),
        remedy=(
            f"add {made}{''.join(limits)} before it{grouped}, where {' and '.join(numbers)} that "
            "count of one individual",
            other,
        ),
    )


def _by(groups: Groups) -> str:
    """The columns of groups, as a limit names them."""
    names = [repr(n.name) if '"' in n.name else f'"{n.name}"' for n in groups.by]
    return f"by={names[0]}" if len(names) == 1 else f"by=[{', '.join(names)}]"


def _per_unit(kinds: Collection[str]) -> list[str]:
    """The arguments that clamp totals instead, if all outputs support that with the same
    meaning."""
    if not kinds or not {*kinds} <= {*_UNIT_TOTALS, "n_unique"}:
        return []
    written = [call for kind, call in _UNIT_TOTALS.items() if kind in kinds]
    if not written:
        return []
    return [f"clamp what each individual adds, with {' and '.join(written)}"]


def _least(numbers: Iterable[int | None]) -> int | None:
    return min((n for n in numbers if n is not None), default=None)
