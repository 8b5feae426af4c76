"""Which levels of a tree of cells to measure for a distribution function, and at which shares."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from dpframe.aggregates.level_sums import run_words
from dpframe.workloads import Axis, Degree, Factor, Part, Strategy, Wanted, Workload, best_tables

__all__ = ["best_levels", "levels_of", "strategy_words", "weights_of"]


@lru_cache(maxsize=64)
def best_levels(cells: int, degree: Degree, of_all: Fraction) -> Strategy:
    """What to measure of so many cells: sums of nodes of levels of the best tree, or the cells
    alone where that errs no more.

    Parameters
    ----------
    cells
        How many there are.
    degree
        2 where an epsilon is shared, 1 where a rho is.
    of_all
        The square of how far one individual moves the sum of all cells, in the norm that noise is
        scaled to, relative to that of several sums.
    """
    wanted = (Wanted(("prefixes",)),)
    axis = Axis.ordered(cells, max(2, cells))
    alone = Part((Factor(axis, axis.height),))
    plain = Strategy(
        Workload((axis,), wanted), (alone,), (Fraction(1),), (_norm(alone, of_all),), degree
    )
    workload = Workload((Axis.ordered(cells),), wanted)
    found = best_tables(workload, degree, lambda part: _norm(part, of_all))
    return plain if plain.objective() <= found.objective() else found


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
    total, kind = sum(strategy.shares), "rho" if strategy.degree == 1 else "epsilon"
    if len(strategy.parts) == 1:
        return f"added up from noisy counts of its {cells}"
    shown = [
        f"{run_words(axis, level)} ({float(100 * share / total):.0f}% of the {kind})"
        for level, share in reversed(list(zip(levels_of(strategy), strategy.shares, strict=True)))
    ]
    return f"rebuilt by least squares from noisy counts of its {cells}: {', '.join(shown)}"
