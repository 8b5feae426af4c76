"""Many tables of one table: what to measure so that all of them have the least error, and how they
follow from what is measured. It knows nothing of queries, nor how noise is drawn.
"""

from dpframe.workloads.axes import Axis
from dpframe.workloads.factors import Factor, block_sums
from dpframe.workloads.measured_levels import MeasuredLevels
from dpframe.workloads.measured_tables import MeasuredTables
from dpframe.workloads.needs import Kind
from dpframe.workloads.nonnegative import (
    MANY_CELLS,
    apportioned,
    nearest_nonnegative,
    whole_deviation,
)
from dpframe.workloads.parts import Levels, Part
from dpframe.workloads.period_tree import PeriodTree, best_tree
from dpframe.workloads.rebuild import Estimate
from dpframe.workloads.root_prefixes import MOST_ROOT_CELLS, RootPrefixes, toeplitz_sums
from dpframe.workloads.running import (
    MOST_PERIODS,
    Moved,
    RunningSums,
    SquareRoot,
    squared,
    sum_of_night,
)
from dpframe.workloads.shares import Degree
from dpframe.workloads.strategy import (
    Norm,
    Strategy,
    best_tables,
    best_tables_with_total,
    tables,
    tables_with_total,
    trees,
)
from dpframe.workloads.variances import variances_of
from dpframe.workloads.whole import WholeTables, rounding_variance
from dpframe.workloads.workload import Wanted, Workload

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
    "MeasuredLevels",
    "MeasuredTables",
    "Moved",
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
    "apportioned",
    "best_tables",
    "best_tables_with_total",
    "best_tree",
    "block_sums",
    "nearest_nonnegative",
    "rounding_variance",
    "squared",
    "sum_of_night",
    "tables",
    "tables_with_total",
    "toeplitz_sums",
    "trees",
    "variances_of",
    "whole_deviation",
]
