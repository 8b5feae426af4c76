"""Aggregates as they are written, bound to a frame, and put together in a query."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import ClassVar, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.aggregates.error import PartError
from dpframe.aggregates.measurement import Measurement
from dpframe.aggregates.noise import JointNoise
from dpframe.aggregates.reconstructed_error import OutputError, Ranges
from dpframe.aggregates.request import Asked, QueryScope, Request
from dpframe.aggregates.shapes import ONE, Shape
from dpframe.aggregates.statistics import Statistic
from dpframe.core.dtypes import Columns
from dpframe.core.tree import Named, Tree
from dpframe.frames.groups import Groups
from dpframe.frames.relation import Relation
from dpframe.mechanisms import ADDITIVE, AdditiveMechanism, Mechanism
from dpframe.rows.fold import domain

# -- an aggregate of one frame --------------------------------------------------------------------
# All other code asks these objects about a query's aggregates: their noisy parts, how a result
# follows from them, its shape, its interval, its text and its error.

Noisy = NDArray[np.int64]
MeasurementKey = tuple[Measurement, str]
"""A part, and the mechanism that is requested: two requests share what has one key."""
Laws: TypeAlias = "Mapping[MeasurementKey, Mechanism]"
"""The mechanism of each part on its own."""
_INT64 = 2**63 - 1


@dataclass(frozen=True, slots=True, eq=False)
class MeasurementUse:
    """A part as one output uses it."""

    part: Measurement  # The vector
    role: str  # What the plan calls it there
    # The square of the part's effect on the output's relative error: what one typical error of the
    # part does to the output, relative to what all rows together can make it, where a count's is 1.
    # Only the split of a plan's cost rests on it.
    impact: Fraction = Fraction(1)
    # What the part gets of the output's cost, relative to the others, where impacts do not decide.
    portion: Fraction = Fraction(1)
    # Whether outputs that use the part pay for it once; else what each would pay adds up.
    is_shared: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Clamp:
    """Values that are clamped to bounds."""

    tree: Tree  # Each row's value
    bounds: tuple[Fraction, Fraction]  # The bounds
    per_unit: bool = False  # Whether totals of individuals are clamped to them, and not rows
    # Whether values outside move the result at all; they move no quantile within the bounds.
    biases: bool = True


def is_told(clamp: Clamp, columns: Columns) -> bool:
    """Whether rows whose values it clamps can be counted one by one: of numbers in rows."""
    return not clamp.per_unit and domain(clamp.tree, columns).dtype.is_numeric


@dataclass(frozen=True, slots=True, eq=False)
class BoundAggregate(ABC):
    """One dp aggregate, bound to the frame it is computed from.

    Everything after the parts is post-processing and costs nothing.
    """

    request: Request  # The request
    # The noisy parts that it needs, in the order in which `combine` takes them.
    uses: tuple[MeasurementUse, ...]

    monotone: ClassVar[bool] = False
    """Whether the result has one part and rises with it."""

    @property
    def rests_on(self) -> int | None:
        """The index of the part that counts the rows that the result rests on, where the result
        is null if that count may be 0 within noise.
        """
        return None

    @property
    def name(self) -> str:
        """The output column that it is first used in."""
        return self.request.name

    @property
    def keys(self) -> tuple[MeasurementKey, ...]:
        """What its noisy numbers are found by, in the order of its parts."""
        return tuple((use.part, self.request.mechanism) for use in self.uses)

    @property
    def shape(self) -> Shape:
        """How its result stands in a frame."""
        return ONE

    @property
    def is_plain_number(self) -> bool:
        """Whether the result is the unchanged number of its one part, in the part's units."""
        return False

    @property
    def clamps(self) -> tuple[Clamp, ...]:
        """What is clamped to bounds."""
        return ()

    @property
    def is_nonnegative(self) -> bool:
        """Whether negative results are to be avoided; results of several grouping sets still add
        up.
        """
        return False

    @property
    def note(self) -> str:
        """How the result comes from the noisy parts, in a plan; empty where that goes without
        saying.
        """
        return ""

    @property
    def ranges(self) -> Ranges | None:
        """The ranges between two edges that its counts give; None where they have no order."""
        return None

    @property
    def error(self) -> OutputError:
        """How a bound on the result's error follows from bounds on those of its parts."""
        return PartError()

    @property
    def depends_on_noise(self) -> bool:
        """Whether the result depends on how much noise its parts get, and not on their numbers
        alone.
        """
        return False

    def knowing(self, noise: Sequence[Mechanism]) -> BoundAggregate:
        """The same, where it is known what noise its parts get. Until then results are those of
        parts without noise. `noise`: the mechanism of each part on its own, in the order of `uses`.
        """
        return self

    @abstractmethod
    def combine(self, values: Sequence[Noisy]) -> pl.Series:
        """The result, one row per group, from the noisy integers of its parts.

        Parts with cells come as arrays of shape (groups, cells), selections as (groups, rounds).
        Where the shape has several rows per group, so has the result.
        """

    def squared_error(self, scope: QueryScope, laws: Laws) -> float:
        """The sum over its parts, and grouping sets, of the mean squared errors that are expected.
        Each counts by its effect, relative to what one individual adds to the part. Of selections
        it is what is expected of their score. `laws` has the noise of each part on its own. This
        compares ways to measure the same.
        """
        return sum(
            effect_of(use, scope) * _squared_error_of(laws, key, scope)
            for use, key in zip(self.uses, self.keys, strict=True)
        )

    def interval(
        self, values: Sequence[Noisy], noise: JointNoise, level: Fraction
    ) -> tuple[pl.Series, pl.Series] | None:
        """Where the exact result lies with probability `level`, given the joint law of the noise of
        the parts; None for a result that is no number. Post-processing: it depends on the noisy
        integers alone.
        """
        if not self.monotone:
            return None
        (noisy,) = values
        most = noise.reach(0, level)
        return self.combine([shift_by(noisy, -most)]), self.combine([shift_by(noisy, most)])

    def plain(self, column: pl.Expr | None) -> tuple[pl.Expr, ...]:
        """The same of public data as plain Polars has it, without bounds: what a simulation
        compares with. `column`: its values as numbers, null if none exist; of totals where
        `is_of_totals`. None for rows. Returns one, or those of a list. None at all where the exact
        tables have no bounds, so that they make the plain result.
        """
        return ()

    @property
    def plain_tree(self) -> Tree | None:
        """What the plain result is of; None for rows."""
        return self.request.tree

    @property
    def plain_beside(self) -> Tree | None:
        """What stands below the line of the plain result, where it is a ratio."""
        return None

    def plain_of_two(self, column: pl.Expr, beside: pl.Expr) -> tuple[pl.Expr, ...]:
        """As `plain`, of two columns."""
        return self.plain(column)

    @property
    def is_of_totals(self) -> bool:
        """Whether the plain result is one of totals of individuals, not of rows."""
        return False

    def of_plain(self, numbers: Sequence[pl.Series]) -> pl.Series:
        """The result from the physical numbers that the plain expressions gave."""
        raise NotImplementedError(self.request.kind)  # for those that have plain expressions


