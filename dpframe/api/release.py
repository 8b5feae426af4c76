"""Results with the plans that they came from, and what follows from them at no further cost."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import datetime
from fractions import Fraction
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeAlias, overload

import polars as pl

from dpframe.aggregates.aggregate import MeasurementKey, Query
from dpframe.aggregates.margins import by_words
from dpframe.aggregates.reconstructed_error import Ranges
from dpframe.api.files import destination, write, write_page
from dpframe.core.budget import Budget
from dpframe.core.exact import Number, show_input
from dpframe.core.units import Rows
from dpframe.errors import (
    DroppedRows,
    EventRows,
    ImpossibleKeys,
    InvalidBounds,
    NoGroups,
    NoRows,
    ResultWarning,
    UnknownColumn,
    UnsupportedOperation,
    ValuesAtBounds,
)
from dpframe.frames.groups import GROUPING, SetGroups
from dpframe.frames.relation import frames_of
from dpframe.mechanisms import AdditiveMechanism, KeyMechanism, Mechanism
from dpframe.mechanisms.combined import MOST_TERMS, reach_of_sum
from dpframe.optimise.description import impossible_keys
from dpframe.pipeline import PreparedTogether
from dpframe.plan import confidence_of
from dpframe.plan.looks import looks_identifying
from dpframe.plan.several import own_plan
from dpframe.release import Doubt
from dpframe.release.results import Doubts
from dpframe.report import Plan
from dpframe.report.notebook import release_html, release_page
from dpframe.report.numbers import released_table
from dpframe.report.plots import Chart, plot_release
from dpframe.rows.failures import FAILURES
from dpframe.rows.suggest import did_you_mean
from dpframe.sealed import sealed


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number computed from a release, with its error.

    Parameters
    ----------
    value
        The number.
    error
        The 95% error: with 95% confidence the exact number is within this distance of `value`.
    """

    value: int
    error: float

    @property
    def interval(self) -> tuple[float, float]:
        """The ends of the interval that holds the exact number with 95% confidence."""
        return self.value - self.error, self.value + self.error

    def __str__(self) -> str:
        return f"{self.value:,} ± {self.error:,.10g} (95%)"

    def __repr__(self) -> str:
        return f"<Estimate {self}>"


# -- Ranges of distributions ----------------------------------------------------------------------


_LEVEL: Final = Fraction(95, 100)
_MOST_SETS: Final = 8
_HOW: Final = "write for example release.between(18, 65)"


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """Counts of one output in an order."""

    name: str  # The output
    ranges: Ranges  # The edges, and the error of sums of the counts
    laws: tuple[Mechanism, ...]  # The noise of its noisy vectors
    keys: tuple[str, ...]  # The columns of groups
    is_alone: bool  # Whether the frame has a row for each count; else it has a list for each group
    sets: SetGroups | None = None  # The grouping sets, where there are several

    def between(
        self, frame: pl.DataFrame, low: object, high: object, where: Mapping[str, object]
    ) -> Estimate:
        """The number of rows between two edges, in one group."""
        said = f"between({show_input(low)}, {show_input(high)})"
        start, stop = (self.ranges.place(edge, said) for edge in (low, high))
        if start >= stop:
            raise InvalidBounds(
                "the lower edge is not below the upper one", where=said, remedy=_HOW
            )
        counts = self._counts(frame, where, said)
        value = self.ranges.value(counts, start, stop)
        ranges = self.ranges if self.sets is None else self.ranges.of_set(self._set(where))
        return Estimate(value, float(ranges.error(self.laws, start, stop, _LEVEL)))

    def _set(self, where: Mapping[str, object]) -> tuple[int, ...]:
        """The grouping set of a group, by the numbers of the columns that it names."""
        return tuple(number for number, name in enumerate(self.keys) if name in where)

    def _counts(self, frame: pl.DataFrame, where: Mapping[str, object], said: str) -> Sequence[int]:
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
        return counts.to_list()

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


