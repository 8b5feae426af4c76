"""The mechanisms that one query needs, or several that share a cost, and the choice among
them."""

from dpframe.planning.kept_stream import kept_of, resumed
from dpframe.planning.limit_rule import GROUPS, LimitRule, LossOfLimit
from dpframe.planning.physical import (
    Translation,
    alone,
    given,
    on_part,
    stating,
    translate,
    with_physical,
    with_remaining,
)
from dpframe.planning.planning import (
    RULES,
    Answer,
    Draft,
    Planning,
    Rule,
    errors_of,
    has_normal_noise,
    noise_in_rows,
    planned_with_limit,
    sizes_to_appear,
)
from dpframe.planning.prepared import Prepared, PreparedTogether, tables_of
from dpframe.planning.soundness import require_sound, require_verified

__all__ = [
    "GROUPS",
    "RULES",
    "Answer",
    "Draft",
    "LimitRule",
    "LossOfLimit",
    "Planning",
    "Prepared",
    "PreparedTogether",
    "Rule",
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
