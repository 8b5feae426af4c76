"""The plan of a query: a pure document, which holds no data and does not refer to the query that it
was made from.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframe.accounting.events import AnyEvent
from dpframe.aggregates.error import (
    MeanError,
    NoErrorBound,
    PartError,
    RankError,
    VarianceError,
)
from dpframe.aggregates.noise import Drawn, JointNoise, noise_law
from dpframe.aggregates.reconstructed_error import (
    DistributionError,
    EdgesError,
    OutputError,
    RebuiltError,
    RootError,
    RunError,
    RunningError,
    RunRankError,
)
from dpframe.core.budget import Budget
from dpframe.core.exact import Number, exact, show_input
from dpframe.core.parameters import Parameter
from dpframe.core.sensitivity import ContributionBounds, ExactSensitivity, ScoreRange, Sensitivity
from dpframe.core.tree import EXACT, WRITTEN
from dpframe.core.units import Unit
from dpframe.core.windows import Windows
from dpframe.errors import InvalidBounds, PlanMismatch, UnknownColumn, UnsupportedOperation
from dpframe.frames.definition import Json
from dpframe.kernel import plan as kernel
from dpframe.kernel.moves import Addition, moves_of
from dpframe.ledger.approvals import StatedBudget
from dpframe.ledger.parts import Share
from dpframe.mechanisms import (
    AdditiveMechanism,
    Arch,
    Box,
    CombinedNoise,
    Exposure,
    KeyMechanism,
    Mechanism,
    ReportMechanism,
    SelectionMechanism,
    box_of,
)
from dpframe.rows.suggest import did_you_mean

# One vector that is drawn with noise, or one private selection.

# How a number of a plan follows from several that are drawn jointly.


@dataclass(frozen=True, slots=True)
class JointDraw:
    """A vector that is drawn at once, and one number that follows from it."""

    # By how much a row that comes or goes moves each number of the vector at most, and by how much
    # one that stays and changes does.
    widths: tuple[int, ...]
    turned: tuple[int, ...]
    exact: ExactSensitivity  # The sensitivity of all vectors, one for each group, in steps
    # The number is the sum of factor times drawn number, over the divisor.
    factors: tuple[int, ...] = field(metadata={EXACT: True})
    divisor: int = field(metadata={EXACT: True})
    # For rows that change: the condition of each number (0 means that the row is there, else an
    # expression has a value), and its movement by a row that meets the condition before and after;
    # see `dpframe.kernel.moves.moves_of`. Empty where each number is one on its own.
    conditions: tuple[int, ...] = ()
    kept: tuple[int, ...] = ()
    # The places of numbers that are a count of values, their sum, and the sum of their squares.
    arches: tuple[Arch, ...] = ()

    def box(self, spread: ContributionBounds, grouped: bool) -> Box:
        """What one individual moves the vectors within."""
        return box_of(self.widths, self.turned, spread, grouped, self.arches)

    def is_of(
        self, draw: kernel.Draw, additions: Sequence[Addition], *, changes: bool, whole: bool
    ) -> bool:
        """Whether rows move the numbers of a draw in the physical plan as is stated here, given
        what a row adds to each table. `changes` if neighbours have other values in rows, `whole` if
        it is one group of all rows.
        """
        assert isinstance(draw.what, kernel.Vector)
        arches = draw.law.arches if isinstance(draw.law, kernel.Box) else ()
        moves = _row_moves(additions, draw.what.matrix, changes, whole)
        if (
            moves[2]
            and not isinstance(draw.law, kernel.Gaussian)
            and not _is_centred(draw.what.matrix)
        ):
            moves = (*moves[:2], (), ())  # a box bounds each number on its own
        stated = self.widths, self.turned, self.conditions, self.kept
        return (*stated, self.arches) == (*moves, arches)


Numbers: TypeAlias = tuple[int, ...]


def _is_centred(matrix: Sequence[Numbers]) -> bool:
    """Whether the number of rows is taken from sums."""
    return any(sum(map(bool, factors)) > 1 for factors in matrix)


def _row_moves(
    additions: Sequence[Addition], matrix: Sequence[Numbers], changes: bool, whole: bool
) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Widths, `turned`, conditions and `kept` of numbers, each of its own table, and of the first
    table where they are centred on the number of rows.
    """
    widths = moves_of(additions, matrix).widths
    if not changes or len(matrix) == 1:
        return widths, widths, (), ()
    own = [(abs(row[place]), additions[place]) for place, row in enumerate(matrix)]
    if _is_centred(matrix):
        stays = tuple(2 * width for width in widths[1:])
        return widths, (widths[0], *stays), (0,) * len(own), (0, *stays)
    needs = dict.fromkeys(a.needs for _, a in own if a.needs is not None)
    numbers = {None: 0, **{need: number for number, need in enumerate(needs, 1)}}
    return (
        widths,
        tuple(0 if whole and a.needs is None else f * a.length for f, a in own),
        tuple(numbers[a.needs] for _, a in own),
        tuple(f * (a.hi - a.lo) for f, a in own),
    )


