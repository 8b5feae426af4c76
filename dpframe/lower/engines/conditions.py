"""Values that depend on a condition, or on which values are null."""

from __future__ import annotations

import narwhals.stable.v2 as nw

from dpframe.core.dtypes import BOOLEAN, STRING
from dpframe.lower.engines.casts import cast
from dpframe.lower.engines.engine_expr import EngineExpr, combined, hull
from dpframe.lower.engines.engine_scope import EngineScope
from dpframe.lower.engines.numbers import matched


def chosen_by(
    scope: EngineScope, condition: EngineExpr, yes: EngineExpr, no: EngineExpr
) -> EngineExpr:
    """One value where a condition holds, else another."""
    yes, no = matched(scope, yes, no)
    if condition.dtype != BOOLEAN:
        condition = cast(scope, condition, BOOLEAN)
    made = nw.when(condition.expr).then(yes.expr).otherwise(no.expr)
    dtype = STRING if yes.dtype.is_text and yes.dtype != no.dtype else yes.dtype
    return combined(made, dtype, condition, yes, no, known=hull(yes, no))


def coalesced(scope: EngineScope, *values: EngineExpr) -> EngineExpr:
    """The first value that is not null."""
    like = next((m for m in values if m.dtype.name != "Null" and not m.untyped), values[0])
    parts = [matched(scope, like, m)[1] for m in values]
    expr = nw.coalesce(*(m.expr for m in parts))
    return combined(expr, like.dtype, *parts, known=hull(*parts))
