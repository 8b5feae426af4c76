"""What is known of a private frame at one point of a chain of operations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dpframe.core.domain import Columns, Domain, columns
from dpframe.core.units import Rows
from dpframe.errors import UnsupportedOperation


@dataclass(frozen=True, slots=True)
class FrameFacts:
    """The columns of a frame, and how its rows relate to individuals.

    Parameters
    ----------
    columns
        The domain of each column, in order.
    unit
        Who is protected. Every operation so far maps each row to at most one row, so an individual
        still owns at most `unit.contributions` rows.
    complete
        Whether every row of the protected frame is still there. Under change-one adjacency the
        number of rows is public only then.
    """

    columns: Columns
    unit: Rows
    complete: bool = True

    def __post_init__(self) -> None:
        for name in self.columns:
            if name == "*" or (name.startswith("^") and name.endswith("$")):
                raise UnsupportedOperation(
                    f"a column is named {name!r}, which Polars takes for a pattern that selects "
                    "columns",
                    remedy="give it another name; before the frame is protected, if it has it then",
                )

    def with_columns(self, table: Mapping[str, Domain]) -> FrameFacts:
        """The same rows with other columns."""
        return replace(self, columns=columns(table))
