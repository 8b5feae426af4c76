"""Joins with public frames, and of two private frames by the rows of the same individual."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Self, TypeAlias

import polars as pl

from dpframe.core.dtypes import STRING, Columns, Domain, DType, columns, domain_of_dtype
from dpframe.core.tree import Change
from dpframe.core.units import EVERYWHERE, Identifier
from dpframe.core.windows import NAMES
from dpframe.errors import UnsupportedOperation
from dpframe.frames.facts import FrameFacts, require_plain_names
from dpframe.frames.public import bring, digest, freeze
from dpframe.frames.relation import Binary, Step, chain_words, require_unweighed
from dpframe.frames.sampling import Owners, comparable, new_name
from dpframe.kernel.frame import copy_limits, meet_limits
from dpframe.rows.failures import FAILURES
from dpframe.rows.operation import Namespace
from dpframe.rows.polars_dtypes import from_polars
from dpframe.rows.suggest import unknown_column


def require_same_types(
    left: Sequence[Domain], right: Sequence[DType], names: Sequence[str], where: str
) -> None:
    """Refuse keys that would be compared after a cast, or whose equality is unsure."""
    for found, dtype, name in zip(left, right, names, strict=True):
        both_text = found.dtype.is_text and dtype.is_text
        if found.dtype.is_float or found.dtype.is_nested or not found.dtype.is_known:
            raise UnsupportedOperation(
                f"{name!r} of type {found.dtype} cannot be a key of a join",
                where=where,
                remedy="join on text, integers, dates or categories",
            )
        if found.dtype != dtype and not both_text:
            raise UnsupportedOperation(
                f"{name!r} has type {found.dtype} here and {dtype} in the other frame",
                where=where,
                remedy=f"cast the key of the other frame to {found.dtype}",
            )


def added_names(present: Columns, others: Sequence[str], suffix: str, where: str) -> dict[str, str]:
    """The names that columns of the other frame get: their own, or with the suffix."""
    names = {name: name + suffix if name in present else name for name in others}
    for name in names.values():
        if name in present or list(names.values()).count(name) > 1:
            raise UnsupportedOperation(
                f"two columns would be named {name!r}",
                where=where,
                remedy=("rename one of them first", "write another suffix="),
            )
    return names


def join_frames(
    left: pl.LazyFrame,
    right: pl.LazyFrame,
    keys: Sequence[tuple[str, str]],
    types: Mapping[str, DType],
    names: Mapping[str, str],
    how: str,
    ns: Namespace,
) -> pl.LazyFrame:
    """The join, with text keys as text and no key taken for sorted; nulls match nothing.

    Parameters
    ----------
    keys
        Names of key columns, left and right.
    types
        The types of the left columns.
    names
        The other columns of `right` that are kept, and their names then.
    how
        ``"inner"``, ``"left"``, ``"semi"`` or ``"anti"``.
    """
    taken = {*types, *names.values()}
    marks = [new_name(taken, f"key{i}_") for i in range(len(keys))]
    marked = left.with_columns(
        *(comparable(ns, a, types[a]).alias(m) for (a, _), m in zip(keys, marks, strict=True))
    )
    others = right.select(
        *(
            comparable(ns, b, STRING if types[a].is_text else types[a]).cast(ns.String).alias(m)
            if types[a].is_text
            else comparable(ns, b, types[a]).alias(m)
            for (a, b), m in zip(keys, marks, strict=True)
        ),
        *(ns.col(old).alias(new) for old, new in names.items()),
    )
    return marked.join(others, on=marks, how=how).drop(*marks)  # type: ignore[arg-type]


# -- Public frames --------------------------------------------------------------------------------


How: TypeAlias = Literal["inner", "left", "semi", "anti"]


@dataclass(frozen=True, slots=True)
class JoinPublic(Step):
    """Add the columns of a public frame, or keep rows whose key it has, or has not.

    Guarantee
    ---------
    A row becomes as many rows as the public frame has with its key, f at most, and all are the same
    individual's. f is computed from the public frame, so that it holds for all private data.

    Proof
    -----
    What a row meets depends on its key and on the public frame, which neighbouring frames have in
    common. A key has at most f public rows, and a left join keeps a row that meets none, so a row
    becomes max(1, f) at most; a semi or anti join keeps or drops it, like a filter. The identifier
    comes from the private side, so all these rows stay the same individual's.
    """

    engines = EVERYWHERE

    # The frame, as `freeze` gives it; what it holds is part of the plan.
    public: pl.DataFrame = field(repr=False, compare=False)
    left_on: tuple[str, ...]  # The key columns; a null matches nothing
    right_on: tuple[str, ...]
    how: How  # The kind of join
    suffix: str  # Of columns that have a name which is taken
    digest: str  # The digest of the public frame, for fingerprints
    # What its other columns are called then; None where the suffix decides.
    new: tuple[str, ...] | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        public: pl.DataFrame,
        left_on: tuple[str, ...],
        right_on: tuple[str, ...],
        how: How,
        suffix: str,
    ) -> JoinPublic:
        require_plain_names(public.columns)
        try:
            public = freeze(public)
            written = digest(public)
        except FAILURES:
            raise UnsupportedOperation(
                "the public frame has columns that cannot be written down in a plan",
                where="join(...)",
                remedy="select the columns that are needed",
            ) from None
        return cls(public, left_on, right_on, how, suffix, written)

    def map_exprs(self, change: Change) -> Self:
        return self

    def facts(self, before: FrameFacts) -> FrameFacts:
        self._require_keys(before)
        if self.how in ("semi", "anti"):
            return replace(before, complete=False)
        table: dict[str, Domain] = dict(before.columns)
        for old, new in self.new_columns(before).items():
            found = domain_of_dtype(from_polars(self.public.schema[old]))
            known = self.how == "inner" and not self.public[old].null_count()
            table[new] = found.with_null(not known)
        times = max(1, self.fan_out)
        return replace(
            before,
            columns=columns(table),
            complete=before.complete and self.how == "left" and times == 1,
            copies=before.copies * times,
            limits=copy_limits(before.limits, times),
        )

    @property
    def fan_out(self) -> int:
        """The largest number of public rows with one key."""
        keyed = self.public.select(self.right_on).drop_nulls()
        rows = new_name(self.right_on, "rows")
        most: int | None = keyed.group_by(self.right_on).len(rows)[rows].max()  # type: ignore[assignment]
        return most or 0

    def _require_keys(self, before: FrameFacts) -> None:
        for name in self.left_on:
            if name not in before.columns:
                raise unknown_column(name, before.columns, self.words())
        for name in self.right_on:
            if name not in self.public.columns:
                raise unknown_column(
                    name, self.public.columns, self.words(), frame="the public frame"
                )
        if not self.left_on or len(self.left_on) != len(self.right_on):
            raise UnsupportedOperation(
                "a join needs the same number of keys on both sides, at least one",
                where=self.words(),
                remedy=(
                    'write join(public, on="key")',
                    "write left_on= and right_on= with equally many names",
                ),
            )
        right = [from_polars(self.public.schema[name]) for name in self.right_on]
        left = [before.columns[name] for name in self.left_on]
        require_same_types(left, right, self.left_on, self.words())

    def new_columns(self, before: FrameFacts) -> dict[str, str]:
        """The columns of the public frame that rows get, and what they are called then."""
        if self.how in ("semi", "anti"):
            return {}
        others = [name for name in self.public.columns if name not in self.right_on]
        if self.new is not None:
            return dict(zip(others, self.new, strict=True))
        return added_names(before.columns, others, self.suffix, self.words())

    def lower(
        self, frame: pl.LazyFrame, before: FrameFacts, ns: Namespace, salt: int
    ) -> pl.LazyFrame:
        names = self.new_columns(before)
        keys = list(zip(self.left_on, self.right_on, strict=True))
        types = {name: found.dtype for name, found in before.columns.items()}
        return join_frames(frame, bring(self.public, ns), keys, types, names, self.how, ns)

    def words(self) -> str:
        on = ", ".join(
            repr(a) if a == b else f"{a!r} = {b!r}"
            for a, b in zip(self.left_on, self.right_on, strict=False)
        )
        shown = ", ".join(self.public.columns)
        return (
            f"join(public frame of {self.public.height} rows ({shown}), on {on}, how={self.how!r})"
        )

    @property
    def computes(self) -> bool:
        return True

    @property
    def is_one_stable(self) -> bool:
        return self.how in ("semi", "anti") or self.fan_out <= 1

    @property
    def stability(self) -> str:
        if self.how in ("semi", "anti"):
            return "each row is kept or dropped on its own key, by a public list"
        times = max(1, self.fan_out)
        return f"each row becomes at most {times}: no key has more rows in the public frame"


# -- Private frames -------------------------------------------------------------------------------


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
        return mine.without(join_frames(mine.frame, theirs.frame, keys, types, names, self.how, ns))

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
    """

    engines = EVERYWHERE

    # Pairs of columns, of this frame and the other; a null matches nothing.
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
