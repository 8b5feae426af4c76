"""Joins of two private frames, whose rows meet where they are of the same individual."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import polars as pl

from dpframe.core.domain import columns
from dpframe.core.engines import EVERYWHERE
from dpframe.core.units import Identifier
from dpframe.core.windows import NAMES
from dpframe.errors import UnsupportedOperation
from dpframe.frames.binary import Binary, chain_words, require_unweighed
from dpframe.frames.facts import FrameFacts
from dpframe.frames.individuals import Owners
from dpframe.frames.joins import added_names, joined, require_same_types
from dpframe.kernel.frame import meet_limits
from dpframe.rows.operation import Namespace
from dpframe.rows.suggest import unknown_column


@dataclass(frozen=True, slots=True)
class JoinPrivate(Binary):
    """Each pair of rows of the same individual, one from each frame, as one row. A semi join keeps
    the rows of this frame whose individual has a row in the other frame, an anti join the rest.
    Where an individual is a person in a calendar window, rows match within each window.

    Guarantee
    ---------
    Rows meet only rows of the same individual, so frames that differ in one individual give joins
    that differ in that individual only. With at most n rows in one frame and m in the other it has
    at most n m.

    Proof
    -----
    A joined row is of one individual, because the identifiers are equal, and the numbers of their
    windows where there are windows, and depends on two rows of that individual. It keeps the time
    of the first one, and so its window. Each of n rows meets each of m at most once; a left join
    keeps a row that meets none, so each becomes max(1, m) at most. Groups of columns from one frame
    are that frame's, so a limit on their number still holds. With a semi or anti join each row here
    is kept or dropped, by rows there of its own individual, so every limit still holds.
    """

    engines = EVERYWHERE

    how: Literal["inner", "left", "semi", "anti"]
    suffix: str
    new: tuple[tuple[str, str], ...] | None = field(
        default=None, repr=False, compare=False, kw_only=True
    )

    def facts(self, before: FrameFacts) -> FrameFacts:
        other = self.other.facts
        require_unweighed(other, self.words())
        if not isinstance(before.unit, Identifier) or before.identifier is None:
            raise UnsupportedOperation(
                "private frames join on the identifier of individuals, and unit=dp.Rows() has none",
                where=self.words(),
                remedy=(
                    'protect both frames with unit="user_id"',
                    "protect this frame through the one that has the identifier: "
                    "unit=dp.Through(frame, on=...)",
                ),
            )
        assert other.identifier is not None
        mine, theirs = before.columns[before.identifier], other.columns[other.identifier]
        require_same_types([mine], [theirs.dtype], [before.identifier], self.words())
        self._require_keys(before)
        if self._only_keeps:
            return replace(before, complete=False)
        names = self.new_columns(before)
        table = dict(before.columns)
        for old, new in names.items():
            found = other.columns[old]
            table[new] = found.with_null() if self.how == "left" else found
        limits = meet_limits(before.reach, other.reach, self.keys, self.how, names)
        return replace(before, columns=columns(table), complete=False, limits=limits)

    @property
    def _only_keeps(self) -> bool:
        """Whether rows are kept or dropped, and none get columns."""
        return self.how in ("semi", "anti")

    @property
    def keys(self) -> tuple[tuple[str, str], ...]:
        """Columns that rows must have in common besides the identifier, here and in the other."""
        return ()

    def _require_keys(self, before: FrameFacts) -> None:
        """Refuse keys that are not there, or whose equality is unsure."""
        other = self.other.facts
        for name, facts in [
            *((a, before) for a, _ in self.keys),
            *((b, other) for _, b in self.keys),
        ]:
            if name not in facts.columns:
                raise unknown_column(name, facts.columns, self.words(), frame="a frame")
        here, there = [a for a, _ in self.keys], [b for _, b in self.keys]
        require_same_types(
            [before.columns[a] for a in here],
            [other.columns[b].dtype for b in there],
            here,
            self.words(),
        )

    def new_columns(self, before: FrameFacts) -> dict[str, str]:
        """The columns of the other frame that rows get, and what they are called then."""
        if self._only_keeps:
            return {}
        if self.new is not None:
            return dict(self.new)
        other = self.other.facts
        used = {other.identifier, *(b for _, b in self.keys)}
        others = [name for name in other.columns if name not in used]
        return added_names(before.columns, others, self.suffix, self.words())

    def combine(
        self, left: pl.LazyFrame, right: pl.LazyFrame, before: FrameFacts, ns: Namespace
    ) -> pl.LazyFrame:
        names = self.new_columns(before)
        taken = {*self.other.facts.columns, *names.values()}
        mine = Owners.of(left, before, ns, self.words(), taken)
        theirs = Owners.of(right, self.other.facts, ns, self.words(), taken)
        keys = [*zip(mine.types, theirs.types, strict=True), *self.keys]
        types = {name: found.dtype for name, found in before.columns.items()} | mine.types
        return mine.without(joined(mine.frame, theirs.frame, keys, types, names, self.how, ns))

    def words(self) -> str:
        every = self.other.facts.every
        within = "" if every is None else f" within each calendar {NAMES[every]}"
        keys = "".join(f" and {a!r}" + f" = {b!r}" * (a != b) for a, b in self.keys)
        return f"join({chain_words(self.other)}, on the identifier{within}{keys}, how={self.how!r})"

    @property
    def stability(self) -> str:
        if self._only_keeps:
            return "each row is kept or dropped by rows of the same individual only"
        return "rows meet rows of the same individual only, whose numbers multiply"


@dataclass(frozen=True, slots=True)
class JoinPrivateKeys(JoinPrivate):
    """The rows of both frames that are of the same individual and have the same values of some
    columns, side by side.

    Guarantee
    ---------
    Rows meet only rows of the same individual, so frames that differ in one individual give joins
    that differ in that individual only. Where an individual has at most m rows with one value of
    the keys in the other frame, each of its rows becomes m at most. Where it has at most n such
    rows here, each row of the other frame is in n at most.

    Proof
    -----
    A joined row is one of the join on the identifier alone, so it is of one individual and depends
    on two rows of that individual. A row with the key k meets rows of its individual with the key
    k: m at most by a limit of rows for each value of columns that are all keys, or by one of all
    rows. A left join keeps a row that meets none, so each becomes max(1, m) at most, and limits of
    this frame hold m times over. The limits of the other frame: n rows for each value of some
    columns are n times as many as one row is in. With a left join u of an individual's r rows
    meet none and have null there; the others meet at most n rows with null each, and u + n (r -
    u) <= n r. Null is one more value of these columns then; without a left join there are no
    other values than before, and those of keys are the values of this frame's.

    Parameters
    ----------
    on
        Pairs of columns, of this frame and the other; a null matches nothing.
    """

    engines = EVERYWHERE

    on: tuple[tuple[str, str], ...]

    @property
    def keys(self) -> tuple[tuple[str, str], ...]:
        return self.on

    @property
    def stability(self) -> str:
        if self._only_keeps:
            return "each row is kept or dropped by rows of the same individual with the same keys"
        return (
            "rows meet rows of the same individual with the same keys only; so many of these as "
            "limits allow"
        )
