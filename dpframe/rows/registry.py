"""All row-wise operations: the allow-list. What is not here is refused."""

from __future__ import annotations

from types import MappingProxyType

from dpframe.rows import (
    cut,
    lists,
    strings_case,
    strings_concat,
    strings_length,
    strings_parse,
    strings_replace,
    strings_search,
    strings_slice,
    strings_strip,
    struct,
    temporal_calendar,
    temporal_clock,
    temporal_duration,
    temporal_offset,
    temporal_parts,
    temporal_truncate,
    temporal_units,
    temporal_zone,
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
    *strings_parse.OPERATIONS,
    *temporal_calendar.OPERATIONS,
    *temporal_clock.OPERATIONS,
    *temporal_duration.OPERATIONS,
    *temporal_offset.OPERATIONS,
    *temporal_parts.OPERATIONS,
    *temporal_truncate.OPERATIONS,
    *temporal_units.OPERATIONS,
    *temporal_zone.OPERATIONS,
)

BY_NAME = MappingProxyType({operation.name: operation for operation in OPERATIONS})
