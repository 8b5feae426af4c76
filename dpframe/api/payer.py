"""What pays for queries: a budget in a ledger, the conditions to spend it, and the spend."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from fractions import Fraction
from functools import reduce
from typing import NoReturn, TypeVar

import polars as pl

from dpframe import pipeline, runner
from dpframe.aggregates.aggregate import OutputSpec, Query
from dpframe.api.release import (
    Releases,
    answers_of,
    plain_outputs,
    warn_of_queries,
    warn_of_results,
)
from dpframe.api.reuse import ONCE_MORE, ReleaseCache, ReusePolicy, new_outcome, releases_frame
from dpframe.api.source import Source, Sources, open_together
from dpframe.charge import accuracy_within, slack_beside_accuracy, spend_in, spend_within
from dpframe.core.budget import GDP, ZCDP, ApproxDP, Budget, PureDP
from dpframe.core.edition import as_the_edition_before
from dpframe.core.exact import Number, exact, nearest, show_input
from dpframe.core.parameters import Parameter
from dpframe.core.tree import visible
from dpframe.core.units import Identifier, Unit
from dpframe.core.windows import NAMES, Every, Windows, number_of
from dpframe.errors import (
    DPFrameError,
    InvalidBounds,
    InvalidBudget,
    LedgerError,
    PlanMismatch,
    UnsupportedOperation,
)
from dpframe.frames.groups import Groups
from dpframe.frames.nights import Schedule
from dpframe.frames.partition import windows_read
from dpframe.frames.relation import Relation
from dpframe.ledger.approvals import (
    KEY_VARIABLE,
    Approval,
    ApprovalKey,
    Planned,
    Requirement,
    StatedBudget,
    valid,
)
from dpframe.ledger.ledger import Ledger
from dpframe.ledger.parts import PartLedger
from dpframe.ledger.place import DEFAULT_NAME
from dpframe.ledger.scopes import WindowScope
from dpframe.ledger.streaming import Terms
from dpframe.ledger.streams import OpenedStream, StreamIsOpen, StreamOpening
from dpframe.lower.engines.polars_engine import PolarsMode
from dpframe.optimise.mechanisms import Split
from dpframe.optimise.queries import Queries
from dpframe.parse.parts import read_stream
from dpframe.plan.document import (
    earlier_fingerprint,
    says_the_same,
    stated_in,
    template_fingerprint,
)
from dpframe.plan.parameters import parameters_of
from dpframe.release import Intervals, Keep
from dpframe.report import Plan
from dpframe.report.notebook import session_html
from dpframe.report.plots import Chart, plot_budget
from dpframe.runner import Results
from dpframe.sealed import all_sealed
from dpframe.streaming import plan_stream

# The least spend whose plan has the requested accuracy.

_CONFIDENCE = Fraction(95, 100)
_DIGITS = 6
_LEAST, _MOST = Fraction(1, 2**40), Fraction(2**20)


def minimum_spend(
    query: Query | Queries,
    measure: type[Budget],
    slack: Fraction,
    wanted: Mapping[str, Number],
    split: Split = "least error",
) -> Budget:
    """The least spend, to six digits, at which the error of each named output is within its
    accuracy with 95% confidence.

    Errors fall as the spend grows, so the least one is found by halving. No data is touched.

    Parameters
    ----------
    query
        One query or several.
    measure
        `PureDP`, `ApproxDP` or `ZCDP`.
    slack
        The delta of the spend.
    wanted
        The largest error of each output, in its own units.
    split
        How the cost is divided.

    Raises
    ------
    InvalidBounds
        When an error is not a positive number.
    InvalidBudget
        When no spend gives such errors.
    UnknownColumn, UnsupportedOperation
        When an output does not exist, or its error depends on the data.
    """
    if not isinstance(wanted, Mapping):
        raise InvalidBounds(
            f"accuracy= is a dict of outputs and their errors, not {show_input(wanted)}",
            where="accuracy",
            remedy='write for example accuracy={"len": 50}',
        )
    targets = {name: _positive(name, error) for name, error in wanted.items()}
    if not targets:
        raise InvalidBudget(
            "accuracy= names no output", remedy='write for example accuracy={"len": 50}'
        )
    if not _meets(query, measure.of(_MOST, slack), targets, split):
        raise InvalidBudget(
            f"no spend makes the error of {' and '.join(map(repr, targets))} so small with 95% "
            "confidence",
            where=f"accuracy={dict(wanted)}",
            remedy=(
                "ask for the errors of counts and sums: the error of a mean depends on "
                "the number of values",
                "ask for a larger error",
            ),
        )
    low, high = _LEAST, _MOST
    while high / low > 1 + Fraction(1, 10 ** (_DIGITS + 1)):
        middle = _between(low, high)
        if _meets(query, measure.of(middle, slack), targets, split):
            high = middle
        else:
            low = middle
    return measure.of(_rounded_up(high), slack)


def _positive(name: str, error: Number) -> Fraction:
    try:
        value = exact(error)
    except (TypeError, ValueError, ZeroDivisionError):
        value = Fraction(0)
    if value <= 0:
        raise InvalidBounds(
            f"the error of {name!r} must be a number above 0, not {show_input(error)}",
            where="accuracy",
            remedy='write for example accuracy={"len": 50}',
        )
    return value


def _meets(
    query: Query | Queries, spend: Budget, targets: Mapping[str, Fraction], split: Split
) -> bool:
    try:
        if isinstance(query, Queries):
            plan = pipeline.plan_several(query, spend, None, split, compared=False).plan
        else:
            plan = pipeline.plan(query, spend, None, split, compared=False).plan
    except InvalidBudget:  # more noise than can be drawn
        return False
    return all(plan.accuracy(name, _CONFIDENCE) <= error for name, error in targets.items())


def _between(low: Fraction, high: Fraction) -> Fraction:
    """Roughly the geometric mean, if they are far from each other, in few digits."""
    if high > 4 * low:
        exponent = (high.numerator.bit_length() - high.denominator.bit_length()) + (
            low.numerator.bit_length() - low.denominator.bit_length()
        )
        guess = Fraction(2) ** (exponent // 2)
        if low < guess < high:
            return guess
    return (low + high) / 2


def _rounded_up(value: Fraction) -> Fraction:
    """The next decimal number of six digits."""
    shift = 0
    while value * Fraction(10) ** shift < 10 ** (_DIGITS - 1):
        shift += 1
    scaled = value * Fraction(10) ** shift
    return Fraction(-(-scaled.numerator // scaled.denominator)) / Fraction(10) ** shift


# Plans that need an approval before they run.

_LINES = 20
"""Lines of a difference that a message shows."""

_SAME = "nothing but what documents of earlier versions do not say"

_COMPARED = 100
"""Approved plans that another is compared with, the newest first: each takes
milliseconds, or some fifty where many parts share a cost."""


def require_approved(plan: Plan, ledger: Ledger, name: str, needed: Requirement) -> None:
    """Refuse a plan whose fingerprint is not approved for the current budget of that name.

    The charge checks this again, because an approval may be used up or revoked in between.
    """
    fingerprint, ledgers, bound = plan.fingerprint, ledger.identities, ledger.bound
    approvals = ledger.approvals
    same = needed.same(approvals, fingerprint)
    if any(needed.counting(same, ledgers, bound)):
        return
    counted = tuple(valid(approvals, needed.key))
    lapsed = [a for a in same if a in counted]
    why = (
        needed.reasons(lapsed, ledgers, bound) or _outside(plan, counted) or _nearest(plan, counted)
    )
    option = "" if name == DEFAULT_NAME else f" --name {shlex.quote(name)}"
    review = f"`dpframe approve PLAN.json --by WHO --ledger WHERE{option}`"
    written = "write it with plan.to_json(), or take the file of a job"
    remedy: str | tuple[str, str] = f"have it reviewed: {written}, then {review}"
    if not lapsed and (names := _approved_for(ledger, needed, fingerprint)):
        why = f"it is approved for {' and '.join(map(repr, names))}, not for the budget {name!r}"
        remedy = (
            f"open the session with name={names[0]!r}",
            f"have it approved for this budget: {review}",
        )
    if unsigned := len(approvals) - len(counted):
        are = "approval is" if unsigned == 1 else "approvals are"
        why += f"\n    {unsigned} {are} not signed with the key in {KEY_VARIABLE}, and cannot count"
    raise PlanMismatch(f"the plan {fingerprint[:16]} is not approved", why=why, remedy=remedy)


def _approved_for(ledger: Ledger, needed: Requirement, fingerprint: str) -> list[str]:
    """The names of other budgets for which this very plan, or a range with it, is approved."""
    return [
        name
        for name, approvals in sorted(ledger.other_approvals.items())
        if any(a.revoked is None for a in needed.same(valid(approvals, needed.key), fingerprint))
    ]


def nearest_approval(plan: Plan, approvals: Sequence[Approval]) -> tuple[Approval, str] | None:
    """The approved plan with the fewest differences, and these, in words; of several the one that
    was approved last.
    """
    newest: dict[str, Approval] = {}
    for approval in reversed(approvals):
        newest.setdefault(approval.fingerprint, approval)
    found: list[tuple[Approval, str]] = []
    for approval in list(newest.values())[:_COMPARED]:
        try:
            approved, stated = Plan.from_json(approval.document), stated_in(approval.document)
        except DPFrameError:  # written by a version that this one cannot read
            continue
        if _is_of(approval, approved, stated):
            found.append((approval, _differences(approval, approved, plan)))
    return min(found, key=lambda f: len(f[1].splitlines()), default=None)


def _differences(approval: Approval, approved: Plan, plan: Plan) -> str:
    """The differences from an approved plan and their possible consequences, without values of
    parameters that the approval covers.
    """
    given = {parameter.name: parameter for parameter in plan.parameters}
    covered = [n for n, found in approval.allowed if n in given and found.covers(given[n])]
    lines = approved.diff(plan).splitlines()
    if not covered:
        return "\n".join(lines)
    values = [f"parameter {one.words()} -> " for one in approved.parameters if one.name in covered]
    left_out = (*map(visible, values), "known after ", "reads ")
    return "\n".join(line for line in lines if not line.startswith(left_out))


def planned(plan: Plan) -> Planned:
    """What approvals of other fingerprints look at in a plan."""
    made: dict[tuple[tuple[str, str], ...], str] = {}
    same: dict[int, bool] = {}

    def template(allowed: Mapping[str, str]) -> str:
        known = tuple(sorted(allowed.items()))
        if known not in made:
            made[known] = template_fingerprint(plan, allowed)
        return made[known]

    def is_same(approval: Approval) -> bool:
        if approval.number not in same:
            same[approval.number] = _says_the_same(approval, plan)
        return same[approval.number]

    return Planned(plan.parameters, template, is_same)


def _says_the_same(approval: Approval, plan: Plan) -> bool:
    """Whether an approval that the edition before recorded is of a plan that says all that this one
    does but types of columns. That edition's fingerprint did not cover all that a reviewer saw, so
    the document that was approved is compared.
    """
    allowed = {name: found.words for name, found in approval.allowed}
    try:
        if allowed:
            earlier = template_fingerprint(plan, allowed, earlier=True)
        else:
            earlier = earlier_fingerprint(plan)
        if approval.fingerprint != earlier:
            return False
        return says_the_same(Plan.from_json(approval.document), plan, allowed)
    except (DPFrameError, KeyError):
        return False


def _is_of(approval: Approval, plan: Plan, stated: str) -> bool:
    """Whether a document holds what was approved: the plan, or one of the range."""
    if not approval.allowed:
        return approval.fingerprint == stated
    allowed = {name: found.words for name, found in approval.allowed}
    try:
        made = [template_fingerprint(plan, allowed, earlier=e) for e in (False, True)]
    except KeyError:
        return False
    return approval.fingerprint in made


def _outside(plan: Plan, approvals: Sequence[Approval]) -> str:
    """The values of a plan that lie outside all approvals of otherwise equal plans."""
    given = {parameter.name: parameter for parameter in plan.parameters}
    for approval in reversed(approvals):
        if approval.allowed and _is_of(approval, plan, ""):
            wrong = [
                f"{name} is {given[name].value_words}, and the approval is for {found.words}"
                for name, found in approval.allowed
                if not found.covers(given[name])
            ]
            return ", ".join(wrong)
    return ""


def _nearest(plan: Plan, approvals: Sequence[Approval]) -> str:
    found = nearest_approval(plan, approvals)
    if found is None:
        return "the ledger has no approved plan to compare it with"
    approval, words = found
    lines = words.splitlines() or [_SAME]
    more = [f"and {len(lines) - _LINES} more"] if len(lines) > _LINES else []
    return (
        f"it differs from {approval.fingerprint[:16]}, which {approval.by} approved on "
        f"{approval.time:%Y-%m-%d}:" + "".join(f"\n    {line}" for line in [*lines[:_LINES], *more])
    )


@dataclass(frozen=True, slots=True)
class Spend:
    """Amounts, or the accuracy that they should buy."""

    epsilon: Number | None = None  # As for `PrivateQuery.plan`
    delta: Number | None = None
    rho: Number | None = None
    accuracy: Mapping[str, Number] | None = None
    split: Split = "least error"

    def __post_init__(self) -> None:
        if self.split not in ("least error", "equal"):
            raise InvalidBudget(
                f"split={self.split!r} is not known",
                where=f"split={self.split!r}",
                remedy=(
                    'write split="least error" or split="equal"',
                    "write weight= in dp expressions",
                ),
            )

    def fields(self) -> tuple[object, ...]:
        """All of it, exactly, as JSON has it."""
        amounts = [
            None if a is None else str(exact(a)) for a in (self.epsilon, self.delta, self.rho)
        ]
        wanted = self.accuracy
        by_name = None if wanted is None else [[n, str(exact(wanted[n]))] for n in sorted(wanted)]
        return (*amounts, by_name, self.split)

    def within(
        self,
        query: Query | Queries,
        measure: type[Budget],
        remaining: Budget | None = None,
        *,
        counted_apart: bool = False,
    ) -> Budget:
        """The spend in a measure.

        Parameters
        ----------
        query
            The query or queries to spend on, which determine what an accuracy costs.
        measure
            The measure of the session.
        remaining
            What the session has left, for messages.
        counted_apart
            Whether the session adds up rho or mu squared for plans that satisfy (epsilon, delta).
        """
        amounts = self.epsilon, self.delta, self.rho
        if self.accuracy is None:
            if counted_apart:
                assert remaining is not None
                return spend_within(*amounts, remaining)
            return spend_in(measure, *amounts, remaining)
        if counted_apart:
            measure, slack = accuracy_within(*amounts)
        else:
            slack = slack_beside_accuracy(measure, *amounts)
        return minimum_spend(query, measure, slack, self.accuracy, self.split)


# -- The payer ------------------------------------------------------------------------------------


Made = TypeVar("Made", pipeline.Prepared, pipeline.PreparedTogether)


@dataclass(slots=True, eq=False)
class Payer:
    """A budget in a ledger, and the conditions on which it is spent: what a session is inside."""

    ledger: Ledger  # What plans are charged to
    measure: type[Budget]  # In which it counts
    # Whether it adds up rho or mu squared for plans that satisfy (epsilon, delta).
    counts_apart: bool
    name: str | None = None  # The session's name, which plans show and approvals are kept under
    needs_approval: bool = False  # Whether it pays only for approved plans
    keeps: bool = False  # Whether what it pays for is kept
    # The frames that were given each name.
    names: dict[str, Source] = field(default_factory=dict, repr=False)
    # The frame that each stream was opened of first, by its token.
    streamed: dict[str, int] = field(default_factory=dict, repr=False)
    unit: Unit | None = None  # The protected unit; None while nothing is protected
    # For a part of a divided frame: the payer of the whole frame.
    whole: Payer | None = field(default=None, repr=False)
    parameters: tuple[Parameter, ...] = ()  # What the job was given that it pays for
    # The frames for which the analyst was warned that dpframe chose a limit.
    warned: set[int] = field(default_factory=set, repr=False)

    @property
    def budget(self) -> Budget:
        """The budget as it was given, with what was granted later; of a part, what it could use."""
        within = self.ledger.within if self.whole is None else None
        return within or self.ledger.budget

    @property
    def discovers(self) -> bool:
        """Whether unlisted groups can be chosen privately: not in pure DP."""
        return self.measure is not PureDP

    def of_part(self, ledger: PartLedger) -> Payer:
        """Who pays for one part of a frame: it charges this payer in turn."""
        return replace(self, ledger=ledger, whole=self)

    def responsible_for(self, owner: Payer | None) -> Payer:
        """Who pays for a query or frame of `owner`: this one, or one of a part of it."""
        at = owner
        while at is not None and at is not self:
            at = at.whole
        if owner is not None and at is self:
            return owner
        if owner is None and self.whole is None:
            return self
        raise InvalidBudget(
            "the query belongs to no session, and the session of a part pays for that part only"
            if owner is None
            else "the query or frame belongs to another session",
            remedy="use it in the session that protects its frame",
        )

    def prepare(self, queries: Queries, spend: Spend) -> pipeline.PreparedTogether:
        """One plan of queries at a spend, and what is needed to run it; nothing is charged."""
        self._require_kind(queries.queries)
        if self.ledger.per is None:
            remaining = self.ledger.remaining
        else:  # in the windows whose rows they may read
            read = [windows_read(query.relation, query.groups) for query in queries.queries]
            windows = reduce(Windows.hull, [found for found in read if found])
            remaining = self.remaining_in(windows)
        budget = spend.within(queries, self.measure, remaining, counted_apart=self.counts_apart)
        charged_in = self.measure if self.counts_apart else None
        return self._stating(
            pipeline.plan_several(queries, budget, remaining, spend.split, charged_in=charged_in)
        )

    def prepare_stream(self, query: Query, schedule: Schedule, spend: Spend) -> pipeline.Prepared:
        """The plan of a stream at a spend for all its periods; nothing is charged."""
        self._require_kind([query])
        pure = self.measure is PureDP or (self.measure is ApproxDP and not spend.delta)
        by_period = read_stream(query, schedule, pure)
        remaining = self.ledger.remaining
        budget = spend.within(by_period, self.measure, remaining, counted_apart=self.counts_apart)
        charged_in = self.measure if self.counts_apart else None
        made = plan_stream(
            by_period, schedule, budget, remaining, spend.split, charged_in=charged_in
        )
        return self._stating(made)

    def open_stream(self, prepared: pipeline.Prepared, opening: StreamOpening) -> OpenedStream:
        """The stream as the ledger has it; a new stream is charged."""
        book = self.ledger.streams
        found = book.find(opening.name)
        if found is None:
            pipeline.require_sound(pipeline.alone(prepared))
            approval = self._approved(prepared.plan)
            unit = prepared.query.relation.facts.unit
            plan = prepared.plan
            book.contents.prepare_rows()
            with suppress(StreamIsOpen):  # by another process, just now
                number = self.ledger.charge(
                    plan.cost, plan.fingerprint, unit.kind, approval, stream=opening
                )
                self.ledger.settle(number, "released")
            self.unit = unit
            found = book.find(opening.name)
        assert found is not None
        if found.definition != opening.definition and not opening.asks_the_same(found):
            raise LedgerError(
                f"the stream {opening.name!r} was opened with another query, schedule or spend",
                where="session.stream(...)",
                remedy=(
                    "open it with the same query, schedule and spend",
                    "give the new stream another name",
                ),
            )
        return book.bind(opening.name, opening.types or ())

    def release(
        self,
        queries: Queries,
        sources: Sequence[Source | Sources],
        spend: Spend,
        interval: Intervals | None = None,
        engine: PolarsMode = "auto",
        repeat: ReusePolicy = ONCE_MORE,
    ) -> Releases:
        """Charge the budget, run the queries on their data and add noise; or hand out results that
        are kept.
        """
        prepared = self.prepare(queries, spend)
        before = warn_of_queries(queries.queries)
        tokens = [query.relation.token for query in prepared.queries]
        blocks = [place.block for place in prepared.places]
        data = [sources[blocks.index(block)] for block in range(len(tokens))]

        def run(keep: Keep | None) -> Results:
            executions = open_together(data, tokens, engine)
            needed = self._approved(prepared.plan)
            return runner.run(prepared, executions, self.ledger, interval, needed, keep)

        def prepare_before() -> pipeline.PreparedTogether:
            with as_the_edition_before():
                return self.prepare(queries, spend)

        if self.keeps:
            about = queries.queries, prepared.plan, interval, repeat, lambda: prepare_before().plan
            done = ReleaseCache(self.ledger.keeping, *about).done(run)
        elif repeat.reuse == "never":
            done = new_outcome(run(None))
        else:
            raise UnsupportedOperation(
                "the session keeps no releases, so there is nothing to reuse",
                where=f"reuse={repeat.reuse!r}",
                remedy="open it with dp.Session(..., keep_releases=True)",
            )
        if done.is_before:
            prepared = prepare_before()
        self.unit = queries.queries[0].relation.facts.unit
        found, place = prepared.under(done.place), done.place
        after = warn_of_results(found, done.frames, done.doubts, place, self.warned)
        warnings = [tuple(dict.fromkeys((*a, *b))) for a, b in zip(before, after, strict=True)]
        answers = [answers_of(*one) for one in found.queries_and_laws()]
        if prepared.limits is not None and place is None:
            # versions before did not record under which limit a result was computed
            answers = [{} for _ in answers]
        plain = [plain_outputs(query) for query in queries.queries]
        releases = done.released(prepared.plan, answers, plain, warnings)
        is_found = prepared.limits is not None
        under = prepared.option(place).plan if is_found and place is not None else None
        return releases.after(prepared.limit_words(done.frames[0], place), under)

    def is_name(self, name: str | None, source: Source) -> bool:
        """Whether a frame that is protected was given a name that no other one has."""
        if not name:
            return False
        return self.names.setdefault(name, source).is_same(source)

    def _require_kind(self, queries: Sequence[Query]) -> None:
        """Refuse queries that protect another kind of unit than the session, or each other."""
        unit = queries[0].relation.facts.unit if self.unit is None else self.unit
        for query in queries:
            other = query.relation.facts.unit
            if unit.kind != other.kind:
                whose = "the session" if self.unit is not None else "another query"
                raise UnsupportedOperation(
                    f"{whose} protects {unit.kind}, and the query {other.kind}: their costs do "
                    "not add up",
                    remedy="open another session for this kind of unit",
                )
        require_windows(unit, self.ledger.per)
        self.ledger.require_unit(unit.kind)

    def remaining_in(self, windows: Windows) -> Budget:
        """What is left in some windows, of a budget that is for each of them."""
        return self.ledger.in_scope(WindowScope(windows)).left

    def _stating(self, prepared: Made) -> Made:
        """The plan with the budget that it is to be charged to."""
        identity = next(reversed(self.ledger.identities), None)
        bound, per = self.ledger.bound, self.ledger.per
        budget = StatedBudget(self.ledger.name, identity, bound.whole, bound.counted, per)
        prepared = pipeline.with_physical(pipeline.stating(prepared, budget))
        prepared = pipeline.with_parameters(prepared, self._given(prepared.plan))
        windows = prepared.plan.windows
        if per is not None and windows is not None:
            return pipeline.with_remaining(prepared, self.remaining_in(windows))
        if isinstance(self.ledger, PartLedger):
            return pipeline.on_part(prepared, self.ledger.share(prepared.plan.cost))
        return prepared

    def terms(self, plan: Plan) -> Terms:
        """On what terms a stream of that plan draws in this session."""
        key = ApprovalKey.from_environment() if self.needs_approval else None
        return Terms(Requirement(key, planned(plan)), self.needs_approval)

    def _approved(self, plan: Plan) -> Requirement | None:
        """What the charge has to find an approval by, where one is needed."""
        if not self.needs_approval:
            return None
        needed = Requirement(ApprovalKey.from_environment(), planned(plan))
        require_approved(plan, self.ledger, self.name or DEFAULT_NAME, needed)
        return needed

    def __reduce__(self) -> NoReturn:
        raise TypeError("what a session pays with cannot be pickled or copied")

    def _given(self, plan: Plan) -> tuple[Parameter, ...]:
        """The parameters of the job and those that only the plan names."""
        found = {parameter.name: parameter for parameter in self.parameters}
        try:
            named = parameters_of(plan)
        except ValueError as error:
            raise _two_values(str(error)) from None
        for name, parameter in named.items():
            if found.setdefault(name, parameter) != parameter:
                raise _two_values(name)
        return tuple(found[name] for name in sorted(found))


def require_windows(unit: Unit, per: Every | None) -> None:
    """Refuse a unit that a budget for each window of time does not go with."""
    if per is None or (isinstance(unit, Identifier) and unit.window == per):
        return
    raise InvalidBudget(
        f"the budget is for each {NAMES[per]}, and the unit is {unit.kind}: a person's "
        f"rows may then be in more than one {NAMES[per]}",
        where=f"per={per!r}",
        remedy=f'write unit=dp.Identifier("user", window={per!r}, time="at")',
    )


def _two_values(name: str) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"the query has two values of the parameter {name!r}",
        where=f"dp.parameter({name!r}, ...)",
        remedy="create the parameter once, and use that value everywhere",
    )


def prepare_for(payer: Payer | None, query: Query, spend: Spend) -> pipeline.Prepared:
    """The plan of one query, in the measure of the payer, or of the spend if there is no payer."""
    if payer is not None:
        prepared = payer.prepare(Queries((query,)), spend)
        return replace(prepared.parts[0], plan=prepared.plan)
    measure = ZCDP if spend.rho is not None else PureDP if spend.delta is None else ApproxDP
    return pipeline.plan(query, spend.within(query, measure), None, spend.split)


@dataclass(frozen=True, slots=True, eq=False)
class ProtectedRows:
    """Rows of protected frames, and the payer of their queries."""

    relation: Relation  # What is known of the rows without reading them, and how they are made
    source: Source | Sources = field(repr=False)  # Where they are
    payer: Payer | None = field(repr=False)  # Who pays; None for rows that belong to no session

    def ask(self, groups: Groups | None, specs: Iterable[OutputSpec]) -> Query:
        """A query of some outputs, by group if there are groups; nothing runs."""
        where = self.source.blueprint(self.relation.token)
        check = None if where is None else where.require_runs
        return pipeline.ask(self.relation, groups, specs, check)

    def __reduce__(self) -> NoReturn:
        raise TypeError("protected rows cannot be pickled or copied out of their session")


# -- The budget of a session ----------------------------------------------------------------------


@all_sealed
class SessionBudget:
    """The budget of a `Session`: what is left of it, and what it was spent on."""

    def __init__(self, payer: Payer) -> None:
        self._payer = payer

    @property
    def budget(self) -> Budget:
        """The whole budget, with all amounts that were granted later.

        For a part: the amount that it was charged plus the amount that it can still be charged,
        which other parts change.
        """
        return self._payer.budget

    @property
    def spent(self) -> Budget:
        """The exact sum of all charges, those of other processes included.

        With ``composition="zcdp"`` it is in rho, with ``"gdp"`` in mu squared, as is `remaining`.
        """
        return self._payer.ledger.spent

    @property
    def remaining(self) -> Budget:
        """The remaining budget; 0 once the budget was closed."""
        return self._payer.ledger.remaining

    def remaining_in(self, day: date | None) -> Budget:
        """The remaining budget of the window that contains a day, where the session has one
        budget per window; None is the window of rows without a time.

        Parameters
        ----------
        day
            A date, or a datetime as the clocks of the data's zone show it.

        Raises
        ------
        InvalidBudget
            When the session has one budget for all time.
        """
        every = self._payer.ledger.per
        if every is None:
            raise InvalidBudget(
                "the session has one budget for all time",
                where="session.remaining_in(...)",
                remedy=(
                    "use session.remaining",
                    'open the session with dp.Session(..., per="1mo")',
                ),
            )
        if day is None:
            return self._payer.remaining_in(Windows(every, 0, -1))
        if not isinstance(day, date):
            raise InvalidBudget(
                f"{show_input(day)} is not a day",
                where="session.remaining_in(...)",
                remedy="give a datetime.date",
            )
        number = number_of(every, day)
        return self._payer.remaining_in(Windows(every, number, number, without=False))

    @property
    def history(self) -> pl.DataFrame:
        """One row per charge: `time`, `fingerprint`, `epsilon`, `delta`, `rho`, `status`. If
        known, the columns `user`, `host`, `process`, `job` and `run` state who was charged.

        Charges of other processes that use the ledger are included. Amounts are in the measure of
        the charge: with ``composition="zcdp"`` rho and no epsilon, with ``"gdp"`` only a last
        column `mu_squared`.

        For a budget per time window, an amount is the increase of the largest amount spent in any
        window. Two more columns, `windows` and `in_each`, list the charged windows and the amount
        for each. These amounts are for a person's rows in one window; for a person with rows in n
        of them epsilon is n times as large.
        """
        entries, measure = self._payer.ledger.entries, self._payer.measure
        mains = [nearest(e.cost.main) for e in entries]
        none: list[float | None] = [None] * len(entries)
        amounts: dict[str, Sequence[float | None]] = {measure.currency: mains}
        columns = {
            "time": pl.Series([e.time for e in entries], dtype=pl.Datetime("us", "UTC")),
            "fingerprint": pl.Series([e.fingerprint for e in entries], dtype=pl.String),
            "epsilon": pl.Series(amounts.get("epsilon", none), dtype=pl.Float64),
            "delta": pl.Series([nearest(e.cost.slack) for e in entries], dtype=pl.Float64),
            "rho": pl.Series(amounts.get("rho", none), dtype=pl.Float64),
            "status": pl.Series([e.status for e in entries], dtype=pl.String),
            "user": pl.Series([e.caller.user for e in entries], dtype=pl.String),
            "host": pl.Series([e.caller.host for e in entries], dtype=pl.String),
            "process": pl.Series([e.caller.process for e in entries], dtype=pl.Int64),
            "job": pl.Series([e.caller.job for e in entries], dtype=pl.String),
            "run": pl.Series([e.caller.run for e in entries], dtype=pl.String),
        }
        if any(isinstance(e.scope, WindowScope) for e in entries):
            whole = [
                nearest(e.amounts[-1].main) if e.amounts else nearest(e.cost.main) for e in entries
            ]
            words = [
                e.scope.windows.words() if isinstance(e.scope, WindowScope) else None
                for e in entries
            ]
            columns["windows"] = pl.Series(words, dtype=pl.String)
            columns["in_each"] = pl.Series(whole, dtype=pl.Float64)
        if measure is GDP:
            columns["mu_squared"] = pl.Series(mains, dtype=pl.Float64)
        return pl.DataFrame(columns)

    def releases(self) -> pl.DataFrame:
        """One row per kept result of the budget, including those of other processes:
        `fingerprint` of the plan, `time` in UTC, `frame`, `cost` and `query` in words. `run`,
        `periods` (of a stream, or the part or windows that were charged) and `parameters` are set
        where the result has them, and `number` is the number of its charge.

        The same query with ``reuse="same"`` returns a stored result again, and ``dpframe ledger
        restore`` writes it to a file.
        """
        return releases_frame(self._payer.ledger.keeping)

    def plot(self) -> Chart:
        """The spent budget over time, as an Altair chart: `history` added up, below the budget.

        Raises
        ------
        UnsupportedOperation
            When Altair is not installed.
        """
        payer = self._payer
        most = nearest(payer.ledger.budget.main)
        return plot_budget(self.history, payer.measure.currency, most, payer.name)

    def __reduce__(self) -> NoReturn:
        raise UnsupportedOperation(
            "a session cannot be pickled or copied: a copy would spend the same budget again",
            where="session",
            remedy="pass the session itself",
        )

    def __repr__(self) -> str:
        payer = self._payer
        label = "" if payer.name is None else f" {payer.name!r}"
        where = payer.ledger.where
        try:
            left, whole = self.remaining.words(), payer.ledger.budget.words()
            if payer.ledger.per is not None:
                whole += f" in the {NAMES[payer.ledger.per]} with the least left"
            if payer.counts_apart and payer.whole is None:
                whole += f" (for {self.budget.words()}, added up in {payer.measure.currency})"
        except LedgerError as error:
            return f"<Session{label}: {where}; {error.what}>"
        return f"<Session{label}: {left} of {whole} remains, {where}>"

    def _repr_html_(self) -> str:
        return session_html(self, self._payer.name, self._payer.ledger.where)


def payer_of(session: SessionBudget) -> Payer:
    """Who pays for what belongs to a session."""
    return session._payer