def _is_key(frame: pl.DataFrame, name: str, key: object, said: str) -> pl.Expr:
    """The condition of rows of one key."""
    try:
        condition: pl.Expr = pl.col(name).eq_missing(pl.lit(key))
        frame.head(0).filter(condition)
    except FAILURES:
        raise UnsupportedOperation(
            f"{show_input(key)} is not a value of {name!r}",
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


# -- Warnings -------------------------------------------------------------------------------------


Warnings: TypeAlias = "list[tuple[str, ...]]"
"""The sentences of the warnings of each result."""

_KINDS: Mapping[str, type[ResultWarning]] = MappingProxyType(
    {
        kind.__name__: kind
        for kind in (
            DroppedRows,
            EventRows,
            ImpossibleKeys,
            NoGroups,
            NoRows,
            ValuesAtBounds,
        )
    }
)
_LOOK_UP = "{}; look up what Polars gives, and list these values"
_CHANCES = (Fraction(1, 2), Fraction(19, 20))
_OURS = str(Path(__file__).parents[1])


def warn_of_queries(queries: Iterable[Query]) -> Warnings:
    """Warn about queries that run, for facts that otherwise only their plans show; return the
    warnings of each."""
    found = [
        [
            *(Doubt("ImpossibleKeys", _LOOK_UP.format(said)) for said in impossible_keys(query)),
            *_of_events(query),
        ]
        for query in queries
    ]
    _warn(found)
    return _sentences(found)


def _of_events(query: Query) -> Iterator[Doubt]:
    """Say that people seem to have several of the rows that are protected, by names and types."""
    for frame in {frame.token: frame for frame in frames_of(query.relation)}.values():
        unit, columns = frame.source.unit, frame.source.columns
        if not isinstance(unit, Rows) or unit.contributions > 1:
            continue
        people = [name for name in columns if looks_identifying(name)]
        times = [name for name, found in columns.items() if found.dtype.name == "Datetime"]
        if people and times:
            yield Doubt(
                "EventRows",
                f"each row of {frame.name} is protected separately, but {people[0]!r} and the time "
                f"{times[0]!r} suggest several rows per person. A person with n rows is protected "
                f"n times less. Protect people with unit={people[0]!r}, or declare the most rows "
                "of a person with dp.Rows(contributions=n), n from 2 on",
            )


def _warn(doubts: Iterable[Sequence[Doubt]]) -> None:
    """Give each once, as Python's warnings."""
    for doubt in dict.fromkeys(doubt for found in doubts for doubt in found):
        warnings.warn(doubt.words, _KINDS.get(doubt.kind, ResultWarning), stacklevel=_depth())


def _sentences(doubts: Iterable[Sequence[Doubt]]) -> Warnings:
    return [tuple(dict.fromkeys(doubt.words for doubt in found)) for found in doubts]


def warn_of_results(
    prepared: PreparedTogether,
    frames: Sequence[pl.DataFrame],
    doubts: Doubts,
    place: int | None = None,
    warned: set[int] | None = None,
) -> Warnings:
    """Warn about results, for facts that otherwise only plans and remarks show, and for doubts;
    return the warnings of each.

    Parameters
    ----------
    prepared
        What was run.
    frames
        The result of each query; before them the result of a search for a limit, if one was made.
    doubts
        The doubts about each result that follow from its noisy numbers.
    place
        Which limit was found.
    warned
        The frames of the session for which a limit that seems to drop little was announced: one
        warning each is enough. All are among the sentences that are returned.
    """
    dropped = list(_of_dropped(prepared, frames[0], place))
    own = list(doubts) or [() for _ in frames]
    if prepared.limits is not None:  # of the search itself nothing is worth a warning
        own = [(), *own[1:]]
    without = [list(_of_no_groups(prepared, number, frame)) for number, frame in enumerate(frames)]
    found = [[*dropped, *apart, *none] for apart, none in zip(own, without, strict=True)]
    loss, frame = prepared.loss(frames[0], place), prepared.parts[0].query.relation.token
    if warned is not None and loss is not None and loss.seems_little:
        quiet = {*dropped} if frame in warned else set()
        warned.add(frame)
        _warn([doubt for doubt in own if doubt not in quiet] for own in found)
    else:
        _warn(found)
    return _sentences(found)


def _of_dropped(
    prepared: PreparedTogether, histogram: pl.DataFrame, place: int | None
) -> Iterator[Doubt]:
    """Say that a limit which was found drops more than a tenth, or may, by its noisy histogram."""
    loss = prepared.loss(histogram, place)
    if loss is None or not loss.is_much:
        return
    yield Doubt(
        "DroppedRows",
        f"{prepared.limit_words(histogram, place)}; interval=0.95 covers this where an output "
        "has an interval. If you know the most that one person has, write the limit, such as "
        ".limit_rows(n)",
    )


def _of_no_groups(prepared: PreparedTogether, number: int, frame: pl.DataFrame) -> Iterator[Doubt]:
    """Warn how large a group must be, if groups were chosen privately and none appears."""
    part = prepared.parts[prepared.places[number].block]
    groups = part.query.groups
    laws = [r.law for r in part.plan.releases if isinstance(r.law, KeyMechanism)]
    if frame.height or groups is None or not groups.discovered or not laws:
        return
    half, sure = (max(law.size_at(chance) for law in laws) for chance in _CHANCES)
    message = (
        f"no group of {groups.words()} appears. At this spend a group of {half:,} individuals "
        f"appears with a chance of 50%, one of {sure:,} with 95%. List the groups with "
        "keys=[...], make fewer of them, or spend more epsilon or delta"
    )
    yield Doubt("NoGroups", message)


def _depth() -> int:
    """How far up the caller of dpframe is."""
    for depth in count(2):
        try:
            frame = sys._getframe(depth)
        except ValueError:
            break
        if not frame.f_code.co_filename.startswith(_OURS):
            return depth
    return 2


# -- Releases -------------------------------------------------------------------------------------


_MOST_AS_TEXT = 10_000
"""Frames of more rows are printed as Polars prints them."""


@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """A released result with the plan it came from.

    Parameters
    ----------
    frame
        The result.
    plan
        The plan of the query.
    cost
        The charge. With several queries in one plan, the charge for all of them.
    answers
        By output, questions that it answers at no further cost; see `between`.
    query
        For a plan of several queries: the number of the query of this result, from 1.
    reused
        Whether this is a stored result that was charged before.
    remark
        A sentence about the release: it is a stored result, it could not be stored, or which limit
        the query found and how many rows that drops.
    origin
        Equal for results of the same charge, and for no others.
    released
        The time of the release, if it is stored.
    plain
        The outputs that are single noisy counts or sums; see `dpframe.combine`.
    warnings
        The sentences of all its warnings, which are of the classes of `ResultWarning`.
    limited
        The plan under the limit that the query found; None without such a limit.
    """

    frame: pl.DataFrame
    plan: Plan
    cost: Budget
    answers: Mapping[str, Answers] = field(default_factory=dict, repr=False)
    query: int | None = None
    reused: bool = False
    remark: str = ""
    origin: str = field(default="", repr=False)
    released: datetime | None = field(default=None, repr=False)
    plain: frozenset[str] = field(default=frozenset(), repr=False)
    warnings: tuple[str, ...] = field(default=(), repr=False)
    limited: Plan | None = field(default=None, repr=False)

    def accuracy(
        self,
        column: str,
        confidence: Number = 0.95,
        *,
        simultaneous: bool = False,
        count: float | None = None,
        guess: object = None,
    ) -> float:
        """A bound on the error of a column by privacy noise, as `Plan.accuracy` gives it before the
        release. Where the query found a limit it is the error under that limit.

        Parameters
        ----------
        column
            The name of an output; for the table of one histogram or distribution function also
            ``"count"``.
        confidence, simultaneous, count, guess
            As for `Plan.accuracy`.

        Raises
        ------
        UnknownColumn
            When the result has no output of that name.
        UnsupportedOperation
            For arithmetic of several aggregates, whose error depends on the data: ask for
            ``interval=0.95``.
        """
        return self.own_plan.accuracy(
            column, confidence, simultaneous=simultaneous, count=count, guess=guess
        )

    def between(
        self, low: object, high: object, /, *, output: str | None = None, **where: object
    ) -> Estimate:
        """The number of rows with a value between two edges of a released distribution function or
        histogram of bins, with its error. This is post-processing and costs nothing.

        A distribution function counts rows above `low` and up to `high`. A histogram counts rows
        from `low` to below `high`, or up to `high` if that is the last edge.

        Parameters
        ----------
        low, high
            Edges of the release. For a distribution function, None as `low` is below all values.
        output
            The name of the output, if several have edges.
        where
            The group, as in ``release.between(18, 65, country="DE")``. With grouping sets, the
            columns of one set.

        Returns
        -------
        Estimate
            The number and its exact error, which takes into account that edges share noise. For a
            distribution function with ``nonnegative=True`` it is the error before the counts were
            made to rise.

        Raises
        ------
        InvalidBounds
            When `low` or `high` is no edge; the edges next to it are named.
        UnsupportedOperation
            When the release has no edges, a group is not named, or errors of sums are not known.
        UnknownColumn
            When there is no output or grouping column of that name.
        """
        return self._answering(output).between(self.frame, low, high, where)

    def _answering(self, output: str | None) -> Answers:
        if output is None and len(self.answers) == 1:
            return next(iter(self.answers.values()))
        if output is not None and output in self.answers:
            return self.answers[output]
        names = [found.name for found in self.own_plan.outputs]
        if output is not None and output not in names:
            raise UnknownColumn(
                f"the release has no output {output!r}",
                where="release.between(...)",
                remedy=did_you_mean(output, names),
            )
        several = len(self.answers) > 1
        raise UnsupportedOperation(
            "several outputs have edges" if several else "the release has no counts between edges",
            where="release.between(...)",
            remedy=f"name one: between(..., output={next(iter(self.answers))!r})"
            if several
            else "release dp_cdf(column, bins) or dp_histogram(column, bins)",
        )

    def plot(self, *, most: int = 30) -> Chart:
        """The result as an Altair chart: bars with intervals, histograms, distribution functions.

        Groups with a date or time become a line over time, with intervals as a band, and one line
        for each value of a second key. Groups with two other keys become a heat map.

        Intervals are those of `interval=` if the release has them. Otherwise they are the 95%
        intervals of counts, sums and histograms from the plan, for each number separately.

        Parameters
        ----------
        most
            The number of groups to show for each output, the largest first. Lines show all.

        Raises
        ------
        UnsupportedOperation
            When Altair is not installed, or no output is a number.
        """
        return plot_release(self.frame, self.own_plan, most)

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """The result as HTML: its first rows, rounded to their errors, its cost and its plan.

        Parameters
        ----------
        path
            A file to write, as a complete page that loads nothing and runs no script. None writes
            no file and returns a fragment for another page.

        Returns
        -------
        str
            The HTML.

        Raises
        ------
        UnsupportedOperation
            When the file cannot be written.
        """
        inside = self._repr_html_()
        if path is None:
            return inside
        page = release_page(f"Release of {self.own_plan.source}", inside)
        write_page(Path(path), page)
        return page

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the result to a file that carries its plan, cost and fingerprint.

        Parameters
        ----------
        path
            A ``.parquet`` file, with the plan in its metadata, or a ``.csv`` file, with the plan in
            a second file whose name ends in ``.plan.json``. ``dpframe inspect`` reads either.

        Raises
        ------
        UnsupportedOperation
            When the file cannot be written, or has another ending.
        """
        place = Path(path)
        with destination(place) as made:
            write(self.frame, self.plan, place, made, self.query, self.released)

    @property
    def own_plan(self) -> Plan:
        """The part of the plan about this result, under the limit that the query found, if any."""
        if self.limited is not None and self.query is not None:
            after_search = self.query - 1
            return own_plan(self.limited, after_search) if self.limited.queries else self.limited
        return stated_plan(self)

    def __repr__(self) -> str:
        shared = "" if self.query is None else f", shared by {len(self.plan.queries)} queries"
        source = self.own_plan.source
        said = f"; {self.remark}" if self.remark else ""
        return f"<Release of {source!r} for {self.cost.words()}{shared}{said}>\n{self._text()}"

    def _text(self) -> str:
        """The rows as text, numbers rounded to their errors."""
        if self.frame.height > _MOST_AS_TEXT:
            return str(self.frame)
        shown = released_table(self.frame, self.own_plan)
        rows = -1 if self.frame.height == 1 else None
        with pl.Config(tbl_hide_column_data_types=True, tbl_rows=rows):
            text = str(shown.frame())
        return f"{text}\n{shown.note}" if shown.note else text

    def _repr_html_(self) -> str:
        about = self.query, self.remark, self.warnings
        return release_html(self.frame, self.plan, self.own_plan, self.cost, *about)


def stated_plan(release: Release) -> Plan:
    """The part of a release's plan that is about its result, without the limit that was found."""
    return release.plan if release.query is None else own_plan(release.plan, release.query)


class Releases(Sequence[Release]):
    """The results of several queries with one plan and one charge, in their order.

    Each `Release` states the whole cost, which was charged once for all of them.

    Parameters
    ----------
    frames
        The results.
    plan
        The plan of all queries.
    answers
        For each result, questions that it answers at no further cost; see `Release.between`.
    plain
        For each result, the outputs that are single noisy counts or sums.
    reused, remark, origin, released, warnings
        As for `Release`.
    """

    __slots__ = ("_releases", "plan", "remark", "reused")

    def __init__(
        self,
        frames: Sequence[pl.DataFrame],
        plan: Plan,
        answers: Sequence[Mapping[str, Answers]],
        plain: Sequence[frozenset[str]],
        *,
        reused: bool = False,
        remark: str = "",
        origin: str = "",
        released: datetime | None = None,
        warnings: Sequence[tuple[str, ...]],
    ) -> None:
        self.plan, self.reused, self.remark = plan, reused, remark
        apart = bool(plan.queries)
        about = reused, remark, origin, released
        self._releases = tuple(
            Release(frame, plan, plan.cost, free, number if apart else None, *about, own, said)
            for number, (frame, free, own, said) in enumerate(
                zip(frames, answers, plain, warnings, strict=True), start=1
            )
        )

    @property
    def cost(self) -> Budget:
        """What was charged, once."""
        return self.plan.cost

    @property
    def warnings(self) -> tuple[str, ...]:
        """The sentences of the warnings of all releases, each once."""
        return tuple(dict.fromkeys(words for one in self._releases for words in one.warnings))

    @property
    def frames(self) -> list[pl.DataFrame]:
        """The results alone."""
        return [release.frame for release in self._releases]

    def after(self, found: str, limited: Plan | None) -> Releases:
        """The releases without the search for a limit, which precedes a query that lacks one.
        `limited` is the plan under the limit that the search found.
        """
        if not found:
            return self
        made = copy(self)
        made.remark = "; ".join(filter(None, (found, self.remark)))
        made._releases = tuple(
            replace(one, remark=made.remark, limited=limited) for one in self._releases[1:]
        )
        return made

    @overload
    def __getitem__(self, index: int) -> Release: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Release, ...]: ...
    def __getitem__(self, index: int | slice) -> Release | tuple[Release, ...]:
        return self._releases[index]

    def __len__(self) -> int:
        return len(self._releases)

    def __repr__(self) -> str:
        what = f"{len(self)} releases for {self.cost.words()} together"
        what += f"; {self.remark}" if self.remark else ""
        return "\n".join([f"<{what}>", *(release._text() for release in self._releases)])

    def _repr_html_(self) -> str:
        return "".join(release._repr_html_() for release in self._releases)


