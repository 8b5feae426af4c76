"""What a release answers at no further cost: rows between two edges of its counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import polars as pl

from dpframe.aggregates.aggregate import MeasurementKey, Query
from dpframe.aggregates.margins import by_words
from dpframe.aggregates.reconstructed_error import Ranges
from dpframe.api.estimate import Estimate
from dpframe.core.exact import as_given
from dpframe.errors import InvalidBounds, UnknownColumn, UnsupportedOperation
from dpframe.frames.grouping_sets import GROUPING, SetGroups
from dpframe.mechanisms import Mechanism
from dpframe.rows.failures import FAILURES
from dpframe.rows.suggest import did_you_mean

__all__ = ["Answers", "answers_of", "plain_outputs"]

_LEVEL: Final = Fraction(95, 100)
_MOST_SETS: Final = 8
_HOW: Final = "write for example release.between(18, 65)"


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """Counts of one output in an order.

    Parameters
    ----------
    name
        The output.
    ranges
        The edges, and the error of sums of the counts.
    laws
        The noise of its noisy vectors.
    keys
        The columns of groups.
    is_alone
        Whether the frame has a row for each count; else it has a list for each group.
    sets
        The grouping sets, where there are several.
    """

    name: str
    ranges: Ranges
    laws: tuple[Mechanism, ...]
    keys: tuple[str, ...]
    is_alone: bool
    sets: SetGroups | None = None

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
        ranges = self.ranges if self.sets is None else self.ranges.of_set(self._set(where))
        return Estimate(value, float(ranges.error(self.laws, start, stop, _LEVEL)))

    def _set(self, where: Mapping[str, Any]) -> tuple[int, ...]:
        """The grouping set of a group, by the numbers of the columns that it names."""
        return tuple(number for number, name in enumerate(self.keys) if name in where)

    def _counts(self, frame: pl.DataFrame, where: Mapping[str, Any], said: str) -> Sequence[int]:
        """What was released of a group, in order."""
        for name in where:
            if name not in self.keys:
                raise UnknownColumn(
                    f"the release has no groups by {name!r}",
                    where=said,
                    remedy=did_you_mean(name, self.keys),
                )
        found, missing = frame, [name for name in self.keys if name not in where]
        if self.sets is not None:
            if self._set(where) not in self.sets.sets:
                raise self._no_set(self.sets, said)
            found = found.filter(pl.col(GROUPING) == self.sets.grouping(self._set(where)))
        elif missing:
            raise UnsupportedOperation(
                f"the release has groups by {', '.join(map(repr, self.keys))}, and an estimate is "
                "of one of them",
                where=said,
                remedy=f"name it: release.between(..., {missing[0]}=...)",
            )
        for name, key in where.items():
            found = found.filter(_is_key(frame, name, key, said))
        if not found.height:
            raise UnsupportedOperation(
                "the release has no group with these keys",
                where=said,
                remedy="name one of the groups in release.frame",
            )
        counts = found["count"] if self.is_alone else found[self.name][0].struct.field("count")
        listed: list[int] = counts.to_list()
        return listed

    def _no_set(self, sets: SetGroups, said: str) -> UnsupportedOperation:
        """A group of a set that was not asked for."""
        named = [by_words(tuple(self.keys[i] for i in kept)) for kept in sets.sets[:_MOST_SETS]]
        more = " and others" if len(sets.sets) > _MOST_SETS else ""
        example = ", ".join(f"{self.keys[i]}=..." for i in sets.sets[0])
        return UnsupportedOperation(
            f"the release has groups {', '.join(named)}{more}, and an estimate is of one of them",
            where=said,
            remedy="name the columns of one set"
            + (f": release.between(..., {example})" if example else ""),
        )


def _is_key(frame: pl.DataFrame, name: str, key: Any, said: str) -> pl.Expr:
    """The condition of rows of one key."""
    try:
        condition: pl.Expr = pl.col(name).eq_missing(pl.lit(key))
        frame.head(0).filter(condition)
    except FAILURES:
        raise UnsupportedOperation(
            f"{as_given(key)} is not a value of {name!r}",
            where=said,
            remedy="write a key as release.frame has it",
        ) from None
    return condition


def plain_outputs(query: Query) -> frozenset[str]:
    """The outputs of a query that are one noisy count or sum: unbiased except for limits and
    clamping, and with noise whose law the plan states. Empty where groups are chosen by their
    counts, and for tables of several grouping sets.
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
        The mechanism of each part on its own.
    """
    found = dict[str, Answers]()
    keys = () if query.groups is None else tuple(query.groups.names)
    for output in query.outputs:
        ranges = None if output.only is None else output.only.ranges
        if output.only is not None and ranges is not None:
            own = tuple(laws[key] for key in output.only.keys)
            alone = len(query.outputs) == 1
            sets = query.groups if isinstance(query.groups, SetGroups) else None
            found[output.name] = Answers(output.name, ranges, own, keys, alone, sets)
    return found
