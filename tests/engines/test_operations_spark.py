"""Every row-wise operation: the same on Spark, or refused by name."""

from __future__ import annotations

import os
from typing import Any

import pytest

import dpframe as dp
from dpframe.rows.operation import Kind
from dpframe.rows.registry import OPERATIONS
from tests.engines.many import KINDS, check_all
from tests.engines.operations import awkward, check, check_refused
from tests.engines.spark import frames, session

__all__ = ["session"]

pytestmark = pytest.mark.spark

FRAME = awkward("spark")
_SLOW = os.environ.get("DPFRAME_PROFILE") == "slow"


@pytest.fixture(scope="session")
def given(session: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return frames(session, tmp_path_factory.mktemp("rows"), {"given": FRAME})["given"]


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda o: o.name)
def test_an_operation_is_the_same_or_refused(
    operation: Kind, ansi: str, session: Any, given: Any
) -> None:
    from dpframe.lower.engines.spark_engine import SparkEngine

    session.conf.set("spark.sql.ansi.enabled", ansi)
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    check(operation, SparkEngine(given), given, FRAME)


@pytest.mark.parametrize(
    "operation",
    [o for o in OPERATIONS if "spark" not in o.engines],
    ids=lambda o: o.name,
)
def test_what_is_not_listed_is_refused_by_name(operation: Kind, given: Any) -> None:
    check_refused(operation, dp.Session(epsilon=1).protect(given, dp.Rows()), "Spark")


@pytest.mark.parametrize("ansi", ["true", "false"] if _SLOW else ["true"])
@pytest.mark.parametrize("kind", KINDS)
def test_operations_are_the_same_on_many_values(
    kind: str, ansi: str, session: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    from dpframe.lower.engines.spark_engine import SparkEngine

    session.conf.set("spark.sql.ansi.enabled", ansi)
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    frame, expressions = KINDS[kind][0](), KINDS[kind][1][:: 1 if _SLOW else 10]
    given = frames(session, tmp_path_factory.mktemp(kind), {kind: frame})[kind]
    check_all(SparkEngine(given), given, frame, expressions, 4)
