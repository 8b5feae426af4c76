"""What is known of a private frame at one point of a chain of operations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from dpframe.core.domain import Columns, Domain, columns
from dpframe.core.units import Identifier, Rows, Unit
from dpframe.core.windows import Every
from dpframe.errors import UnitDropped, UnknownColumn, UnsupportedOperation
from dpframe.kernel.frame import Facts, Limit, rename_limits
from dpframe.rows.suggest import did_you_mean, unknown_column


@dataclass(frozen=True, slots=True)
class FrameFacts:
    """The columns of a frame, and how its rows relate to individuals.

    Parameters
    ----------
    columns
        The domain of each column, in order.
    unit
        Who is protected.
    complete
        Whether every row of the protected frame is still there. Under change-one adjacency the
        number of rows is public only then.
    copies
        How many rows one row of the protected frame may have become, with `Rows`.
    identifier
        The present name of the column that identifies individuals; None with `Rows`.
    time
        The present name of the column whose calendar windows divide a person's rows; None where
        all rows of a person are one individual's.
    limits
        What is known of the rows of one individual, with an identifier.
    norm
        The most that the norm of an individual's rows over groups may be: its rows weigh that much
        less where they are added up. None where rows count as they are.
    """

    columns: Columns
    unit: Unit
    complete: bool = True
    copies: int = 1
    identifier: str | None = None
    limits: tuple[Limit, ...] = ()
    norm: Fraction | None = None
    time: str | None = None

    def __post_init__(self) -> None:
        require_plain_names(self.columns)

    def changed(
        self, table: Mapping[str, Domain], kept: Mapping[str, str], where: str
    ) -> FrameFacts:
        """The same rows with other columns.

        Parameters
        ----------
        table
            The columns.
        kept
            Old columns that are still there with the same values, as {old name: new name}.
        where
            The step, for messages.

        Raises
        ------
        UnitDropped
            When the identifier, or the column of times that goes with it, is no longer there.
        """
        if self.identifier is None:
            return replace(self, columns=columns(table))
        for name, what in ((self.identifier, "whose row it is"), (self.time, "in which window")):
            if name is not None and name not in kept:
                raise UnitDropped(
                    f"the column {name!r} says {what}, and would be dropped or get other values",
                    where=where,
                    remedy=f"keep {name!r} unchanged, and give the computed column another name",
                )
        return replace(
            self,
            columns=columns(table),
            identifier=kept[self.identifier],
            time=None if self.time is None else kept[self.time],
            limits=rename_limits(self.limits, kept),
        )

    @property
    def reach(self) -> Facts:
        """How far one individual reaches, as the kernel has it. It believes this of no plan."""
        unit = self.unit
        rows = unit.contributions * self.copies if isinstance(unit, Rows) else 0
        about = tuple(self.columns), rows, self.complete, self.identifier, self.time, self.every
        time = () if self.time is None else ((self.time, str(self.columns[self.time].dtype)),)
        return Facts(*about, self.limits, self.norm, types=time)

    @property
    def every(self) -> Every | None:
        """The length of the windows that divide a person's rows; None without."""
        return self.unit.window if isinstance(self.unit, Identifier) else None

    def limited(self, limit: Limit) -> FrameFacts:
        """The same columns, with one more limit in force."""
        return replace(self, limits=(*self.limits, limit))


def require_plain_names(names: Iterable[str]) -> None:
    """Refuse names that Polars takes for patterns: another column would be read."""
    for name in names:
        if name == "*" or (name.startswith("^") and name.endswith("$")):
            raise UnsupportedOperation(
                f"the column name {name!r} is not possible: Polars reads it as a "
                "pattern that selects columns",
                remedy="rename it, before the frame is protected if it has the name then",
            )


def protected_facts(table: Columns, unit: Unit) -> FrameFacts:
    """The facts about a frame when it is protected: rows without an identifier are dropped.

    Raises
    ------
    UnknownColumn
        When the identifier or the column of times does not exist.
    UnsupportedOperation
        When its values cannot surely be distinguished, or the times are not dates or times.
    """
    if not isinstance(unit, Identifier):
        return FrameFacts(table, unit)
    where = f"unit={unit.column!r}"
    if unit.column not in table:
        near = did_you_mean(unit.column, table)
        raise UnknownColumn(
            f"the frame has no column {unit.column!r}",
            where=where,
            remedy=_whose_rows(unit.column, near),
        )
    dtype = table[unit.column].dtype
    if dtype.is_float or dtype.is_nested or not dtype.is_known:
        raise UnsupportedOperation(
            f"values of type {dtype} do not identify individuals",
            where=where,
            remedy="use a column of text or integers",
        )
    known = {**table, unit.column: table[unit.column].with_null(False)}
    if unit.time is not None:
        _require_times(table, unit.time)
    return FrameFacts(columns(known), unit, complete=False, identifier=unit.column, time=unit.time)


def _whose_rows(column: str, near: str) -> str | tuple[str, str]:
    """What to write for an identifier that the frame lacks."""
    if column.lower() in ("row", "rows"):
        return "write unit=dp.Rows(), where each row is one person"
    if near.startswith("did"):
        return near, "write unit=dp.Rows(), where each row is one person"
    return near, ("protect the frame through the table that has it: unit=dp.Through(other, on=...)")


def _require_times(table: Columns, time: str) -> None:
    where = f"time={time!r}"
    if time not in table:
        raise unknown_column(time, table, where)
    dtype = table[time].dtype
    if dtype.name not in ("Date", "Datetime"):
        raise UnsupportedOperation(
            f"values of type {dtype} are not dates or times",
            where=where,
            remedy="name a column of dates or times; parse or cast it before the frame is "
            "protected",
        )
