"""Operations on two private frames of one session."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Self

import polars as pl

from dpframe.core.domain import Domain, columns, domain_of_dtype
from dpframe.core.dtypes import STRING
from dpframe.core.engines import EVERYWHERE
from dpframe.core.exprs import Change
from dpframe.core.units import Rows
from dpframe.errors import UnsupportedOperation
from dpframe.frames.facts import FrameFacts
from dpframe.frames.relation import Relation
from dpframe.frames.step import Step
from dpframe.kernel.frame import unite_limits
from dpframe.rows.operation import Namespace


@dataclass(frozen=True, slots=True)
class Binary(Step):
    """A step with another private frame.

    Parameters
    ----------
    other
        The other frame; both protect the same individuals.
    chain
        The other frame and its steps in full, for fingerprints.
    """

    other: Relation = field(repr=False, compare=False)
    chain: str

    def map_exprs(self, change: Change) -> Self:
        return self

    def lower(
        self, frame: pl.LazyFrame, before: FrameFacts, ns: Namespace, salt: int
    ) -> pl.LazyFrame:
        raise AssertionError("the pipeline lowers both frames, see combine")

    @abstractmethod
    def combine(
        self, left: pl.LazyFrame, right: pl.LazyFrame, before: FrameFacts, ns: Namespace
    ) -> pl.LazyFrame:
        """Both frames as one."""

    @property
    def computes(self) -> bool:
        return True

    @property
    def is_one_stable(self) -> bool:
        return False


def frames_of(relation: Relation) -> Iterator[Relation]:
    """A frame and all that it was joined with, each as often as that."""
    yield relation
    for step, _ in relation.steps:
        if isinstance(step, Binary):
            yield from frames_of(step.other)


def shares_choices(relation: Relation) -> bool:
    """Whether several releases rest on one choice among the rows of an individual."""
    return any(frame.salt is not None for frame in frames_of(relation))


def chain_of(relation: Relation) -> str:
    """A frame, whom it protects and its steps, in full."""
    steps = (repr(step) for step, _ in relation.steps)
    return repr([relation.name, relation.source.unit.words(), *steps])


def chain_words(relation: Relation) -> str:
    """A frame and its steps as the analyst wrote them."""
    return ".".join([relation.name, *(step.words() for step, _ in relation.steps)])


@dataclass(frozen=True, slots=True)
class Concat(Binary):
    """The rows of both frames.

    Guarantee
    ---------
    An individual has the rows of both: what bounds them adds up.

    Proof
    -----
    Each row of either frame becomes one row. With at most n rows of an individual in one frame and
    m in the other there are at most n + m, in all or for each value of columns that both limits
    name. Its groups are those of either frame: at most the sum again. With `dp.Rows` an individual
    owns c rows of one and d of the other, so c + d.
    """

    engines = EVERYWHERE

    def facts(self, before: FrameFacts) -> FrameFacts:
        other = self.other.facts
        require_unweighed(other, self.words())
        if list(before.columns) != list(other.columns):
            raise UnsupportedOperation(
                f"the frames have different columns: {', '.join(before.columns)} and "
                f"{', '.join(other.columns)}",
                where=self.words(),
                remedy="select the same columns in the same order first",
            )
        if before.identifier != other.identifier:
            raise UnsupportedOperation(
                f"individuals are identified by {before.identifier!r} and {other.identifier!r}",
                where=self.words(),
                remedy="rename one of these columns first",
            )
        if before.time != other.time:
            raise UnsupportedOperation(
                f"rows are in the windows of {before.time!r} and {other.time!r}",
                where=self.words(),
                remedy="rename one of these columns first",
            )
        table: dict[str, Domain] = {}
        for name, mine in before.columns.items():
            theirs = other.columns[name]
            if mine.dtype != theirs.dtype:
                raise UnsupportedOperation(
                    f"{name!r} has type {mine.dtype} in one frame and {theirs.dtype} in the other",
                    where=self.words(),
                    remedy="cast one of them first",
                )
            table[name] = _either(mine, theirs)
        return replace(
            before,
            columns=columns(table),
            complete=False,
            copies=_copies(before, other),
            limits=unite_limits(before.reach, other.reach),
        )

    def combine(
        self, left: pl.LazyFrame, right: pl.LazyFrame, before: FrameFacts, ns: Namespace
    ) -> pl.LazyFrame:
        columns = [
            ns.col(name).cast(ns.String) if found.dtype.name == "Categorical" else ns.col(name)
            for name, found in before.columns.items()
        ]
        both = [frame.select(*columns) for frame in (left, right)]
        if not columns:  # only the number of rows is read
            row = ns.lit(0, dtype=ns.Int64).alias("row")
            both = [frame.with_columns(row).select("row") for frame in (left, right)]
        made: pl.LazyFrame = ns.concat(both, how="vertical")
        return made

    def words(self) -> str:
        return f"concat({chain_words(self.other)})"

    @property
    def stability(self) -> str:
        return "an individual has the rows of both frames, whose limits add up"


def require_unweighed(other: FrameFacts, where: str) -> None:
    """Refuse weights of one frame alone: rows weigh where they are added up, all of an individual's
    the same.
    """
    if other.norm is not None:
        raise UnsupportedOperation(
            "limit_norm needs all rows of an individual, and the other frame has only some of them",
            where=where,
            remedy="bring the frames together first, and write limit_norm after it",
        )


def _copies(before: FrameFacts, other: FrameFacts) -> int:
    """This many times the rows that an individual owns in the one frame, with `Rows`."""
    if not isinstance(before.unit, Rows) or not isinstance(other.unit, Rows):
        return before.copies
    rows = before.unit.contributions * before.copies + other.unit.contributions * other.copies
    return -(-rows // before.unit.contributions)


def _either(a: Domain, b: Domain) -> Domain:
    """What is known of values that come from either; categories become text."""
    if a.dtype.name == "Categorical":
        a, b = replace(a, dtype=STRING), replace(b, dtype=STRING)
    if a == b:
        return a
    categories, widest = None, domain_of_dtype(a.dtype)
    if a.categories is not None and b.categories is not None:
        categories = tuple(dict.fromkeys([*a.categories, *b.categories]))
    return replace(
        a,
        nullable=a.nullable or b.nullable,
        nan=a.nan or b.nan,
        interval=a.interval.hull(b.interval),
        categories=categories,
        inner=a.inner if a.inner == b.inner else widest.inner,
        fields=a.fields if a.fields == b.fields else widest.fields,
    )
