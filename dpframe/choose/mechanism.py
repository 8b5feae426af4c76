"""Which mechanism releases a part, and with how much noise."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpframe.core.budget import ZCDP, ApproxDP, Budget
from dpframe.core.exact import sqrt_down
from dpframe.core.sensitivity import ExactSensitivity
from dpframe.errors import MissingKeys, UnsupportedOperation
from dpframe.mechanisms import (
    AdditiveMechanism,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Exposure,
    Law,
    NoNoise,
    PermuteAndFlip,
    RandomizedResponse,
    ReportNoisyMax,
    SelectionLaw,
    TruncatedGeometric,
)

_ROUNDING = Fraction(1, 2**36)


@dataclass(frozen=True, slots=True)
class Choice:
    """A mechanism, what it costs, and why it was chosen.

    Parameters
    ----------
    law
        The mechanism with its scale, in integer steps.
    cost
        What it charges, never more than its share.
    reason
        Why, for the plan.
    """

    law: Law
    cost: Budget
    reason: str


@dataclass(frozen=True, slots=True)
class Asked:
    """What `choose` needs to know of a part.

    Parameters
    ----------
    name
        The output, for messages.
    sensitivity
        In integer steps.
    mechanism
        ``"auto"`` or a mechanism's name.
    score_range
        For selections: the largest sum, and sum of squares, of ranges of score changes over groups.
    rounds
        For selections: how many winners are chosen, each at an equal part of the cost.
    weighted
        For selections: whether candidates stand for several points.
    responses
        For randomised response: how many categories there are, and rows per individual.
    keys
        For a choice of groups: in how many an individual may be.
    ranges
        For selections: the range of score changes in each group, where they cost most.
    candidates
        For selections: how many there are.
    shared
        For selections: whether `ranges` stand for others, see `Exposure`.
    """

    name: str
    sensitivity: ExactSensitivity
    mechanism: str = "auto"
    score_range: tuple[Fraction, Fraction] | None = None
    rounds: int = 1
    weighted: bool = False
    responses: tuple[int, int] | None = None
    keys: int | None = None
    ranges: tuple[Fraction, ...] = ()
    candidates: int = 2
    shared: bool = False

    @property
    def choices(self) -> tuple[Fraction, ...]:
        """The ranges of score changes of the choices of one round that an individual can change;
        all in one group where they are not known apart.
        """
        if self.ranges or self.score_range is None:
            return self.ranges
        return (self.score_range[0],)

    @property
    def exposure(self) -> Exposure:
        """What one individual can do to it."""
        l1, l2_squared = self.score_range or (Fraction(0), Fraction(0))
        repeats = self.rounds if self.responses is None else self.responses[1]
        repeats = repeats if self.keys is None else self.keys
        return Exposure(self.sensitivity, repeats, self.choices, l1, l2_squared, self.shared)


def choose(asked: Asked, share: Budget) -> Choice:
    """The mechanism with the least expected squared error at the given cost.

    Raises
    ------
    UnsupportedOperation
        When the mechanism that was asked for does not exist in the session's measure.
    """
    if asked.sensitivity.is_zero:
        return Choice(NoNoise(), share.of(Fraction(0)), "public: no individual can change it")
    if asked.keys is not None:
        return _keys(asked.keys, share)
    if asked.responses is not None:
        return _responses(*asked.responses, share)
    if asked.score_range is not None:
        return _selection(asked, asked.score_range, share)
    return _additive(asked, share)


def _additive(asked: Asked, share: Budget) -> Choice:
    gaussian = _gaussian(asked.sensitivity, share)
    if gaussian is not None and asked.mechanism == "auto" and _is_little(asked.sensitivity, share):
        return gaussian
    laplace = _laplace(asked.sensitivity, share)
    match asked.mechanism:
        case "discrete_laplace":
            return Choice(laplace.law, laplace.cost, "by L1, as asked")
        case "discrete_gaussian":
            if gaussian is None:
                raise UnsupportedOperation(
                    "Gaussian noise has no pure epsilon, so it needs a delta or zCDP",
                    where=f"{asked.name}: mechanism='discrete_gaussian'",
                    remedy="use mechanism='discrete_laplace', or spend a delta or rho",
                )
            return Choice(gaussian.law, gaussian.cost, "by L2, as asked")
        case _:
            if gaussian is None:
                return laplace
            return min(gaussian, laplace, key=_variance)


def _is_little(sensitivity: ExactSensitivity, share: Budget) -> bool:
    """Whether so little rho is spent on each entry that Laplace noise certainly errs more: an entry
    that moves by x scales costs x - 1 + exp(-x), which is above x**2 / 4 up to 1.6.
    """
    return isinstance(share, ZCDP) and share.main * sensitivity.linf <= sensitivity.l1


def _variance(choice: Choice) -> float:
    assert isinstance(choice.law, AdditiveMechanism)
    return choice.law.variance()


def _laplace(sensitivity: ExactSensitivity, share: Budget) -> Choice:
    """Noise by L1; it spends no delta."""
    if isinstance(share, ZCDP):
        norms = sensitivity.l2_squared, sensitivity.linf
        law = DiscreteLaplace.for_zcdp(sensitivity.l1, share.main, *norms)
        cost = _charged(share, law.rho(sensitivity.l1, *norms))
        return Choice(law, cost, "by L1, less noise here than Gaussian by L2")
    law = DiscreteLaplace.for_pure(sensitivity.l1, share.main)
    cost = share.of(law.epsilon(sensitivity.l1))
    reason = (
        "by L1; pure DP knows no Gaussian noise"
        if not share.slack
        else "by L1, less noise here than Gaussian by L2, and no delta"
    )
    return Choice(law, cost, reason)


def _gaussian(sensitivity: ExactSensitivity, share: Budget) -> Choice | None:
    """Noise by L2, where the measure knows it."""
    match share:
        case ZCDP():
            law = DiscreteGaussian.for_zcdp(sensitivity.l2_squared, share.main)
            cost = _charged(share, law.rho(sensitivity.l2_squared))
        case ApproxDP() if share.slack:
            law = DiscreteGaussian.for_approx(
                sensitivity.l0, sensitivity.l2_squared, share.main, share.slack, sensitivity.linf
            )
            cost = share
        case _:
            return None
    return Choice(law, cost, "by L2, less noise here than Laplace by L1")


def _responses(categories: int, rows: int, share: Budget) -> Choice:
    if isinstance(share, ZCDP):
        law = RandomizedResponse.for_zcdp(rows, share.main, categories)
        return Choice(law, _charged(share, law.rho(rows)), "as asked")
    law = RandomizedResponse.for_pure(rows, share.main, categories)
    return Choice(law, share.of(law.epsilon(rows)), "as asked")


def _keys(groups: int, share: Budget) -> Choice:
    if not share.slack:
        raise MissingKeys(
            "groups that nobody listed are only found with a delta",
            remedy="spend a delta, for example delta=1e-8, or list the groups with keys=[...]",
        )
    reason = "the rule by which most groups appear"
    if isinstance(share, ZCDP):
        epsilon = sqrt_down(2 * share.main / groups)
        law = TruncatedGeometric(epsilon, share.slack / groups)
        return Choice(law, share.of(law.rho(groups), law.delta(groups)), reason)
    law = TruncatedGeometric(share.main / groups, share.slack / groups)
    return Choice(law, share.of(law.epsilon(groups), law.delta(groups)), reason)


def _selection(asked: Asked, score_range: tuple[Fraction, Fraction], share: Budget) -> Choice:
    l1, _ = score_range
    each = share.main / asked.rounds
    auto = asked.mechanism == "auto"
    if asked.weighted and asked.mechanism not in ("auto", "exponential"):
        raise UnsupportedOperation(
            f"{asked.mechanism} does not draw points of an interval",
            where=f"{asked.name}: mechanism={asked.mechanism!r}",
            remedy="list candidates=, or use mechanism='exponential'",
        )
    if asked.mechanism == "exponential" or (auto and (asked.weighted or isinstance(share, ZCDP))):
        return _exponential(asked, score_range, share)
    by_name = ReportNoisyMax if asked.mechanism == "report_noisy_max" else PermuteAndFlip
    law: SelectionLaw
    if isinstance(share, ZCDP):
        law = by_name.for_pure(l1, _pure_for_rho(each))
        return Choice(law, _charged(share, asked.rounds * law.rho(l1)), "as asked")
    law = by_name.for_pure(l1, each)
    reason = "never worse than the exponential mechanism" if auto else "as asked"
    return Choice(law, share.of(asked.rounds * law.epsilon(l1)), reason)


def _exponential(asked: Asked, score_range: tuple[Fraction, Fraction], share: Budget) -> Choice:
    l1, l2_squared = score_range
    each = share.main / asked.rounds
    if isinstance(share, ZCDP):
        law = Exponential.for_zcdp(l2_squared, each)
        cost = _charged(share, asked.rounds * law.rho(l2_squared))
        return Choice(law, cost, "its bounded range costs little rho")
    law = Exponential.for_pure(l1, each)
    weighted = "a run of points with equal scores weighs as much as its length"
    return Choice(
        law, share.of(asked.rounds * law.epsilon(l1)), weighted if asked.weighted else "as asked"
    )


def _pure_for_rho(rho: Fraction) -> Fraction:
    """The epsilon whose square over two is at most rho, rounded down."""
    return sqrt_down(2 * rho)


def _charged(share: Budget, used: Fraction) -> Budget:
    """What a part costs: its share, or what it uses where its scale was raised to the least one.

    A scale that was only rounded up in its last bits charges the whole share.
    """
    return share.of(share.main if used > share.main * (1 - _ROUNDING) else used)
