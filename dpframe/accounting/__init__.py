"""What happened, and what it costs together: events, accountants, and `compare`.

Names are looked up on first use, so that `import dpframe` does not pay for what it does not need.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpframe.accounting.accountant import Accountant
    from dpframe.accounting.accountants import (
        AdvancedAccountant,
        BasicAccountant,
        ClosedFormAccountant,
        GaussianDPAccountant,
        LooseZCDPAccountant,
        OptimalAccountant,
        PrivacyLossAccountant,
        RenyiAccountant,
        ZCDPAccountant,
    )
    from dpframe.accounting.comparison import Bound, best, bounds, parallel, to_dp_accounting
    from dpframe.accounting.events import (
        ApproxEvent,
        DiscreteGaussianEvent,
        DiscreteLaplaceEvent,
        Event,
        ExponentialEvent,
        GaussianEvent,
        LaplaceEvent,
        PermuteAndFlipEvent,
        RandomizedResponseEvent,
        SharedExponentialEvent,
        ZCDPEvent,
    )
    from dpframe.accounting.table import compare

__all__ = [
    "Accountant",
    "AdvancedAccountant",
    "ApproxEvent",
    "BasicAccountant",
    "Bound",
    "ClosedFormAccountant",
    "DiscreteGaussianEvent",
    "DiscreteLaplaceEvent",
    "Event",
    "ExponentialEvent",
    "GaussianDPAccountant",
    "GaussianEvent",
    "LaplaceEvent",
    "LooseZCDPAccountant",
    "OptimalAccountant",
    "PermuteAndFlipEvent",
    "PrivacyLossAccountant",
    "RandomizedResponseEvent",
    "RenyiAccountant",
    "SharedExponentialEvent",
    "ZCDPAccountant",
    "ZCDPEvent",
    "best",
    "bounds",
    "compare",
    "parallel",
    "to_dp_accounting",
]

_HOMES = {
    "accountant": ("Accountant",),
    "accountants": (
        *("AdvancedAccountant", "BasicAccountant", "ClosedFormAccountant", "GaussianDPAccountant"),
        *("LooseZCDPAccountant", "OptimalAccountant", "PrivacyLossAccountant", "RenyiAccountant"),
        "ZCDPAccountant",
    ),
    "comparison": ("Bound", "best", "bounds", "parallel", "to_dp_accounting"),
    "table": ("compare",),
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = next((home for home, names in _HOMES.items() if name in names), "events")
    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return list(__all__)