_MOST_EVENTS = 10**6


@dataclass(frozen=True, slots=True)
class NoisyAggregate:
    """One vector that is drawn with noise, or one private selection.

    Parameters
    ----------
    name
        The first output column that uses it.
    aggregate
        Its role there: ``"count"``, ``"sum"``, ``"mean.sum"``, ``"histogram"``, ...
    sensitivity
        The sensitivity of the whole vector, in the value's own units; for selections that of the
        scores.
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
    spread
        How many rows of one individual may count, and in how many groups.
    repeats
        How many runs of the mechanism depend on one individual: rounds of a selection, groups that
        may appear, or rows that report separately. Otherwise 1.
    candidates
        For selections: how many candidates there are.
    scores
        For selections: the range of the changes of scores by one individual, in steps.
    contents, reason
        What the vector holds, and why the mechanism was chosen.
    users
        The outputs that use it.
    asked
        The mechanism that is requested.
    bias
        The largest rounding error of one row on the grid, in the value's units; 0 for exact sums.
    draw
        The number of the draw. Parts that are drawn jointly have the same number and the same
        `cost`: that of the whole draw, which counts once.
    joint
        How the number is computed from a joint draw; None if it is drawn alone.
    """

    name: str
    aggregate: str
    sensitivity: Sensitivity
    mechanism: str
    scale: float
    cost: Budget
    law: Mechanism = field(repr=False)
    step: Fraction = field(repr=False)
    exact: ExactSensitivity = field(repr=False)
    entries: int = field(repr=False)
    spread: ContributionBounds = field(repr=False)
    repeats: int = field(repr=False)
    candidates: int | None = field(repr=False)
    scores: ScoreRange | None = field(repr=False)
    contents: str = field(repr=False)
    reason: str = field(repr=False)
    users: tuple[str, ...] = field(repr=False)
    asked: str = field(default="auto", repr=False)
    bias: Fraction = field(default=Fraction(0), repr=False)
    draw: int = 0
    joint: JointDraw | None = field(default=None, repr=False)

    @property
    def noise(self) -> Mechanism:
        """The mechanism of this number alone: the law of its noise, for any joint draw. `law` is
        what is drawn, and paid for.
        """
        if self.joint is None:
            return self.law
        return CombinedNoise.of(self.law, self.joint.factors, self.joint.divisor)

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
            score may be below the best (McSherry & Talwar 2007, Theorem 7). For groups found in
            the data, the size at which a group appears with this confidence.

        Raises
        ------
        InvalidBounds
            When the confidence does not lie between 0 and 1.
        """
        level = confidence_of(confidence)
        if isinstance(self.law, SelectionMechanism):
            assert self.candidates is not None
            choices = max(1, self.entries) if simultaneous else 1
            within = self.law.accuracy_of(level, self.candidates, max(1, self.repeats), choices)
            return float(within) * float(self.step)
        if isinstance(self.law, KeyMechanism):
            return float(self.law.size_at(level))
        noise = self.noise
        if not isinstance(noise, AdditiveMechanism):
            raise needs_count((*self.users, self.name)[0])
        cells = self.entries if simultaneous else 1
        return float(noise.quantile(level, max(1, cells)) * self.step)

    @property
    def events(self) -> tuple[AnyEvent, ...]:
        """The events of this draw for `dpframe.accounting`; roots are rounded towards more privacy
        loss. Parts that are drawn jointly each return the events of the one draw.

        Raises
        ------
        UnsupportedOperation
            When there are too many to be listed.
        """
        if self.repeats > _MOST_EVENTS:
            raise UnsupportedOperation(
                f"the mechanism of {self.name!r} runs {self.repeats} times for each individual, "
                f"more than the {_MOST_EVENTS} events that can be listed",
                remedy="read plan.cost, which is the cost of all of them",
            )
        return self.law.events(self.exposure)

    @property
    def exposure(self) -> Exposure:
        """How much one individual can change it."""
        if self.joint is not None:
            return Exposure(self.joint.exact, self.repeats)
        if self.scores is None:
            return Exposure(self.exact, self.repeats)
        scores, shared = self.scores, self.scores.is_shared(self.spread.changed_groups)
        norms = scores.l1, scores.l2_squared
        return Exposure(self.exact, self.repeats, scores.groups, *norms, shared)


def needs_count(name: str) -> UnsupportedOperation:
    """The refusal of an output whose error depends on the number of rows."""
    return UnsupportedOperation(
        f"the error of the randomised responses of {name!r} grows with the number of rows",
        remedy=f"give a public guess of it: plan.accuracy({name!r}, count=1000)",
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
            f"a confidence lies between 0 and 1, and {show_input(value)} does not",
            where=where,
            remedy=f"write for example {where}=0.95",
        )
    return level


# The error of an output, from the laws of what it is released from.


def error_of(
    rule: OutputError,
    used: Sequence[NoisyAggregate],
    level: Fraction,
    simultaneous: bool,
    count: float | None,
    guess: object,
) -> float:
    """A bound on the error that holds with probability `level`, between 0 and 1 exclusive; see
    `Plan.accuracy`. `used` has the releases in the order in which the output takes them. Groups,
    edges and sets that it holds for together are counted by the union bound.
    """
    match rule:
        case NoErrorBound():
            raise rule.refusal()
        case RankError() | RunRankError():
            laws = _of_levels(used, 1 if isinstance(rule, RankError) else 2)
            level = _each(level, used[-1].entries // rule.cells if simultaneous else 1)
            if isinstance(rule, RankError):
                return rule.quantile(laws[0], level)
            return rule.quantile(laws, level)
        case MeanError() | VarianceError():
            guessed = rule.read_guess(guess, count)
            groups = max(release.entries for release in used) if simultaneous else 1
            if len(used) != rule.parts:
                raise _no_such_parts()
            biases = [release.bias for release in used]
            return rule.quantile(noise_of(used), _each(level, groups), biases, guessed)
        case RebuiltError():
            by_set = errors_by_set(rule, used, level, simultaneous, count, guess)
            return max(error for _, error in by_set)
        case DistributionError() | RootError():
            by_edge = errors_by_edge(rule, used, level, simultaneous)
            return float(max(errors.max() for _, errors in by_edge))
        case RunError():
            return float(error_of_run(rule, used, level, simultaneous))
        case RunningError():
            if len(used) != 1 or not isinstance(used[0].law, AdditiveMechanism):
                raise _no_such_parts()
            sums = rule.sums  # the total of all periods has the largest error
            together = used[0].entries // sums.drawn_rows * sums.periods if simultaneous else 1
            worst = rule.worst(used[0].law, _each(level, together))
            return float(worst * used[0].step * sums.unit)
        case PartError():
            pass
    level = _each(level, len(used))
    if len(used) == 1 and isinstance(used[0].law, ReportMechanism):
        if count is None:
            raise needs_count((*used[0].users, used[0].name)[0])
        return used[0].law.error(level, count, used[0].entries if simultaneous else 1)
    return rule.bound([release.accuracy(level, simultaneous) for release in used])


def _each(level: Fraction, many: int) -> Fraction:
    """The level of each of several bounds that hold together (union bound)."""
    return 1 - (1 - level) / max(1, many)


def errors_by_set(
    rule: RebuiltError,
    used: Sequence[NoisyAggregate],
    level: Fraction,
    simultaneous: bool = False,
    count: float | None = None,
    guess: object = None,
) -> list[tuple[tuple[int, ...], float]]:
    """The columns of each grouping set, and a bound on the errors of its results."""
    drawn = _noises(used)
    if len(used) != rule.parts:
        raise _no_such_parts()
    groups = 1
    if simultaneous:  # of cells there are as many tables as groups
        groups = rule.groups * (used[0].entries // rule.entries)
    level = _each(level, groups)
    starts = itertools.accumulate(map(len, rule.measured[:-1]), initial=0)
    biases = [used[start].bias for start in starts]
    result = []
    for kept in rule.sets:
        noise = rule.noises(drawn, kept)
        if isinstance(rule.inner, PartError):
            error = noise.reach(0, level) * noise.unit(0)
        else:
            guessed = rule.inner.read_guess(guess, count)
            error = rule.inner.quantile(noise, level, biases, guessed)
        result.append((kept, error))
    return result


def errors_by_edge(
    rule: EdgesError,
    used: Sequence[NoisyAggregate],
    level: Fraction,
    simultaneous: bool = False,
) -> list[tuple[tuple[int, ...], NDArray[np.int64]]]:
    """The columns of each grouping set, and a bound on the error of the number of rows up to each
    edge; without grouping sets one set of no columns.
    """
    laws, groups = _of_levels(used, rule.parts), rule.groups(used[-1].entries)
    level = _each(level, groups * rule.shown if simultaneous else 1)
    return [(kept, rule.reaches(laws, level, kept)[: rule.shown]) for kept in rule.sets]


def error_of_run(
    rule: RunError, used: Sequence[NoisyAggregate], level: Fraction, simultaneous: bool = False
) -> int:
    """A bound on the error of the number of rows in some cells of each group."""
    laws, groups = _of_levels(used, rule.edges.parts), rule.edges.groups(used[-1].entries)
    noise = rule.edges.range_noise(laws, 0, rule.cells)
    return noise.quantile(level, max(1, groups) if simultaneous else 1)


def _of_levels(used: Sequence[NoisyAggregate], parts: int) -> list[AdditiveMechanism]:
    """The noise of each of this many levels."""
    laws = [release.law for release in used if isinstance(release.law, AdditiveMechanism)]
    if len(laws) != parts or len(used) != parts:
        raise _no_such_parts()
    return laws


def noise_of(used: Sequence[NoisyAggregate]) -> JointNoise:
    """The joint law of the noise of releases that it is added to. Raises `PlanMismatch` when one is
    not such a release, which is possible only in a made-up plan.
    """
    return noise_law(_noises(used))


def _noises(used: Sequence[NoisyAggregate]) -> list[Drawn]:
    """The noise of each release on its own, its step and the number of its draw."""
    parts = list[Drawn]()
    for release in used:
        noise = release.noise
        if not isinstance(noise, AdditiveMechanism):
            raise _no_such_parts()
        parts.append((noise, release.step, release.draw))
    return parts


def _no_such_parts() -> PlanMismatch:
    return PlanMismatch(
        "an output of the plan does not fit its noisy aggregates",
        remedy="plan the query again",
    )


# The parts of a plan besides its noisy vectors.

Fields: TypeAlias = "dict[str, Any]"
"""An object in the document of a plan: what it holds is known once it was read."""


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
    definition
        The operation in full.
    """

    words: str
    stability: str
    learned: tuple[str, ...] = ()
    definition: Json = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class PlanOutput:
    """One output of the plan."""

    name: str  # The name of its column, or of the first one of a table
    words: str  # How it is computed
    note: str  # How the result comes from what is released; empty where that goes without saying
    releases: tuple[int, ...]  # Which of the plan's releases it is made of, numbered from 0
    error: OutputError = field(repr=False)  # How a bound on its error follows from bounds on theirs
    definition: Json = field(default=None, repr=False)  # What it is made of in full


