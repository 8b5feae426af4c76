"""What comes out: a result with the plan that it came from."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from dpframe.api.answers import Answers
from dpframe.api.estimate import Estimate
from dpframe.api.files import destination, write
from dpframe.core.budget import Budget
from dpframe.errors import UnknownColumn, UnsupportedOperation
from dpframe.report import Plan
from dpframe.report.notebook import release_html
from dpframe.report.plots import plot_release
from dpframe.rows.suggest import did_you_mean


@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """A released result with the plan it came from.

    Parameters
    ----------
    frame
        The result.
    plan
        How it was made.
    cost
        What was charged.
    answers
        What its outputs answer at no further cost, by their names; see `between`.
    """

    frame: pl.DataFrame
    plan: Plan
    cost: Budget
    answers: Mapping[str, Answers] = field(default_factory=dict, repr=False)

    def between(
        self, low: Any, high: Any, /, *, output: str | None = None, **where: Any
    ) -> Estimate:
        """How many rows have a value between two edges of a released distribution function or
        histogram of bins, with its error. It is post-processing and costs nothing.

        Of a distribution function, whose edges are upper ends: rows above `low` and up to `high`.
        Of a histogram, whose bins begin at an edge: rows from `low` to below `high`, and up to
        `high` where that is the last edge.

        Parameters
        ----------
        low, high
            Edges of the release. None as `low` of a distribution function is below all values.
        output
            Which output, where there are several with edges.
        where
            The group, where there are several: ``release.between(18, 65, country="DE")``.

        Returns
        -------
        Estimate
            The number and its error, which is exact for the release as it was made: noise of
            neighbouring edges is partly the same. With ``nonnegative=True`` a distribution
            function's is that of its numbers before they were made to rise.

        Raises
        ------
        InvalidBounds
            When `low` or `high` is no edge; the edges next to it are named.
        UnsupportedOperation
            When the release has no edges, a group is not named, or errors of sums are not known.
        UnknownColumn
            When there is no such output, or there are no groups by such a column.
        """
        return self._answering(output).between(self.frame, low, high, where)

    def _answering(self, output: str | None) -> Answers:
        if output is None and len(self.answers) == 1:
            return next(iter(self.answers.values()))
        if output is not None and output in self.answers:
            return self.answers[output]
        names = [found.name for found in self.plan.outputs]
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
        """The result as an Altair chart: bars with intervals, and histograms.

        Intervals are those of `interval=`, where the release was made with it; else those that the
        plan knows of counts, sums and histograms, which hold each with 95% confidence.

        Parameters
        ----------
        most
            How many groups are shown of each output, the largest first.

        Raises
        ------
        UnsupportedOperation
            When Altair is not installed, or no output is a number.
        """
        return plot_release(self.frame, self.plan, most)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the result to a file that carries its plan, cost and fingerprint.

        Parameters
        ----------
        path
            A ``.parquet`` file, which holds the plan in its metadata, or a ``.csv`` file, beside
            which the plan is written with ``.plan.json`` added to the name. ``dpframe inspect``
            reads either.

        Raises
        ------
        UnsupportedOperation
            When it cannot be written there, or in that form.
        """
        place = Path(path)
        with destination(place) as made:
            write(self.frame, self.plan, place, made)

    def __repr__(self) -> str:
        return f"<Release of {self.plan.source!r} for {self.cost.words()}>\n{self.frame}"

    def _repr_html_(self) -> str:
        return release_html(self.frame, self.plan, self.cost)