# -- Combinations ---------------------------------------------------------------------------------


_WHERE = "dp.combine([...])"


@dataclass(frozen=True, slots=True)
class _Part:
    """The noise of one output in one release, and how much that counts."""

    law: AdditiveMechanism  # In steps
    step: Fraction  # What a step is
    weight: float  # The weight of its value; the weights of an output add up to 1


@dataclass(frozen=True, slots=True, eq=False)
class Combination:
    """Several releases of one query as one.

    Parameters
    ----------
    frame
        The weighted means of their results, as Float64, next to the columns of groups.
    cost
        The sum of the charges of all releases. The combination costs nothing.
    weights
        By output, the weight of each release, in their order.
    """

    frame: pl.DataFrame
    cost: Budget
    weights: dict[str, tuple[float, ...]]
    _parts: dict[str, tuple[_Part, ...]] = field(repr=False)

    def accuracy(self, column: str, confidence: Number = 0.95) -> float:
        """A bound on the error of an output that holds with the given confidence, for each number
        separately. It follows from the laws of noise in the plans. It covers noise alone: the bias
        of limits and clamping is in each release, and remains.

        Raises
        ------
        UnknownColumn
            When the output does not exist.
        InvalidBounds
            When the confidence does not lie between 0 and 1.
        """
        level = confidence_of(confidence)
        if column not in self._parts:
            raise UnknownColumn(
                f"the releases have no output {column!r}",
                where="combination.accuracy(...)",
                remedy=did_you_mean(column, list(self._parts)),
            )
        noises = [(p.law, p.weight * float(p.step)) for p in self._parts[column]]
        return reach_of_sum(noises, float(1 - level))

    def __repr__(self) -> str:
        count = len(next(iter(self.weights.values())))
        errors = ", ".join(f"{name} \u00b1 {self.accuracy(name):.6g}" for name in self.weights)
        said = f"{count} releases for {self.cost.words()} together; 95%: {errors}"
        return f"<Combination of {said}>\n{self.frame}"