@dataclass(frozen=True, slots=True)
class PlanBlock:
    """One frame and its groups in a plan of several queries; its releases and outputs follow those
    of the blocks before it. All but their numbers is as in the plan of one query.
    """

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
    remarks: tuple[str, ...] = field(metadata={WRITTEN: "warnings"})
    releases: int  # How many of the plan's releases, and of its outputs, are its own
    outputs: int
    columns: tuple[PlanColumn, ...] | None = None


@dataclass(frozen=True, slots=True)
class PlanColumn:
    """A column of a protected frame that is read, with its type."""

    frame: str
    name: str
    type: str  # As Polars writes it, with a digest where that does not say all of it


@dataclass(frozen=True, slots=True, order=True)
class PlanTypical:
    """What its owner says a value of a column is like; nothing but warnings follows from it."""

    frame: str
    column: str
    value: Fraction  # Not 0


@dataclass(frozen=True, slots=True, order=True)
class PlanIdentifying:
    """A column of a frame whose rows are protected that is named as identifiers are."""

    frame: str
    column: str


@dataclass(frozen=True, slots=True)
class PlanQuery:
    """One query of a plan of several."""

    block: int  # The number of its frame and groups, from 0
    names: tuple[str, ...]  # What its outputs are called in its result
    outputs: tuple[int, ...]  # Which of the plan's outputs they are, numbered from 0


