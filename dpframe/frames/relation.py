"""Private frames as values: where they come from, what was done to them, and what a step is."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import count
from typing import Self

import polars as pl

from dpframe.core.dtypes import STRING, Domain, columns, domain_of_dtype
from dpframe.core.tree import Change, HasExprs
from dpframe.core.units import EVERYWHERE, Rows
from dpframe.errors import UnsupportedOperation
from dpframe.frames.facts import FrameFacts
from dpframe.kernel.frame import unite_limits
from dpframe.rows.operation import Namespace


class FramePart(HasExprs):
    """What is done to a frame in one go: a step, or a part of one."""

    __slots__ = ()

    @abstractmethod
    def facts(self, before: FrameFacts) -> FrameFacts:
        """What is known after it."""

    @abstractmethod
    def lower(
        self, frame: pl.LazyFrame, before: FrameFacts, ns: Namespace, salt: int
    ) -> pl.LazyFrame:
        """The same on the engine's frame; total, like the expressions in it. `salt` is for steps
        that choose among an individual's rows.
        """


class Step(FramePart):
    """One operation on a whole frame, as a frozen value.

    Guarantee
    ---------
    What happens to a row depends on it and on other rows of the same individual, never on anybody
    else's. So frames that differ in one individual's rows become frames that differ in at most that
    individual's rows. Most steps are 1-stable as well: each row makes at most one row, from its own
    values.

    Proof
    -----
    Steps compose: if the first keeps one individual's rows separate from those of others and the
    second does too, so do both in turn. If one row becomes at most c rows in the first and at
    most d in the second, it becomes at most c d in both. Aggregates see nothing but the last
    frame.
    """

    __slots__ = ()

    def parts(self, before: FrameFacts) -> tuple[tuple[FramePart, FrameFacts], ...]:
        """What it is done in, one after another, each with what is known before."""
        return ((self, before),)

    @abstractmethod
    def words(self) -> str:
        """The step as the analyst would write it."""

    @property
    def computes(self) -> bool:
        """Whether there are columns afterwards that were computed."""
        return False

    @property
    def is_one_stable(self) -> bool:
        """Whether frames that differ in k rows differ in k rows at most afterwards."""
        return True

    @property
    @abstractmethod
    def stability(self) -> str:
        """Why the step cannot let one individual touch more rows, in a few words."""


# -- Frames ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Owners:
    """The frame that determines the owners of another frame's rows."""

    token: int  # Of that frame
    name: str
    here: str  # The keys by which it says so, in the other one and in itself
    there: str

    def parts(self) -> list[str]:
        """What stands for it in other processes."""
        return [self.name, self.here, self.there]


@dataclass(frozen=True, slots=True, eq=False)
class Relation:
    """A chain of steps on one protected frame. Holds no data."""

    name: str  # What plans call the frame
    source: FrameFacts  # What was known when it was protected
    steps: tuple[tuple[Step, FrameFacts], ...]  # Each step with the facts before it
    facts: FrameFacts  # What is known now
    # Of steps that choose among an individual's rows, where several releases have to choose the
    # same; else each has its own.
    salt: int | None = field(default=None, repr=False)
    # The identity of the protected frame.
    token: int = field(default_factory=itertools.count().__next__, repr=False)
    remarks: tuple[str, ...] = ()  # What reviewers should know of how its rows are read
    # Whether its owner named it, so that the name stands for it in other processes too.
    named: bool = field(default=False, repr=False)
    # Whether it is unnamed, so that plans call it by its place among their frames.
    by_place: bool = field(default=False, repr=False)
    # What its owner says values of columns are like; nothing but warnings follows from it.
    typical: tuple[tuple[str, Fraction], ...] = ()
    # The other frame that determines the owners of rows, if any.
    owners: Owners | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        name: str,
        facts: FrameFacts,
        remarks: tuple[str, ...] = (),
        *,
        named: bool = False,
        by_place: bool = False,
        typical: tuple[tuple[str, Fraction], ...] = (),
    ) -> Relation:
        made = cls(name, facts, (), facts, remarks=remarks, named=named)
        return replace(made, by_place=by_place, typical=typical)

    def then(self, step: Step) -> Relation:
        """The frame after one more step."""
        facts = step.facts(self.facts)
        return replace(self, steps=(*self.steps, (step, self.facts)), facts=facts)


# -- Two frames -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Binary(Step):
    """A step with another private frame."""

    # The other frame; both protect the same individuals.
    other: Relation = field(repr=False, compare=False)
    chain: str  # The other frame and its steps in full, for fingerprints

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


def name_by_place(relations: Sequence[Relation]) -> list[Relation]:
    """The frames of one plan, where those without a name are called by their place in it, in order
    of first use: "data", "data 2", and so on, with no name that another of its frames has.

    So it matters neither how often something was protected before nor what else the session
    protects: the same query has the same plan. Nothing but words follows from the names; frames
    are distinguished by their tokens.
    """
    frames = [frame for relation in relations for frame in frames_of(relation)]
    taken = {frame.name for frame in frames if not frame.by_place}
    names: dict[int, str] = {}
    for frame in frames:
        if frame.by_place and frame.token not in names:
            names[frame.token] = next(name for name in _names(frame.name) if name not in taken)
            taken.add(names[frame.token])
    made: dict[int, Relation] = {}  # equal relations stay one object
    return [made.setdefault(id(relation), _rename(relation, names)) for relation in relations]


def _names(first: str) -> Iterator[str]:
    yield first
    yield from (f"{first} {number}" for number in count(2))


def _rename(relation: Relation, names: dict[int, str]) -> Relation:
    """The same frame where all frames in it have other names; itself where they have these."""
    if all(frame.name == names.get(frame.token, frame.name) for frame in frames_of(relation)):
        return relation
    steps = tuple(
        (_with_names(step, names) if isinstance(step, Binary) else step, facts)
        for step, facts in relation.steps
    )
    return replace(relation, name=names.get(relation.token, relation.name), steps=steps)


def _with_names(step: Binary, names: dict[int, str]) -> Binary:
    other = _rename(step.other, names)
    return replace(step, other=other, chain=chain_of(other))