@sealed
def combine(releases: Sequence[Release]) -> Combination:
    """Combine several releases of one query into one. Each number is their mean, weighted by the
    inverse of the variance of its noise. This is post-processing and costs nothing.

    Two releases at the same spend give the noise of one at 1.41 times the spend. No other weighted
    mean has a smaller variance (Gauss-Markov).

    Parameters
    ----------
    releases
        Results of ``release(...)`` of the same query, from different charges and at any spends;
        also those of ``reuse="same"``. The query has counts and sums only, without
        ``nonnegative=True``. The frame should have the same rows each time: if rows were added
        between two releases, the result is a mean of both states.

    Raises
    ------
    UnsupportedOperation
        When the releases are of different queries, two are of one charge, or an output does not
        have unbiased noise of a known law, such as a mean, a quantile or a nonnegative count.

    Examples
    --------
    >>> import polars as pl, dpframe as dp
    >>> session = dp.Session(epsilon=1.0)
    >>> people = session.protect(pl.DataFrame({"age": [31, 64]}), unit=dp.Rows())
    >>> found = [people.dp_count().release(epsilon=0.5) for _ in range(2)]
    >>> both = dp.combine(found)
    >>> both.weights
    {'len': (0.5, 0.5)}
    >>> both.accuracy("len") < found[0].plan.accuracy("len")
    True
    """
    given = _read(releases)
    plans = [release.own_plan for release in given]
    _require_one_query([stated_plan(release) for release in given])
    parts: dict[str, tuple[_Part, ...]] = {}
    for output in plans[0].outputs:
        name = output.name
        if not all(name in release.plain for release in given):
            raise _not_plain(name)
        parts[name] = _weighed([_noise(plan, name) for plan in plans])
    first = given[0].frame
    own = {f"{name}{end}" for name in parts for end in ("", "_low", "_high")}
    keys = [column for column in first.columns if column not in own]
    if any(not release.frame.select(keys).equals(first.select(keys)) for release in given):
        raise _not_one("their groups differ")
    means = []
    for name, shares in parts.items():
        mean = pl.zeros(first.height, dtype=pl.Float64, eager=True)
        for release, part in zip(given, shares, strict=True):
            mean = mean + release.frame[name].cast(pl.Float64) * part.weight
        means.append(mean.alias(name))
    cost = given[0].cost
    for release in given[1:]:
        cost = cost + release.cost
    weights = {name: tuple(part.weight for part in own) for name, own in parts.items()}
    frame = pl.DataFrame([*first.select(keys).get_columns(), *means])
    return Combination(frame, cost, weights, parts)


