"""The plan: what stages hand on, and what reviewers read. It holds no data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

import polars as pl

from dpframe.accounting.events import AnyEvent
from dpframe.aggregates.keys import KeySelection
from dpframe.aggregates.part import Part, Selection
from dpframe.aggregates.query import Output, Query
from dpframe.aggregates.registry import BY_KIND
from dpframe.aggregates.request import Request
from dpframe.core.budget import Budget
from dpframe.core.exact import Number, exact
from dpframe.core.sensitivity import ExactSensitivity, Sensitivity
from dpframe.core.units import Unit
from dpframe.errors import InvalidBounds, UnknownColumn, UnsupportedOperation
from dpframe.explain import render
from dpframe.frames.public import digest
from dpframe.ledger.parts import Share
from dpframe.mechanisms import KeyLaw, Law, RandomizedResponse, SelectionLaw
from dpframe.mechanisms.events import events_of
from dpframe.plots import plot_plan
from dpframe.rows.suggest import did_you_mean


@dataclass(frozen=True, slots=True)
class NoisyAggregate:
    """One vector that is drawn with noise, or one private selection.

    Parameters
    ----------
    name
        The output column it is first used in.
    aggregate
        What it is there: ``"count"``, ``"sum"``, ``"mean.sum"``, ``"histogram"``, ...
    sensitivity
        Of the whole vector, in the value's own units; for selections of the scores.
    mechanism
        Its name.
    scale
        In the value's units: b of Laplace, sigma of Gaussian, t of exp(score / t), 0 for "none".
    cost
        Its part of the plan's cost.
    law
        The mechanism with its exact scale, in steps.
    step
        The value of one integer step.
    exact
        The sensitivity in steps, exactly.
    entries
        How many numbers, or selections, are released.
    candidates
        For selections: how many candidates there are.
    contents, reason
        What the vector holds, and why the mechanism was chosen.
    users
        The outputs that use it.
    part, asked
        The vector itself, and the mechanism that was asked for.
    bias
        The largest rounding error of one row on the grid, in the value's units; 0 for exact sums.
    """

    name: str
    aggregate: str
    sensitivity: Sensitivity
    mechanism: str
    scale: float
    cost: Budget
    law: Law = field(repr=False)
    step: Fraction = field(repr=False)
    exact: ExactSensitivity = field(repr=False)
    entries: int = field(repr=False)
    candidates: int | None = field(repr=False)
    contents: str = field(repr=False)
    reason: str = field(repr=False)
    users: tuple[str, ...] = field(repr=False)
    part: Part = field(repr=False)
    asked: str = field(default="auto", repr=False)
    bias: Fraction = field(default=Fraction(0), repr=False)

    def accuracy(self, confidence: Number = 0.95, simultaneous: bool = False) -> float:
        """The smallest a with P(|error| <= a) >= confidence, in the value's units.

        Parameters
        ----------
        confidence
            Between 0 and 1, exclusive.
        simultaneous
            Whether all entries (groups, bins) keep within a together.

        Returns
        -------
        float
            For noise, the exact quantile of its discrete law. For selections, how far the chosen
            score may be below the best (McSherry & Talwar 2007, Theorem 7). For groups that are
            found, the number of individuals with which one appears so surely.

        Raises
        ------
        InvalidBounds
            When the confidence does not lie between 0 and 1.
        """
        level = confidence_of(confidence)
        if isinstance(self.law, SelectionLaw):
            assert self.candidates is not None
            if simultaneous:  # the union bound over groups and rounds
                level = 1 - (1 - level) / max(1, self.entries)
            return float(self.law.accuracy(level, self.candidates)) * float(self.step)
        if isinstance(self.law, RandomizedResponse):
            raise _needs_count(self.name)
        if isinstance(self.law, KeyLaw):
            return float(self.law.size_at(level))
        cells = self.entries if simultaneous else 1
        return float(self.law.quantile(level, max(1, cells)) * self.step)


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One operation of the plan, in words.

    Parameters
    ----------
    words
        The operation as the analyst wrote it.
    stability
        Why one individual cannot touch more rows through it.
    learned
        What is known of the columns that it made or narrowed.
    """

    words: str
    stability: str
    learned: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
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
    keys
        The keys, or the first ones; None without a group-by.
    releases
        One entry for each noisy vector or private selection.
    outputs
        Name and formula of each output.
    notes
        For each output, how its result comes from what is released; empty where that goes without
        saying.
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
        What was asked for; the cost is never more.
    remaining
        The session's budget before the plan, or None for a query without a session.
    warnings
        What a reviewer should look at twice.
    share
        Of a plan on one of several disjoint parts: what the session of the whole frame would be
        charged when the plan was made. `cost` and `remaining` are the part's.
    """

    source: str
    unit: Unit
    steps: tuple[PlanStep, ...]
    grouping: str | None
    groups: int | None
    releases: tuple[NoisyAggregate, ...]
    outputs: tuple[tuple[str, str], ...]
    cost: Budget
    composition: str
    split: str
    requested: Budget
    remaining: Budget | None
    warnings: tuple[str, ...]
    keys: str | None
    notes: tuple[str, ...]
    declared: tuple[str, ...]
    query: Query = field(repr=False)
    keys_digest: str | None = field(default=None, repr=False)
    share: Share | None = None

    def explain(self, format: Literal["text", "markdown"] = "text") -> str:
        """The plan for a reviewer.

        Parameters
        ----------
        format
            ``"text"`` or ``"markdown"``.

        Raises
        ------
        UnsupportedOperation
            For another format.
        """
        return render(self, format)

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
        """A digest of everything in the plan that matters to privacy."""
        record = {
            "source": self.source,
            "unit": self.unit.words(),
            "steps": [repr(step) for step, _ in self.query.relation.steps],
            "grouping": [self.grouping, self.keys_digest],
            "outputs": sorted(self._contents(output) for output in self.query.outputs),
            "releases": sorted(
                [r.name, r.aggregate, r.contents, r.mechanism, str(r.law), str(r.step), r.entries]
                for r in self.releases
            ),
            "cost": [
                self.cost.measure,
                str(self.cost.main),
                str(self.cost.slack),
                self.composition,
            ],
        }
        return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()

    @property
    def events(self) -> tuple[AnyEvent, ...]:
        """What the plan does, for `dpframe.accounting`: one event per release and round.

        Whoever doubts the plan's cost can count them again with any accountant, or hand them to
        another library (`dpframe.accounting.to_dp_accounting`). Roots are rounded towards more
        privacy loss.
        """
        return tuple(event for release in self.releases for event in self._events(release))

    def _events(self, release: NoisyAggregate) -> tuple[AnyEvent, ...]:
        part = release.part
        if isinstance(part, Selection):
            reach = part.score_range(self.query.scope).l1
            return events_of(release.law, release.exact, reach, part.rounds)
        if isinstance(part, KeySelection):
            return events_of(release.law, release.exact, None, part.touched(self.query.scope))
        if isinstance(release.law, RandomizedResponse):  # each row reports
            return events_of(release.law, release.exact, None, self.query.scope.spread.tight[0])
        return events_of(release.law, release.exact)

    def _contents(self, output: Output) -> list[str]:
        """An output with all that its words may leave out, such as long lists of categories."""
        contents = [output.name, output.words]
        for request in output.requests.values():
            uses = BY_KIND[request.kind].uses(request, self.query.scope)
            contents += [repr(use.part) for use in uses]
            frames = [v for v in request.parameters.values() if isinstance(v, pl.DataFrame)]
            contents += [digest(frame) for frame in frames]
        return contents

    def accuracy(
        self,
        column: str,
        confidence: Number = 0.95,
        *,
        simultaneous: bool = False,
        count: float | None = None,
    ) -> float:
        """A bound on the error of an output column that holds with the given confidence.

        Parameters
        ----------
        column
            The output's name.
        confidence
            Between 0 and 1. Where an output has several parts each gets an equal share of what may
            go wrong (union bound).
        simultaneous
            Whether the bound holds for all groups together.
        count
            A public guess of the number of values in a group, for means and variances; without it
            their bound is what the clamping of the result alone guarantees. For randomised
            response the number of rows.

        Raises
        ------
        UnknownColumn
            When there is no such output.
        UnsupportedOperation
            For arithmetic of several aggregates, whose error depends on the data.
        """
        outputs = {output.name: output for output in self.query.outputs}
        if column not in outputs:
            raise UnknownColumn(
                f"the plan has no output {column!r}", remedy=did_you_mean(column, outputs)
            )
        output = outputs[column]
        if output.post is not None or len(output.requests) != 1:
            raise UnsupportedOperation(
                f"the error of {column!r} depends on the data",
                where=output.words,
                remedy="ask for the accuracy of its parts, or simulate it on public data",
            )
        (request,) = output.requests.values()
        return self._request_accuracy(request, confidence_of(confidence), simultaneous, count)

    def _request_accuracy(
        self, request: Request, level: Fraction, simultaneous: bool, count: float | None
    ) -> float:
        aggregate = BY_KIND[request.kind]
        uses = aggregate.uses(request, self.query.scope)
        level = 1 - (1 - level) / len(uses)
        releases = {(r.part, r.asked): r for r in self.releases}
        (*_, only) = (releases[(use.part, request.mechanism)] for use in uses)
        if isinstance(only.law, RandomizedResponse):
            if count is None:
                raise _needs_count(only.name)
            return only.law.error(level, count, only.entries if simultaneous else 1)
        errors = [
            releases[(use.part, request.mechanism)].accuracy(level, simultaneous) for use in uses
        ]
        if len(errors) > 1 and request.kind == "quantile":
            return max(errors)
        return aggregate.error(request, self.query.scope, errors, count)


def _needs_count(name: str) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"the error of the randomised responses of {name!r} grows with the number of rows",
        remedy=f"give a public guess of it: plan.accuracy({name!r}, count=...)",
    )


def confidence_of(value: Number, where: str = "confidence") -> Fraction:
    """A confidence as a fraction.

    Raises
    ------
    InvalidBounds
        When it does not lie between 0 and 1.
    """
    try:
        level = exact(value)
    except (TypeError, ValueError, ZeroDivisionError):
        level = Fraction(0)
    if not 0 < level < 1:
        raise InvalidBounds(
            f"a confidence lies between 0 and 1, and {value!r} does not",
            where=where,
            remedy=f"write for example {where}=0.95",
        )
    return level
