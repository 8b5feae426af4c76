"""Which levels of a tree of cells to measure for a distribution function, and at which shares."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from dpframe.aggregates.level_sums import run_words
from dpframe.workloads import (
    Axis,
    Degree,
    Factor,
    Part,
    Strategy,
    Wanted,
    Workload,
    best_tables,
    best_tables_with_total,
    tables,
    tables_with_total,
)

__all__ = ["best_levels", "levels_of", "strategy_words", "weights_of"]


@lru_cache(maxsize=64)
def best_levels(
    cells: int, degree: Degree, of_all: Fraction, has_free_total: bool = False
) -> Strategy:
    """What to measure of this many cells: sums of nodes of levels of the best tree, or the cells
    alone where that has no larger error.

    Parameters
    ----------
    cells
        How many there are.
    degree
        2 where an epsilon is shared, 1 where a rho is.
    of_all
        The square of how far one individual moves the sum of all cells, in the norm that noise is
        scaled to, relative to that of several sums.
    has_free_total
        Whether that sum may be one number more of a level, at no further cost.
    """
    wanted = (Wanted(("prefixes",)),)
    axis = Axis.ordered(cells, max(2, cells))
    alone = Part((Factor(axis, axis.height),))
    plain = Strategy(
        Workload((axis,), wanted), (alone,), (Fraction(1),), (_norm(alone, of_all),), degree
    )
    workload = Workload((Axis.ordered(cells),), wanted)
    found = best_tables(workload, degree, lambda part: _norm(part, of_all))
    least = plain if plain.objective() <= found.objective() else found
    if not has_free_total or cells < 2:
        return least
    for one in (plain.workload, workload):
        made = _with_total(one, degree, of_all)
        if made is not None and made.objective() < least.objective():
            least = made.in_order()
    return least


def _with_total(workload: Workload, degree: Degree, of_all: Fraction) -> Strategy | None:
    """The best levels for cells together with a level that holds the sum of all cells."""

    def norm(part: Part) -> Fraction:
        return _norm(part, of_all)

    (axis,) = workload.axes
    if axis.branching < axis.size or axis.size == 2:
        return best_tables_with_total(workload, degree, norm)
    return tables_with_total(workload, degree, norm, tables(workload, degree, norm))


def _norm(part: Part, of_all: Fraction) -> Fraction:
    return of_all if part.entries == 1 else Fraction(1)


def levels_of(strategy: Strategy) -> tuple[int, ...]:
    """The levels that are measured."""
    return tuple(part.levels[0] for part in strategy.parts)


def weights_of(strategy: Strategy) -> tuple[Fraction, ...]:
    """What a sum of each level counts in least squares, in proportion."""
    (axis,) = strategy.workload.axes
    return tuple(
        axis.width(level) * share**strategy.degree / norm
        for level, share, norm in zip(
            levels_of(strategy), strategy.shares, strategy.norms, strict=True
        )
    )


def strategy_words(strategy: Strategy, cells: str = "steps") -> str:
    """What is measured, at which shares, in a plan; `cells` is what they are there."""
    (axis,) = strategy.workload.axes
    kind = "rho" if strategy.degree == 1 else "epsilon"
    if len(strategy.parts) == 1:
        return f"added up from noisy counts of its {cells}"
    paid = list(zip(levels_of(strategy), strategy.shares, strict=True))
    if strategy.total is not None:
        del paid[strategy.total]
    total = sum((share for _, share in paid), Fraction(0))
    shown = [
        f"{run_words(axis, level)} ({float(100 * share / total):.0f}% of the {kind})"
        for level, share in reversed(paid)
    ]
    if strategy.total is not None:
        shown.append("all of them together, which no row that changes moves further, at no cost")
    return f"rebuilt by least squares from noisy counts of its {cells}: {', '.join(shown)}"
