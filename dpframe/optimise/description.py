"""The plan that people read, once mechanisms are chosen: its numbers, notes and remarks."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate
from typing import Final

import polars as pl

from dpframe.aggregates.aggregate import (
    BoundAggregate,
    Clamp,
    MeasurementKey,
    Output,
    Query,
    is_told,
)
from dpframe.aggregates.cdf import BoundDistribution
from dpframe.aggregates.count import UNBIASED
from dpframe.aggregates.error import MeanError, NoErrorBound, PartError, VarianceError
from dpframe.aggregates.keys import KeySelection, group_keys_in
from dpframe.aggregates.margins import Margin, by_words
from dpframe.aggregates.measurement import Additive, JointSums, Measurement, Responses, Selection
from dpframe.aggregates.nightly import NightlySums
from dpframe.aggregates.reconstructed_error import (
    DistributionError,
    EdgesError,
    OutputError,
    RebuiltError,
    RootError,
    RunError,
)
from dpframe.aggregates.reconstruction import Reconstruction, by_grouping_sets
from dpframe.aggregates.registry import bind
from dpframe.aggregates.request import UNKNOWN, Request
from dpframe.aggregates.statistics import GridSum, PairSum, SquareSum, UnitPairSum, UnitTotal
from dpframe.aggregates.values import show_value
from dpframe.core.budget import Budget
from dpframe.core.dtypes import Columns, Domain, domain_of_dtype
from dpframe.core.exact import show, show_input
from dpframe.core.interval import EVERYTHING
from dpframe.core.tree import Call, Column, Named, Tree, column_names, substitute, walk
from dpframe.core.units import Identifier, Rows
from dpframe.errors import DPFrameError
from dpframe.frames.contribution_limits import LimitGroups, LimitRows
from dpframe.frames.contributions import effects_of_limit
from dpframe.frames.definition import definition, steps_of
from dpframe.frames.facts import FrameFacts
from dpframe.frames.groups import Groups, SetGroups, digest_of_keys, digest_of_sets
from dpframe.frames.partition import steady_steps, windows_read
from dpframe.frames.per_individual import PerIndividual
from dpframe.frames.relation import Binary, Relation, Step, frames_of
from dpframe.mechanisms import (
    AdditiveMechanism,
    Choice,
    CombinedNoise,
    KeyMechanism,
    VectorMechanism,
)
from dpframe.optimise.measurements import PlannedDraw, PlannedMeasurement, Way
from dpframe.optimise.mechanisms import ChosenWay
from dpframe.optimise.queries import Place
from dpframe.plan import (
    ForcedError,
    NoisyAggregate,
    PlanColumn,
    PlanIdentifying,
    PlanOutput,
    PlanQuery,
    PlanStep,
    PlanTypical,
)
from dpframe.plan.data import FAILS, NOBODY, JointDraw, error_of_run, errors_by_edge, errors_by_set
from dpframe.plan.looks import looks_identifying
from dpframe.plan.several import all_windows, together
from dpframe.plan.types_read import types_read
from dpframe.report import Plan
from dpframe.report.notebook import domain_words, limits_words
from dpframe.rows.failures import FAILURES
from dpframe.rows.fold import domain, lower, words

# The notes of a plan: effects of limits, declarations, the source of results, and other facts
# worth knowing.

# Listed keys that no row can have, by types or by what is known of expressions.

_TWICE: Final = frozenset(
    ["dt_truncate", "dt_month_start", "dt_month_end", "str_to_lowercase", "str_to_uppercase"]
)
"""Operations that leave their own results unchanged: a key that they change cannot be one of
their results."""
_FEW: Final = 32
"""If there are at most this many possible values, the unlisted ones are named."""
_SHOWN: Final = 5


def impossible_keys(query: Query) -> Iterator[str]:
    """Sentences about listed keys that cannot occur. They follow from what the query says and from
    types alone.
    """
    groups = query.groups
    if groups is None or groups.discovered:
        return
    for named, listed in zip(groups.by, groups.keys.get_columns(), strict=True):
        columns = query.relation.facts.columns
        known = domain(named.tree, columns)
        tests = (_within(listed, known), _keeps(listed, named.tree, known, columns))
        possible = _all(tests)
        # Keys may be millions: they are compared one by one only where a test leaves some out.
        if possible is not None and not possible.all():
            wrong = listed.filter(~possible).unique(maintain_order=True)
            yield _sentence(named, wrong, listed.drop_nulls().unique(), known)


def _all(tests: Iterable[pl.Series | None]) -> pl.Series | None:
    """The values that pass all tests; a null passes."""
    masks = [test.fill_null(value=True) for test in tests if test is not None]
    return functools.reduce(operator.and_, masks) if masks else None


def _within(values: pl.Series, known: Domain) -> pl.Series | None:
    """Which are among the values, or in the interval, that the expression is known to have. Nulls
    count as possible; nothing where every value is.
    """
    if known.categories is not None:
        listed = {*known.categories, None}
        return pl.Series([value in listed for value in values.to_list()], dtype=pl.Boolean)
    if known.interval == EVERYTHING or not (known.dtype.is_integer or known.dtype.is_temporal):
        return None
    numbers, ends = values.to_physical(), known.interval
    above = None if ends.lo is None else numbers >= math.ceil(ends.lo)
    below = None if ends.hi is None else numbers <= math.floor(ends.hi)
    return _all((above, below))


def _keeps(values: pl.Series, tree: Tree, known: Domain, columns: Columns) -> pl.Series | None:
    """Which keys the outermost operation leaves as they are, if it does so with its own results."""
    if not isinstance(tree, Call) or tree.operation.name not in _TWICE or len(tree.args) != 1:
        return None
    if domain(tree.args[0], columns).dtype != known.dtype:
        return None
    again = Call(tree.operation, (Column("key"),))
    try:
        made = values.alias("key").to_frame().select(lower(again, {"key": known}).alias("key"))
        return (made.to_series() == values).fill_null(value=True)
    except (DPFrameError, *FAILURES):  # a sentence is not worth a refusal
        return None


def _sentence(named: Named, wrong: pl.Series, values: pl.Series, known: Domain) -> str:
    shown = ", ".join(show_input(value) for value in wrong.head(_SHOWN).to_list())
    more = f" and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
    said = f"no row can have the listed {'key' if len(wrong) == 1 else 'keys'} {shown}{more} of "
    said += f"{named.name!r}"
    bounds = known.bounds
    if known.categories is not None:
        said += f": the values of {words(named.tree)} are listed otherwise"
    elif bounds is not None and (inside := _within(wrong, known)) is not None and not inside.all():
        ends = (show_value(end, known.dtype) for end in bounds)
        said += f": {words(named.tree)} lies in [{', '.join(ends)}]"
    else:
        said += f": {words(named.tree)} gives other values"
    if bounds is not None and known.dtype.is_integer and bounds[1] - bounds[0] < _FEW:
        every = range(int(bounds[0]), int(bounds[1]) + 1)
        if missing := [str(n) for n in every if n not in values]:
            said += f", and {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not listed"
    return said


# Casts and formats that may turn values into nulls, which results do not show.

_FORMATS: Final = ("str_to_date", "str_to_time", "str_to_datetime", "str_to_integer")


def new_nulls(query: Query, trees: Iterable[Tree]) -> Iterator[str]:
    """What becomes null, for each cast and format in the steps of a query and in `trees`, which are
    over its last columns. Follows from types alone.
    """
    said: dict[str, None] = {}
    for step, before in query.relation.steps:
        held = list[Tree]()

        def hand_out(tree: Tree, held: list[Tree] = held) -> Tree:
            held.append(tree)
            return tree

        step.map_exprs(hand_out)
        for tree in held:
            said |= dict.fromkeys(_in_tree(tree, before.columns))
    for tree in trees:
        said |= dict.fromkeys(_in_tree(tree, query.relation.facts.columns))
    yield from said


def _in_tree(tree: Tree, columns: Columns) -> Iterator[str]:
    if not isinstance(tree, Call):
        return
    for arg in tree.args:
        yield from _in_tree(arg, columns)
    name = tree.operation.name
    if name != "cast" and name not in _FORMATS:
        return
    try:
        known = [domain(arg, columns) for arg in tree.args]
        result = tree.operation.domain([found.with_null(nullable=False) for found in known])
    except DPFrameError:  # of a step that is over columns of another frame
        return
    if not result.nullable:
        return
    source = known[0].dtype
    if name in _FORMATS:
        what = "text of another form"
    elif source.is_text and result.dtype.is_numeric:
        what = "text that is not a number"
    else:
        what = "what that type cannot hold"
    yield (
        f"{words(tree)} ({source} to {result.dtype}): {what} becomes null, and nothing tells how "
        "much does"
    )


# Notes of plans about ratios of clamped totals.


def ratio_warnings(query: Query) -> Iterator[str]:
    """Warnings for outputs that divide two clamped totals of individuals. If they are clamped
    separately, the two lose different shares, and the ratio is that of neither all nor some
    individuals.
    """
    biased = [output.name for output in query.outputs if _divides_totals(output)]
    if biased:
        verb = "is a ratio" if len(biased) == 1 else "are ratios"
        yield (
            f"{' and '.join(biased)} {verb} of totals of individuals that are clamped each by "
            "itself, which biases it where one of the two is clamped more than the other; use "
            "dp_ratio, which clamps both by one factor, or bounds that nearly nobody exceeds"
        )


def _divides_totals(output: Output) -> bool:
    """Whether totals that are clamped stand above and below a line."""
    if output.post_tree is None:
        return False
    clamped = {
        place
        for place, aggregate in output.aggregates.items()
        if any(clamp.per_unit and clamp.biases for clamp in aggregate.clamps)
    }
    return any(
        all(clamped & {*column_names(arg)} for arg in node.args)
        for node in walk(output.post_tree)
        if isinstance(node, Call) and node.operation.name == "truediv"
    )


_LEVEL: Final = Fraction(95, 100)
_SETS: Final = 8
_TOLD: Final = "dropped tells the noisy share of rows that are dropped or clamped"
_IDLE = "decides nothing here: what holds without it is as tight"


def learned_words(before: FrameFacts, after: FrameFacts) -> tuple[str, ...]:
    """The columns that a step made or narrowed, with their facts."""
    return tuple(
        f"{name}: {domain_words(found)}"
        for name, found in after.columns.items()
        if before.columns.get(name) != found
    )


def limit_words(query: Query) -> tuple[tuple[str, ...], ...]:
    """For each step, what it says about the most that one individual contributes to the query.

    Limits before a step that joins frames are left out, because they do not hold for each frame.
    """
    relation, groups = query.relation, query.groups
    said: list[tuple[str, ...]] = []
    for number, (step, before) in enumerate(relation.steps):
        later = [s for s, _ in relation.steps[number + 1 :]]
        limit = isinstance(step, (LimitRows, LimitGroups))
        if not limit or any(isinstance(s, (Binary, PerIndividual)) for s in later):
            said.append(())
            continue
        found = effects_of_limit(len(before.limits), relation.facts, groups)
        words = f"decides that in the end one individual has {', '.join(found)}"
        said.append((words if found else _IDLE,))
    return tuple(said)


def declared_words(query: Query) -> tuple[str, ...]:
    """What the data owner declared of the columns that a query uses, and of other frames."""
    said = " ".join([step.words() for step, _ in query.relation.steps])
    used = {name for tree in _trees(query) for name in column_names(tree)}
    mine, *others = frames_of(query.relation)
    found = [
        f"{name} is {words}"
        for name, words in _claims_of(mine.source)
        if name in used or any(form in said for form in (f'"{name}"', f"'{name}'", repr(name)))
    ]
    for other in {other.token: other for other in others if other.token != mine.token}.values():
        found += [f"{name} of {other.name} is {words}" for name, words in _claims_of(other.source)]
    return tuple(found)


def _claims_of(source: FrameFacts) -> Iterator[tuple[str, str]]:
    for name, found in source.columns.items():
        undeclared = domain_of_dtype(found.dtype)
        if name == source.identifier:  # rows without it are dropped
            undeclared = undeclared.with_null(False)
        if found != undeclared:
            yield name, limits_words(found, declared=True)


def _trees(query: Query) -> Iterator[Tree]:
    """The expressions of aggregates, scores and groups."""
    for request in query.requests:
        yield from _request_trees(request)
    if query.groups is not None:
        yield from (named.tree for named in query.groups.by)


def _request_trees(request: Request) -> Iterator[Tree]:
    if request.tree is not None:
        yield request.tree
    if isinstance(request.score, Request):
        yield from _request_trees(request.score)
    elif request.score is not None:
        yield request.score
    if request.denominator is not None:
        yield request.denominator


def notes_for(query: Query, releases: Sequence[NoisyAggregate]) -> tuple[str, ...]:
    """For each output, how its result comes from what is released."""
    notes = ((_note(output, releases), output) for output in query.outputs)
    return tuple(n.replace(UNBIASED, "") if _is_biased(o, query) else n for n, o in notes)


def _is_biased(output: Output, query: Query) -> bool:
    """Whether rows are dropped or weighed, or values clamped, so that results differ from those of
    all rows by more than noise.
    """
    if query.scope.norm is not None:
        return True
    frames = list(frames_of(query.relation))
    if any(isinstance(step, (LimitRows, LimitGroups)) for f in frames for step, _ in f.steps):
        return True
    columns = query.relation.facts.columns
    clamps = [clamp for aggregate in output.aggregates.values() for clamp in aggregate.clamps]
    return any(True for clamp in clamps for _ in _clamp_words(clamp, columns))


def _note(output: Output, releases: Sequence[NoisyAggregate]) -> str:
    used = [r for r in releases if output.name in r.users]
    if all(release.mechanism == "none" for release in used):
        return "exact: no individual can change it"
    if output.only is None:
        return "arithmetic of noisy results"
    aggregate, shown = output.only, ""  # the error of a result that is rebuilt, known without data
    rule = aggregate.rule if isinstance(aggregate, Reconstruction) else aggregate.error
    match rule:
        case RebuiltError(inner=PartError()):
            shown = _by_set(aggregate, rule, _in_order(aggregate, used))
        case RunError():
            error = error_of_run(rule, _in_order(aggregate, used), _LEVEL)
            shown = f"; 95% of results are within {show(error)}"
        case DistributionError() | RootError():
            shown = _by_edge(aggregate, rule, _in_order(aggregate, used))
    return aggregate.note + shown


def _by_set(aggregate: BoundAggregate, rule: RebuiltError, used: Sequence[NoisyAggregate]) -> str:
    """The error of the results of each grouping set."""
    first = replace(rule, sets=rule.sets[:_SETS])
    shown = [
        f"{show(error)}{_by_words(aggregate, kept)}"
        for kept, error in errors_by_set(first, used, _LEVEL)
    ]
    before = "before that " if aggregate.error != rule else ""
    return f"; {before}95% of results are within {', '.join(shown)}{_more_sets(rule.sets)}"


def _more_sets(sets: Sized) -> str:
    return f" and {len(sets) - _SETS} more sets" if len(sets) > _SETS else ""


def _by_words(aggregate: BoundAggregate, kept: Sequence[int]) -> str:
    """By which columns results of a set are, where there are several."""
    names = aggregate.set_names if isinstance(aggregate, Reconstruction) else None
    return "" if names is None else f" {by_words(tuple(names[i] for i in kept))}"


def _in_order(aggregate: BoundAggregate, used: Sequence[NoisyAggregate]) -> list[NoisyAggregate]:
    """The release of each part, without the choice of groups; one may be a table, and its total as
    well.
    """
    own = [release for release in used if not isinstance(release.law, KeyMechanism)]
    found = dict(zip(dict.fromkeys(aggregate.keys), own, strict=True))
    return [found[key] for key in aggregate.keys]


def _by_edge(aggregate: BoundAggregate, rule: EdgesError, used: Sequence[NoisyAggregate]) -> str:
    """The error of the worst of the numbers up to some edges, in the groups of each set."""
    inner = aggregate.inner if isinstance(aggregate, Reconstruction) else aggregate
    assert isinstance(inner, BoundDistribution)
    shown = []
    sets = rule.sets[:_SETS]
    first = replace(rule, sets=sets) if isinstance(rule, DistributionError) else rule
    for kept, reaches in errors_by_edge(first, used, _LEVEL):
        errors, by = reaches.tolist(), _by_words(aggregate, kept)
        worst, last = errors.index(max(errors)), len(errors) - 1
        few = range(last + 1) if last < _SETS else sorted({0, last // 4, last // 2, worst, last})
        shown += [
            f"{show(errors[i])} up to {inner.edge_words(i)}{' (the worst)' * (i == worst)}{by}"
            for i in ([worst] if by else few)
        ]
    return f"; 95% of numbers are within {', '.join(shown)}{_more_sets(rule.sets)}"


def error_rule(output: Output) -> OutputError:
    """How a bound on an output's error follows from bounds on the errors of its releases."""
    if output.only is None:
        return NoErrorBound(
            f"the error of {output.name!r}, {output.words}, depends on the data",
            "ask for the accuracy of its parts, or simulate it on public data",
        )
    return output.only.error


