"""Discrete hull noise: one draw for counts, sums and sums of squares of the same values.

A row that adds x to a sum adds x**2 to the sum of squares, and 1 to the count of values: a point
of an arch, not of the whole box that each number on its own stays within. The K-norm mechanism
(Hardt and Talwar 2010) of the convex hull of the arch and its mirror image is the one with the
least set that holds all additions and removals of rows (Awan and Slavkovic 2021). Compared with
the box, means have 0.70 to 0.82 of the squared error, variances 0.72 to 1.12, and both together
0.71 to 0.91, depending on the values. Only variances of values near the middle of their bounds
have larger errors, by at most 6 % of the deviation. Polynomials of Bernstein, as sum((1 - t)**2),
sum(2 t (1 - t)) and sum(t**2) with Laplace noise, make a simplex around the arch: that is less in
means, but up to 2.9 in variances.

With hull(R) and N(z) as in `dpframe.samplers.hull`, P(z) ~ exp(-epsilon N(z) / m). The hull K is
convex and symmetric, and hull(R) all whole vectors of K R / m. Let k rows move the numbers by v, a
sum of k points of K. If z is in K R / m, then z + v is in K (R / m + k), as K is convex. So N(z +
v) <= N(z) + k m and, as -v is such a move too, |N(z + v) - N(z)| <= k m: probabilities differ by a
factor of exp(k epsilon) at most. All else is as for boxes (`discrete_box`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframe.core.budget import ZCDP, Budget
from dpframe.kernel import plan as kernel
from dpframe.mechanisms.box_law import Radii
from dpframe.mechanisms.combinable import Boxes
from dpframe.mechanisms.discrete_box import DiscreteBox
from dpframe.mechanisms.hull_law import Hull
from dpframe.mechanisms.mechanism import Choice, charged
from dpframe.mechanisms.noise_sums import Tail
from dpframe.mechanisms.tasks import AdditiveTask, Box
from dpframe.samplers import Arch
from dpframe.samplers.hull import require_arches

Floats: TypeAlias = "NDArray[np.float64]"


@dataclass(frozen=True, slots=True)
class DiscreteHull(DiscreteBox):
    """Noise z on vectors of integers with P(z) proportional to exp(-epsilon N(z) / fineness), where
    N(z) is the least integer R >= 0 for which z lies in the hull of the arches times R / fineness.

    Added to vectors that one row moves within the hull, it costs epsilon for each row that an
    individual has in all vectors together (the K-norm mechanism of Hardt and Talwar 2010).

    Parameters
    ----------
    epsilon, widths, fineness, rows
        As for `DiscreteBox`.
    arches
        Up to 8, each the places of a count of values, of their sum and of the sum of their
        squares. With a, x and y the additions of a row to them over their widths, (a, x, y) is in
        the hull of (1, t, 2 t**2 - 1), t from -1 to 1, and its mirror image.

    Raises
    ------
    InvalidBudget
        When a width or the fineness is above 2**54 times epsilon.
    ValueError
        When a parameter is invalid.
    """

    arches: tuple[Arch, ...]
    name: ClassVar[str] = "discrete_hull"
    label: ClassVar[str] = "discrete hull"

    @property
    def kernel_law(self) -> kernel.Law:
        """The same for the kernel."""
        return kernel.Box(self.epsilon, self.widths, self.fineness, self.arches)

    def __post_init__(self) -> None:
        DiscreteBox.__post_init__(self)
        require_arches(self.arches, len(self.widths))

    @classmethod
    def around(cls, box: DiscreteBox, arches: tuple[Arch, ...]) -> Self:
        """The hull within a box, at the same cost."""
        return cls(box.epsilon, box.widths, box.fineness, box.rows, arches)

    @classmethod
    def fitted(cls, task: AdditiveTask, share: Budget) -> Choice | None:
        """Noise by the hull, which spends no delta, where one is known."""
        if task.box is None or not task.box.arches:
            return None
        widths, rows, arches = task.box.widths, task.box.rows, task.box.arches
        reason = "one draw for all of them, by the values and squares that one row adds together"
        if isinstance(share, ZCDP):
            law = cls.around(DiscreteBox.for_zcdp(widths, rows, share.main), arches)
            return Choice(law, charged(share, law.rho), reason)
        law = cls.around(DiscreteBox.for_pure(widths, rows, share.main), arches)
        return Choice(law, share.of(law.whole_epsilon), reason)

    @property
    def hull(self) -> Hull:
        """Its law."""
        return Hull(self.epsilon / self.fineness, self.widths, self.fineness, self.arches)

    def variances(self) -> tuple[float, ...]:
        """The variance of each number, in steps squared; right to about one part in 1000."""
        return self.hull.variances()

    def covers(self, box: Box) -> bool:
        """Whether it covers these widths and rows, and arches."""
        return (self.widths, self.rows, self.arches) == (box.widths, box.rows, box.arches)

    def requires(self, factors: tuple[int, ...]) -> None:
        """Require a factor for each number, a sum or a sum of squares of an arch alone, and a
        count with at most one other number.
        """
        DiscreteBox.requires(self, factors)
        used = [place for place, factor in enumerate(factors) if factor]
        own = any(place in arch[1:] for arch in self.arches for place in used)
        counts = {arch[0] for arch in self.arches} & {*used}
        if (own and len(used) > 1) or (counts and len(used) > 2) or len(counts) > 1:
            raise ValueError("such a sum of numbers of discrete hull noise is not known")

    def alike(self, factors: tuple[int, ...]) -> tuple[int, ...]:
        """Sizes."""
        return tuple(map(abs, factors))

    def moves_with(self, place: int) -> int:
        """Squares go with the count of their arch."""
        hull = self.hull
        return (hull.count_of(place) or 0) if hull.is_square(place) else place

    def boxes(self, miss: float) -> Boxes:
        """Given the radius, numbers are uniform within the hull."""
        return Boxes(*self.radius_law(miss), self.widths, self.fineness, self.arches)

    def variance_of_sum(self, factors: tuple[int, ...]) -> float:
        """With the covariances of numbers."""
        hull = self.hull
        used = [place for place, factor in enumerate(factors) if factor]
        return sum(factors[i] * factors[j] * hull.covariance(i, j) for i in used for j in used)

    def cumulants_of_sum(self, factors: Floats) -> tuple[float, float] | None:
        """See `CombinableNoise.cumulants_of_sum`."""
        return self.hull.cumulants(factors)

    def oddness_of_sum(self, factors: tuple[int, ...]) -> float:
        """P(sum is odd)."""
        return self.hull.oddness(factors)

    def tail_of_sum(self, factors: tuple[int, ...], tier: int, rough: bool) -> Tail:
        """See `CombinableNoise.tail_of_sum`."""
        return self.hull.tail(factors, tier, rough)

    def radii(self, nats: int) -> Radii:
        """The law of the radius in fine blocks, to exp(-nats) or so."""
        return self.hull.radii(nats)

    def log_masses(self, noise: NDArray[np.int64]) -> Floats:
        """By the least radius whose hull holds a vector: that of the box, or what solves one of the
        inequalities of an arch, which are linear in the radius where both sides are equal.
        """
        shares = noise.astype(np.float64) / np.array(self.widths, np.float64)
        radius = np.abs(shares).max(axis=-1, initial=0.0)
        for arch in self.arches:
            for sign in (1.0, -1.0):
                a, x, y = (shares[..., place] for place in arch)
                a, x, y = sign * a, np.abs(x), sign * y
                slope = 4.0 * x - 3.0 * a - y
                root = ((2.0 * x - a) ** 2 - a * y) / np.where(slope > 0, slope, 1.0)
                cuts = (slope > 0) & (root <= 2.0 * x - a)
                radius = np.where(cuts, np.maximum(radius, root), radius)
        steps = np.ceil(radius * self.fineness * (1.0 - 2.0**-50))
        return np.asarray(steps * -float(self.epsilon / self.fineness))
