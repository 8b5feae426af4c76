"""The plan of a query, for programs and for reviewers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpframe.core.exact import Number
from dpframe.core.visible import visible
from dpframe.plan import PlanData, document
from dpframe.plan.codec import as_fields, hints_of
from dpframe.plan.consistency import contradiction
from dpframe.report.chapters import notes_in, risks_in
from dpframe.report.difference import differences
from dpframe.report.plots import plot_plan
from dpframe.report.render import Format, render


@dataclass(frozen=True, slots=True, eq=False)
class Plan(PlanData):
    """What a query will do, what it costs, and why that is safe. No data was read to make it.

    Parameters
    ----------
    source
        The name of the protected frame.
    unit
        Who is protected.
    steps
        The frame operations, in order.
    grouping
        The group-by and where its keys come from, or None.
    groups, keys
        How many keys there are, and the first ones; None without a group-by, and where the groups
        that appear are chosen privately.
    keys_digest
        Of all keys, whatever the form they were given in.
    grouped_by
        The grouping expressions in full.
    best_group
        Whether the best of the groups is chosen, and nothing released of the others.
    releases
        One entry for each noisy vector or private selection.
    outputs
        What the result holds, and how it comes from the releases.
    others
        Whom the other frames protect that this one is joined with.
    declared
        What the data owner declared of the columns that the query uses.
    cost
        What the plan charges: in the measure of `requested`, or as rho in a session that adds up
        rho.
    composition
        How the costs of the releases make that: ``"sum"``; ``"numerical"`` where they are amounts
        of rho and the privacy loss distributions together keep it; ``"zcdp"`` where the sum of
        these amounts implies it.
    split
        How the cost is divided among the releases: ``"least error"`` for the least sum of the
        outputs' squared relative errors, ``"equal"`` or ``"weights"`` by outputs.
    requested
        The request; the cost is never more.
    remaining
        The session's budget before the plan, or None for a query without a session.
    remarks
        What was found worth saying when the plan was made: `notes`, and what of it is a risk.
    share
        Of a plan on one of several disjoint parts: what the session of the whole frame would be
        charged when the plan was made. `cost` and `remaining` are the part's.
    budget
        The budget that the plan is to be charged to, as it was when the plan was made; None for a
        query without a session.
    blocks
        Of a plan of several queries: each frame with its groups, which has the fields of a plan
        that speak of these. Queries of the same rows and groups have one. Empty for one query.
    queries
        Of a plan of several queries: what each answers, in their order. Outputs whose name several
        queries have are called after their query, such as ``"n of query 2"``.
    forced
        What it costs that `mechanism=` or ``split="equal"`` was asked for, by output: how many
        times its error is that of the plan with the least error at the same spend, and whether a
        mechanism was asked for in it. Empty where nothing is requested, or nothing can be told.
    parameters
        What the job was given, by name, type and value, each as text; expressions show them as
        ``:name``.
    windows
        Where an individual is a person in a calendar window: the windows whose rows the plan reads,
        and no others. A session whose budget is for each window charges it to these.
    found
        Where a limit is found when the query runs: which ones may be found, and what the query is
        under each. The first of `queries` finds it, the second is the query; `composition` is that
        of the second, and costs of both add up.
    typical
        What the data owner says values of columns are like; risks are told by it, and nothing else.
    identifying
        Columns that are named as identifiers are, of frames whose rows are protected.
    columns
        The columns of protected frames that the query reads, with their types: these decide what
        its expressions mean. None in plans of several queries, whose `blocks` have them, and where
        an earlier version wrote the plan.
    """

    @property
    def risks(self) -> tuple[str, ...]:
        """What a reviewer must decide on; empty of a plan with nothing unusual. They follow from
        the rest of the plan.
        """
        return tuple(risks_in(self))

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reviewer should know of how the result comes about, and is as it usually is."""
        return tuple(notes_in(self))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Risks, and notes after them."""
        return (*self.risks, *self.notes)

    def explain(
        self,
        format: Format = "text",
        *,
        size: int | None = None,
        typical: Mapping[str, Number] | None = None,
    ) -> str:
        """The plan for a reviewer.

        Parameters
        ----------
        format
            ``"text"`` or ``"markdown"``; ``"html"``, a fragment of a page with a style of its own
            and no scripts; ``"mermaid"``, a flowchart.
        size
            A public guess of how many individuals each group has; how many there are, where nothing
            is grouped. The plan then also warns of noise above a tenth of what this many can
            change, and of a delta above one over their number. Guess before you look at the data.
        typical
            Public guesses of what values of columns are like, such as ``{"pay": 3000}``, for risks
            of bounds that are too wide; beside those that the data owner stated.

        Raises
        ------
        UnsupportedOperation
            For another format.
        InvalidBounds
            For a guess of individuals that is not a positive integer, or of values that is no
            number, or 0.
        """
        return render(self, format, size, typical)

    def __repr__(self) -> str:
        number = "1 release" if len(self.releases) == 1 else f"{len(self.releases)} releases"
        many = f"{len(self.queries)} queries of " if self.queries else ""
        return f"<Plan for {many}{self.source!r}: {number} for {self.cost.words()}; see .explain()>"

    def _repr_html_(self) -> str:
        return self.explain("html")

    def plot(
        self,
        guess: Mapping[str, float] | None = None,
        *,
        count: float | None = None,
        confidence: Number = 0.95,
    ) -> Any:
        """The error that each output will have, as an Altair chart. No data is read: values are
        what the caller guesses from public knowledge.

        Parameters
        ----------
        guess
            A guess of outputs, such as ``{"n": 1000}``; the error bar lies around it, or around 0.
        count
            A public guess of the number of values in a group, on which errors of means and
            variances depend; if left out, the guess of a count among the outputs.
        confidence
            Between 0 and 1.

        Raises
        ------
        UnsupportedOperation
            When Altair is not installed, or no output has an error in its own units.
        UnknownColumn
            When a guess names no output.
        """
        return plot_plan(self, guess, count, confidence)

    @property
    def fingerprint(self) -> str:
        """A digest of everything in the plan that matters to privacy, or that a reviewer reads of
        it, types of columns included; not of `remaining`, `share` and `budget`, which another run
        of the plan finds changed.
        """
        return document.fingerprint(self)

    def to_json(self, indent: int | None = 2) -> str:
        """The plan as a document that a reviewer can keep, sign and compare.

        Exact numbers are text such as ``"1/3"``. It holds what the analyst wrote, constants
        included, and no private data. Its form is `docs/plan.schema.json`.

        Parameters
        ----------
        indent
            Spaces by which levels are indented; None writes one line.
        """
        return document.to_json(self, indent)

    @classmethod
    def from_json(cls, text: str | bytes | os.PathLike[str]) -> Plan:
        """The plan that a document holds; it explains itself and counts its cost as before.

        Parameters
        ----------
        text
            The JSON, or the path of a file with it.

        Raises
        ------
        UnsupportedOperation
            When it is not the document of a plan, or one of another version.
        PlanMismatch
            When it was edited since it was written, or what follows from the rest does not: a cost
            below that of the mechanisms, say, which are counted again.
        """
        try:
            return cls._read(text)
        except RecursionError:  # nothing is nested so deeply
            raise document.no_plan() from None

    @classmethod
    def _read(cls, text: object) -> Plan:
        fields, whole = document.from_json(text, hints_of(PlanData))
        plan = cls(**as_fields(PlanData, fields))
        wrong = contradiction(plan)
        if wrong is None and document.canonical(document.document_of(plan)) != whole:
            wrong = "the fingerprint"
        if wrong is not None:
            raise document.edited(f"{wrong} does not follow from the rest")
        return plan

    def diff(self, other: Plan) -> str:
        """What is different in another plan, in words, a line each; empty where nothing is.

        What remains of budgets is not compared.

        Examples
        --------
        >>> import polars as pl, dpframe as dp
        >>> session = dp.Session(epsilon=1)
        >>> people = session.protect(pl.DataFrame({"age": [31, 64]}), unit=dp.Rows())
        >>> query = people.filter(pl.col("age") >= 40).dp_count()
        >>> print(people.dp_count().plan(epsilon="0.1").diff(query.plan(epsilon="0.5")))
        the guarantee gets weaker: epsilon 0.1 -> epsilon 0.5
        95% error of `len` 30 -> 6
        filter on `age` added: filter(col("age") >= 40)
        epsilon of `len` 0.1 -> 0.5
        epsilon of the plan 0.1 -> 0.5
        """
        return "\n".join(visible(line) for line in differences(self, other))