def other_units(query: Query) -> tuple[str, ...]:
    """The units of the other private frames that a query's frame is joined with."""
    mine, *others = frames_of(query.relation)
    units = {f.token: f"{f.name}: {f.source.unit.words()}" for f in others}
    units.pop(mine.token, None)
    return tuple(units.values())


def typical_of(query: Query) -> tuple[PlanTypical, ...]:
    """What was stated of the columns of its frames."""
    stated = ((frame.name, *one) for frame in frames_of(query.relation) for one in frame.typical)
    return tuple(sorted({PlanTypical(*one) for one in stated}))


def identifying(query: Query) -> tuple[PlanIdentifying, ...]:
    """The columns that are named as identifiers are, of frames whose rows are protected, or what an
    identifier says that is not named like a person.
    """
    columns = set[PlanIdentifying]()
    for frame in frames_of(query.relation):
        unit = frame.source.unit
        own = unit.column if isinstance(unit, Identifier) else None
        if own is None or not looks_identifying(own):
            named = filter(looks_identifying, frame.source.columns)
            columns |= {PlanIdentifying(frame.name, name) for name in named if name != own}
    return tuple(sorted(columns))


def remarks_for(query: Query, releases: Sequence[NoisyAggregate], cost: Budget) -> tuple[str, ...]:
    """What a reviewer should know."""
    nulls = new_nulls(query, _trees(query))
    of_values = (*_of_values(query), *nulls, *impossible_keys(query), *ratio_warnings(query))
    of_cost = []
    if cost.currency == "epsilon" and cost.main > 10:
        of_cost.append(f"epsilon {show(cost.main)} {NOBODY}")
    if cost.slack > Fraction(1, 10**5):
        of_cost.append(f"delta {show(cost.slack)} {FAILS}")
    return (*of_cost, *_of_frames(query), *of_values, *_of_groups(query, releases))


