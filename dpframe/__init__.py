"""Publish aggregates of personal data from Polars, with differential privacy.

Importing this module also adds the ``dp_*`` methods to Polars expressions and frames.
"""

from dpframe import accounting
from dpframe.api.expressions import DPExpr
from dpframe.api.frame import PrivateFrame
from dpframe.api.functions import (
    argmax,
    bounds,
    count,
    histogram,
    mean,
    median,
    n_unique,
    quantile,
    std,
    sum,
    var,
)
from dpframe.api.group_by import PrivateGroupBy
from dpframe.api.polars_methods import register as _register
from dpframe.api.query import PrivateQuery
from dpframe.api.release import Release
from dpframe.api.session import Session
from dpframe.audit import Audit
from dpframe.core.budget import GDP, ZCDP, ApproxDP, PureDP
from dpframe.core.sensitivity import Sensitivity
from dpframe.core.units import Identifier, Rows
from dpframe.errors import (
    BudgetExceeded,
    DPFrameError,
    EngineError,
    InvalidBounds,
    InvalidBudget,
    LedgerError,
    MissingKeys,
    PlanMismatch,
    UnboundedSensitivity,
    UnitDropped,
    UnknownColumn,
    UnsupportedOperation,
)
from dpframe.parse.key_sets import Keys, keys
from dpframe.plan import NoisyAggregate, PlanStep
from dpframe.report import Plan
from dpframe.simulate import Simulation

_register()

__version__ = "0.1.0"

__all__ = [
    "GDP",
    "ZCDP",
    "ApproxDP",
    "Audit",
    "BudgetExceeded",
    "DPExpr",
    "DPFrameError",
    "EngineError",
    "Identifier",
    "InvalidBounds",
    "InvalidBudget",
    "Keys",
    "LedgerError",
    "MissingKeys",
    "NoisyAggregate",
    "Plan",
    "PlanMismatch",
    "PlanStep",
    "PrivateFrame",
    "PrivateGroupBy",
    "PrivateQuery",
    "PureDP",
    "Release",
    "Rows",
    "Sensitivity",
    "Session",
    "Simulation",
    "UnboundedSensitivity",
    "UnitDropped",
    "UnknownColumn",
    "UnsupportedOperation",
    "accounting",
    "argmax",
    "bounds",
    "count",
    "histogram",
    "keys",
    "mean",
    "median",
    "n_unique",
    "quantile",
    "std",
    "sum",
    "var",
]