def shift_by(values: Noisy, by: int) -> Noisy:
    """Integers moved by a constant, and held at the limits of Int64."""
    moved = values + np.int64(max(-_INT64, min(_INT64, by)))
    over = (moved < values) if by > 0 else (moved > values)
    return np.where(over, np.int64(_INT64 if by > 0 else -_INT64), moved)


def variance_of(laws: Laws, key: MeasurementKey) -> float:
    """The variance of a part to which noise is added, in steps squared."""
    law = laws[key]
    assert isinstance(law, AdditiveMechanism)
    return law.variance()


def effect_of(use: MeasurementUse, scope: QueryScope) -> float:
    """What an error of a part does, relative to what one individual can."""
    linf = use.part.sensitivity(scope).linf
    return float(use.impact / (linf or Fraction(1)) ** 2)


def _squared_error_of(laws: Laws, key: MeasurementKey, scope: QueryScope) -> float:
    law, (part, mechanism) = laws[key], key
    if isinstance(law, AdditiveMechanism):
        return law.variance()
    task = part.task("", part.sensitivity(scope), mechanism, scope)
    return math.exp(2.0 * law.log_noise(task.alternatives))


# -- aggregates: one class each, which defines the arguments and binds it to a frame --------------


def names_of(*kinds: type[Mechanism]) -> tuple[str, ...]:
    """The names that `mechanism=` accepts for any of these."""
    return ("auto", *sorted(kind.name for kind in kinds))