def _of_frames(query: Query) -> Iterator[str]:
    """Notes about declarations for frames, and about rows that limits drop."""
    frames = list(frames_of(query.relation))
    remarks = {(f.name, remark) for f in frames for remark in f.remarks}
    yield from (f"{name}: {remark}" for name, remark in sorted(remarks))
    promised = {f.token: f for f in frames if isinstance(f.source.unit, Rows)}
    for frame in promised.values():
        unit = frame.source.unit
        assert isinstance(unit, Rows)
        if unit.contributions > 1:
            of = f" of {frame.name}" if len(promised) > 1 else ""
            yield (
                f"that one individual owns at most {unit.contributions} rows{of} is a promise of "
                "the data owner; rows beyond it are not protected"
            )
    own = {id(step) for step, _ in query.relation.steps} if query.tells_dropped else set()
    found = {id(query.relation.steps[-1][0])} - own if query.finds_limit else set()
    limits = [s for f in frames for s, _ in f.steps if isinstance(s, (LimitRows, LimitGroups))]
    yield from _of_limits(
        [s for s in limits if id(s) not in own | found], "nothing tells how many rows are dropped"
    )
    yield from _of_limits(
        [s for s in limits if id(s) in found], "the release says about how many rows are dropped"
    )
    yield from _of_limits([s for s in limits if id(s) in own], _TOLD)
    yield from _of_first_parts(frames)
    if query.scope.norm is not None and group_keys_in(query.aggregates) is None:
        yield (
            f"limit_norm({show(query.scope.norm)}) lets rows of individuals with more count less, "
            "which biases results towards those with few and sums and counts towards 0; nothing "
            "tells by how much"
        )