REACH: Final = 5, 2000
"""The loss under a limit is bounded for individuals with up to this many times the limit, and at
least this many rows.
"""


@dataclass(frozen=True, slots=True)
class LimitChoice:
    """A limit that may be found when a query runs."""

    n: int  # The limit
    cost: Budget  # The cost of the query under it
    # The error of its first output, with 95%, to three digits; None where the data decides.
    error: float | None
    # The fingerprint of the plan's releases under it alone, see
    # `dpframe.plan.document.earlier_fingerprint`.
    fingerprint: str
    # Its error by noise, with 95%, as a number of rows, to three digits; None in plans from before
    # limits were found by it.
    noise: float | None = None


@dataclass(frozen=True, slots=True)
class FoundLimit:
    """A limit that is found when the query runs."""

    step: str  # The verb that limits: ``"limit_rows"`` or ``"limit_groups"``
    by: tuple[str, ...]  # The columns that it is given
    share: Fraction  # The part of the spend by which it is found
    # The limits that may be found, in rising order; the plan shows the query under the last.
    choices: tuple[LimitChoice, ...]

    @property
    def is_by_loss(self) -> bool:
        """Whether the limit is found that loses least by what it drops and by noise together; or,
        in older plans, the least that all but one percent of individuals keep.
        """
        return any(choice.noise is not None for choice in self.choices)

    def words(self, n: int | str) -> str:
        """The limit as an analyst writes it."""
        by = f", by=[{', '.join(repr(name) for name in self.by)}]" if self.by else ""
        return f"{self.step}({n}{by})"


