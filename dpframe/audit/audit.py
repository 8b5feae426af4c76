"""Audits: the largest epsilon that runs of a plan on worst-case neighbours prove."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe import pipeline
from dpframe.aggregates.aggregate import Query
from dpframe.aggregates.grouping_sets import AdditiveOfSet, SelectionOfSet
from dpframe.aggregates.keys import KeySelection
from dpframe.aggregates.margins import Margin, RootSums
from dpframe.aggregates.measurement import (
    Additive,
    CellCounts,
    JointSums,
    Measurement,
    Responses,
    Selection,
)
from dpframe.aggregates.quantile import QuantilesAtOnce
from dpframe.audit.evidence import (
    best_event,
    binomial_high,
    binomial_low,
    claims_of,
    joint_scores,
    likelihood_scores,
    proved_epsilon,
)
from dpframe.audit.likelihood import (
    StatedRatios,
    differing_groups,
    entries_of,
    is_noise_alone,
)
from dpframe.audit.neighbours import Neighbours, at_once, worst_neighbours
from dpframe.core.exact import Number, exact, show_input
from dpframe.errors import UnsupportedOperation
from dpframe.frames.per_individual import rounds_of
from dpframe.progress import progress
from dpframe.release.draws import CandidateScores
from dpframe.report import Plan
from dpframe.report.plots import Chart, plot_audit
from dpframe.simulate import Exact, ExactTables, NoisyParts, draw_parts

# What a plan releases on two frames, run after run.

Floats = NDArray[np.float64]
_MOST_PLACES = 48
"""The most places of one part: few differ, and the first ones are enough."""
_MOST_ENTRIES = 1 << 20
"""This many noisy numbers are drawn at once."""
_TUPLES = 1 << 10
"""This many choices of several quantiles are, which take milliseconds each."""

Place = tuple[tuple[Measurement, str], int, int]


def outcomes(
    prepared: pipeline.Prepared,  # The plan
    pair: Neighbours,  # The neighbours
    runs: int,  # How often the plan runs on each
    shown: Callable[[int], None] = lambda _: None,  # Receives the number of finished runs
    # How many runs are drawn in one call of the noise; as many as there is room for by default.
    at_once: int | None = None,
) -> tuple[Floats, Floats]:
    """What is drawn where neighbours differ, of shape (runs, 1 + numbers) on each side.

    These are the noisy numbers and choices from which results are computed, without another look
    at data: results reveal no more than they do. The first column is the log-likelihood ratio of
    the numbers on the two sides if all noise has the stated law: no event is more informative
    about numbers that are drawn jointly.
    """
    places = list(_places(prepared, pair))
    draws, drawing = prepared.draws, Exact.of(prepared).places
    most = min(runs, at_once or runs_at_once(prepared, pair))
    stated = StatedRatios(prepared, pair.counted)
    copies = [(repeated(counted, most), CandidateScores()) for counted in pair.counted]
    made: tuple[list[Floats], list[Floats]] = ([], [])
    for start in range(0, runs, most):
        if most >= _TUPLES or not start // most % 256:
            shown(start)
        for (counted, ballots), side in zip(copies, made, strict=True):
            noisy, kept = draw_parts(drawing, draws, counted.tables, ballots)
            ratios = stated.of(noisy, kept, most)
            side.append(np.column_stack([ratios, _numbers(noisy, kept, places, most)]))
    one, other = (np.concatenate(side)[:runs] for side in made)
    return one, other


def runs_at_once(prepared: pipeline.Prepared, pair: Neighbours) -> int:
    """How many runs are drawn at once: noise of one run does not depend on another's."""
    query = pair.query
    size = next(iter(pair.counted[0].tables.values())).size
    entries = 0
    for part in (one.measurement for one in prepared.draws):
        if isinstance(part, (Responses, AdditiveOfSet, SelectionOfSet)):
            return 1
        if isinstance(part, Selection):
            if part.entries(query.scope) != size:  # groups are the candidates
                return 1
            slow = isinstance(part, QuantilesAtOnce)
            each = _MOST_ENTRIES // _TUPLES if slow else 1 if part.has_weights else part.candidates
            entries += size * each
        elif isinstance(part, RootSums) or (isinstance(part, Margin) and not part.is_by_sets):
            entries += size * part.numbers
        elif isinstance(part, JointSums):
            entries += size * len(part.widths)
        else:
            cells = part.tables[0].cells
            entries += size * (1 if cells is None else cells.size)
    return max(1, _MOST_ENTRIES // max(1, entries))


def repeated(counted: ExactTables, times: int) -> ExactTables:
    """The same exact tables several times, as if all were one with more groups."""
    if times == 1:
        return counted
    made = {}
    for place, found in counted.tables.items():
        size = found.size * times
        values = np.tile(found.values, times)
        if found.groups is None or found.cells is None:
            made[place] = CellCounts(None, None, values, size)
        else:
            shift = np.repeat(np.arange(times) * found.size, found.groups.size)
            groups = np.tile(found.groups, times) + shift
            made[place] = CellCounts(groups, np.tile(found.cells, times), values, size)
    return replace(counted, tables=made)


def _places(prepared: pipeline.Prepared, pair: Neighbours) -> Iterator[Place]:
    """The noisy numbers that the individual moves."""
    query, (one, other) = pair.query, pair.counted
    for one_draw in prepared.draws:
        part = one_draw.measurement
        key = one_draw.keys[0] if one_draw.rebuilt is None else one_draw.vector
        if isinstance(part, JointSums):
            for group in differing_groups(part, query, one, other)[:_MOST_PLACES]:
                for number in range(len(part.widths)):
                    yield key, group, number
        elif isinstance(part, (Additive, Margin, RootSums, Responses)):
            a, b = entries_of(part, one), entries_of(part, other)
            moved = sorted({place for place, _ in a.items() ^ b.items()})
            for group, cell in moved[:_MOST_PLACES]:
                yield key, group, cell
        elif isinstance(part, KeySelection):
            for group in differing_groups(part, query, one, other)[:_MOST_PLACES]:
                yield key, group, 0
        else:
            for group in differing_groups(part, query, one, other)[:_MOST_PLACES]:
                for winner in range(getattr(part, "picks", 1)):
                    yield key, group, winner


def _numbers(
    noisy: NoisyParts, kept: NDArray[np.bool_] | None, places: Sequence[Place], runs: int
) -> Floats:
    """The numbers of some runs that were drawn at once, of shape (runs, places)."""
    columns = []
    appear = None if kept is None else kept.reshape(runs, -1)
    for key, group, entry in places:
        if isinstance(key[0], KeySelection):
            assert appear is not None
            columns.append(appear[:, group].astype(np.float64))
            continue
        found = noisy[key].reshape(runs, -1, noisy[key].shape[1])[:, group, entry]
        values = found.astype(np.float64)
        columns.append(values if appear is None else np.where(appear[:, group], values, np.nan))
    return np.array(columns, dtype=np.float64).reshape(len(places), runs).T


# Releases that are drawn one by one, compared with runs that are drawn jointly.
#
# An audit draws thousands of runs in a few calls of the noise, where a release is one call. A
# mistake between calls, such as a source that starts again at each call, or a call that forgets its
# noise, shows only in releases that are drawn one by one.

MOST_CALLS: Final = 1_000
"""How many releases are drawn one by one. In addition to 10,000 runs of several numbers, which
are rarely the same twice, an audit of this many sees noise that is missing in one call of 50 with
99%, in one of 100 with 73%.
"""
_MOST_NUMBERS: Final = 64


def calls_beside(
    # `prepared`, `pair`: the plan, and the neighbours; the releases are of the first of the two
    # frames.
    prepared: pipeline.Prepared,
    pair: Neighbours,
    # What was drawn jointly of that frame, of shape (runs, 1 + numbers), see `outcomes`.
    runs: Floats,
    doubt: float,  # The probability with which a difference may be named if none exists
) -> tuple[int, tuple[str, ...]]:
    """How many releases were drawn one by one, and in what they differ from runs drawn jointly."""
    number = min(MOST_CALLS, len(runs))
    calls, _ = outcomes(prepared, pair, number, at_once=1)
    return number, differences(calls[:, 1:], runs[:, 1:], doubt)


def differences(
    # `calls`, `runs`: numbers of shape (draws, numbers).
    calls: Floats,
    runs: Floats,
    doubt: float,  # The probability with which a difference may be named if none exists
) -> tuple[str, ...]:
    """In what independent draws of one law differ from others of it, in words; nothing where they
    do not.

    Three comparisons share the doubt. How often a row equals the row before is a sum of pairs: of
    every other pair the rows are independent, so exact binomial bounds hold (Clopper and Pearson
    1934). The row that is most frequent in one half of the calls is counted in the other half, with
    the same bounds. Distribution functions of single numbers differ by less than the two bounds of
    Dvoretzky, Kiefer and Wolfowitz with the constant of Massart 1990, which hold for laws with
    atoms too.
    """
    if not calls.shape[1]:
        return ()
    share, words = doubt / 3, list[str]()
    if _is_likelier(_repeats(calls), _repeats(runs), share):
        words.append("a release repeats the one before more often than runs do")
    row, _ = Counter(map(bytes, calls[::2])).most_common(1)[0]
    if _is_likelier(_equals(calls[1::2], row), _equals(runs, row), share):
        words.append("one result comes more often than in runs, as where noise is missing")
    numbers = min(calls.shape[1], _MOST_NUMBERS)
    each = share / numbers / 2  # of one bound for the calls, and of one for the runs
    most = sum(math.sqrt(math.log(2 / each) / (2 * len(side))) for side in (calls, runs))
    if any(_distance(calls[:, i], runs[:, i]) > most for i in range(numbers)):
        words.append("a number has another distribution than in runs")
    return tuple(words)


def _repeats(rows: Floats) -> NDArray[np.bool_]:
    """Of pairs that share no row, which have two equal ones."""
    pairs = len(rows) // 2
    return _same(rows[: 2 * pairs : 2], rows[1 : 2 * pairs : 2])


def _equals(rows: Floats, row: bytes) -> NDArray[np.bool_]:
    return _same(rows, np.frombuffer(row, dtype=np.float64)[None, :])


def _same(one: Floats, other: Floats) -> NDArray[np.bool_]:
    equal = (one == other) | (np.isnan(one) & np.isnan(other))
    return np.asarray(equal.all(axis=1))


def _is_likelier(calls: NDArray[np.bool_], runs: NDArray[np.bool_], doubt: float) -> bool:
    """Whether an event is surely more likely in calls than in runs."""
    least = binomial_low(int(calls.sum()), len(calls), doubt / 2)
    return least > binomial_high(int(runs.sum()), len(runs), doubt / 2)


def _distance(one: Floats, other: Floats) -> float:
    """The largest difference of two empirical distribution functions; NaN is above all numbers."""
    one, other = np.sort(one), np.sort(other)
    points = np.concatenate([one, other])
    shares = [np.searchsorted(side, points, side="right") / len(side) for side in (one, other)]
    return float(np.abs(shares[0] - shares[1]).max())


FEWEST_RUNS, MOST_RUNS = 100, 1_000_000
_LEAST_DOUBT = Fraction(1, 10**12)
"""A confidence nearer to 1 is refused: floats compute with the rest."""
_PILOTS = {True: (24, 1_000), False: (8, 200)}
"""How many pairs are tried how often, where runs are drawn at once and where one by one."""
_OF_FEW = 4_000
"""How often, where these are few that laws have found."""
_MOST_LEARNT = 8
"""How many statistics are fitted to runs in addition to the law that a plan states."""


@dataclass(frozen=True, slots=True, eq=False)
class Audit:
    """The evidence from many runs of a plan on worst-case neighbours; see `PrivateQuery.audit`.

    An audit cannot show that a plan is private, but it can show that it is not. If the noise is
    what the plan claims, `proved` is below `claimed` with the chosen confidence. The closer the
    two are, the tighter the plan's claim. With few runs, a large epsilon or a small delta `proved`
    stays far below.

    Parameters
    ----------
    plan
        The audited plan.
    runs
        The number of runs on each of the two frames.
    confidence
        The confidence of the bound `proved`.
    claimed
        The epsilon that the plan claims at `delta`. For a plan in rho it is the best epsilon that
        is known for its mechanisms, which is below the one that rho implies.
    proved
        A lower bound on its true epsilon at `delta`, from the runs.
    delta
        The delta of (epsilon, delta); 0 in pure DP. For a plan in rho the audit tries several
        deltas and takes the one at which it proves most.
    neighbours
        The two frames, in words.
    reach
        How much each part of the plan changes between the two frames, as a share of its declared
        sensitivity: columns `part`, `l1`, `l2`. A value above 1 refutes the declared sensitivity.
    curve
        A row for each event: its share of the runs on the frame where it is more likely, `more
        likely`, and on the other frame, `other`.
    calls
        The number of further releases of one frame that were drawn singly, as `collect` does.
    differences
        How these releases differ from the runs, which are drawn in bulk; a sentence each.
    """

    plan: Plan = field(repr=False)
    runs: int
    confidence: float
    claimed: float
    proved: float
    delta: float
    neighbours: str = field(repr=False)
    reach: pl.DataFrame = field(repr=False)
    curve: pl.DataFrame = field(repr=False)
    calls: int = 0
    differences: tuple[str, ...] = ()

    @property
    def refuted(self) -> bool:
        """Whether the audit refutes the claim: it proves a larger epsilon, a part changes by more
        than its declared sensitivity, or releases that are drawn singly differ from the runs.
        """
        exceeds = any(share > 1 + 1e-9 for name in ("l1", "l2") for share in self.reach[name])
        return self.proved > self.claimed or exceeds or bool(self.differences)

    def plot(self) -> Chart:
        """The claim and the observed events, as an Altair chart. Events in the shaded part would
        refute the claim: they are too much more likely on one frame than on the other.

        Raises
        ------
        UnsupportedOperation
            When Altair is not installed.
        """
        return plot_audit(self.curve, self.claimed, self.proved, self.delta, self.runs)

    def __repr__(self) -> str:
        at = f" at delta {self.delta:g}" if self.delta else ""
        return (
            f"<Audit of {self.runs} runs: epsilon of at least {self.proved:.4g} proved, "
            f"{self.claimed:.4g} claimed{at}, {self.confidence:.4g} confidence>"
        )

    def words(self) -> str:
        """The audit as a text of a few lines."""
        at = f" at delta {self.delta:g}" if self.delta else ""
        lines = [
            f"claimed  epsilon {self.claimed:.6g}{at}",
            f"proved   epsilon {self.proved:.4g} or more, with {self.confidence:.4g} confidence, "
            f"from {self.runs} runs on each of two frames",
            f"calls    {self.calls} releases drawn one by one: "
            f"{'; '.join(self.differences) or 'nothing unlike the runs'}",
            f"verdict  {'the claim is REFUTED' if self.refuted else 'nothing against the claim'}",
            "",
            "the two frames",
            *(f"  {line}" for line in self.neighbours.splitlines()),
            "",
            "how far they move each part, as shares of its declared sensitivity",
        ]
        for part, l1, l2 in self.reach.rows():
            lines.append(f"  {part}: L1 {l1:.4g}, L2 {l2:.4g}")
        return "\n".join(lines)


def audit(prepared: pipeline.Prepared, runs: int, confidence: Number | str) -> Audit:
    """Run a plan on worst-case neighbours that are made for it, and see what that proves.

    Parameters
    ----------
    prepared
        The plan and what is needed to run it. No data is read.
    runs
        How often it runs on each of the two frames.
    confidence
        The confidence of the lower bound.

    Raises
    ------
    UnsupportedOperation
        When runs or confidence make no sense, or groups are found in several rounds.
    EngineError
        When a row that was made up makes the query fail, which must not be.
    """
    doubt = _doubt(runs, confidence)
    _require_one_round(prepared.query)
    claims = claims_of(prepared.plan)
    with progress() as shown:
        shown.stage("searching for the worst neighbours")
        pairs = worst_neighbours(prepared)
        pair = _worst(prepared, pairs, claims)

        def told(done: int) -> None:
            shown.stage(f"run {done} of {runs} on each frame")

        one, other = outcomes(prepared, pair, runs, told)
        shown.stage("drawing releases one by one")
        calls = calls_beside(prepared, pair, one, doubt / 5)
        found = _proved((one, other), claims, doubt * 4 / 5)
        return _judged(prepared.plan, pair, found, doubt, runs, calls)


def _require_one_round(query: Query) -> None:
    """Refuse to audit groups that are found in rounds: an audit draws from exact tables, which each
    round but the first has others of. Raises `UnsupportedOperation` with what to audit instead.
    """
    if rounds_of(query.relation) > 1:
        raise UnsupportedOperation(
            "an audit needs one round: the tables of later rounds depend on earlier results",
            where="audit(...)",
            remedy="audit dp_groups(rounds=1), which has the rule of each round",
        )


def _doubt(runs: int, confidence: Number | str) -> float:
    """The probability with which the bound may be too large."""
    if isinstance(runs, bool) or not isinstance(runs, int) or not FEWEST_RUNS <= runs <= MOST_RUNS:
        raise UnsupportedOperation(
            f"an audit has between {FEWEST_RUNS} and {MOST_RUNS} runs, not {show_input(runs)}",
            where="audit(runs=...)",
            remedy="write for example runs=10_000",
        )
    try:
        found = exact(confidence)
    except (TypeError, ValueError, ZeroDivisionError):
        found = Fraction(0)
    if not 0 < found < 1:
        raise UnsupportedOperation(
            f"a confidence lies between 0 and 1, {show_input(confidence)} does not",
            where="audit(confidence=...)",
            remedy="write for example confidence=0.95",
        )
    if 1 - found < _LEAST_DOUBT:
        raise UnsupportedOperation(
            f"the confidence {show_input(confidence)} is too near 1 for any number of runs",
            where="audit(confidence=...)",
            remedy="write at most confidence=0.999999999999",
        )
    return float(1 - found)


def _worst(
    prepared: pipeline.Prepared, pairs: Sequence[Neighbours], claims: Sequence[tuple[float, float]]
) -> Neighbours:
    """The pair that a few runs distinguish best; if they are alike the first, which moves
    most."""
    if is_noise_alone(prepared) or any(isinstance(p, QuantilesAtOnce) for p in at_once(prepared)):
        return pairs[0]  # the size of the move, or the laws of choices, decide already
    most, runs = _PILOTS[runs_at_once(prepared, pairs[0]) > 1]
    runs = _OF_FEW if at_once(prepared) else runs

    def told(pair: Neighbours) -> float:
        return _proved(outcomes(prepared, pair, runs), claims, 0.3).epsilon

    return max(pairs[:most], key=told)


@dataclass(frozen=True, slots=True, eq=False)
class _Proved:
    """An epsilon, the claim and delta of it, and how often events happened."""

    epsilon: float
    claimed: float
    delta: float
    curve: pl.DataFrame


def _proved(
    sides: tuple[Floats, Floats], claims: Sequence[tuple[float, float]], doubt: float
) -> _Proved:
    """What is proved, by events that are chosen from one half of the runs."""
    learn, judge = zip(*(_halves(side) for side in sides), strict=True)
    scorers = _scorers(*learn)
    learnt = [score(*learn) for score in scorers]
    judged = [score(*judge) for score in scorers]
    deltas, epsilons = zip(*claims, strict=True)
    event = best_event([s[0] for s in learnt], [s[1] for s in learnt], deltas, epsilons)
    one, other = judged[event.score]
    likelier, rarer = (other, one) if event.swapped else (one, other)
    n = min(len(one), len(other))
    hits, others = event.hits(likelier), event.hits(rarer)
    proved = proved_epsilon(hits, others, n, event.delta, doubt)
    curve = _curve(likelier, rarer)
    return _Proved(proved, dict(claims)[event.delta], event.delta, curve)


Scorer = Callable[[Floats, Floats], tuple[Floats, Floats]]


def _scorers(one: Floats, other: Floats) -> list[Scorer]:
    """Candidate test statistics for distinguishing the two frames. The first is the
    log-likelihood ratio under the stated noise. The others are fitted to some of the runs: each
    number alone, a weighted sum, the least informative number, the frequencies of values on
    either side, and all together.
    """
    numbers = one.shape[1] - 1
    if not numbers:
        return [lambda a, b: (np.zeros(len(a)), np.zeros(len(b)))]
    known = bool(np.ptp(one[:, 0]))
    one, other = one[:, 1:], other[:, 1:]
    filled = [np.nan_to_num(side, nan=0.0, posinf=0.0, neginf=0.0) for side in (one, other)]
    spread = np.maximum(np.std(np.concatenate(filled), axis=0), 1e-12)
    weights = (filled[0].mean(axis=0) - filled[1].mean(axis=0)) / spread**2

    def alone(number: int) -> Scorer:
        return lambda a, b: tuple(np.nan_to_num(s[:, number], nan=-1e300) for s in (a, b))  # type: ignore[return-value]

    def weighted(a: Floats, b: Floats) -> tuple[Floats, Floats]:
        return tuple(np.nan_to_num(s, posinf=0.0, neginf=0.0) @ weights for s in (a, b))

    def least(a: Floats, b: Floats) -> tuple[Floats, Floats]:
        """The score of the least informative number: for events on all of them."""
        middle = (filled[0].mean(axis=0) + filled[1].mean(axis=0)) / 2
        return tuple(((np.nan_to_num(s) - middle) * weights).min(axis=1) for s in (a, b))

    def likelihoods(a: Floats, b: Floats) -> tuple[Floats, Floats]:
        learnt = [(one[:, i], other[:, i]) for i in range(numbers)]
        return likelihood_scores(learnt, a, b)

    def together(a: Floats, b: Floats) -> tuple[Floats, Floats]:
        return joint_scores(one, other, a, b)

    ways = [*(alone(i) for i in range(min(numbers, 64))), weighted, least, likelihoods]
    if known and numbers > _MOST_LEARNT:
        ways = ways[:-3]  # what is learnt of this many looks better on the same runs than it is
        return [lambda a, b: (a[:, 0], b[:, 0]), *map(_of_numbers, ways)]
    if numbers == 1:  # further scores would not distinguish more
        return [_of_numbers(way) for way in ways]
    return [lambda a, b: (a[:, 0], b[:, 0]), *(_of_numbers(way) for way in (*ways, together))]


def _of_numbers(score: Scorer) -> Scorer:
    return lambda a, b: score(a[:, 1:], b[:, 1:])


def _halves(side: Floats) -> tuple[Floats, Floats]:
    """Every other run, to learn from and to judge by."""
    return side[::2], side[1::2]


def _curve(likelier: Floats, rarer: Floats) -> pl.DataFrame:
    points = np.unique(np.concatenate([likelier, rarer]))
    points = points[np.unique(np.linspace(0, points.size - 1, 200).astype(np.int64))]
    shares = {
        name: [float((side >= point).mean()) for point in points]
        + [float((side <= point).mean()) for point in points]
        for name, side in (("likelier", likelier), ("other", rarer))
    }
    return pl.DataFrame(shares, schema={"likelier": pl.Float64, "other": pl.Float64})


def _judged(
    plan: Plan,
    pair: Neighbours,
    found: _Proved,
    doubt: float,
    runs: int,
    calls: tuple[int, tuple[str, ...]],
) -> Audit:
    reach = pl.DataFrame(
        {
            "part": [r.name for r in pair.reach],
            "l1": [r.l1 for r in pair.reach],
            "l2": [r.l2 for r in pair.reach],
        },
        schema={"part": pl.String, "l1": pl.Float64, "l2": pl.Float64},
    )
    about = found.claimed, found.epsilon, found.delta, pair.words, reach, found.curve
    return Audit(plan, runs, 1.0 - doubt, *about, *calls)
