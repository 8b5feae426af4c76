"""Limits on what one individual adds: rows, groups, and the norm of its rows over groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.core.dtypes import DType
from dpframe.core.exact import exact, show, show_input
from dpframe.core.tree import Change
from dpframe.core.units import EVERYWHERE, LARGEST_NORM, LEAST_NORM
from dpframe.errors import UnsupportedOperation, require
from dpframe.frames.facts import FrameFacts
from dpframe.frames.relation import Binary, Relation, Step
from dpframe.frames.row_steps import Explode
from dpframe.frames.sampling import (
    Owners,
    comparable,
    first_ranked,
    hashes,
    keep_first,
    keep_first_of_many,
    keep_first_together,
    least_of_runs,
    new_name,
    require_columns,
    require_count,
    require_identifier,
    require_order,
)
from dpframe.kernel.frame import PARTS, GroupLimit, RowLimit
from dpframe.rows.failures import OPTIMIZATIONS
from dpframe.rows.layouts import grouped_type, is_encodable
from dpframe.rows.operation import Namespace


@dataclass(frozen=True, slots=True)
class LimitRows(Step):
    """Keep at most `n` rows of each individual, or of each individual and value of `by`; those with
    the least values of the column `order_by` before others, if one is named.

    Guarantee
    ---------
    Which rows of an individual are kept depends on these rows alone (`dpframe.frames.sampling`), so
    frames that differ in one individual differ in at most that individual's kept rows afterwards.

    Proof
    -----
    For each salt, rows of one individual (and value of `by`) are ordered by `order_by` if it is
    named, then by a salted hash of their values and then by the values themselves. The first `n`
    are kept. Other individuals' rows do not enter this order. Rows that are equal in everything
    are interchangeable. Lists, arrays and structs enter as texts, and no two of them have one
    text. The salt is drawn without looking at data, so the guarantee holds for each salt, and
    therefore on average.

    The frames of a release have the columns that its plan names, and no others. So all of its
    tables have one choice of rows, but for rows that are equal in these columns and can stand for
    each other. Where several releases rest on one choice of rows, each plan names all columns of
    the frame.
    """

    engines = EVERYWHERE

    n: int  # How many rows, of what, and which first
    by: tuple[str, ...] = ()
    order_by: str | None = None

    @staticmethod
    def columns_of(before: FrameFacts) -> list[str]:
        """The columns whose values distinguish rows, in the order of their names."""
        return sorted(before.columns)

    def map_exprs(self, change: Change) -> Self:
        return self

    def facts(self, before: FrameFacts) -> FrameFacts:
        require_identifier(before.identifier, self.words())
        require_count(self.n, self.words())
        require_columns(self.by, before.columns, self.words())
        require_order(self.order_by, before.columns, self.words())
        for name, found in before.columns.items():
            if not is_encodable(found.dtype):
                raise UnsupportedOperation(
                    f"rows are chosen by their values, and values of {name!r}, of type "
                    f"{found.dtype}, cannot be distinguished",
                    where=self.words(),
                    remedy=f"drop {name!r} first",
                )
        # Everybody has one value of the identifier.
        by = frozenset(self.by) - {before.identifier}
        return before.with_limit(RowLimit(self.n, by, self.order_by))

    def lower(
        self, frame: pl.LazyFrame, before: FrameFacts, ns: Namespace, salt: int
    ) -> pl.LazyFrame:
        owners = Owners.of(frame, before, ns, self.words())
        order = {name: before.columns[name].dtype for name in self.columns_of(before)}
        within = list(dict.fromkeys([*owners.types, *self.by]))
        order |= owners.types
        first, taken = self.order_by, before.columns
        kept = keep_first(owners.frame, self.n, within, order, salt, ns, first, taken)
        return owners.without(kept)

    def keep(
        self, rows: pl.LazyFrame, names: Mapping[str, str], before: FrameFacts, salt: int
    ) -> pl.LazyFrame:
        """The rows that are left of a frame on Polars, where no column decides first and there are
        no windows.

        `names` maps columns to their names there; the frame may have others.
        """
        order, within = self._name_columns(names, before)
        return keep_first(rows, self.n, within, order, salt, pl)

    def _name_columns(
        self, names: Mapping[str, str], before: FrameFacts
    ) -> tuple[dict[str, DType], list[str]]:
        """The columns that decide, and of these whose rows they are."""
        assert before.identifier is not None
        require(before.time is None, "rows are limited over all time")
        order = {names[name]: before.columns[name].dtype for name in self.columns_of(before)}
        return order, [names[name] for name in dict.fromkeys((before.identifier, *self.by))]

    def keep_together(
        self,
        rows: pl.DataFrame,
        names: Mapping[str, str],
        places: NDArray[np.int64],
        start: NDArray[np.int64],
        before: FrameFacts,
        salt: int,
    ) -> NDArray[np.int64]:
        """Which are left of some rows in memory on Polars, where no column decides first: those of
        an individual, or of its values of `by`, follow each other.

        Parameters
        ----------
        names
            What the columns are called there.
        places, start
            The place of each of the rows in `rows`, and where those of another individual start.
        """
        order, within = self._name_columns(names, before)
        if order.keys() <= {*within}:  # all rows of a run are equal
            sizes = np.diff(np.append(start, places.size))
            return np.flatnonzero(np.arange(places.size) - np.repeat(start, sizes) < self.n)
        kept, torn = least_of_runs(hashes(rows, order, salt)[places], start, self.n)
        sure = np.flatnonzero(kept)
        if not torn.any():
            return sure
        position = new_name(order, "position")
        unsure = np.flatnonzero(torn)
        rest = rows.select(*order)[places[unsure]].with_columns(pl.Series(position, unsure))
        ranked = first_ranked(rest.lazy(), self.n, within, order, salt, pl).collect(
            optimizations=OPTIMIZATIONS
        )
        return np.concatenate([sure, ranked[position].to_numpy()])

    def words(self) -> str:
        by = ", ".join(repr(name) for name in self.by)
        first = "" if self.order_by is None else f", order_by={self.order_by!r}"
        return f"limit_rows({show_input(self.n)}{f', by=[{by}]' if by else ''}{first})"

    @property
    def stability(self) -> str:
        return (
            "which of an individual's rows are kept depends on these rows alone; others are "
            "dropped, which biases results"
        )


# -- Groups ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LimitGroups(Step):
    """Keep the rows of each individual in at most `n` different values of the columns `by`; those
    with the least values of the column `order_by` before others, if one of them is named.

    Guarantee
    ---------
    Which values are kept depends on the individual and its values alone
    (`dpframe.frames.sampling`), so frames that differ in one individual differ in at most that
    individual's kept rows afterwards. A null is a value like others.

    Proof
    -----
    For each salt, the distinct pairs of individual and value are ordered by `order_by` if it is
    named, then by a salted hash and then by the values. The first `n` of each individual are
    kept, and a row stays if its pair does. No pair of another individual enters this order, and
    the salt is drawn without looking at data.
    """

    engines = EVERYWHERE

    n: int
    by: tuple[str, ...]
    order_by: str | None = None

    def map_exprs(self, change: Change) -> Self:
        return self

    def facts(self, before: FrameFacts) -> FrameFacts:
        require_identifier(before.identifier, self.words())
        require_count(self.n, self.words())
        if not self.by:
            raise UnsupportedOperation(
                "limit_groups needs the columns that make the groups",
                where=self.words(),
                remedy=('write limit_groups(n, by="city")', "limit rows with limit_rows(n)"),
            )
        require_columns(self.by, before.columns, self.words())
        require_order(self.order_by, before.columns, self.words())
        if self.order_by is not None and self.order_by not in self.by:
            raise UnsupportedOperation(
                f"{self.order_by!r} is not one of the columns of by=, which order the groups",
                where=self.words(),
                remedy=f"write by={[*self.by, self.order_by]!r}",
            )
        return before.with_limit(GroupLimit(self.n, frozenset(self.by), self.order_by))

    def lower(
        self, frame: pl.LazyFrame, before: FrameFacts, ns: Namespace, salt: int
    ) -> pl.LazyFrame:
        owners = Owners.of(frame, before, ns, self.words())
        types = {name: found.dtype for name, found in before.columns.items()} | owners.types
        names = {
            name: new_name(types, f"key{i}")
            for i, name in enumerate(dict.fromkeys((*owners.types, *self.by)))
        }
        marked = owners.frame.with_columns(
            *(comparable(ns, name, types[name]).alias(key) for name, key in names.items())
        )
        keys = list(names.values())
        whose = {names[name]: grouped_type(dtype) for name, dtype in owners.types.items()}
        kept = self.keep(marked.select(*keys).unique(), names, whose, before, salt, ns)
        limited = marked.join(kept, on=keys, how="semi", nulls_equal=True).drop(*keys)
        return owners.without(limited)

    def keep(
        self,
        pairs: pl.LazyFrame,
        names: Mapping[str, str],
        whose: Mapping[str, DType],
        before: FrameFacts,
        salt: int,
        ns: Namespace,
    ) -> pl.LazyFrame:
        """The rows that are left of a frame with one row per individual and value of the columns.

        `names` maps columns to their names in it, and `whose` has the columns that identify
        individuals, with their types; text is text there, not a category.
        """
        order = self._order(names, whose, before)
        first = None if self.order_by is None else names[self.order_by]
        return keep_first_of_many(pairs, self.n, list(whose), order, salt, ns, first)

    def keep_together(
        self,
        pairs: pl.DataFrame,
        names: Mapping[str, str],
        whose: Mapping[str, DType],
        before: FrameFacts,
        salt: int,
    ) -> pl.DataFrame:
        """The same of such a frame in memory, where those of an individual follow each other."""
        if self.order_by is not None or len(whose) != 1:
            return self.keep(pairs.lazy(), names, whose, before, salt, pl).collect(
                optimizations=OPTIMIZATIONS
            )
        order = self._order(names, whose, before)
        (within,) = whose
        return keep_first_together(pairs, self.n, within, order, salt)

    def _order(
        self, names: Mapping[str, str], whose: Mapping[str, DType], before: FrameFacts
    ) -> dict[str, DType]:
        """What decides which pairs of an individual are kept."""
        order = dict(whose)
        for name in self.by:
            order[names[name]] = grouped_type(before.columns[name].dtype)
        return order

    def words(self) -> str:
        first = "" if self.order_by is None else f", order_by={self.order_by!r}"
        by = ", ".join(repr(name) for name in self.by)
        return f"limit_groups({show_input(self.n)}, by=[{by}]{first})"

    @property
    def stability(self) -> str:
        return (
            "which groups of an individual are kept depends on that individual's groups alone; "
            "rows in others are dropped, which biases results"
        )


# -- Norms ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LimitNorm(Step):
    """Let the rows of each individual count less, all by one factor, so that the norm of what it
    has in the groups asked for is at most `n`; never more than they are.

    With m_g rows of an individual in group g the norm is sqrt(sum(m_g**2)), and for what counts an
    individual once in each group the root of the number of its groups. The rows themselves stay:
    what is added up over them later is weighed, see `dpframe.lower.pairs`.

    Guarantee
    ---------
    Adding or removing an individual moves all groups of a weighed sum together by its own weighed
    rows alone: with b what one row moves it by, L2 = Linf = n b, and L1 = sqrt(g) n b for g listed
    groups. So it is for several sums that are drawn jointly, and b the widths of one row.

    Proof
    -----
    The weight of an individual is computed from its own numbers of rows per group, so no other
    individual's rows change with it. It is k / 2**12, with k whole and k**2 sum(m_g**2) <=
    floor(2**12 n)**2, which integers decide. In group g its rows add k m_g b / 2**12 at most to a
    sum, and the squares of these make (n b)**2 at most; by Cauchy and Schwarz they add up to
    sqrt(g) n b at most.
    """

    engines = EVERYWHERE

    n: Fraction  # The norm, in rows

    def map_exprs(self, change: Change) -> Self:
        return self

    def facts(self, before: FrameFacts) -> FrameFacts:
        require_identifier(before.identifier, self.words())
        return replace(before, norm=self.n if before.norm is None else min(self.n, before.norm))

    def lower(
        self, frame: pl.LazyFrame, before: FrameFacts, ns: Namespace, salt: int
    ) -> pl.LazyFrame:
        return frame

    def words(self) -> str:
        return f"limit_norm({show(self.n)})"

    @property
    def stability(self) -> str:
        return (
            "how much an individual's rows count depends on these rows alone, in whole parts of "
            f"1/{PARTS}, rounded down; those of individuals with more count less, which biases "
            "results"
        )


def read_norm(n: object) -> Fraction:
    """A norm as it was given."""
    try:
        norm = exact(n)
    except (TypeError, ValueError, ZeroDivisionError):
        norm = Fraction(0)
    if not LEAST_NORM <= norm < LARGEST_NORM:
        raise UnsupportedOperation(
            f"a norm is a number from {show(LEAST_NORM)} to below {LARGEST_NORM}, not "
            f"{show_input(n)}",
            where="limit_norm(...)",
            remedy="write for example 3: the number of rows that an individual may have in "
            "one group",
        )
    return norm


_ALL = 2**31 - 1
_LIMITS = (LimitRows, LimitGroups, LimitNorm)


def without_limits(relation: Relation) -> Relation:
    """The same steps, but no limits on rows and groups, and all elements of lists.

    Facts do not change, except that individuals have no weights: only types and names may be read
    from them, and a frame without limits must never be planned with.
    """
    kept = tuple(
        (_lift(step), before) for step, before in relation.steps if not isinstance(step, _LIMITS)
    )
    return replace(relation, steps=kept, facts=replace(relation.facts, norm=None))


def has_limits(relation: Relation) -> bool:
    """Whether a limit may drop rows of it, or of a frame that it was joined with."""
    return any(
        isinstance(step, _LIMITS)
        or (isinstance(step, Explode) and step.max_length is not None)
        or (isinstance(step, Binary) and has_limits(step.other))
        for step, _ in relation.steps
    )


def _lift(step: Step) -> Step:
    match step:
        case Explode(column, int()):
            return Explode(column, _ALL)
        case Binary():
            return replace(step, other=without_limits(step.other))
        case _:
            return step
