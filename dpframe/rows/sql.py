"""What `pl.sql_expr` makes of arithmetic and IN since Polars 2; earlier it made others' forms.

Numbers are computed as everywhere here: not as decimals, and division by zero gives null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpframe.core.tree import Tree
from dpframe.errors import UnsupportedOperation
from dpframe.rows.arithmetic import Add, Mul, Sub, TrueDiv
from dpframe.rows.lookup import IsIn
from dpframe.rows.operation import Infix, Operand, Reader, snake

_OPERATORS: Mapping[str, Infix] = {"Plus": Add(), "Minus": Sub(), "Mul": Mul(), "Div": TrueDiv()}


def read_sql(operands: Sequence[Operand], params: Any) -> Tree:
    """The operation of an operator of SQL."""
    kind, inner = next(iter(params.items())) if isinstance(params, Mapping) else (params, None)
    if kind == "IsIn":
        return IsIn.read(operands, inner)
    asked = str(inner if kind == "Binary" else kind)
    operation = _OPERATORS.get(asked)
    if operation is None:
        raise UnsupportedOperation(
            f"{snake(asked)} of SQL is not supported", remedy="use +, -, *, / and IN"
        )
    return operation.of(*operands)


READERS: Mapping[str, Reader] = {"Sql": read_sql}
