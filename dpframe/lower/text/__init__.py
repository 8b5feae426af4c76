"""Text files with one record per line, read so that no record can disturb another.

Readers of engines let one record change others: a broken quote swallows the lines after it, a value
of another type makes the query fail or a column become text. Here a line is a row, for any
content, and each field of it is parsed on its own (docs/decisions/0010-text-files.md).
"""

from dpframe.lower.text.files import (
    TEXT_KINDS,
    TextFiles,
    declared_types,
    text_files,
    text_kind,
    text_types,
)
from dpframe.lower.text.names import type_words
from dpframe.lower.text.places import WITHOUT_DATA, no_file, require_readable
from dpframe.lower.text.values import require_known, value

__all__ = [
    "TEXT_KINDS",
    "WITHOUT_DATA",
    "TextFiles",
    "declared_types",
    "no_file",
    "require_known",
    "require_readable",
    "text_files",
    "text_kind",
    "text_types",
    "type_words",
    "value",
]
