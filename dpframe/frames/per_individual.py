"""One row per individual: how many rows and groups it has."""

from __future__ import annotations

from dataclasses import dataclass, replace

import polars as pl

from dpframe.core.domain import Domain, columns
from dpframe.core.dtypes import INT64
from dpframe.core.interval import interval
from dpframe.core.tree import Named
from dpframe.frames.facts import FrameFacts
from dpframe.frames.limits import RowLimit
from dpframe.frames.sampling import comparable, require_identifier, unused
from dpframe.frames.step import Step
from dpframe.rows.fold import domain, lower
from dpframe.rows.grouped import grouped, grouped_type
from dpframe.rows.operation import Namespace

ROWS, GROUPS, FULLEST = "rows", "groups", "rows in the fullest group"


@dataclass(frozen=True, slots=True)
class PerIndividual(Step):
    """Count the rows of each individual, its groups, and the rows in its fullest group.

    Guarantee
    ---------
    The rows of one individual become one row, computed from these rows alone.

    Proof
    -----
    Rows are grouped by the identifier first, so each result is a function of one group. Counting
    does not depend on the order of rows.

    Parameters
    ----------
    by
        What makes the groups; nothing for all rows together.
    """

    by: tuple[Named, ...] = ()

    def facts(self, before: FrameFacts) -> FrameFacts:
        identifier = require_identifier(before.identifier, self.words())
        number = Domain(INT64, nullable=False, interval=interval(1, None))
        names = [self.name_of(n, identifier) for n in (ROWS, GROUPS, FULLEST)]
        who = Domain(grouped_type(before.columns[identifier].dtype), nullable=False)
        table = {identifier: who, **dict.fromkeys(names, number)}
        return replace(
            before, columns=columns(table), complete=False, limits=(RowLimit(1),), copies=1
        )

    @staticmethod
    def name_of(number: str, identifier: str) -> str:
        """The column of a number."""
        return unused([identifier], number)

    def lower(
        self, frame: pl.LazyFrame, before: FrameFacts, ns: Namespace, salt: int
    ) -> pl.LazyFrame:
        identifier = require_identifier(before.identifier, self.words())
        keys = [f"g{i}" for i in range(len(self.by))]
        who = comparable(ns, identifier, before.columns[identifier].dtype).alias("unit")
        made = [
            grouped(
                ns, lower(n.tree, before.columns, ns), domain(n.tree, before.columns).dtype
            ).alias(key)
            for key, n in zip(keys, self.by, strict=True)
        ]
        pairs = frame.select(who, *made).group_by(["unit", *keys]).agg(ns.len().alias("n"))
        number = ns.col("n").cast(ns.Int64)
        counted = pairs.group_by("unit").agg(
            number.sum().alias(self.name_of(ROWS, identifier)),
            ns.len().cast(ns.Int64).alias(self.name_of(GROUPS, identifier)),
            number.max().alias(self.name_of(FULLEST, identifier)),
        )
        return counted.rename({"unit": identifier})

    def words(self) -> str:
        groups = f"groups by [{', '.join(repr(n.name) for n in self.by)}]" if self.by else "groups"
        return f"one row per individual with its numbers of rows and {groups}"

    @property
    def computes(self) -> bool:
        return True

    @property
    def stability(self) -> str:
        return "the rows of an individual become one row, computed from these alone"