def _of_first_parts(frames: Iterable[Relation]) -> Iterator[str]:
    """The facts that must not change, so that individuals are only in their first parts."""
    for frame in frames:
        steps = steady_steps(frame)
        if steps is not None:
            words = ", ".join(step.words() for step in steps)
            steady = f"; nor may what {words} makes of them change" if words else ""
            yield (
                f"parts of {frame.name}, of which one individual is in its first ones: its rows "
                f"must neither vanish nor get another date{steady}, a promise of the data owner; "
                "they may come late"
            )


def _of_limits(limits: Sequence[Step], told: str) -> Iterator[str]:
    dropping = dict.fromkeys(step.words() for step in limits)
    if dropping:
        yield (
            f"{' and '.join(dropping)} {'drop' if len(dropping) > 1 else 'drops'} rows of "
            f"individuals with more, which biases results towards those with few; {told}"
        )


def _of_values(query: Query) -> Iterator[str]:
    columns = query.relation.facts.columns
    clamps = [clamp for aggregate in query.aggregates for clamp in aggregate.clamps]
    told = [query.tells_dropped and is_told(clamp, columns) for clamp in clamps]
    for is_known, words_for_it in ((False, "nothing tells how many do"), (True, _TOLD)):
        some = [clamp for clamp, known in zip(clamps, told, strict=True) if known is is_known]
        clamped = dict.fromkeys(what for clamp in some for what in _clamp_words(clamp, columns))
        if clamped:
            verb = "is" if len(clamped) == 1 else "are"
            yield (
                f"{' and '.join(clamped)} {verb} clamped to bounds, which biases results where "
                f"values lie outside; {words_for_it}"
            )