@dataclass(frozen=True, slots=True, eq=False)
class Aggregate(Asked):
    """One dp aggregate. Its fields are its arguments besides the column, unchanged; a subclass's
    docstring has a `Guarantee` section.
    """

    summary: ClassVar[str]
    mechanisms: ClassVar[tuple[str, ...]] = names_of(*ADDITIVE)
    """The values that its `mechanism=` accepts; just ``"auto"`` where there is no choice."""
    examples: ClassVar[tuple[str, ...]]
    """dp expressions over the laws' frame, as text."""

    @abstractmethod
    def bind(self, request: Request, scope: QueryScope) -> BoundAggregate:
        """The request, read and checked against a frame. Raises `UnboundedSensitivity`,
        `InvalidBounds`, `UnsupportedOperation`, `MissingKeys` when the request makes no sense on
        such a frame.
        """


class ScoringAggregate(Aggregate):
    """An aggregate that can score candidates: a sum over rows, or a number of distinct values."""

    __slots__ = ()

    @abstractmethod
    def score(self, request: Request, scope: QueryScope) -> Statistic:
        """The statistic that ranks candidates. Raises `UnsupportedOperation` when it is requested
        over individuals.
        """


# -- what a dp expression records, before it meets a frame ----------------------------------------

PLACEHOLDER = "__dpframe_"
_PAIRS = ("bounds", "denominator_bounds")


@dataclass(frozen=True, slots=True, eq=False)
class AggregateSpec:
    """One dp aggregate as it was written: most often the Polars expression is not read yet."""

    aggregate: Aggregate  # An aggregate with all its arguments except the column
    # The Polars expression, or what it was read into; None for a count of rows.
    expression: pl.Expr | Named | None
    # As given.
    weight: Fraction = Fraction(1)
    mechanism: str = "auto"
    # For a selection: another aggregate, a row-wise expression, or None.
    score: AggregateSpec | pl.Expr | None = None
    denominator: pl.Expr | None = None  # For a ratio: the row-wise expression below the line

    @property
    def counts_missing(self) -> bool:
        """Whether a row without a value counts for something all the same, so that a null is not
        the same as a row that was left out.
        """
        beside = self.score is not None or self.denominator is not None
        return beside or self.aggregate.counts_missing


@dataclass(frozen=True, slots=True, eq=False)
class OutputSpec:
    """One output: its aggregates, and what is done with their results."""

    # Each under the placeholder column that stands for its result.
    aggregates: Mapping[str, AggregateSpec]
    # Polars expression over the placeholders, None when the output is a single aggregate.
    post: pl.Expr | None
    # The whole as the analyst wrote it, with ``{placeholder}`` where an aggregate stands.
    words: str
    alias: str | None = None  # The output's name, where one was given
    # What is put before and after the name that it has.
    prefix: str = ""
    suffix: str = ""
    # Whether ``interval=`` leaves out an interval that does not exist, instead of refusing.
    interval_optional: bool = False