def _read(releases: object) -> list[Release]:
    if not isinstance(releases, Sequence) or not all(isinstance(r, Release) for r in releases):
        raise UnsupportedOperation(
            "dp.combine takes a list of releases",
            where=_WHERE,
            remedy="write dp.combine([first, second]) with what query.release(...) returned",
        )
    if not 2 <= len(releases) <= MOST_TERMS:
        raise UnsupportedOperation(
            f"from 2 to {MOST_TERMS} releases are combined at once, not {len(releases)}",
            where=_WHERE,
            remedy="leave out those with the largest errors",
        )
    origins = {release.origin for release in releases}
    if "" in origins or len(origins) < len(releases):
        raise UnsupportedOperation(
            "two of the releases come from the same charge, or their charge is unknown",
            where=_WHERE,
            why="results of one charge share their noise, so combining them gains nothing",
            remedy="give each result once, as query.release(...) returned it",
        )
    return list(releases)


def _require_one_query(plans: Sequence[Plan]) -> None:
    first = _asked(plans[0])
    for plan in plans[1:]:
        for what, found in _asked(plan).items():
            if found != first[what]:
                raise _not_one(f"their {what} differ")


def _asked(plan: Plan) -> dict[str, object]:
    """What a plan says but for how much is spent on it, and how."""
    return {
        "frames": (plan.source, plan.others, plan.declared, plan.unit),
        "steps": [(step.words, step.definition) for step in plan.steps],
        "groups": (plan.grouping, plan.grouped_by, plan.keys_digest),
        "outputs": [(o.name, o.words, o.note, o.definition) for o in plan.outputs],
        "parameters": plan.parameters,
        "measures": plan.cost.measure,
    }


