"""Publish aggregates of personal data from Polars, with differential privacy.

Importing this module also adds the ``dp_*`` methods to Polars expressions and frames. Everything
else is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from dpframe.api.registration import AGGREGATES, register

if TYPE_CHECKING:
    from dpframe import accounting, examples
    from dpframe.api.column import col
    from dpframe.api.expressions import DPExpr
    from dpframe.api.frame import PrivateFrame
    from dpframe.api.functions import (
        argmax,
        bounds,
        cdf,
        count,
        cube,
        grouping_sets,
        histogram,
        mean,
        median,
        n_unique,
        quantile,
        ratio,
        rollup,
        std,
        sum,
        var,
    )
    from dpframe.api.group_by import PrivateGroupBy
    from dpframe.api.parameters import ParameterValue, parameter
    from dpframe.api.query import PrivateQuery
    from dpframe.api.release import Combination, Estimate, Release, Releases, combine
    from dpframe.api.session import Session, Through
    from dpframe.api.stream import Stream
    from dpframe.audit import Audit
    from dpframe.core.budget import GDP, ZCDP, ApproxDP, PureDP
    from dpframe.core.sensitivity import Sensitivity
    from dpframe.core.units import Identifier, Rows
    from dpframe.errors import (
        BudgetExceeded,
        DPFrameError,
        DroppedRows,
        EngineError,
        EventRows,
        ImpossibleKeys,
        InvalidBounds,
        InvalidBudget,
        LedgerError,
        MissingKeys,
        NoBudget,
        NoGroups,
        NoRows,
        PlanMismatch,
        ResultWarning,
        TooEarly,
        UnboundedSensitivity,
        UnitDropped,
        UnknownColumn,
        Unsound,
        UnsupportedOperation,
        ValuesAtBounds,
    )
    from dpframe.parse.groups import Keys, keys
    from dpframe.plan import NoisyAggregate, PlanStep
    from dpframe.report import Plan, Verification, verify
    from dpframe.simulate import Simulation

register()

__version__ = "0.2.0"

__all__ = [
    "GDP",
    "ZCDP",
    "ApproxDP",
    "Audit",
    "BudgetExceeded",
    "Combination",
    "DPExpr",
    "DPFrameError",
    "DroppedRows",
    "EngineError",
    "Estimate",
    "EventRows",
    "Identifier",
    "ImpossibleKeys",
    "InvalidBounds",
    "InvalidBudget",
    "Keys",
    "LedgerError",
    "MissingKeys",
    "NoBudget",
    "NoGroups",
    "NoRows",
    "NoisyAggregate",
    "ParameterValue",
    "Plan",
    "PlanMismatch",
    "PlanStep",
    "PrivateFrame",
    "PrivateGroupBy",
    "PrivateQuery",
    "PureDP",
    "Release",
    "Releases",
    "ResultWarning",
    "Rows",
    "Sensitivity",
    "Session",
    "Simulation",
    "Stream",
    "Through",
    "TooEarly",
    "UnboundedSensitivity",
    "UnitDropped",
    "UnknownColumn",
    "Unsound",
    "UnsupportedOperation",
    "ValuesAtBounds",
    "Verification",
    "accounting",
    "argmax",
    "bounds",
    "cdf",
    "col",
    "combine",
    "count",
    "cube",
    "examples",
    "grouping_sets",
    "histogram",
    "keys",
    "mean",
    "median",
    "n_unique",
    "parameter",
    "quantile",
    "ratio",
    "rollup",
    "std",
    "sum",
    "var",
    "verify",
]

_ERRORS = (
    *("BudgetExceeded", "DPFrameError", "EngineError", "InvalidBounds", "InvalidBudget"),
    *("LedgerError", "MissingKeys", "NoBudget", "PlanMismatch", "TooEarly"),
    *("UnboundedSensitivity", "UnitDropped", "UnknownColumn", "Unsound", "UnsupportedOperation"),
    *("DroppedRows", "EventRows", "ImpossibleKeys", "NoGroups", "NoRows", "ResultWarning"),
    "ValuesAtBounds",
)
_HOMES = MappingProxyType(
    {
        **dict.fromkeys((*AGGREGATES, "cube", "grouping_sets", "rollup"), "api.functions"),
        **dict.fromkeys(_ERRORS, "errors"),
        **dict.fromkeys(("ApproxDP", "GDP", "PureDP", "ZCDP"), "core.budget"),
        **dict.fromkeys(("Identifier", "Rows"), "core.units"),
        **dict.fromkeys(("Keys", "keys"), "parse.groups"),
        **dict.fromkeys(("Combination", "Estimate", "combine"), "api.release"),
        **dict.fromkeys(("NoisyAggregate", "PlanStep"), "plan"),
        **dict.fromkeys(("ParameterValue", "parameter"), "api.parameters"),
        "Audit": "audit",
        "col": "api.column",
        "DPExpr": "api.expressions",
        **dict.fromkeys(("Plan", "Verification", "verify"), "report"),
        "PrivateFrame": "api.frame",
        "PrivateGroupBy": "api.group_by",
        "PrivateQuery": "api.query",
        **dict.fromkeys(("Release", "Releases"), "api.release"),
        "Sensitivity": "core.sensitivity",
        **dict.fromkeys(("Session", "Through"), "api.session"),
        "Stream": "api.stream",
        "Simulation": "simulate",
    }
)
"""Where public names come from that are no modules, as type checkers read above."""


if not TYPE_CHECKING:  # checkers know the names above, and report others

    def __getattr__(name: str) -> Any:
        """A public name, or a module of the package, loaded when it is first asked for."""
        if name in _HOMES:
            found: Any = getattr(import_module(f"dpframe.{_HOMES[name]}"), name)
        elif name.startswith("_") or find_spec(f"dpframe.{name}") is None:
            meant = name[0] != "_" and import_module("dpframe.api.no_raw_access").meant_by(name)
            if not meant and name.startswith(("read_", "scan_")):
                meant = f"protect the path: session.protect('file.{name[5:]}', unit=...)"
            instead = "; " + meant.replace("\n", "; or ") if meant else ""
            raise AttributeError(f"module 'dpframe' has no attribute {name!r}{instead}")
        else:
            found = import_module(f"dpframe.{name}")
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