def write_arguments(aggregate: Aggregate) -> list[str]:
    """The arguments of an aggregate as they were written, defaults left out."""
    shown = []
    for name, value in aggregate.arguments().items():
        if value is None or value is False or (name in ("k", "ddof") and value == 1):
            continue
        if isinstance(value, pl.DataFrame):
            shown.append(f"{name}=<{value.height} rows of {', '.join(value.columns)}>")
            continue
        said = _short(value if name in _PAIRS or not isinstance(value, tuple) else list(value))
        shown.append(said if name in aggregate.positional else f"{name}={said}")
    return shown


_MOST = 80
"""This many characters of a list are shown; one of more items is longer."""


def _short(value: object) -> str:
    if not isinstance(value, (list, tuple)):
        return repr(value)
    if len(value) <= _MOST and len(text := repr(value)) <= _MOST:
        return text
    first: list[str] = []
    for item in value:
        first.append(repr(item))
        if sum(len(f) + 2 for f in first) > 60:
            break
    return f"[{', '.join(first)}, ... {len(value)} in all]"


# -- a query: a frame, its groups, and the outputs that are requested -----------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Output:
    """One output column (or table)."""

    name: str  # Its name
    aggregates: Mapping[str, BoundAggregate]  # What it is made of, by placeholder
    post: pl.Expr | None  # Post-processing over the placeholders, or None
    words: str  # How it is computed, for the plan
    # The post-processing as a tree over the placeholders, where it is one; for intervals.
    post_tree: Tree | None = None
    # Whether ``interval=`` leaves out an interval that does not exist, instead of refusing.
    interval_optional: bool = False

    @property
    def only(self) -> BoundAggregate | None:
        """The aggregate that it is, where nothing is computed from the result."""
        if self.post is not None or len(self.aggregates) != 1:
            return None
        return next(iter(self.aggregates.values()))


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """Everything that is computed from one frame at once. Holds no data.

    Its groups may be replaced by others with keys of the same columns, as those that were found:
    nothing but the choice of the best groups, whose keys are listed, rests on which they are.
    """

    # The frame, its groups, and the results to release.
    relation: Relation
    groups: Groups | None
    outputs: tuple[Output, ...]
    tells_dropped: bool = False
    """Whether its result has the share of the rows that its limits drop and its bounds clamp."""
    finds_limit: bool = False
    """Whether its last limit is found when it runs, and the release says about what it drops."""
    scope: QueryScope = field(default=None, repr=False)  # type: ignore[assignment]
    """Its frame and groups, with the results of the kernel's rules. A query that is made from
    another one shares them, if its frame and groups are the same.
    """

    def __post_init__(self) -> None:
        facts, known = self.relation.facts, self.scope
        if known is None or known.facts is not facts or known.groups is not self.groups:
            object.__setattr__(self, "scope", QueryScope(facts, self.groups))

    @property
    def aggregates(self) -> tuple[BoundAggregate, ...]:
        return tuple(a for output in self.outputs for a in output.aggregates.values())

    @property
    def requests(self) -> tuple[Request, ...]:
        return tuple(aggregate.request for aggregate in self.aggregates)

    @property
    def depends_on_noise(self) -> bool:
        """Whether a result depends on how much noise its parts get."""
        return any(aggregate.depends_on_noise for aggregate in self.aggregates)

    def knowing(self, laws: Mapping[MeasurementKey, Mechanism] | None) -> Query:
        """The same query, where it is known what noise each part gets; None for none."""
        outputs = []
        for output in self.outputs:
            known = {
                p: a.knowing([] if laws is None else [laws[key] for key in a.keys])
                for p, a in output.aggregates.items()
            }
            outputs.append(replace(output, aggregates=known))
        return replace(self, outputs=tuple(outputs))

    @property
    def chooses_groups(self) -> bool:
        """Whether the result is groups, and nothing of the others comes out."""
        return any(aggregate.shape.chooses_groups for aggregate in self.aggregates)
