"""Which groups appear: the optimal private selection of partitions by numbers of individuals."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Final

from dpframe.core.budget import ZCDP, Budget
from dpframe.core.exact import exact, float_up, sqrt_down
from dpframe.errors import InvalidBudget
from dpframe.kernel import plan as kernel
from dpframe.mechanisms.exposure import Exposure
from dpframe.mechanisms.key_mechanism import KeyMechanism, slack_of
from dpframe.mechanisms.mechanism import Choice
from dpframe.mechanisms.noise import appearance_chances
from dpframe.mechanisms.rounding import positive_budget
from dpframe.mechanisms.tasks import KeyTask
from dpframe.samplers.coins import ONE

if TYPE_CHECKING:
    from dpframe.accounting.events import AnyEvent


_MOST: Final = 1 << 22
"""Groups of this many individuals would have to be distinguished: more than is worth while."""


@dataclass(frozen=True, slots=True)
class TruncatedGeometric(KeyMechanism):
    """A group with n individuals appears with probability p(n), the largest that is private:

        p(0) = 0,  p(n + 1) = min(exp(epsilon) p(n) + delta,
                                  1 - exp(-epsilon) (1 - p(n) - delta), 1).

    For one group that one individual may be in or not this is (epsilon, delta)-differentially
    private, and no rule with this guarantee lets any group appear more often (Desfontaines, Voss
    and Gipson 2022, Theorem 1). It is truncated geometric noise and a threshold. An individual in
    g groups pays g epsilon and g delta.

    The recursion is computed in multiples of 2**-128, with a rational number below exp(epsilon) and
    rounded down, so that both inequalities hold of the numbers that coins are thrown with.

    Parameters
    ----------
    row_epsilon, row_delta
        What one individual in one group costs.

    Raises
    ------
    InvalidBudget
        When so little is spent that almost no group could appear.
    """

    row_epsilon: Fraction
    row_delta: Fraction
    name: ClassVar[str] = "truncated_geometric"

    @property
    def kernel_law(self) -> kernel.Law:
        """The same for the kernel."""
        return kernel.Geometric(self.row_epsilon, self.row_delta)

    def __post_init__(self) -> None:
        positive_budget(self.row_epsilon, "epsilon")
        positive_budget(self.row_delta, "delta")
        # the table ends after about 2 ln(epsilon / delta) / epsilon steps
        rate = float(max(_LEAST, min(self.row_epsilon, Fraction(100))))
        slack = float(max(self.row_delta, _LEAST))
        if self.row_delta < _LEAST or math.log1p(rate / slack) / rate > _MOST / 4:
            raise InvalidBudget(
                "the spend is too small to find groups: almost none would appear",
                remedy=(
                    "spend more epsilon or delta",
                    "list the groups: group_by(..., keys=[...])",
                ),
            )

    @classmethod
    def fitted(cls, task: KeyTask, share: Budget) -> Choice:
        """Each group of an individual at an equal part of epsilon or rho, and of delta."""
        slack_of(share)
        groups, reason = task.groups, "the rule by which most groups appear"
        if isinstance(share, ZCDP):
            law = cls(sqrt_down(2 * share.main / groups), share.slack / groups)
            return Choice(law, share.of(law.rho(groups), law.delta(groups)), reason)
        law = cls(share.main / groups, share.slack / groups)
        return Choice(law, share.of(law.epsilon(groups), law.delta(groups)), reason)

    @property
    def scale(self) -> Fraction:
        """The scale of the equivalent geometric noise."""
        return 1 / self.row_epsilon

    def shown_scale(self, step: Fraction) -> float:
        """Rounded up."""
        return float_up(self.scale * step)

    @property
    def rule(self) -> str:
        """Its name."""
        return "truncated geometric rule"

    def epsilon_cost(self, exposure: Exposure) -> Fraction:
        """The cost of this many groups."""
        return self.epsilon(exposure.repeats)

    def rho_cost(self, exposure: Exposure) -> Fraction:
        """The cost of this many groups."""
        return self.rho(exposure.repeats)

    def events(self, exposure: Exposure) -> tuple[AnyEvent, ...]:
        """One for each group."""
        from dpframe.accounting.events import ApproxEvent

        return (ApproxEvent(self.row_epsilon, self.row_delta),) * exposure.repeats

    def epsilon(self, groups: int) -> Fraction:
        """What an individual in this many groups costs."""
        return groups * self.row_epsilon

    def delta(self, groups: int) -> Fraction:
        """The delta of this many groups: at most the sum (union bound)."""
        return groups * self.row_delta

    def rho(self, groups: int) -> Fraction:
        """The zCDP cost besides `delta`, epsilon**2 / 2 for each group (Bun and Steinke 2016)."""
        return groups * self.row_epsilon**2 / 2

    def size_at(self, chance: Fraction | float) -> int:
        """The least number of individuals with which a group appears with such a chance."""
        table = appearance_chances(self.row_epsilon, self.row_delta)
        return bisect_left(table, math.ceil(exact(chance) * ONE))  # chances grow with the size

    def log_noise(self, candidates: int) -> float:
        """The logarithm of the size at which a group appears with a probability of one half. At
        this size the sum of delta * e**(k * epsilon) over all smaller k reaches a half. A float,
        because it only serves to compare mechanisms.
        """
        epsilon, delta = float(self.row_epsilon), float(self.row_delta)
        if epsilon > _LARGEST_SUMMED or not delta:
            return KeyMechanism.log_noise(self, candidates)
        return math.log(math.ceil(math.log1p(math.expm1(epsilon) / (2 * delta)) / epsilon))


_LEAST: Final = Fraction(1, 1 << 100)
_LARGEST_SUMMED: Final = 32