def _of_groups(query: Query, releases: Sequence[NoisyAggregate]) -> Iterator[str]:
    """Notes about unlisted groups."""
    if query.groups is not None and query.groups.discovered:
        yield "groups of few individuals are left out, also from whatever is added up later"
    laws = [release.law for release in releases]
    if any(isinstance(law, KeyMechanism) and law.biases_numbers for law in laws):
        yield (
            "groups appear where a released number is large, so numbers of those near the "
            "threshold are too large on average, and their intervals hold less often than they say"
        )


def _clamp_words(clamp: Clamp, columns: Columns) -> Iterator[str]:
    """What is clamped although nothing says that it lies within the bounds."""
    if not clamp.biases:
        return
    known = domain(clamp.tree, columns).bounds
    if clamp.per_unit:
        yield f"each individual's total of {words(clamp.tree)}"
    elif known is None or known[0] < clamp.bounds[0] or clamp.bounds[1] < known[1]:
        yield words(clamp.tree)


# The plan of one query or several, once mechanisms are chosen: all that reviewers read of it.

# The cost of a forced mechanism or an equal division of the cost: errors compared with those of the
# plan with the least.

_OF_PARTS: Final = {MeanError: (1.0, 1.0), VarianceError: (0.25, 1.0, 0.25)}
"""What the squared errors of parts, each relative to what a row adds, do to the result's."""


