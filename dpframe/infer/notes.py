"""What a plan says about itself: what each step taught, and what to look at twice."""

from __future__ import annotations

from collections.abc import Sequence

from dpframe.aggregates.query import Query
from dpframe.core.budget import Budget
from dpframe.core.domain import Domain
from dpframe.core.exact import show
from dpframe.core.interval import EVERYTHING
from dpframe.core.tree import Literal
from dpframe.frames.facts import FrameFacts
from dpframe.plan import NoisyAggregate
from dpframe.rows.literal import literal_words


def learned_words(before: FrameFacts, after: FrameFacts) -> tuple[str, ...]:
    """The columns that a step made or narrowed, with their facts."""
    return tuple(
        f"{name}: {domain_words(found)}"
        for name, found in after.columns.items()
        if before.columns.get(name) != found
    )


def domain_words(domain: Domain) -> str:
    """The facts about a column on one line."""
    parts = [str(domain.dtype)]
    interval = domain.interval
    if interval != EVERYTHING and domain.dtype.is_ordered and not domain.dtype.is_boolean:
        lo = "-inf" if interval.lo is None else show(interval.lo)
        hi = "inf" if interval.hi is None else show(interval.hi)
        unit = " (physical units)" if domain.dtype.is_temporal else ""
        parts.append(f"in [{lo}, {hi}]{unit}")
    if (
        domain.categories is not None
        and len(domain.categories) <= 6
        and not domain.dtype.is_boolean
    ):
        listed = ", ".join(literal_words(Literal(c, domain.dtype)) for c in domain.categories)
        parts.append(f"one of {listed}")
    if not domain.nullable:
        parts.append("not null")
    if domain.dtype.is_float and not domain.nan:
        parts.append("not NaN")
    return ", ".join(parts)


def warnings_for(query: Query, releases: Sequence[NoisyAggregate], cost: Budget) -> tuple[str, ...]:
    """What a reviewer should look at twice."""
    found = []
    if cost.currency == "epsilon" and cost.main > 10:
        found.append(f"epsilon {show(cost.main)} is above 10: it protects nobody in practice")
    if query.relation.facts.unit.contributions > 1:
        found.append(
            f"that one individual owns at most {query.relation.facts.unit.contributions} rows is "
            "a promise of the data owner; rows beyond it are not protected"
        )
    for release in releases:
        if release.bias:
            found.append(
                f"{release.name}: values are rounded to multiples of {show(release.step)}, "
                f"an error of at most {show(release.bias)} per row"
            )
    return tuple(found)
