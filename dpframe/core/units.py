"""Privacy units: whom a session protects, and what it means for two frames to be neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from dpframe.core.exact import as_given
from dpframe.errors import DPFrameError, UnsupportedOperation
from dpframe.sealed import all_sealed

Adjacency: TypeAlias = Literal["add-remove", "change-one"]


@all_sealed
@dataclass(frozen=True, slots=True)
class Rows:
    """Each individual owns at most `contributions` rows.

    Parameters
    ----------
    adjacency
        ``"add-remove"``: neighbouring frames differ by all rows of one individual, present in one
        and absent in the other. ``"change-one"``: they have equally many rows and differ in the
        values of one individual's rows, so the number of rows is public.
    contributions
        The largest number of rows that one individual owns. A promise of the data owner.

    Raises
    ------
    UnsupportedOperation
        For another adjacency, or contributions that are not a positive integer.

    Examples
    --------
    >>> import dpframe as dp
    >>> dp.Rows("change-one", contributions=3)
    Rows(adjacency='change-one', contributions=3)
    """

    adjacency: Adjacency = "add-remove"
    contributions: int = 1

    def __post_init__(self) -> None:
        if self.adjacency not in ("add-remove", "change-one"):
            raise UnsupportedOperation(
                f"there is no adjacency {as_given(self.adjacency)}",
                remedy='use dp.Rows("add-remove") or dp.Rows("change-one")',
            )
        whole = isinstance(self.contributions, int) and not isinstance(self.contributions, bool)
        if not whole or self.contributions < 1:
            raise UnsupportedOperation(
                f"contributions must be a positive integer, not {as_given(self.contributions)}",
                remedy="use dp.Rows(contributions=1) when each individual owns one row",
            )

    @property
    def kind(self) -> str:
        """What two frames of one session must have in common."""
        return f"rows, {self.adjacency}"

    def words(self) -> str:
        """Whom it protects, in a sentence."""
        rows = "one row" if self.contributions == 1 else f"up to {self.contributions} rows"
        if self.adjacency == "add-remove":
            return f"adding or removing {rows} of one individual"
        return f"changing the values in {rows} of one individual (the number of rows is public)"


@all_sealed
@dataclass(frozen=True, slots=True)
class Identifier:
    """All rows with the same value of `column` belong to one individual.

    Parameters
    ----------
    column
        The column that identifies individuals. Rows where it is null are nobody's and are dropped.

    Raises
    ------
    UnsupportedOperation
        When it is no text.

    Examples
    --------
    >>> import dpframe as dp
    >>> dp.Identifier("user_id")  # for which plain "user_id" is short
    Identifier(column='user_id')
    """

    column: str

    def __post_init__(self) -> None:
        if not isinstance(self.column, str):
            raise UnsupportedOperation(
                f"an identifier is the name of a column, not {as_given(self.column)}",
                where="dp.Identifier(...)",
                remedy='write for example dp.Identifier("user_id")',
            )

    @property
    def adjacency(self) -> Adjacency:
        """Neighbouring frames differ by all rows of one individual."""
        return "add-remove"

    @property
    def kind(self) -> str:
        """What two frames of one session must have in common."""
        return "identifier"

    def words(self) -> str:
        """Whom it protects, in a sentence."""
        return f'adding or removing all rows of one individual, identified by "{self.column}"'


Unit: TypeAlias = Rows | Identifier


def as_unit(unit: object) -> Unit:
    """The unit that a user wrote; plain text is short for an `Identifier`.

    Raises
    ------
    DPFrameError
        When it is neither a unit nor text.
    """
    match unit:
        case Rows() | Identifier():
            return unit
        case str():
            return Identifier(unit)
        case _:
            raise DPFrameError(
                f"a privacy unit is missing: {as_given(unit)} does not say who is protected",
                where="unit",
                remedy='pass unit=dp.Rows() when each row is one person, or unit="user_id"',
            )
