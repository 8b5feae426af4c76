"""All row-wise operations: the allow-list. What is not here is refused."""

from __future__ import annotations

from types import MappingProxyType

from dpframe.rows import (
    cut,
    lists,
    strings_case,
    strings_concat,
    strings_length,
    strings_replace,
    strings_search,
    strings_slice,
    strings_strip,
    struct,
)
from dpframe.rows.operation import RowOperation

OPERATIONS: tuple[RowOperation, ...] = (
    *cut.OPERATIONS,
    *lists.OPERATIONS,
    *strings_case.OPERATIONS,
    *strings_concat.OPERATIONS,
    *strings_length.OPERATIONS,
    *strings_replace.OPERATIONS,
    *strings_search.OPERATIONS,
    *strings_slice.OPERATIONS,
    *strings_strip.OPERATIONS,
    *struct.OPERATIONS,
)

BY_NAME = MappingProxyType({operation.name: operation for operation in OPERATIONS})