@dataclass(frozen=True, slots=True)
class ForcedError:
    """What it does to an output that something is requested."""

    output: int  # Its number, from 0
    named: bool  # Whether a mechanism is requested in it
    # Its error over the error of the plan with the least error, to three digits; None if
    # unknown.
    times: float | None


# Sentences that plans keep and that are more than routine.

NOBODY: Final = "is above 10: it protects nobody in practice"
FAILS: Final = (
    "is above 1e-5: with that probability the guarantee may "
    "fail altogether; it should be far below one over the number of individuals"
)
SCANNED: Final = (
    "its rows are scanned from a text file, where one record can make a query fail after it was "
    "charged, change how others are read, or have changed a type that was inferred; "
    "protect the path itself with a schema: session.protect(path, ..., schema={column: dtype})"
)

OWNED: Final = "each row is of the individuals who have its "


def owner_remark(here: str, there: str, name: str | None) -> str:
    """The remark that another frame identifies the owners of rows, with its name, if it has one,
    and the keys here and there.
    """
    whose = "another protected frame" if name is None else f"the frame {name!r}"
    key = repr(here) if here == there else f"{here!r} as {there!r}"
    return f"{OWNED}{key} in {whose}; rows of nobody are dropped"


def is_risk(sentence: str) -> bool:
    """Whether a sentence that a plan keeps is a risk, which reviewers decide on; the others are
    notes. Plans begin each sentence with its subject, so the end of a sentence decides.
    """
    return sentence.endswith((NOBODY, FAILS, SCANNED))


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
