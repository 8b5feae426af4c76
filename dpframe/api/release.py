"""What comes out: a result with the plan that it came from."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from dpframe.api.files import destination, write
from dpframe.core.budget import Budget
from dpframe.report import Plan
from dpframe.report.notebook import release_html
from dpframe.report.plots import plot_release


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
    """

    frame: pl.DataFrame
    plan: Plan
    cost: Budget

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