def _noise(plan: Plan, name: str) -> tuple[AdditiveMechanism, Fraction]:
    (output,) = (output for output in plan.outputs if output.name == name)
    used = [plan.releases[number] for number in output.releases]
    if len(used) != 1 or not isinstance(used[0].noise, AdditiveMechanism):
        raise _not_plain(name)
    return used[0].noise, used[0].step


def _weighed(noises: Sequence[tuple[AdditiveMechanism, Fraction]]) -> tuple[_Part, ...]:
    """By the inverse of each variance; none counts where another has no noise."""
    variances = [law.variance() * float(step) ** 2 for law, step in noises]
    least = min(variances)
    shares = [1.0 if v == least else least / v for v in variances]
    whole = sum(shares)
    return tuple(
        _Part(law, step, share / whole) for (law, step), share in zip(noises, shares, strict=True)
    )


def _not_one(why: str) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"the releases are not of one query: {why}",
        where=_WHERE,
        remedy="combine releases of the same query; their spends may differ",
    )


def _not_plain(name: str) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"{name!r} does not have unbiased noise of a known variance, so a weighted "
        "mean of several may be worse than one of them",
        where=_WHERE,
        remedy="combine counts and sums by listed keys, leave nonnegative= out, and "
        "compute means from the combined numbers",
    )
