"""The border between what a DuckDB relation holds and what is computed from it: no optimiser.

DuckDB decides about rows by what it knows of stored values: it folds conditions, skips row groups
and pages, and narrows scans and joins by minima and maxima, bloom filters and dictionaries. What is
known need not hold for a row. Writers of Parquet leave NaN out of minima and maxima, and footers
may be stale, so whether a row counts depended on the values of others. All of this is the
optimiser's work. While a query runs, the optimiser of its connection is off: no condition, be it
the plan's or the data owner's, reaches a scan, and no statistic leaves one (decision 24).
"""

from __future__ import annotations

import json
import math
import re
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from time import monotonic, sleep
from typing import Any, TypeVar
from uuid import uuid4
from weakref import WeakValueDictionary

import duckdb
import polars as pl

from dpframe.errors import UnsupportedOperation

__all__ = ["Border"]

T = TypeVar("T")

_WHERE = "session.protect(relation, ...)"
_LEAVES_VIEWS = int(duckdb.__version__.split(".")[0]) < 2
"""There `relation.query` makes a temporary view of the relation."""
_STATISTICS = "SELECT stats(i) FROM range(3) AS t(i)"
"""What DuckDB knows of values at the moment, as its own function says."""
_NONE = (None, "No statistics")
_PATIENCE = 10
"""Seconds in which the optimiser can be turned on again although interruptions keep coming."""
_MARK = 0x0123_4567_89AB_CDEF
_PROBE = """
SELECT (SELECT count(*) FROM {file} WHERE x > 5), (SELECT count(*) FROM {file} WHERE x <> 1),
    (SELECT count(*) FROM (SELECT * FROM {file} WHERE isnan(x)) WHERE x > 5),
    (SELECT sum(CASE WHEN x > 5 THEN 1 ELSE 0 END) FROM {file}),
    (SELECT count(*) FROM {file} WHERE i > 5), (SELECT count(*) FROM {file} WHERE i <> 0),
    (SELECT max(i) FROM {file})
"""
_RIGHT = (3, 3, 3, 3, 4, 4, _MARK)
_COMPARES = re.compile(r" = |IS NOT DISTINCT FROM")
"""What the optimiser makes a join of."""
_LOCKS: WeakValueDictionary[int, Lock] = WeakValueDictionary()
_NEW_LOCK = Lock()


