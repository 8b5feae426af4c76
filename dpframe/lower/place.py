"""Where a query runs: an engine, and the data that it has there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.aggregates.part import CellCounts, Table
from dpframe.errors import EngineError
from dpframe.frames.groups import Groups
from dpframe.frames.relation import Relation
from dpframe.lower.engine import Chooser, dry_run, require_runs, run, run_choosing
from dpframe.lower.engines.engine import Engine
from dpframe.rows.failures import FAILURES


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Protected frames on one engine. Only here, the pipeline reaches data.

    Parameters
    ----------
    engine
        What runs the query.
    data
        The engine's own frames, by the token of each.
    schemas
        Their columns.
    """

    engine: Engine
    data: Mapping[int, Any] = field(repr=False)
    schemas: Mapping[int, pl.Schema]

    def require_runs(
        self, relation: Relation, groups: Groups | None, tables: Sequence[Table]
    ) -> None:
        """Refuse what does not run on the engine; nothing runs."""
        require_runs(relation, groups, tables, self.schemas, self.engine)

    def rehearse(self, relation: Relation, groups: Groups | None, tables: Sequence[Table]) -> None:
        """Run the query on empty frames, so that what the engine refuses it refuses now."""
        dry_run(relation, groups, tables, self.schemas, self.data, self.engine)

    def require_same_columns(self) -> None:
        """Refuse data that no longer have the columns that they were protected with.

        Raises
        ------
        EngineError
            When they have others, or cannot be read any more.
        """
        for token, data in self.data.items():
            try:
                now = self.engine.schema_now(data)
            except FAILURES:
                raise _changed("cannot be read any more") from None
            if now is not None and dict(now) != dict(self.schemas[token]):
                raise _changed("no longer has the columns that it was protected with")

    def run(
        self, relation: Relation, groups: Groups | None, tables: Sequence[Table]
    ) -> dict[Table, CellCounts]:
        """The exact tables, by group."""
        return run(relation, groups, tables, self.data, self.engine)

    def run_choosing(
        self, relation: Relation, groups: Groups, tables: Sequence[Table], chooser: Chooser
    ) -> tuple[dict[Table, CellCounts], Groups, NDArray[np.int64] | None]:
        """The exact tables of groups that nobody listed, and which of them appear."""
        return run_choosing(relation, groups, tables, self.data, chooser, self.engine)


def _changed(what: str) -> EngineError:
    return EngineError(
        f"the protected frame {what}; nothing was charged",
        remedy="look at its files, and protect it again",
    )
