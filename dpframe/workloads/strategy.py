"""Which sums of a table to measure, and at which shares of the spend."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframe.core.exact import dyadic_down
from dpframe.workloads.axes import Axis, Factor, Integers, Kind, flat, needs_of, outputs

# Integer vectors that are measured of a table: one map for each of its axes.

Levels: TypeAlias = tuple[int, ...]
"""A level of each axis: a subspace of tables. Other levels have orthogonal subspaces."""


@dataclass(frozen=True, slots=True)
class Part:
    """An integer vector that is linear in a table: the Kronecker product of its factors."""

    factors: tuple[Factor, ...]  # One per axis of the table, in their order

    @property
    def levels(self) -> Levels:
        """The levels of its factors."""
        return tuple(factor.level for factor in self.factors)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many numbers along each axis."""
        return tuple(factor.entries for factor in self.factors)

    @property
    def entries(self) -> int:
        """How many numbers there are."""
        return math.prod(self.shape)

    def energy(self, levels: Levels) -> int:
        """What the squared norm of a table in a subspace is multiplied by."""
        return math.prod(f.energy(level) for f, level in zip(self.factors, levels, strict=True))

    def of(self, table: Integers) -> Integers:
        """The vector of a table, in the shape of its factors.

        Integers are added and multiplied modulo 2**64: what is released is the true vector with its
        noise, modulo 2**64, however large it is, so an overflow could never cost privacy.
        """
        order = sorted(range(len(self.factors)), key=lambda at: self.factors[at].entries)
        for at in order:  # those that leave least first
            table = self.factors[at].of(table, at)
        return table


@dataclass(frozen=True, slots=True)
class Wanted:
    """A table that is wanted: sums over the cells of some axes, for each of the others."""

    kinds: tuple[Kind, ...]  # What is wanted of each axis; the table has their products
    weight: Fraction = Fraction(1)  # How much its error counts, relative to others


@dataclass(frozen=True)
class Workload:
    """What is to be answered from one table of disjoint sums."""

    axes: tuple[Axis, ...]  # The columns of the table
    tables: tuple[Wanted, ...]  # What is wanted of it, at least one

    def __post_init__(self) -> None:
        for table in self.tables:
            if len(table.kinds) != len(self.axes):
                raise ValueError("a wanted table says something of every axis")
            for axis, kind in zip(self.axes, table.kinds, strict=True):
                if kind in ("prefixes", "ranges") and not axis.is_ordered:
                    raise ValueError("only the cells of an ordered axis have prefixes and ranges")

    def branching(self, children: int) -> Workload:
        """The same of trees whose nodes have this many children."""
        return replace(
            self,
            axes=tuple(
                Axis.ordered(axis.size, children) if axis.is_ordered else axis for axis in self.axes
            ),
        )

    def outputs(self, table: Wanted) -> int:
        """How many numbers a table has."""
        return math.prod(map(outputs, self.axes, table.kinds))

    def flat(self, table: Wanted) -> Fraction:
        """The mean variance of a table's numbers where it is made of cells, or totals, that were
        measured separately with noise of variance 1.
        """
        return math.prod(map(flat, self.axes, table.kinds), start=Fraction(1))

    @cached_property
    def subspaces(self) -> tuple[Levels, ...]:
        """The subspaces that the tables need, coarse ones first."""
        found: dict[Levels, None] = {}
        for table in self.tables:
            reach = [
                range(1 if kind == "total" else axis.height + 1)
                for axis, kind in zip(self.axes, table.kinds, strict=True)
            ]
            found |= dict.fromkeys(itertools.product(*reach))
        return tuple(sorted(found, key=lambda levels: (sum(levels), levels)))

    def need(self, table: Wanted) -> Mapping[Levels, Fraction]:
        """The sum of the squared norms of a table's queries, by subspace, where it is not 0."""
        each = [
            [(level, found) for level, found in enumerate(needs_of(axis, kind)) if found]
            for axis, kind in zip(self.axes, table.kinds, strict=True)
        ]
        return {
            tuple(level for level, _ in ways): math.prod((n for _, n in ways), start=Fraction(1))
            for ways in itertools.product(*each)
        }

    @cached_property
    def needs(self) -> Mapping[Levels, Fraction]:
        """What a unit of variance in each subspace adds to the sum over the tables of their mean
        squared errors, each relative to what it would be if it were measured on its own.
        """
        total = dict.fromkeys(self.subspaces, Fraction(0))
        for table in self.tables:
            scale = table.weight / (self.outputs(table) * self.flat(table))
            for levels, found in self.need(table).items():
                total[levels] += scale * found
        return total


