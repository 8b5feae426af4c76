"""The limit on rows with the least error for a query, from the histogram that is released in any
case."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dpframe.aggregates.query import Query
from dpframe.api.auto_limits import LIMITS, MOST_OF_FOUND
from dpframe.api.limit_ways import limited, unlimited_relation
from dpframe.errors import DPFrameError, InvalidBudget
from dpframe.frames.limit_rows import LimitRows
from dpframe.mechanisms import AdditiveMechanism
from dpframe.pipeline import Prepared
from dpframe.planning import GROUPS as LEAST_GROUPS, LimitRule, has_normal_noise, noise_in_rows, sizes_to_appear
from dpframe.report import Plan

__all__ = ["LimitsOfRows", "limits_of_rows", "share_of_rows"]

_NORMAL = 1.959963984540054
_ENDLESS = 2**62
"""A size that no group has."""


@dataclass(frozen=True, slots=True)
class LimitsOfRows:
    """Limits on rows that are compared.

    Parameters
    ----------
    noise
        The error by noise under each of the first limits, with 95%, as rows of all groups together.
    groups
        How many groups there are, or are taken to be.
    sizes, is_normal
        As for `LimitRule`.
    """

    noise: tuple[float, ...]
    groups: int
    sizes: tuple[int, ...]
    is_normal: bool

    def best(
        self, ends: Sequence[int], counts: Sequence[int], law: AdditiveMechanism
    ) -> dict[str, Any]:
        """The limit with the least error, as a row of the suggestions, by the rule that finds
        limits in queries.

        Parameters
        ----------
        ends, counts
            The histogram of rows of individuals; its bins end at the limits, and between them.
        law
            The noise of each count.
        """
        known = dict(zip(LIMITS, self.noise, strict=False))
        noise = tuple(known.get(end, math.inf) for end in ends)
        by_limit = dict(zip(LIMITS, self.sizes, strict=False))
        sizes = tuple(by_limit.get(end, _ENDLESS) for end in ends) if self.sizes else ()
        loss = LimitRule(tuple(ends), noise, sizes, law, self.is_normal).found(counts)
        bias, left = loss.dropped / self.groups, loss.noise / self.groups
        return {
            "limit": "limit_rows",
            "by": [],
            "n": ends[loss.place],
            "bias": bias,
            "bias_error": max(0.0, loss.most.rows - loss.dropped) / self.groups,
            "noise": left,
            "error": math.hypot(bias, left / _NORMAL),
            "best": True,
        }


def limits_of_rows(asked: Query, prepare: Callable[[Query], Prepared]) -> LimitsOfRows | None:
    """Limits on rows in all, with the noise of a query under each; None where none are enough.

    Raises
    ------
    InvalidBudget
        When the spend is invalid.
    """
    free = replace(asked, relation=unlimited_relation(asked.relation))
    groups = asked.groups
    found = groups is not None and groups.discovered
    count = 1 if groups is None else LEAST_GROUPS if found else groups.size
    plans = list[Plan]()
    for n in LIMITS:
        if found and n > MOST_OF_FOUND:
            break
        try:
            plan = prepare(limited(free, LimitRows(n))).plan
        except DPFrameError as refusal:  # too little is spent for more
            if groups is None and isinstance(refusal, InvalidBudget):
                raise
            break
        plans.append(plan)
    noise = tuple(noise_in_rows(n, plan, count) for n, plan in zip(LIMITS, plans, strict=False))
    if not plans:
        return None
    return LimitsOfRows(noise, count, sizes_to_appear(plans), has_normal_noise(plans))


def share_of_rows(
    ends: Sequence[int], counts: Sequence[int], law: AdditiveMechanism, limit: int
) -> float:
    """Which share of the rows a limit keeps, up to noise."""
    rule = LimitRule(tuple(ends), (), law=law)
    return max(0.0, 1 - rule.share(counts, list(ends).index(limit)))
