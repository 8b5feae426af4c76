"""All row-wise operations: the allow-list. What is not here is refused."""

from __future__ import annotations

from types import MappingProxyType

from dpframe.rows.operation import RowOperation

OPERATIONS: tuple[RowOperation, ...] = ()

BY_NAME = MappingProxyType({operation.name: operation for operation in OPERATIONS})
