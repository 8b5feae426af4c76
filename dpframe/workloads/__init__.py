"""Many tables of one table: what to measure so that all of them have the least error, and how they
follow from what is measured. It knows nothing of queries, nor how noise is drawn.
"""

from dpframe.workloads.axes import Axis, Factor, Kind, block_sums
from dpframe.workloads.moments import MeasuredTables
from dpframe.workloads.prefix_sums import (
    MOST_PERIODS,
    MOST_ROOT_CELLS,
    PeriodTree,
    RootPrefixes,
    RunningSums,
    SquareRoot,
    best_tree,
    sum_of_night,
    sum_of_squares,
    toeplitz_sums,
)
from dpframe.workloads.rebuild import (
    MANY_CELLS,
    Estimate,
    WholeTables,
    apportion,
    nearest_nonnegative,
    rounding_variance,
    whole_deviation,
)
from dpframe.workloads.strategy import (
    Degree,
    Levels,
    Norm,
    Part,
    Strategy,
    Wanted,
    Workload,
    best_tables,
    best_tables_with_total,
    tables,
    tables_with_total,
    trees,
)

__all__ = [
    "MANY_CELLS",
    "MOST_PERIODS",
    "MOST_ROOT_CELLS",
    "Axis",
    "Degree",
    "Estimate",
    "Factor",
    "Kind",
    "Levels",
    "MeasuredTables",
    "Norm",
    "Part",
    "PeriodTree",
    "RootPrefixes",
    "RunningSums",
    "SquareRoot",
    "Strategy",
    "Wanted",
    "WholeTables",
    "Workload",
    "apportion",
    "best_tables",
    "best_tables_with_total",
    "best_tree",
    "block_sums",
    "nearest_nonnegative",
    "rounding_variance",
    "sum_of_night",
    "sum_of_squares",
    "tables",
    "tables_with_total",
    "toeplitz_sums",
    "trees",
    "whole_deviation",
]
