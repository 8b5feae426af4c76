"""What an engine is: where a plan runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from typing import Any, ClassVar

import polars as pl

from dpframe.errors import UnsupportedOperation
from dpframe.rows.operation import Namespace


class ClusterLost(Exception):
    """The machines that an engine runs on are gone; the error holds nothing of queries or data.

    Parameters
    ----------
    seconds
        For how long no machine was there.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


def unsupported(what: str, label: str, where: str | None = None) -> UnsupportedOperation:
    """The refusal of something that does not run on an engine."""
    return UnsupportedOperation(
        f"{what} is not supported on {label}",
        where=where,
        remedy=(
            "compute it in SQL before the frame is protected, for example SELECT x::DOUBLE AS x",
            "protect a Polars frame",
        ),
    )


class Engine(ABC):
    """Runs lowered queries. A plan does not depend on it, and neither do the exact tables.

    The data that it runs on are its own: a Polars LazyFrame, a relation, a Spark DataFrame.
    """

    name: ClassVar[str]
    """What `engine=` calls it."""
    label: ClassVar[str]
    """What messages call it."""

    @property
    @abstractmethod
    def ns(self) -> Namespace:
        """What expressions are built with."""

    @abstractmethod
    def frame(self, data: Any) -> Any:
        """The data as a frame that steps are lowered on."""

    @property
    def reads_all_columns(self) -> bool:
        """Whether it reads columns that no query asks for, unless `narrow` leaves them out."""
        return False

    def narrow(self, data: Any, columns: Collection[str]) -> Any:
        """The data with nulls in place of the values of other columns."""
        raise NotImplementedError

    @abstractmethod
    def empty(self, data: Any, schema: pl.Schema) -> Any:
        """The same without rows."""

    @abstractmethod
    def collect(self, frames: Sequence[Any], *, rehearsed: bool = False) -> list[pl.DataFrame]:
        """The results of lowered queries; `rehearsed` when their frames have no rows."""

    @property
    def gives_batches(self) -> bool:
        """Whether it gives the result of a query piece by piece."""
        return False

    def batches(self, frame: Any) -> Iterator[pl.DataFrame]:
        """The result of one lowered query, piece by piece in any order, each row once."""
        raise NotImplementedError

    def schema_now(self, data: Any) -> pl.Schema | None:
        """The columns that the data have now, where that is known without reading a row and no row
        decides it; else None.
        """
        return None

    @property
    def is_accepted(self) -> bool:
        """Whether the session was found to compute what Polars does."""
        return True

    def accept(self) -> None:
        """Remember that it was."""
        return

    def has_border(self) -> bool:
        """Whether no statistic of stored values decides what a query sees, tried on constants."""
        return True

    def shares(self, other: Engine) -> bool:
        """Whether frames of both can be joined."""
        return type(self) is type(other)