# The division of a spend among measurements that are all informative about the same subspaces.
#
# With share x of part B its precision in subspace A is k_AB x**d, where d is 2 for an epsilon and 1
# for a rho, and the error is the sum over A of v_A / (sum over B of k_AB x_B**d). A mean of
# inverses is at least the inverse of a mean, so at the shares x, with t_AB the part of the
# precision in A that B has, the error at any shares y is at most
#
#     sum over B of K_B / y_B**d,  K_B = sum over A of v_A t_AB**2 / k_AB,
#
# with equality at y = x. The right side is least where y is proportional to K**(1 / (d + 1)), so
# going there never makes the error larger (Hunter and Lange 2004, on such algorithms). Where parts
# compete the error has several local minima: parts are left out one by one where that helps.

Floats: TypeAlias = "NDArray[np.float64]"
Degree: TypeAlias = Literal[1, 2]

_ROUNDS: Final = 400
_TRIAL: Final = 40
_PASSES: Final = 4
_ENOUGH: Final = 0.999
_SAME: Final = 1.0 + 1e-9
"""Errors that differ by less are the same, on any machine's floats."""
_MOST_TRIED: Final = 80
"""With more parts none is left out by trial."""
_USELESS: Final = 2.0**-9
"""A part with less than this share is left out where that costs next to nothing."""
_NEXT_TO_NOTHING: Final = 1.0 + 2.0**-14


def error(energies: Floats, needs: Floats, shares: Floats, degree: Degree) -> float:
    """The sum of the subspaces' errors; infinite where one is not measured at all."""
    precision = energies @ shares**degree
    if not precision.all():
        return float("inf")
    return float((needs / precision).sum())


def divide(energies: Floats, needs: Floats, degree: Degree) -> Floats:
    """Shares that add up to 1 and minimise the error, 0 for parts that are not worth it.

    Parameters
    ----------
    energies
        k_AB, a row per subspace and a column per part. Some column has no zeros.
    needs
        v_A, positive.
    degree
        2 where epsilon is shared, 1 where rho is.
    """
    parts = energies.shape[1]
    equal = np.full(parts, 1.0 / parts)
    starts = [_improve(energies, needs, equal, degree, _ROUNDS)]
    if degree == 2:  # the error in shares of rho has one minimum: a start near another one
        concentrated = _improve(energies, needs, equal, 1, _ROUNDS) ** 0.5
        start = concentrated / concentrated.sum()
        starts.append(_improve(energies, needs, start, degree, _ROUNDS))
    if parts <= _MOST_TRIED:
        starts = [_search(energies, needs, shares, degree) for shares in starts]
    shares, best = starts[0], error(energies, needs, starts[0], degree)
    for other in starts[1:]:
        tried = error(energies, needs, other, degree)
        if tried * _SAME < best:
            shares, best = other, tried
    used = np.where(shares < _USELESS, 0.0, shares)
    used = _improve(energies, needs, used / used.sum(), degree, _TRIAL)
    return used if error(energies, needs, used, degree) <= best * _NEXT_TO_NOTHING else shares


def _improve(
    energies: Floats, needs: Floats, shares: Floats, degree: Degree, rounds: int
) -> Floats:
    """Shares after some rounds; those that are 0 stay so."""
    if not (energies @ shares).all():
        return shares
    power = 1.0 / (degree + 1)
    for _ in range(rounds):
        squared = shares**degree
        precision = energies @ squared
        weights = ((needs / precision**2) @ energies) * squared**2
        found = weights**power
        found /= found.sum()
        done = np.abs(found - shares).max() < 1e-12
        shares = found
        if done:
            break
    return shares


def _search(energies: Floats, needs: Floats, shares: Floats, degree: Degree) -> Floats:
    """Shares after parts were left out, or taken in again, one by one, as long as that helps."""
    least = error(energies, needs, shares, degree)
    for _ in range(_PASSES):
        before = least
        for part in np.argsort(np.round(shares, 9), kind="stable").tolist():
            tried = shares.copy()
            tried[part] = 0.0 if shares[part] else 1.0 / (1 + np.count_nonzero(shares))
            if not tried.any():
                continue
            tried = _improve(energies, needs, tried / tried.sum(), degree, _TRIAL)
            found = error(energies, needs, tried, degree)
            if found <= least * _SAME:
                least, shares = found, tried
        if degree == 1 or least > before * _ENOUGH:
            break
    return _improve(energies, needs, shares, degree, _ROUNDS)


# Which sums of a table to measure, and at which shares of the spend, so that the requested numbers
# have the least error.
#
# Each measurement sums over the nodes of one level of each axis. A row is in one of these sums, so
# L1 = L2 = 1. Measurements overlap, and `shares` finds the best division of the spend. If a query
# requests all margins of nominal columns, their errors under rho are the least of any Gaussian
# noise (Xiao, He, Zhang and Kifer 2023; Xiao, Wang, Wang and Kifer 2024). The reason is that the
# estimates of how children differ from their siblings have independent noise. Under epsilon the
# errors are smaller than by measuring these differences, whose L1 is up to twice as large.

