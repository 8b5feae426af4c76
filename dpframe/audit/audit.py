"""Audits: the largest epsilon that runs of a plan on worst-case neighbours prove."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe import pipeline
from dpframe.aggregates.quantiles_at_once import QuantilesAtOnce
from dpframe.aggregates.query import Query
from dpframe.audit.beside import at_once
from dpframe.audit.calls import calls_beside
from dpframe.audit.claims import claims_of
from dpframe.audit.evidence import best_event, joint_scores, likelihood_scores, proved_epsilon
from dpframe.audit.neighbours import Neighbours, worst_neighbours
from dpframe.audit.outcomes import outcomes, runs_at_once
from dpframe.audit.stated import is_noise_alone
from dpframe.core.exact import Number, as_given, exact
from dpframe.errors import UnsupportedOperation
from dpframe.frames.without_found import rounds_of
from dpframe.progress import progress
from dpframe.report import Plan
from dpframe.report.plots import plot_audit

FEWEST_RUNS, MOST_RUNS = 100, 1_000_000
_PILOTS = {True: (24, 1_000), False: (8, 200)}
"""How many pairs are tried how often, where runs are drawn at once and where one by one."""
_OF_FEW = 4_000
"""How often, where these are few that laws have found."""
_MOST_LEARNT = 8
"""How many statistics are fitted to runs in addition to the law that a plan states."""

Floats = NDArray[np.float64]


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

    def plot(self) -> Any:
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
    doubt = 1.0 - _checked(runs, confidence)
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
    round but the first has others of.

    Raises
    ------
    UnsupportedOperation
        With what to audit instead.
    """
    if rounds_of(query.relation) > 1:
        raise UnsupportedOperation(
            "an audit needs one round: the tables of later rounds depend on earlier results",
            where="audit(...)",
            remedy="audit dp_groups(rounds=1), which has the rule of each round",
        )


def _checked(runs: int, confidence: Number | str) -> float:
    if isinstance(runs, bool) or not isinstance(runs, int) or not FEWEST_RUNS <= runs <= MOST_RUNS:
        raise UnsupportedOperation(
            f"an audit has between {FEWEST_RUNS} and {MOST_RUNS} runs, not {as_given(runs)}",
            where="audit(runs=...)",
            remedy="write for example runs=10_000",
        )
    try:
        found = exact(confidence)
    except (TypeError, ValueError, ZeroDivisionError):
        found = Fraction(0)
    if not 0 < found < 1:
        raise UnsupportedOperation(
            f"a confidence lies between 0 and 1, {as_given(confidence)} does not",
            where="audit(confidence=...)",
            remedy="write for example confidence=0.95",
        )
    return float(found)


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
