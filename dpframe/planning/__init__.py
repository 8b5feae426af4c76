"""The mechanisms that one query needs, or several that share a cost, and the choice among
them."""

from dpframe.planning.found_limits import (
    has_normal_noise,
    noise_in_rows,
    planned_with_limit,
    sizes_to_appear,
)
from dpframe.planning.gains import errors_of
from dpframe.planning.kept_stream import kept_of, resumed
from dpframe.planning.limit_rule import GROUPS, LimitRule, LossOfLimit
from dpframe.planning.physical import Exact, ExactTables, Translation, translate
from dpframe.planning.planning import Planning
from dpframe.planning.prepared import Prepared, PreparedTogether, alone, tables_of
from dpframe.planning.soundness import require_sound, require_verified
from dpframe.planning.stated import given, on_part, stating, with_physical, with_remaining

__all__ = [
    "GROUPS",
    "Exact",
    "ExactTables",
    "LimitRule",
    "LossOfLimit",
    "Planning",
    "Prepared",
    "PreparedTogether",
    "Translation",
    "alone",
    "errors_of",
    "given",
    "has_normal_noise",
    "kept_of",
    "noise_in_rows",
    "on_part",
    "planned_with_limit",
    "require_sound",
    "require_verified",
    "resumed",
    "sizes_to_appear",
    "stating",
    "tables_of",
    "translate",
    "with_physical",
    "with_remaining",
]