def is_forced(queries: Sequence[Query], split: str) -> bool:
    """Whether mechanisms are named, or the cost is not divided for least error."""
    return split == "equal" or any(_is_named(a) for query in queries for a in query.aggregates)


def without_mechanisms(query: Query) -> Query:
    """The same query without named mechanisms. Raises `DPFrameError` if the query has no other
    mechanism.
    """
    scope = query.scope
    outputs = []
    for output in query.outputs:
        aggregates = dict(output.aggregates)
        for place, one in aggregates.items():
            if _is_named(one):
                free = bind(replace(one.request, mechanism="auto"), scope)
                aggregates[place] = by_grouping_sets(free, scope)
        outputs.append(replace(output, aggregates=aggregates))
    return replace(query, outputs=tuple(outputs))


def _is_named(aggregate: BoundAggregate) -> bool:
    return aggregate.request.mechanism != "auto"


def cost_of_forcing(
    queries: Sequence[Query],  # The queries
    # `plan`, `least`: its plan, and the plan of the same query where nothing is forced.
    plan: Plan,
    least: Plan,
) -> tuple[ForcedError, ...]:
    """The costs by output; empty if unknown."""
    found: dict[int, ForcedError] = {}
    for query, mine, others in zip(
        queries, _places(plan, queries), _places(least, queries), strict=True
    ):
        for output, here, there in zip(query.outputs, mine, others, strict=True):
            ratio = _ratio(_error(plan, plan.outputs[here]), _error(least, least.outputs[there]))
            named = any(_is_named(aggregate) for aggregate in output.aggregates.values())
            if named or ratio is not None:
                found[here] = ForcedError(here, named, ratio)
    if all(error.times is None for error in found.values()):
        return ()
    return tuple(found[number] for number in sorted(found))


def _places(plan: Plan, queries: Sequence[Query]) -> list[Sequence[int]]:
    """Which of a plan's outputs those of each query are."""
    if plan.queries:
        return [query.outputs for query in plan.queries]
    return [range(len(query.outputs)) for query in queries]


def _ratio(error: float | None, least: float | None) -> float | None:
    """To three digits, so that it is the same on all machines."""
    if error is None or least is None or not (0 < least < math.inf and 0 < error < math.inf):
        return None
    ratio = float(f"{error / least:.3g}")
    return ratio if 0 < ratio < math.inf else None


def _error(plan: Plan, output: PlanOutput) -> float | None:
    """Something that the errors of an output are in proportion to, the same in both plans."""
    releases = [plan.releases[number] for number in output.releases]
    noises = [_deviation(release) for release in releases]
    parts = _OF_PARTS.get(type(output.error))
    if parts is not None:
        if len(parts) != len(noises):
            return None
        return math.sqrt(sum(w * n * n for w, n in zip(parts, noises, strict=True)))
    if len(noises) == 1 and noises[0] and isinstance(output.error, PartError):
        return noises[0]
    with suppress(DPFrameError):  # what depends on the data
        return plan.accuracy(output.name)
    return None


def _deviation(release: NoisyAggregate) -> float:
    """The deviation of the noise, relative to what one row adds; 0 where nothing is added."""
    noise = release.noise
    if not isinstance(noise, AdditiveMechanism) or not release.exact.linf:
        return 0.0
    return math.sqrt(noise.variance()) / float(release.exact.linf)


# The plan of several queries, from those of the frames and groups that they are of.

PAYS = 0.995
"""An error must be below this factor of the error alone to count as smaller."""


def describe_together(
    plans: Sequence[Plan],  # Notes for each frame and its groups, with the cost of all
    places: Sequence[Place],  # Where the outputs of each query are
) -> Plan:
    """One plan."""
    starts = list(accumulate((len(plan.outputs) for plan in plans), initial=0))
    return together(
        plans,
        [
            PlanQuery(
                place.block,
                place.names,
                tuple(starts[place.block] + number for number in place.outputs),
            )
            for place in places
        ],
    )


