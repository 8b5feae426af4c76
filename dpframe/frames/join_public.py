"""Joins with public frames."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, Self, TypeAlias

import polars as pl

from dpframe.core.domain import Domain, columns, domain_of_dtype
from dpframe.core.engines import EVERYWHERE
from dpframe.core.exprs import Change
from dpframe.errors import UnsupportedOperation
from dpframe.frames.facts import FrameFacts, require_plain_names
from dpframe.frames.joins import added_names, joined, require_same_types
from dpframe.frames.public import brought, digest, held
from dpframe.frames.sampling import unused
from dpframe.frames.step import Step
from dpframe.kernel.frame import copy_limits
from dpframe.rows.failures import FAILURES
from dpframe.rows.operation import Namespace
from dpframe.rows.polars_dtypes import from_polars
from dpframe.rows.suggest import unknown_column

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

    Parameters
    ----------
    public
        The frame, as `held` gives it; what it holds is part of the plan.
    left_on, right_on
        The key columns; a null matches nothing.
    how
        The kind of join.
    suffix
        Of columns that have a name which is taken.
    digest
        The digest of the public frame, for fingerprints.
    new
        What its other columns are called then; None where the suffix decides.
    """

    engines = EVERYWHERE

    public: pl.DataFrame = field(repr=False, compare=False)
    left_on: tuple[str, ...]
    right_on: tuple[str, ...]
    how: How
    suffix: str
    digest: str
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
            public = held(public)
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
        rows = unused(self.right_on, "rows")
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
        return joined(frame, brought(self.public, ns), keys, types, names, self.how, ns)

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
