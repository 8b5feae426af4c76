"""What a release answers at no further cost: rows between two edges of its counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import polars as pl

from dpframe.aggregates.bound import MeasurementKey
from dpframe.aggregates.query import Query
from dpframe.aggregates.ranges import Ranges
from dpframe.api.estimate import Estimate
from dpframe.core.exact import as_given
from dpframe.errors import InvalidBounds, UnknownColumn, UnsupportedOperation
from dpframe.frames.grouping_sets import SetGroups
from dpframe.mechanisms import Mechanism
from dpframe.rows.failures import FAILURES
from dpframe.rows.suggest import did_you_mean

__all__ = ["Answers", "answers_of", "plain_outputs"]

_LEVEL: Final = Fraction(95, 100)
_HOW: Final = "write for example release.between(18, 65)"


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """Counts of one output in an order.

    Parameters
    ----------
    name
        The output.
    ranges
        What its edges are, and how sums of its counts err.
    laws
        The noise of its noisy vectors.
    keys
        The columns of groups.
    is_alone
        Whether the frame has a row for each count; else it has a list for each group.
    """

    name: str
    ranges: Ranges
    laws: tuple[Mechanism, ...]
    keys: tuple[str, ...]
    is_alone: bool

    def between(
        self, frame: pl.DataFrame, low: object, high: object, where: Mapping[str, Any]
    ) -> Estimate:
        """The number of rows between two edges, in one group."""
        said = f"between({as_given(low)}, {as_given(high)})"
        start, stop = (self.ranges.place(edge, said) for edge in (low, high))
        if start >= stop:
            raise InvalidBounds(
                "the lower edge is not below the upper one", where=said, remedy=_HOW
            )
        counts = self._counts(frame, where, said)
        value = self.ranges.value(counts, start, stop)
        return Estimate(value, float(self.ranges.error(self.laws, start, stop, _LEVEL)))

    def _counts(self, frame: pl.DataFrame, where: Mapping[str, Any], said: str) -> Sequence[int]:
        """What was released of a group, in order."""
        for name in where:
            if name not in self.keys:
                raise UnknownColumn(
                    f"the release has no groups by {name!r}",
                    where=said,
                    remedy=did_you_mean(name, self.keys),
                )
        missing = [name for name in self.keys if name not in where]
        if missing:
            raise UnsupportedOperation(
                f"the release has groups by {', '.join(map(repr, self.keys))}, and an estimate is "
                "of one of them",
                where=said,
                remedy=f"name it: release.between(..., {missing[0]}=...)",
            )
        found = frame
        for name, key in where.items():
            found = found.filter(_is_key(frame, name, key, said))
        if not found.height:
            raise UnsupportedOperation(
                "the release has no such group",
                where=said,
                remedy="name one of the groups in release.frame",
            )
        counts = found["count"] if self.is_alone else found[self.name][0].struct.field("count")
        listed: list[int] = counts.to_list()
        return listed


def _is_key(frame: pl.DataFrame, name: str, key: Any, said: str) -> pl.Expr:
    """The condition of rows of one key."""
    try:
        condition: pl.Expr = pl.col(name).eq_missing(pl.lit(key))
        frame.head(0).filter(condition)
    except FAILURES:
        raise UnsupportedOperation(
            f"{as_given(key)} is no value of {name!r}",
            where=said,
            remedy="name a key as release.frame has it",
        ) from None
    return condition


def plain_outputs(query: Query) -> frozenset[str]:
    """The outputs of a query that are a noisy count or sum as it is: without bias but for that of
    limits and clamping, and with noise whose law the plan has. Groups that are found by their
    counts, and tables of several sets, have no such ones.
    """
    groups = query.groups
    if query.chooses_groups or isinstance(groups, SetGroups):
        return frozenset()
    if groups is not None and groups.discovered:
        return frozenset()
    found = ((output.name, output.only) for output in query.outputs)
    return frozenset(n for n, only in found if only is not None and only.is_plain_number)


def answers_of(query: Query, laws: Mapping[MeasurementKey, Mechanism]) -> dict[str, Answers]:
    """What the outputs of a query answer, by their names.

    Parameters
    ----------
    query
        As it was drawn.
    laws
        The mechanism of each part by itself.
    """
    found = dict[str, Answers]()
    keys = () if query.groups is None else tuple(query.groups.names)
    for output in query.outputs:
        ranges = None if output.only is None else output.only.ranges
        if output.only is not None and ranges is not None:
            own = tuple(laws[key] for key in output.only.keys)
            alone = len(query.outputs) == 1
            found[output.name] = Answers(output.name, ranges, own, keys, alone)
    return found