def gain_words(gain: float) -> str:
    """What it does to an output's error to be rebuilt from what is drawn for several queries."""
    if gain < PAYS:
        return f"{1 / gain:.3g} times more error than by itself, so that others err less"
    return f"{gain:.3g} times less error than by itself"


# The plan of a query, once mechanisms are chosen: everything that reviewers read of it.

_AS_MUCH = 0.995
"""Noise must be below this factor to count as less."""


def build_plan(
    # `query`, `parts`: the query and the parts that it needs.
    query: Query,
    parts: Sequence[PlannedMeasurement],
    # `way`, `chosen`: how they are drawn, and the mechanisms of the draws and what is charged.
    way: Way,
    chosen: ChosenWay,
    allowed: Budget,  # What the mechanisms satisfy, in the measure of the spend
    # `requested`, `remaining`: the spend, and what the session has left.
    requested: Budget,
    remaining: Budget | None,
    split: str,  # How the cost is divided
) -> Plan:
    """The plan."""
    together = chosen.together
    releases = _releases(query, parts, way, chosen)
    groups = query.groups
    listed = None if groups is None or groups.discovered else groups
    numbers = {(use.part, use.mechanism): i for i, use in enumerate(parts)}
    outputs = tuple(
        _output(output, note, numbers)
        for output, note in zip(query.outputs, notes_for(query, releases), strict=True)
    )
    sets = {table.kept for draw in way.draws for table in draw.measurement.tables}
    # a table of a single grouping set has fewer keys, which exclude fewer windows
    by = [
        groups.margin(kept) if isinstance(groups, SetGroups) and kept is not None else groups
        for kept in sets
    ]
    grouped_by = None if groups is None else definition(groups.by)
    asked = [output.definition for output in outputs]
    return Plan(
        source=query.relation.name,
        unit=query.relation.facts.unit,
        others=other_units(query),
        declared=declared_words(query),
        steps=_steps(query),
        grouping=None if groups is None else f"{groups.words()}: {groups.origin}",
        groups=None if listed is None else listed.size,
        keys=None if listed is None else listed.list_keys(),
        keys_digest=None if groups is None else _digest_of_keys(groups, sets),
        grouped_by=grouped_by,
        best_group=query.chooses_groups,
        releases=releases,
        outputs=outputs,
        cost=together.cost,
        composition=together.composition,
        split=split,
        remarks=remarks_for(query, releases, allowed),
        requested=requested,
        remaining=remaining,
        windows=all_windows([windows_read(query.relation, one) for one in by]),
        typical=typical_of(query),
        identifying=identifying(query),
        columns=tuple(
            PlanColumn(frame, name, dtype)
            for frame, columns in types_read(query.relation, grouped_by, *asked)
            for name, dtype in columns.items()
        ),
    )


def _digest_of_keys(groups: Groups, sets: Collection[tuple[int, ...] | None]) -> str:
    """The digest of the keys; of those of each set where no table has all columns."""
    kept = [one for one in sets if one is not None and len(one) < len(groups.by)]
    if len(kept) < len(sets) or not isinstance(groups, SetGroups):
        return digest_of_keys(groups)
    margins = map(groups.margin, kept)
    return digest_of_sets(digest_of_keys(one) for one in margins if one is not None)