class Border:
    """The connection of a relation, and its optimiser.

    Parameters
    ----------
    relation
        Any relation of the connection.
    """

    def __init__(self, relation: Any) -> None:
        # reads nothing of the relation, so it works for any data
        self._home = _ask(relation, "SELECT 1 AS one")
        ((number,),) = self.fetch("SELECT current_connection_id()")
        with _NEW_LOCK:
            # numbers are those of one database: others may share a lock, and wait for each other
            self._lock = _LOCKS.setdefault(number, Lock())

    def fetch(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query that names what it reads."""
        found: list[tuple[Any, ...]] = _ask(self._home, sql).fetchall()
        return found

    def relation(self, sql: str) -> Any:
        """A query that names what it reads, as a relation."""
        return _ask(self._home, sql)

    def run(self, work: Callable[[], T]) -> T:
        """What some work on the connection gives while the optimiser is off, as it was before
        afterwards. One thread after another: the setting is the connection's.

        Guarantee
        ---------
        The optimiser is off whenever `work` has DuckDB plan a query.

        Proof
        -----
        It is turned off before the work, and the result is used only after DuckDB confirms that
        it is still off. No other work of dpframe on this connection is under way, and other
        connections of the database have their own settings. (An owner who turns it on and off
        again meanwhile, from another thread on the same connection, is not noticed.)

        Raises
        ------
        UnsupportedOperation
            When it cannot be turned off.
        """
        with self._lock:
            was_on = self._is_on()
            if was_on:
                self._turn_off()
            try:
                result = work()
                if self._is_on():
                    raise _unsafe("cannot be turned off, or was turned on while a query ran")
                return result
            finally:
                if was_on:
                    self._turn_on()

    def _is_on(self) -> bool:
        return any(known not in _NONE for (known,) in self.fetch(_STATISTICS))

    def _turn_off(self) -> None:
        try:
            _ask(self._home, "PRAGMA disable_optimizer")
            return
        except duckdb.InvalidInputException:  # the only way to refuse a setting
            pass
        except BaseException:
            self._turn_on()
            raise
        raise UnsupportedOperation(
            "DuckDB's optimiser must be off while a query runs, and the configuration of the "
            "connection is locked",
            where=_WHERE,
            why="the optimiser decides about some rows by statistics of others",
            remedy="run PRAGMA disable_optimizer before SET lock_configuration = true",
        )

    def _turn_on(self) -> None:
        end = monotonic() + _PATIENCE
        while True:
            try:
                _ask(self._home, "PRAGMA enable_optimizer")
                return
            except duckdb.Error as error:
                interrupted = isinstance(error, duckdb.InterruptException)
            if not interrupted or monotonic() > end:
                warnings.warn(
                    "DuckDB's optimiser is still off on the connection, for example because a "
                    "query failed in a transaction: run ROLLBACK, then PRAGMA enable_optimizer",
                    RuntimeWarning,
                    stacklevel=2,
                )
                return
            sleep(0.01)

    # -- before a relation is used --------------------------------------------------------------

    def require(self) -> None:
        """Refuse a connection on which statistics act all the same: tried with a small file whose
        values are outside of what its footer says.

        Raises
        ------
        UnsupportedOperation
            Saying what to do instead.
        """
        rows, kind = None, ""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "values.parquet"
            _write_stale(path)
            file = "read_parquet('" + str(path).replace("'", "''") + "')"
            try:
                rows = self.run(lambda: self.fetch(_PROBE.format(file=file)))
            except duckdb.Error as error:  # of constants
                kind = type(error).__name__
        if rows is None:
            raise UnsupportedOperation(
                f"the connection cannot read a temporary file of dpframe ({kind})",
                where=_WHERE,
                remedy="use a connection whose enable_external_access is true, the default",
            )
        if rows != [_RIGHT]:
            raise _unsafe("is off, but statistics still decide about rows")

    def require_joins(self, relation: Any) -> None:
        """Refuse a relation that combines each row with each other one unless the optimiser turns
        that into a join: without the optimiser this may take forever. DuckDB before 2 is not
        asked.

        Raises
        ------
        UnsupportedOperation
            Saying how to write the join.
        """
        if _LEAVES_VIEWS:
            return
        name = _name()
        told = self.run(
            lambda: relation.query(name, f"EXPLAIN (FORMAT JSON) SELECT * FROM {name}").fetchall()
        )
        if any(_combines(json.loads(text)) for _, text in told):
            raise UnsupportedOperation(
                "the relation compares columns of two tables in WHERE, or in a subquery",
                where=_WHERE,
                why="DuckDB's optimiser, which would turn that into a join, is off while a "
                "query runs",
                remedy=(
                    "write FROM a JOIN b ON a.id = b.id, or a SEMI JOIN in place of EXISTS",
                    "write CREATE TABLE from the query, and protect that table",
                ),
            )


def _ask(relation: Any, sql: str) -> Any:
    """The rows of a statement on the connection of a relation; no row of the relation is read."""
    name = _name()
    rows = relation.query(name, sql)
    if _LEAVES_VIEWS:
        relation.query(name, f"DROP VIEW {name}")
    return rows


def _name() -> str:
    return f"dpframe_{uuid4().hex}"


def _write_stale(path: Path) -> None:
    """Three rows of NaN, which are outside of minimum and maximum, and a column whose footer
    claims that all values are 0.
    """
    columns = {"x": [math.nan, math.nan, math.nan, 1.0], "i": [_MARK] * 4}
    pl.DataFrame(columns).write_parquet(path, statistics=True, compression="uncompressed")
    written = path.read_bytes()
    footer = len(written) - 8 - int.from_bytes(written[-8:-4], "little")
    stale = written[footer:].replace(_MARK.to_bytes(8, "little"), bytes(8))
    path.write_bytes(written[:footer] + stale)


def _combines(node: Any) -> bool:
    """Whether an operator of a plan, or one below, filters all pairs of rows."""
    if isinstance(node, list):
        return any(map(_combines, node))
    children = node.get("children", [])
    pairs = _operator(node) == "FILTER" and any(_operator(c) == "CROSS_PRODUCT" for c in children)
    return (pairs and _COMPARES.search(json.dumps(node["extra_info"])) is not None) or _combines(
        children
    )


def _operator(node: Any) -> str:
    return str(node.get("name", "")).strip().upper().replace(" ", "_")


def _unsafe(what: str) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"the optimiser of the DuckDB connection {what} (DuckDB {duckdb.__version__})",
        where=_WHERE,
        why="one row could decide what other rows count",
        remedy=(
            "use a connection of duckdb.connect() with its default settings",
            "write Parquet and protect its path",
        ),
    )
