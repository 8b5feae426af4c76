"""The plan of a query: a pure document, which holds no data and does not refer to the query that it
was made from.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dpframe.accounting.events import AnyEvent
from dpframe.core.budget import Budget
from dpframe.core.exact import Number, show_input
from dpframe.core.parameters import Parameter
from dpframe.core.tree import WRITTEN
from dpframe.core.units import Unit
from dpframe.core.windows import Windows
from dpframe.errors import UnknownColumn, UnsupportedOperation
from dpframe.frames.definition import Json
from dpframe.kernel import plan as kernel
from dpframe.ledger.approvals import StatedBudget
from dpframe.ledger.parts import Share
from dpframe.plan.error import error_of
from dpframe.plan.noisy_aggregate import NoisyAggregate, confidence_of
from dpframe.plan.pieces import (
    ForcedError,
    FoundLimit,
    PlanBlock,
    PlanColumn,
    PlanIdentifying,
    PlanOutput,
    PlanQuery,
    PlanStep,
    PlanTypical,
)
from dpframe.rows.suggest import did_you_mean

_COUNTS = "count"
_TABLES = ".dp_histogram(", ".dp_cdf("
"""What makes a table that has a column of that name."""


@dataclass(frozen=True, slots=True, eq=False)
class PlanData:
    """The fields of a plan, and the values that follow from them; `dpframe.report.Plan` documents
    each."""

    source: str
    unit: Unit
    others: tuple[str, ...]
    declared: tuple[str, ...]
    steps: tuple[PlanStep, ...]
    grouping: str | None
    groups: int | None
    keys: str | None
    keys_digest: str | None = field(repr=False)
    grouped_by: Json = field(repr=False)
    best_group: bool
    releases: tuple[NoisyAggregate, ...]
    outputs: tuple[PlanOutput, ...]
    cost: Budget
    composition: str
    split: str
    remarks: tuple[str, ...] = field(metadata={WRITTEN: "warnings"})
    requested: Budget
    remaining: Budget | None
    share: Share | None = None
    budget: StatedBudget | None = None
    blocks: tuple[PlanBlock, ...] = ()
    queries: tuple[PlanQuery, ...] = ()
    forced: tuple[ForcedError, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    windows: Windows | None = None
    found: FoundLimit | None = None
    typical: tuple[PlanTypical, ...] = ()
    identifying: tuple[PlanIdentifying, ...] = ()
    columns: tuple[PlanColumn, ...] | None = None
    physical: kernel.Plan | None = field(default=None, repr=False)
    dpframe_version: str | None = field(default=None, repr=False)

    @property
    def draws(self) -> tuple[NoisyAggregate, ...]:
        """Each draw once, with its cost: the first part of each joint draw."""
        found: dict[int, NoisyAggregate] = {}
        for release in self.releases:
            found.setdefault(release.draw, release)
        return tuple(found.values())

    @property
    def events(self) -> tuple[AnyEvent, ...]:
        """The events of the plan for `dpframe.accounting`: one per draw and round.

        A reviewer who doubts the plan's cost can compute it again with any accountant, or with
        another library (`dpframe.accounting.to_dp_accounting`). Roots are rounded towards more
        privacy loss.
        """
        return tuple(event for release in self.draws for event in release.events)

    def accuracy(
        self,
        column: str,
        confidence: Number = 0.95,
        *,
        simultaneous: bool = False,
        count: float | None = None,
        guess: object = None,
        query: int | None = None,
    ) -> float:
        """A bound on the error of an output column that holds with the given confidence.

        For counts, sums and selections it bounds the noise. For quantiles it is a number of ranks:
        how much worse a choice may be than the best choice among the same rows. Where ranks are
        read from counts, it is the distance from the quantile in ranks. For a mean, a variance or a
        standard deviation the error also depends on the data. The bound is the quantile of the
        error over the worst data with `count` values, or over data like `guess`, and at most one
        percent above it. It applies to results that are not null.

        The confidence is close to the requested one for counts, sums, means and variances, for the
        grouping set or edge with the largest error, and for the worst data of a single choice. The
        bound is conservative for other sets and edges if the accuracy is one number, for better
        data of a choice, for several winners or quantiles (a union bound), and for noise of few
        whole steps.

        Parameters
        ----------
        column
            The output's name; for the table of one histogram or distribution function also
            ``"count"``.
        confidence
            Between 0 and 1. An output of several selections gives each an equal share of the
            failure probability (union bound).
        simultaneous
            Whether the bound holds for all groups together. For numbers with separate noise the
            confidence is exact. For numbers that share noise, as sets and edges do, it is higher
            (union bound).
        count
            A public guess of the number of values in a group, for means and variances. Without it
            the bound is the one that clamping the result guarantees. For randomised response: the
            number of rows.
        guess
            A public guess of the values in a group, for means and variances: the expected result,
            such as 40, or facts about the values, as ``{"mean": 40, "std": 12}``. A Series of
            public values like them also gives `count` by default. Without a guess the bound holds
            for all data.
        query
            For a plan of several queries: the number of the query, from 1. It may be left out
            if only one query has an output of that name.

        Raises
        ------
        UnknownColumn
            When the output does not exist, or several queries have it.
        InvalidBounds
            When a guess or the confidence is not a valid number.
        UnsupportedOperation
            For arithmetic of several aggregates, whose error depends on the data.
        """
        output, level = self._output(column, query), confidence_of(confidence)
        self._require_known_limit(output)
        used = [self.releases[number] for number in output.releases]
        return error_of(output.error, used, level, simultaneous, count, guess)

    def _require_known_limit(self, output: PlanOutput) -> None:
        """Refuse the error of an output whose noise depends on a limit that is not found yet."""
        search = self.queries[0].outputs if self.queries else ()
        if self.found is None or output in [self.outputs[n] for n in search]:
            return
        raise UnsupportedOperation(
            f"the error of {output.name!r} depends on the limit that the query finds when it runs",
            where=f"accuracy({output.name!r})",
            remedy=(
                "read plan.found.choices, which has the errors under each limit",
                f"plan under one limit, such as {self.found.words(self.found.choices[0].n)}",
            ),
        )

    def _output(self, column: str, query: int | None) -> PlanOutput:
        """The output of a name, as one query calls it if one is given."""
        outputs = {output.name: output for output in self.outputs}
        if query is not None:
            number = query if isinstance(query, int) and not isinstance(query, bool) else 0
            if not 1 <= number <= max(1, len(self.queries)):
                raise UnknownColumn(
                    f"the plan has no query {show_input(query)}",
                    where="accuracy(..., query=...)",
                    remedy=f"write query= with a number from 1 to {max(1, len(self.queries))}",
                )
            if self.queries:
                own = self.queries[number - 1]
                numbers = dict(zip(own.names, own.outputs, strict=True))
                outputs = {name: self.outputs[place] for name, place in numbers.items()}
        elif column not in outputs:
            having = [n for n, own in enumerate(self.queries, 1) if column in own.names]
            if having:
                raise UnknownColumn(
                    f"queries {' and '.join(map(str, having))} have an output {column!r}",
                    remedy=f"name the query: plan.accuracy({column!r}, query={having[0]})",
                )
        if column == _COUNTS and column not in outputs and len(outputs) == 1:
            (only,) = outputs.values()  # a table has its counts in a column of this name
            if any(method in only.words for method in _TABLES):
                return only
        if column not in outputs:
            raise UnknownColumn(
                f"the plan has no output {column!r}", remedy=did_you_mean(column, outputs)
            )
        return outputs[column]
