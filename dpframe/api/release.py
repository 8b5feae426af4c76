"""Results with the plans that they came from."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, overload

import polars as pl

from dpframe.api.answers import Answers
from dpframe.api.estimate import Estimate
from dpframe.api.files import destination, write, write_page
from dpframe.core.budget import Budget
from dpframe.core.exact import Number
from dpframe.errors import UnknownColumn, UnsupportedOperation
from dpframe.plan.several import own_plan
from dpframe.report import Plan
from dpframe.report.notebook import release_html, release_page
from dpframe.report.numbers import released_table
from dpframe.report.plots import plot_release
from dpframe.rows.suggest import did_you_mean

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
        self, low: Any, high: Any, /, *, output: str | None = None, **where: Any
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

    def plot(self, *, most: int = 30) -> Any:
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
