"""What is measured, at which shares: as good as can be, and as good as was promised."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from dpframe.workloads import (
    Axis,
    Kind,
    Part,
    Wanted,
    Workload,
    best_tables,
    tables,
)
from dpframe.workloads.strategy import Degree, divide, error
from tests.workloads.matrices import workloads


def marginals(sizes: tuple[int, ...], ways: range | list[int]) -> Workload:
    """All tables of so many of the columns."""
    columns = range(len(sizes))
    sets = [s for k in ways for s in itertools.combinations(columns, k)]
    return Workload(
        tuple(map(Axis.nominal, sizes)),
        tuple(Wanted(tuple("cells" if i in s else "total" for i in columns)) for s in sets),
    )


def gain(workload: Workload, degree: Degree, table: Wanted) -> float:
    """How much larger the error is where every table is measured by itself at an equal share."""
    strategy = best_tables(workload, degree)
    equal = float(workload.flat(table)) * len(workload.tables) ** degree
    return math.sqrt(equal / strategy.error(table))


def overall(workload: Workload, degree: Degree) -> float:
    """The same of the sum of mean squared errors, each relative to what it was."""
    strategy = best_tables(workload, degree)
    return math.sqrt(len(workload.tables) ** (degree + 1) / strategy.objective())


ADULT = (9, 16, 7, 15, 6, 2)


@pytest.mark.parametrize(("most", "promised"), [(2, 1.30), (3, 1.44), (6, 1.61)])
def test_marginals_of_six_columns(most: int, promised: float) -> None:
    assert overall(marginals(ADULT, range(most + 1)), 1) >= 0.99 * promised


def test_a_roll_up() -> None:
    workload = marginals((42, 2), range(3))
    assert overall(workload, 1) >= 1.24
    sets: tuple[tuple[Kind, Kind], ...] = (
        ("cells", "cells"), ("cells", "total"), ("total", "cells"), ("total", "total"),
    )  # fmt: skip
    found = [gain(workload, 2, Wanted(kinds)) for kinds in sets]
    assert all(f >= 0.99 * p for f, p in zip(found, (2.0, 1.4, 2.0, 1.4), strict=True))


@pytest.mark.parametrize("degree", [1, 2])
def test_all_can_be_added_up_from_the_finest_table(degree: Degree) -> None:
    """At the whole spend; its entries then add up with all of their noise."""
    workload = marginals((6, 2), range(3))
    plain = best_tables(workload, degree)
    finest = plain.of_finest()
    (part,) = finest.parts
    assert part.shape == (6, 2)
    assert finest.shares == (1,)
    assert plain.objective() < finest.objective()
    sets: dict[tuple[Kind, Kind], int] = {
        ("cells", "cells"): 1,
        ("total", "cells"): 6,
        ("cells", "total"): 2,
        ("total", "total"): 12,
    }
    for kinds, cells in sets.items():
        assert finest.error(Wanted(kinds)) == pytest.approx(cells)


def test_no_part_tells_of_tables_side_by_side() -> None:
    plain = best_tables(marginals((6, 5), [1]), 2)
    assert plain.of_finest() is plain


def test_only_the_finest_table_can_be_wanted_most() -> None:
    workload = marginals((42, 2), range(3))
    weighted = Workload(
        workload.axes,
        tuple(Wanted(t.kinds, Fraction(workload.outputs(t))) for t in workload.tables),
    )
    (finest,) = (t for t in weighted.tables if "total" not in t.kinds)
    assert gain(weighted, 1, finest) >= 1.75


@pytest.mark.parametrize(
    ("kind", "size", "concentrated", "pure"),
    [
        ("prefixes", 101, 2.7, 1.5),
        ("prefixes", 1000, 6.3, 2.9),
        ("prefixes", 10_000, 15.7, 6.3),
        ("prefixes", 1_000_000, 110, 36),
        ("ranges", 101, 2.0, 1.2),
        ("ranges", 1000, 4.3, 2.1),
        ("ranges", 10_000, 10.3, 4.3),
    ],
)
def test_an_ordered_column(kind: Kind, size: int, concentrated: float, pure: float) -> None:
    workload = Workload((Axis.ordered(size),), (Wanted((kind,)),))
    assert overall(workload, 1) >= 0.95 * concentrated
    assert overall(workload, 2) >= 0.95 * pure


def objective_of_residuals(workload: Workload) -> float:
    """The objective at a rho of measuring how children differ from their siblings' mean, in each
    subspace with noise of its own: by Cauchy and Schwarz the square of the sum of sqrt(p v),
    with v what the workload needs there and p the squared norm of a cell over the energy (Xiao, He,
    Zhang and Kifer 2023). Of b children p is (b - 1) / (b m), with m the leaves of a child.
    """
    roots = []
    for levels, need in workload.needs.items():
        norm = 1.0
        for axis, level in zip(workload.axes, levels, strict=True):
            b = axis.branching
            norm *= ((b - 1) / b if level else 1) / axis.width(level)
        roots.append(math.sqrt(norm * float(need)))
    return math.fsum(roots) ** 2


@given(workloads(ranges=True))
def test_tables_never_err_less_than_residuals(workload: Workload) -> None:
    found = tables(workload, 1)
    assert 1 - Fraction(1, 2**15) < sum(found.shares) <= 1
    assert found.objective() >= objective_of_residuals(workload) * (1 - 1e-4)


@given(st.sampled_from([(3, 4), (2, 2, 2), (5, 3)]), st.data())
def test_tables_err_as_little_where_all_margins_are_wanted(
    sizes: tuple[int, ...], data: st.DataObject
) -> None:
    workload = marginals(sizes, range(len(sizes) + 1))
    assert tables(workload, 1).objective() <= objective_of_residuals(workload) * 1.001


@given(workloads(), st.sampled_from([1, 2]))
def test_a_spend_is_divided_no_worse_than_equally_or_for_one(
    workload: Workload, degree: Degree
) -> None:
    found = tables(workload, degree)
    subspaces = workload.subspaces
    assert len(set(found.parts)) == len(found.parts)
    full = max(subspaces, key=sum)
    energies = np.array([[_energy(workload, b, a) for b in subspaces] for a in subspaces])
    needs = np.array([float(workload.needs[a]) for a in subspaces])
    equal = np.full(len(subspaces), 1 / len(subspaces))
    assert found.objective() <= error(energies, needs, equal, degree) * 1.001
    alone = np.array([float(levels == full) for levels in subspaces])
    if energies[:, subspaces.index(full)].all():
        assert found.objective() <= error(energies, needs, alone, degree) * 1.2


def _energy(workload: Workload, part: tuple[int, ...], levels: tuple[int, ...]) -> float:
    each = zip(workload.axes, part, levels, strict=True)
    return math.prod(float(axis.width(b)) if a <= b else 0.0 for axis, b, a in each)


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("sizes", [(42, 2), (9, 4, 3), (30,)])
def test_a_general_optimiser_finds_nothing_better(sizes: tuple[int, ...], degree: Degree) -> None:
    workload = marginals(sizes, range(len(sizes) + 1))
    subspaces = workload.subspaces
    energies = np.array([[_energy(workload, b, a) for b in subspaces] for a in subspaces])
    needs = np.array([float(workload.needs[a]) for a in subspaces])
    least = error(energies, needs, divide(energies, needs, degree), degree)

    def tried(z: np.ndarray) -> float:
        shares = np.exp(z - z.max())
        return math.log(error(energies, needs, shares / shares.sum(), degree))

    rng = np.random.default_rng(3)
    starts = [rng.normal(0, 2, len(subspaces)) for _ in range(3)]
    options = {"maxiter": 4000, "fatol": 1e-9}
    found = min(minimize(tried, z, method="Nelder-Mead", options=options).fun for z in starts)
    assert math.log(least) <= found + 0.01


@pytest.mark.parametrize("degree", [1, 2])
def test_no_share_is_left_over_for_what_is_useless(degree: Degree) -> None:
    energies = np.array([[1.0, 1.0], [0.0, 1.0]])
    found = divide(energies, np.array([1.0, 1.0]), degree)
    assert found.sum() == pytest.approx(1)
    assert found[0] < 2**-9


def test_norms_of_individuals_move_shares() -> None:
    """Where one individual is in many groups a total needs more noise than the finest table, and
    less of a rho is spent on it."""
    workload = marginals((6, 5), range(3))

    def norm(part: Part) -> Fraction:
        return Fraction(4) ** sum(level == 0 for level in part.levels)

    plain, many = tables(workload, 1), tables(workload, 1, norm)
    finest = [(s.parts.index(max(s.parts, key=lambda p: sum(p.levels))), s) for s in (plain, many)]
    (one, before), (two, after) = finest
    assert after.shares[two] > before.shares[one]
    assert after.objective() >= before.objective()


def test_a_wanted_table_fits_its_axes() -> None:
    axis = Axis.nominal(3)
    with pytest.raises(ValueError, match="every axis"):
        Workload((axis,), (Wanted(("cells", "cells")),))
    with pytest.raises(ValueError, match="ordered axis"):
        Workload((axis,), (Wanted(("prefixes",)),))


def test_shares_are_the_same_on_all_machines() -> None:
    for share in tables(marginals((9, 16, 7), range(4)), 2).shares:
        assert share.numerator.bit_length() <= 21
        assert share.denominator & (share.denominator - 1) == 0
