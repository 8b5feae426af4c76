"""The plan of a query, for programs and for reviewers."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from dpframe.core.budget import GDP, ZCDP, ApproxDP, Budget, PureDP
from dpframe.core.exact import Number
from dpframe.core.regular import canonical
from dpframe.core.tree import visible
from dpframe.errors import Unsound
from dpframe.kernel import Plan as PhysicalPlan
from dpframe.kernel.plan import write
from dpframe.kernel.render import render as render_physical
from dpframe.plan import PlanData, document
from dpframe.plan.agreement import disagreement, require_verified
from dpframe.plan.codec import as_fields, hints_of
from dpframe.plan.consistency import contradiction
from dpframe.report.difference import differences
from dpframe.report.first_page import questions_in
from dpframe.report.plots import Chart, plot_plan
from dpframe.report.render import Format, render
from dpframe.report.story import notes_in, risks_in
from dpframe.sealed import sealed


@dataclass(frozen=True, slots=True, eq=False)
class Plan(PlanData):
    """What a query will release, what it costs, and why that is safe. Planning reads no data.

    Parameters
    ----------
    source
        The name of the protected frame.
    unit
        The protected unit: rows, persons, or persons in a calendar window.
    steps
        The frame operations, in order.
    grouping
        The group-by and where its keys come from, or None.
    groups, keys
        The number of keys, and the first ones. None without a group-by, and where the query chooses
        its groups privately.
    keys_digest
        A digest of all keys, which is the same for all forms of the keys.
    grouped_by
        The grouping expressions in full.
    best_group
        Whether the query releases only the best of the groups.
    releases
        One entry for each noisy vector or private selection.
    outputs
        The columns of the result, and how they are computed from the releases.
    others
        The other protected frames that this one is joined with, and whom they protect.
    declared
        What the data owner declared about the columns that the query uses.
    cost
        What the plan charges: in the measure of `requested`, or as rho in a session that adds up
        rho.
    composition
        How `cost` follows from the releases. With ``"sum"`` it is the sum of their costs. With
        ``"numerical"`` their costs are amounts of rho, and the composed privacy loss distributions
        satisfy `cost`. With ``"zcdp"`` the sum of rho implies it.
    split
        How the cost is divided among the releases: ``"least error"`` for the least sum of the
        outputs' squared relative errors, ``"equal"`` or ``"weights"`` by outputs.
    requested
        The requested spend; the cost is never more.
    remaining
        The session's budget before the plan, or None for a query without a session.
    remarks
        Sentences about the query from the time of planning: `notes`, and some of `risks`.
    share
        For a plan on one of several disjoint parts: what the plan charges to the session of the
        whole frame, as of planning. `cost` and `remaining` are those of the part.
    budget
        The budget that pays, as of planning. None for a query without a session.
    blocks
        For a plan of several queries: one entry for each frame with its groups, with a plan's
        fields for these. Queries of the same rows and groups share one. Empty for one query.
    queries
        For a plan of several queries: the outputs of each. Outputs with the same name in several
        queries are named after their query, such as ``"n of query 2"``.
    forced
        The price of a requested `mechanism=` or ``split="equal"``, by output: its error relative to
        that of the plan with the least error at the same spend, and whether the output requested a
        mechanism. Empty without such a request, or where the price is unknown.
    parameters
        The parameters of the job by name, type and value, each as text. Expressions show them as
        ``:name``.
    windows
        Where an individual is a person in a calendar window: exactly the windows whose rows the
        plan reads. They pay in a session with a budget per window.
    found
        Where the query finds its limit when it runs: the possible limits, and the query under each.
        The first of `queries` finds the limit, the second is the query. `composition` is that of
        the second, and the costs of both add up.
    typical
        Typical values of columns that the data owner stated. Only risks depend on them.
    identifying
        Columns with names like those of identifiers, in frames whose rows are protected.
    columns
        The columns of protected frames that the query reads, with their types, which decide what
        its expressions mean. None in plans of several queries, whose `blocks` have them, and in
        plans of earlier versions.
    physical
        What happens, as the kernel verifies it: steps, tables, draws and their costs. None in
        documents of version 1.
    dpframe_version
        The version of dpframe that made the plan. None in documents of version 1.
    """

    @property
    def risks(self) -> tuple[str, ...]:
        """What a reviewer must decide; empty for a plan with nothing unusual. Risks follow from the
        rest of the plan.
        """
        return tuple(risks_in(self))

    @property
    def questions(self) -> tuple[str, ...]:
        """At most five questions that only the reviewer can answer, the most doubtful first."""
        return questions_in(self)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reviewer should know about how the result is computed, and is not a risk."""
        return tuple(notes_in(self))

    @property
    def warnings(self) -> tuple[str, ...]:
        """All risks, then all notes."""
        return (*self.risks, *self.notes)

    def explain(
        self,
        format: Format = "text",
        *,
        details: bool = False,
        size: int | None = None,
        typical: Mapping[str, Number] | None = None,
        since: Plan | None = None,
    ) -> str:
        """The plan for a reviewer: a first page to decide by, and the details behind it.

        The first page lists the risks, whom the plan protects, what it spends, the 95% error of
        each output, what is read and dropped, and the questions that only the reviewer can answer.
        An error that depends on the number of rows is shown for `size` rows, or for 1,000.

        Parameters
        ----------
        format
            ``"text"``, ``"markdown"``, ``"html"`` (a page without scripts, with details to open) or
            ``"mermaid"`` (a flowchart).
        details
            Whether to append all steps, the noise of each draw with its sensitivity, and notes. On
            a page of HTML: whether these details are open.
        size
            A public guess of the number of individuals in each group, or in all without groups. The
            plan then also warns of noise above a tenth of what this many individuals can change,
            and of a delta above one over their number. Guess before you look at the data.
        typical
            Public guesses of typical values of columns, such as ``{"pay": 3000}``, in addition to
            those given to ``protect``. The plan warns of bounds that are far wider.
        since
            A plan that was approved before; the first page then lists the changes.

        Raises
        ------
        UnsupportedOperation
            For another format.
        InvalidBounds
            When `size` is not a positive integer, or a typical value is 0 or not a number.
        """
        return render(
            self,
            format,
            size,
            typical,
            details=details,
            since=since,
            fingerprint=self.fingerprint,
        )

    def __repr__(self) -> str:
        number = "1 release" if len(self.releases) == 1 else f"{len(self.releases)} releases"
        many = f"{len(self.queries)} queries of " if self.queries else ""
        return f"<Plan for {many}{self.source!r}: {number} for {self.cost.words()}; see .explain()>"

    def _repr_html_(self) -> str:
        return render(self, "html")

    def plot(
        self,
        guess: Mapping[str, float] | None = None,
        *,
        count: float | None = None,
        confidence: Number = 0.95,
    ) -> Chart:
        """The 95% error of each output as an Altair chart. No data is read: the values are public
        guesses.

        Parameters
        ----------
        guess
            Public guesses of outputs, such as ``{"n": 1000}``. An error bar is drawn around the
            guess, or around 0.
        count
            A public guess of the number of values in a group, on which errors of means and
            variances depend. By default the guess of a count among the outputs.
        confidence
            The probability that the error stays within its bar, between 0 and 1.

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
        """A digest of everything in the plan that matters to privacy or that a reviewer reads,
        including the types of columns. It does not cover `remaining`, `share` and `budget`, which
        change from run to run.
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
        """The plan in a document that `to_json` wrote.

        Parameters
        ----------
        text
            The JSON, or the path of a file with it.

        Raises
        ------
        UnsupportedOperation
            When it is not the document of a plan, or belongs to a newer version.
        PlanMismatch
            When the document was edited, or contradicts itself, such as by a cost below that of its
            mechanisms, or by a clamp that the physical plan does not have.
        Unsound
            When the physical plan states what does not follow from it, see `dpframe.verify`.
        """
        try:
            return cls._read(text)
        except RecursionError:  # nothing is nested so deeply
            raise document.no_plan() from None

    @classmethod
    def _read(cls, text: object) -> Plan:
        fields, whole = document.from_json(text, hints_of(PlanData))
        plan = cls(**as_fields(PlanData, fields))
        if plan.physical is not None:
            require_verified(plan.physical)
            if (wrong := disagreement(plan, plan.physical)) is not None:
                raise document.edited(f"{wrong} contradicts the physical plan")
        wrong = contradiction(plan)
        if wrong is None and canonical(document.document_of(plan)) != whole:
            wrong = "the fingerprint"
        if wrong is not None:
            raise document.edited(f"{wrong} does not follow from the rest")
        return plan

    def diff(self, other: Plan) -> str:
        """The changes from this plan to another one, a line each; empty without changes.

        Remaining budgets are not compared.

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


# `verify`: what the kernel computes from a plan, without data, ledger or network.

_EARLIER = """\
NOT VERIFIED: the document has schema version 1, which does not state what happens to rows.
Checked: the costs cover the noise, if one individual changes numbers as much as the plan states.
Not checked: whether one individual can change them more. Plan the query again with this version."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What was verified about a plan; `verify` returns it, and ``print`` shows it.

    Parameters
    ----------
    is_complete
        Whether the kernel verified the physical plan. False for documents of version 1, which have
        none: there only the stated costs were compared with the stated sensitivities.
    cost
        What the plan costs.
    fingerprint
        The fingerprint of the plan, which approvals name.
    digest
        The SHA-256 of the physical plan; None for documents of version 1.
    statements
        What happens, a sentence for each step, table and draw, and for the cost. All of it follows
        from the physical plan alone.
    """

    is_complete: bool
    cost: Budget
    fingerprint: str
    digest: str | None
    statements: tuple[str, ...]

    def __str__(self) -> str:
        if self.digest is None:
            return "\n".join((_EARLIER, f"fingerprint {self.fingerprint}"))
        return "\n".join(
            (
                "VERIFIED: the draws below cost what the plan states, or less.",
                *self.statements,
                f"physical plan {self.digest}",
                f"fingerprint   {self.fingerprint}",
            )
        )


@sealed
def verify(plan: Plan | str | bytes | os.PathLike[str]) -> Verification:
    """Verify a plan by the kernel alone: it reads neither data nor ledgers, and trusts no number
    that it can compute from the plan's steps, tables and noise.

    Guarantee
    ---------
    If a plan is verified, and a release does what its statements say, then the release has the
    plan's cost. `dpframe.kernel.verify` has the proof.

    Parameters
    ----------
    plan
        A plan, the JSON that `Plan.to_json` returns, or the path of a file with it.

    Returns
    -------
    Verification
        What was verified. For a document of version 1 `is_complete` is False.

    Raises
    ------
    Unsound
        With the first statement that does not follow, such as a cost below what the noise costs.
    PlanMismatch
        When the document was edited, or when what people read in it contradicts what the kernel
        verifies.
    UnsupportedOperation
        When it is not the document of a plan.

    Examples
    --------
    >>> import polars as pl, dpframe as dp
    >>> session = dp.Session(epsilon=1)
    >>> people = session.protect(pl.DataFrame({"age": [31, 64]}), unit=dp.Rows(), name="people")
    >>> found = dp.verify(people.dp_count().plan(epsilon="0.1"))
    >>> print(found.statements[-3])
    table 0: Over the rows of frame 0: the number of rows.
    >>> print(found.statements[-1])
    cost: The whole plan costs epsilon 0.1: the sum of its draws.
    """
    if not isinstance(plan, Plan):
        text = document.content_of(plan)
        # before any digest is compared, so that an edited number is named
        physical = document.physical_in(text)
        if physical is not None:
            require_verified(physical)
        plan = Plan.from_json(text)
    physical = plan.physical
    if physical is None:
        return Verification(False, plan.cost, plan.fingerprint, None, ())
    require_verified(physical)
    wrong = disagreement(plan, physical)
    if wrong is not None:
        raise Unsound(
            f"the plan does not hold: {wrong} contradicts the physical plan",
            remedy="plan the query again",
        )
    whole = write(physical)
    statements = tuple(render_physical(physical).splitlines())
    digest = hashlib.sha256(whole.encode()).hexdigest()
    return Verification(True, _cost(physical), plan.fingerprint, digest, statements)


def _cost(physical: PhysicalPlan) -> Budget:
    """What a physical plan costs."""
    measure = physical.measure if physical.composition == "sum" else "epsilon"
    main, delta = physical.cost, physical.delta
    match measure:
        case "rho":
            return ZCDP.of(main, delta)
        case "mu_squared":
            return GDP.of(main, Fraction(0))
        case "epsilon":
            return ApproxDP.of(main, delta) if delta else PureDP.of(main, delta)
