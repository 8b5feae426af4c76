"""Frames whose individuals another frame knows: items of orders, which have a customer."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpframe.api.frame import PrivateFrame
from dpframe.api.source import Source
from dpframe.core.domain import domain_of_dtype
from dpframe.core.exact import as_given
from dpframe.core.units import Identifier
from dpframe.errors import UnsupportedOperation
from dpframe.frames.joins import require_same_types
from dpframe.frames.relation import Owners, Relation
from dpframe.plan.remarks import owner_remark
from dpframe.rows.polars_dtypes import schema_from_polars
from dpframe.rows.suggest import unknown_column
from dpframe.sealed import all_sealed

__all__ = ["Through"]

_WHERE = "dp.Through(...)"


@all_sealed
@dataclass(frozen=True, slots=True, eq=False)
class Through:
    """A unit for frames without an identifier: another private frame identifies the owners of rows.
    An item, for example, belongs to the customer who has its order.

    The protected frame gets the identifier as a column, as if the data owner had joined it before.
    If several individuals have a row's key, each of them gets a copy of the row. If none has it,
    the row is dropped.

    Parameters
    ----------
    frame
        The private frame with the owners, unchanged since `Session.protect`. Its unit is an
        identifier.
    on
        The common key column, of text, integers, dates or categories; a null matches nothing.
    left_on, right_on
        The key column in the protected frame and in `frame`, if their names differ.

    Raises
    ------
    UnsupportedOperation
        When `frame` has no identifier, or was changed since it was protected.

    Guarantee
    ---------
    Neighbouring frames differ in all rows of one individual in `frame`, and in any rows of the
    protected frame whose keys no other individual in `frame` has. An individual comes and goes
    with the rows that only they own. Protected rows then differ in that individual's only.

    Proof
    -----
    A protected row is a pair of a row r and an individual who has the key of r in `frame`, each
    pair once. Let individual c be added or removed, and let d be another individual. The rows of d
    in `frame` stay the same, so d has the same keys. Rows that come or go with c do not have keys
    of d, so the rows with the keys of d stay the same, and so do the pairs of d. All other pairs
    have the identifier of c. This is the meaning of protection by an identifier, so every rule for
    such frames applies.

    Examples
    --------
    >>> import polars as pl
    >>> import dpframe as dp
    >>> session = dp.Session(epsilon=1)
    >>> orders = session.protect(pl.LazyFrame({"order": [1, 2], "who": ["a", "b"]}), unit="who")
    >>> items = pl.LazyFrame({"order": [1, 1, 2], "price": [5, 7, 9]})
    >>> session.protect(items, unit=dp.Through(orders, on="order")).columns
    ['order', 'price', 'who']
    """

    frame: PrivateFrame
    on: str | None = None
    left_on: str | None = None
    right_on: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.frame, PrivateFrame):
            raise UnsupportedOperation(
                "dp.Through needs a private frame with an identifier, not a "
                f"{type(self.frame).__name__}",
                where=_WHERE,
                remedy='write orders = session.protect(..., unit="customer"), and pass orders',
            )
        facts = self.frame._relation.facts
        if not isinstance(facts.unit, Identifier) or facts.unit.window is not None:
            raise UnsupportedOperation(
                "dp.Through needs a frame that is protected by an identifier, and this "
                f"one protects {facts.unit.kind}",
                where=_WHERE,
                remedy=(
                    'protect it with unit="customer"',
                    "join the tables before session.protect(...)",
                ),
            )
        if self.frame._relation.steps:
            raise UnsupportedOperation(
                "the frame has been changed since protect(), so its keys may no longer match",
                where=_WHERE,
                remedy="pass the frame that session.protect(...) returned",
            )
        self._require_names()

    def _require_names(self) -> None:
        both = self.on is not None and self.left_on is None and self.right_on is None
        apart = self.on is None and self.left_on is not None and self.right_on is not None
        if not (both or apart) or not all(isinstance(name, str) for name in self._names):
            raise UnsupportedOperation(
                f"the key is one column, not on={as_given(self.on)}, "
                f"left_on={as_given(self.left_on)}, right_on={as_given(self.right_on)}",
                where=_WHERE,
                remedy='write dp.Through(orders, on="order"), or left_on= and right_on=',
            )

    @property
    def _names(self) -> tuple[str, str]:
        """The key in the frame that is protected, and in the one that knows."""
        here = self.left_on if self.on is None else self.on
        there = self.right_on if self.on is None else self.on
        return str(here), str(there)

    def _unit_in(self, session: object) -> Identifier:
        """Whom the frame protects that knows.

        Raises
        ------
        UnsupportedOperation
            When it belongs to another session.
        """
        if self.frame._session is not session:
            raise UnsupportedOperation(
                "the frame with the identifier belongs to another session",
                where=_WHERE,
                remedy="protect both frames in one session",
            )
        unit = self.frame._relation.facts.unit
        assert isinstance(unit, Identifier)
        return unit

    def _owned(self, source: Source) -> Source:
        """The rows with whose they are.

        Raises
        ------
        UnsupportedOperation
            When they say that themselves, or keys of these types are not compared.
        UnknownColumn
            When a frame does not have the column.
        """
        (here, there), relation, owners = self._names, self.frame._relation, self.frame._source
        who = relation.facts.identifier
        assert who is not None
        assert isinstance(owners, Source)
        if who in source.schema:
            raise UnsupportedOperation(
                f"the frame already has a column {who!r}",
                where=_WHERE,
                remedy=(
                    f'write unit="{who}"',
                    "rename that column first, if it means something else",
                ),
            )
        if there == who:
            raise UnsupportedOperation(
                f"the key {there!r} is the identifier itself",
                where=_WHERE,
                remedy=f'rename {here!r} to {who!r} first, and write unit="{who}"',
            )
        types = schema_from_polars(source.schema)
        for name, known in ((here, types), (there, relation.facts.columns)):
            if name not in known:
                raise unknown_column(name, known, _WHERE)
        dtype = relation.facts.columns[there].dtype
        require_same_types([domain_of_dtype(types[here])], [dtype], [here], _WHERE)
        remark = owner_remark(here, there, None if relation.by_place else relation.name)
        return source.owned_by(owners, (here, there), who, remark)

    def _in_relation(self, relation: Relation) -> Relation:
        """The protected frame, where it is known by which frame and keys; its name stands for it in
        other processes only where that of the other one does, too.
        """
        other = self.frame._relation
        owners = Owners(other.token, other.name, *self._names)
        return replace(relation, named=relation.named and other.named, owners=owners)