def entries_of(part: Measurement, query: Query) -> int:
    """How many results there are, in one group where their number is not known."""
    entries = part.entries(query.scope)
    discovered = query.groups is not None and query.groups.discovered
    return max(1, entries // UNKNOWN) if discovered else entries


def _releases(
    query: Query, parts: Sequence[PlannedMeasurement], way: Way, chosen: ChosenWay
) -> tuple[NoisyAggregate, ...]:
    """One for each part; draws are numbered in the order in which parts need them."""
    places = {
        part: (draw, choice, place)
        for draw, choice in zip(way.draws, chosen.together.choices, strict=True)
        for place, part in enumerate(draw.parts)
    }
    numbers: dict[int, int] = {}
    releases = []
    for number, use in enumerate(parts):
        draw, choice, place = places[number]
        at = numbers.setdefault(id(draw), len(numbers))
        release = _noisy_aggregate(use, choice, query, at, _joint(draw, place))
        if release.joint is not None and len(release.joint.widths) > 1:
            others = [parts[n].name for n in draw.parts if parts[n].name != use.name]
            drawn = {parts[n].part.tables[0] for n in draw.parts}
            if len(draw.parts) > 1 and draw.measurement.tables[0] not in drawn:
                others.append("the number of rows")  # although it was not requested
            others = others or ["the other numbers that it needs"]
            release = replace(release, reason=_together_words(others, chosen.gains[number]))
        else:
            if isinstance(choice.law, VectorMechanism):
                reason = "one number by itself, of individuals that are weighed"
                release = replace(release, reason=reason)
            if chosen.gains[number] < _AS_MUCH:
                paid = (
                    f"{1 / chosen.gains[number]:.3g} times more noise than if the others, which "
                    "err less for it, were not drawn together"
                )
                release = replace(release, reason=f"{release.reason}; {paid}")
        releases.append(release)
    return tuple(releases)


def _joint(draw: PlannedDraw, place: int) -> JointDraw | None:
    if draw.rebuilt is None:
        return None
    vector, rebuilt = draw.measurement, draw.rebuilt[place]
    assert isinstance(vector, JointSums)
    about = vector.widths, vector.turned, draw.sensitivity
    number = rebuilt.factors, rebuilt.divisor
    return JointDraw(*about, *number, vector.conditions, vector.kept, vector.arches)


def _together_words(others: Sequence[str], gain: float) -> str:
    """Why a number is drawn jointly with others, and how that changes its error."""
    names = ", ".join(sorted({*others}))
    if gain < _AS_MUCH:
        return (
            f"drawn together with {names}, which err less for it: {1 / gain:.3g} times more noise "
            "than by itself"
        )
    return f"drawn together with {names}: {gain:.3g} times less noise than by itself"


def _noisy_aggregate(
    use: PlannedMeasurement, choice: Choice, query: Query, number: int, joint: JointDraw | None
) -> NoisyAggregate:
    part: Measurement = use.part
    law, step = choice.law, part.step
    noise = law if joint is None else CombinedNoise.of(law, joint.factors, joint.divisor)
    statistic = part.table.statistic if isinstance(part, (Additive, Margin, NightlySums)) else None
    statistic = statistic.of if isinstance(statistic, (UnitTotal, UnitPairSum)) else statistic
    gridded = isinstance(statistic, (GridSum, SquareSum, PairSum))
    return NoisyAggregate(
        name=use.name,
        aggregate=use.role,
        sensitivity=use.sensitivity.scale(step).public(),
        mechanism=law.name,
        scale=noise.shown_scale(step),
        cost=choice.cost,
        law=law,
        step=step,
        exact=use.sensitivity,
        entries=entries_of(part, query) * (part.picks if isinstance(part, Selection) else 1),
        spread=part.spread(query.scope),
        repeats=_repeats(part, query),
        candidates=part.candidates if isinstance(part, Selection) else None,
        scores=part.score_range(query.scope) if isinstance(part, Selection) else None,
        contents=part.words(),
        reason=choice.reason,
        users=use.users,
        asked=use.mechanism,
        bias=statistic.bias if gridded and statistic is not None else Fraction(0),
        draw=number,
        joint=joint,
    )


def _repeats(part: Measurement, query: Query) -> int:
    """How often one individual meets the mechanism."""
    match part:
        case Selection():
            return part.rounds
        case KeySelection():
            return part.changed_groups(query.scope)
        case Responses():  # each row reports
            return query.scope.spread.tight[0]
        case _:
            return 1


def _output(output: Output, note: str, numbers: Mapping[MeasurementKey, int]) -> PlanOutput:
    used = {numbers[key]: None for one in output.aggregates.values() for key in one.keys}
    if not used:  # the groups alone, which are chosen by the first part
        used = {0: None}
    releases = tuple(used)
    if isinstance(output.only, (Reconstruction, BoundDistribution)):  # a vector may have its total
        releases = tuple(numbers[key] for key in output.only.keys)
    return PlanOutput(
        output.name,
        output.words,
        note,
        releases=releases,
        error=error_rule(output),
        definition=definition(contents_of(output)),
    )


def contents_of(output: Output) -> list[object]:
    """All that decides what an output is, words or not: its noisy vectors, with their clamps and
    grids, its arguments and the arithmetic after them.
    """
    contents: list[object] = []
    for aggregate in output.aggregates.values():
        contents += [part for part, _ in aggregate.keys]
        given = aggregate.request.aggregate.arguments().values()
        contents += [value for value in given if isinstance(value, pl.DataFrame)]
    if output.post_tree is not None:
        places = {name: Column(str(i)) for i, name in enumerate(output.aggregates)}
        contents.append(substitute(output.post_tree, places))
    return contents


def _steps(query: Query) -> tuple[PlanStep, ...]:
    relation = query.relation
    after = [*(facts for _, facts in relation.steps), relation.facts][1:]
    every = zip(relation.steps, after, limit_words(query), steps_of(relation), strict=True)
    steps = []
    for (step, before), facts, limits, in_full in every:
        stability = f"1-stable: {step.stability}" if step.is_one_stable else step.stability
        learned = (*limits, *learned_words(before, facts))
        steps.append(PlanStep(step.words(), stability, learned, in_full))
    return tuple(steps)
