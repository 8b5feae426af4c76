"""Protected rows: what is known of them, where they are, and who pays for queries of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NoReturn

from dpframe import pipeline
from dpframe.aggregates.aggregate import OutputSpec, Query
from dpframe.api.payer import Payer
from dpframe.api.source import Source, Sources
from dpframe.frames.groups import Groups
from dpframe.frames.relation import Relation


@dataclass(frozen=True, slots=True, eq=False)
class ProtectedRows:
    """Rows of protected frames, and the payer of their queries.

    Parameters
    ----------
    relation
        What is known of the rows without reading them, and how they are made.
    source
        Where they are.
    payer
        Who pays; None for rows that belong to no session.
    """

    relation: Relation
    source: Source | Sources = field(repr=False)
    payer: Payer | None = field(repr=False)

    def ask(self, groups: Groups | None, specs: Iterable[OutputSpec]) -> Query:
        """A query of some outputs, by group if there are groups; nothing runs.

        Raises
        ------
        DPFrameError
            When the rows cannot answer it at any cost.
        """
        execution = self.source.blueprint(self.relation.token)
        return pipeline.ask(self.relation, groups, specs, execution)

    def __reduce__(self) -> NoReturn:
        raise TypeError("protected rows cannot be pickled or copied out of their session")