Norm: TypeAlias = Callable[[Part], Fraction]
"""How much noise a part needs: the square of what one individual adds to it, in the norm that its
noise is scaled to."""

_BITS: Final = 20
"""Shares have this many significant bits, so that they are the same on all machines."""
_BRANCHINGS: Final = (2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32)


@dataclass(frozen=True)
class Strategy:
    """Parts to measure."""

    workload: Workload  # What is wanted
    parts: tuple[Part, ...]  # What is measured: sums of nodes
    shares: tuple[Fraction, ...]  # What each gets of a spend; they add up to nearly 1
    norms: tuple[Fraction, ...]  # How much noise each needs, see `Norm`
    degree: Degree  # 2 where shares are of an epsilon, 1 where they are of a rho
    # The number of the part whose vector has the total of all cells as one number more, at no
    # further cost; that is the part of one entry. None where each part is a vector.
    total_of: int | None = None

    @property
    def total(self) -> int | None:
        """The number of the part that is one number more of another part's vector."""
        if self.total_of is None:
            return None
        return next(n for n, part in enumerate(self.parts) if part.entries == 1)

    def in_order(self) -> Strategy:
        """The same with coarse parts first."""
        order = sorted(range(len(self.parts)), key=lambda n: self.parts[n].levels)
        return replace(
            self,
            parts=tuple(self.parts[n] for n in order),
            shares=tuple(self.shares[n] for n in order),
            norms=tuple(self.norms[n] for n in order),
            total_of=None if self.total_of is None else order.index(self.total_of),
        )

    def of_finest(self) -> Strategy:
        """Only the part that contains everything that is wanted, at the whole spend; the same
        strategy if no part does.
        """
        for part, norm in zip(self.parts, self.norms, strict=True):
            if all(part.energy(levels) for levels in self.workload.subspaces):
                shares = (Fraction(1),)
                return replace(self, parts=(part,), shares=shares, norms=(norm,), total_of=None)
        return self

    @property
    def weights(self) -> tuple[Fraction, ...]:
        """What a number of each part counts in least squares, in proportion: one over the variance
        of its noise.
        """
        pairs = zip(self.shares, self.norms, strict=True)
        return tuple(share**self.degree / norm for share, norm in pairs)

    @property
    def cell_weights(self) -> tuple[Fraction, ...]:
        """The same times the cells that a number of each part stands for."""
        pairs = zip(self.parts, self.weights, strict=True)
        return tuple(part.energy(part.levels) * weight for part, weight in pairs)

    @cached_property
    def unit_variances(self) -> tuple[float, ...]:
        """The variance of each part's noise, in proportion to that of a vector of norm 1 that is
        measured alone with the whole spend.
        """
        return tuple(
            float(norm / share**self.degree)
            for norm, share in zip(self.norms, self.shares, strict=True)
        )

    def parts_of(self, vectors: Sequence[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
        """The numbers of each part, from those of what is drawn: a total may be the last number of
        another vector.
        """
        parts = [*vectors]
        if self.total is not None and self.total_of is not None:
            both = parts[self.total_of]
            parts[self.total_of], parts[self.total] = both[:-1], both[-1:]
        return parts

    @cached_property
    def energies(self) -> NDArray[np.float64]:
        """The energy of each part in each subspace, a row per subspace."""
        return _energies(self.workload.subspaces, self.parts)

    def variances(
        self,
        # The variance of each part's noise; `unit_variances` unless given. What parts say is
        # weighted as `unit_variances` says in any case.
        noise: Sequence[float] | None = None,
    ) -> Mapping[Levels, float]:
        """The variance of the estimate of each subspace, in every direction.

        Notes
        -----
        Sums of nodes have less noise than stated here if some of their leaves are not cells. The
        error of tables is at most that of this formula, and equal to it where all leaves are
        cells.
        """
        planned = self.energies / np.array(self.unit_variances)
        weights = planned / planned.sum(axis=1, keepdims=True)
        real = np.array(self.unit_variances if noise is None else tuple(noise))
        told = np.divide(real, self.energies, where=self.energies > 0, out=np.zeros(weights.shape))
        result = (weights**2 * told).sum(axis=1)
        return dict(zip(self.workload.subspaces, result.tolist(), strict=True))

    def error(self, table: Wanted, noise: Sequence[float] | None = None) -> float:
        """The mean variance of a table's numbers, before they are made whole."""
        variances = self.variances(noise)
        need = self.workload.need(table)
        total = math.fsum(float(n) * variances[levels] for levels, n in need.items())
        return total / self.workload.outputs(table)

    def objective(self, noise: Sequence[float] | None = None) -> float:
        """What it minimises: the weighted sum over the tables of the mean squared error relative to
        that of the table measured alone, one row adding 1, with the whole spend.
        """
        variances = self.variances(noise)
        needs = self.workload.needs
        return math.fsum(float(needs[levels]) * found for levels, found in variances.items())


def _energies(subspaces: Sequence[Levels], parts: Sequence[Part]) -> NDArray[np.float64]:
    return np.array([[part.energy(levels) for part in parts] for levels in subspaces], dtype=float)


def _norm_of_a_row(part: Part) -> Fraction:
    """The norm of one row that adds 1: it is in one node of each level."""
    return Fraction(1)


def tables(workload: Workload, degree: Degree, norm: Norm | None = None) -> Strategy:
    """Sums over the nodes of levels, at the shares of least error; tables that are not worth their
    share are left out.

    Parameters
    ----------
    workload
        What is wanted.
    degree
        2 where an epsilon is shared, 1 where a rho is.
    norm
        How much noise a part needs; that of one row unless given.
    """
    subspaces = workload.subspaces
    parts = _sums(workload)
    norms = list(map(norm or _norm_of_a_row, parts))
    energies = _energies(subspaces, parts) / np.array([float(n) for n in norms])
    needs = np.array([float(workload.needs[levels]) for levels in subspaces])
    shares = [dyadic_down(Fraction(x), _BITS) for x in divide(energies, needs, degree).tolist()]
    kept = [number for number, share in enumerate(shares) if share]
    return Strategy(
        workload,
        tuple(parts[number] for number in kept),
        tuple(shares[number] for number in kept),
        tuple(norms[number] for number in kept),
        degree,
    )


def tables_with_total(
    workload: Workload,
    degree: Degree,
    norm: Norm,
    plain: Strategy,  # What is measured without that
) -> Strategy | None:
    """`tables` where one of the parts, with several entries, carries the sum of all of them at no
    further cost. The total comes last, with the share and norm of the first part, which carries
    it. None where no total is needed.
    """
    root = (0,) * len(workload.axes)
    if root not in workload.subspaces:
        return None
    total = Part(tuple(Factor(axis, 0) for axis in workload.axes))
    parts = [part for part in _sums(workload) if part.entries > 1]
    norms = [norm(part) for part in parts]
    scales = np.array([float(n) for n in norms])
    own = _energies(workload.subspaces, parts) / scales
    beside = _energies(workload.subspaces, [total])[:, 0]
    needs = np.array([float(workload.needs[levels]) for levels in workload.subspaces])
    used = dict(zip(plain.parts, plain.shares, strict=True))
    order = sorted(range(len(parts)), key=lambda n: -used.get(parts[n], Fraction(0)))
    strategies = list[Strategy]()
    for place in dict.fromkeys([*order[:_TRIED], len(parts) - 1] if parts else []):
        energies = own.copy()
        energies[:, place] += beside / scales[place]
        shares = [dyadic_down(Fraction(x), _BITS) for x in divide(energies, needs, degree).tolist()]
        if shares[place]:
            kept = [n for n in range(len(parts)) if shares[n] and n != place]
            order_of = [place, *kept, place]
            strategies.append(
                Strategy(
                    workload,
                    (*(parts[n] for n in order_of[:-1]), total),
                    tuple(shares[n] for n in order_of),
                    tuple(norms[n] for n in order_of),
                    degree,
                    total_of=0,
                )
            )
    return min(strategies, key=lambda strategy: strategy.objective(), default=None)


def best_tables_with_total(workload: Workload, degree: Degree, norm: Norm) -> Strategy | None:
    """`tables_with_total` for the trees whose error is least."""
    found = (
        tables_with_total(one, degree, norm, tables(one, degree, norm))
        for one in trees(workload, degree)
    )
    possible = [strategy for strategy in found if strategy is not None]
    return min(possible, key=lambda strategy: strategy.objective(), default=None)


_TRIED: Final = 4
"""A total is tried with at most this many parts."""


def _sums(workload: Workload) -> list[Part]:
    return [
        Part(tuple(Factor(axis, level) for axis, level in zip(workload.axes, levels, strict=True)))
        for levels in workload.subspaces
    ]


def best_tables(workload: Workload, degree: Degree, norm: Norm | None = None) -> Strategy:
    """`tables` for the trees with the least error. Where a rho is shared these are binary ones,
    which are the best at any size or close to it; where an epsilon is, those of some numbers of
    children.
    """
    found = [tables(one, degree, norm) for one in trees(workload, degree)]
    return min(found, key=lambda strategy: strategy.objective()) if len(found) > 1 else found[0]


def trees(workload: Workload, degree: Degree) -> Iterator[Workload]:
    """The trees that are tried."""
    longest = max((axis.size for axis in workload.axes if axis.is_ordered), default=0)
    few = longest <= 2 or degree == 1
    for children in [2] if few else [b for b in _BRANCHINGS if b <= longest]:
        yield workload.branching(children)
