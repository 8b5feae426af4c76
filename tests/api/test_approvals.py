"""Sessions that run only plans that somebody approved."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from dpframe.api import payer
from dpframe.ledger.approvals import KEY_VARIABLE, ApprovalKey, new_pair
from dpframe.ledger.owners import approve, revoke
from dpframe.ledger.place import store_at
from tests.plan.documents import of_version_1
from tests.plan.edits import with_digest, with_fingerprint, with_value
from tests.syntax import nodes_of

PEOPLE = pl.DataFrame(
    {
        "id": [1, 1, 2, 3],
        "age": [31, 64, 20, 45],
        "sex": ["f", "m", "f", "m"],
        "pay": [1.0, 2.0, 3.0, 4.0],
    }
)
PRIVATE, PUBLIC = new_pair()


@pytest.fixture(autouse=True)
def _without_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "budget.db"


def session_of(ledger: Path, **budget: Any) -> dp.Session:
    given = {"epsilon": 1} | budget
    return dp.Session(ledger=ledger, require_approval=True, **given)


def people_of(session: dp.Session, unit: Any = None) -> dp.PrivateFrame:
    return session.protect(PEOPLE, unit=unit or dp.Rows(), name="people")


def approved(
    ledger: Path, plan: dp.Plan, *, name: str = "default", key: ApprovalKey | None = None
) -> None:
    if name not in store_at(ledger).read().accounts:
        dp.Session(epsilon=1, ledger=ledger, name=name)
    approve(store_at(ledger), name, plan.fingerprint, plan.to_json(None), "Ann", key)


def test_a_plan_that_is_approved_for_another_budget_says_for_which(ledger: Path) -> None:
    """Who forgets the name of the budget approves for another one."""
    mine = session_of(ledger, name="nightly")
    query = people_of(mine).dp_count()
    plan = query.plan(epsilon="0.1")
    approved(ledger, plan, name="second")
    approved(ledger, plan, name="default")
    words = require_refused(mine, lambda: query.collect(epsilon="0.1"))
    assert "it is approved for 'default' and 'second', not for the budget 'nightly'\n" in words
    assert "name='default'" in words
    assert "--ledger WHERE --name nightly`" in words
    other = people_of(mine).filter(pl.col("age") > 7).dp_count()
    words = require_refused(mine, lambda: other.collect(epsilon="0.1"))
    assert "has no approved plan to compare it with" in words


def test_approvals_elsewhere_that_count_nothing_are_not_said(
    ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = session_of(ledger, name="nightly")
    query = people_of(mine).dp_count()
    plan = query.plan(epsilon="0.1")
    approved(ledger, plan, name="second")
    revoke(store_at(ledger), "second", plan.fingerprint, "Ann", "a mistake")
    words = require_refused(mine, lambda: query.collect(epsilon="0.1"))
    assert "second" not in words
    approved(ledger, plan, name="third")
    monkeypatch.setenv(KEY_VARIABLE, PUBLIC)
    signed_only = session_of(ledger, name="nightly")
    query = people_of(signed_only).dp_count()
    assert "third" not in require_refused(signed_only, lambda: query.collect(epsilon="0.1"))


def require_refused(session: dp.Session, work: Callable[[], object]) -> str:
    """That it is not approved, and nothing is charged."""
    before = session.spent, session.history.height
    with pytest.raises(dp.PlanMismatch) as refused:
        work()
    assert (session.spent, session.history.height) == before
    return str(refused.value)


def test_what_is_not_approved_is_refused_and_not_charged(ledger: Path) -> None:
    session = session_of(ledger)
    query = people_of(session).dp_count()
    words = require_refused(session, lambda: query.collect(epsilon=0.1))
    assert f"the plan {query.plan(epsilon=0.1).fingerprint[:16]} is not approved" in words
    assert "no approved plan to compare it with" in words
    assert "`dpframe approve PLAN.json --by WHO --ledger WHERE`" in words
    assert session.spent.is_zero


def test_an_approved_plan_runs_until_the_budget_ends(ledger: Path) -> None:
    session = session_of(ledger)
    query = people_of(session).dp_count()
    approved(ledger, query.plan(epsilon=0.25))
    for _ in range(4):
        assert query.collect(epsilon=0.25).shape == (1, 1)
    with pytest.raises(dp.BudgetExceeded):
        query.collect(epsilon=0.25)
    assert session.history["status"].to_list() == ["released"] * 4


def test_another_process_runs_what_was_approved_here(ledger: Path) -> None:
    plan = people_of(dp.Session(epsilon=1)).dp_count().plan(epsilon=0.25)
    approved(ledger, dp.Plan.from_json(plan.to_json()))
    release = people_of(session_of(ledger)).dp_count().release(epsilon=0.25)
    assert release.plan.fingerprint == plan.fingerprint


EDITS: dict[str, Callable[[dp.PrivateFrame], dp.PrivateQuery]] = {
    "filter on `age` changed|filter changed": lambda f: f.filter(pl.col("age") > 41).dp_sum(
        "pay", (0, 5)
    ),
    "filter on `age` removed": lambda f: f.dp_sum("pay", (0, 5)),
    "filter on `sex` added": lambda f: (
        f.filter(pl.col("age") > 40).filter(pl.col("sex") == "f").dp_sum("pay", (0, 5))
    ),
    "sensitivity of `pay`": lambda f: f.filter(pl.col("age") > 40).dp_sum("pay", (0, 6)),
    "output `p` added": lambda f: f.filter(pl.col("age") > 40).agg(
        dp.sum("pay", (0, 5)).alias("p")
    ),
    "groups added": lambda f: (
        f.filter(pl.col("age") > 40).group_by("sex", keys=["f", "m"]).agg(dp.sum("pay", (0, 5)))
    ),
    "mechanism of `pay`": lambda f: f.filter(pl.col("age") > 40).agg(
        dp.sum("pay", (0, 5), mechanism="discrete_gaussian")
    ),
}


@pytest.mark.parametrize("words", EDITS)
def test_one_edit_is_refused_with_what_is_different(ledger: Path, words: str) -> None:
    session = session_of(ledger, delta="1e-6")
    people = people_of(session)
    plan = people.filter(pl.col("age") > 40).dp_sum("pay", (0, 5)).plan(epsilon=0.1, delta="1e-9")
    approved(ledger, plan)
    query = EDITS[words](people)
    said = require_refused(session, lambda: query.collect(epsilon=0.1, delta="1e-9"))
    assert f"it differs from {plan.fingerprint[:16]}, which Ann approved on" in said
    assert re.search(words, said)


def test_another_spend_or_frame_or_unit_is_refused(ledger: Path) -> None:
    session = session_of(ledger)
    query = people_of(session).dp_count()
    approved(ledger, query.plan(epsilon=0.1))
    said = require_refused(session, lambda: query.collect(epsilon=0.2))
    assert "epsilon of the plan 0.1 -> 0.2" in said
    other = session.protect(PEOPLE, unit=dp.Rows(), name="others").dp_count()
    assert "frame people -> others" in require_refused(session, lambda: other.collect(epsilon=0.1))
    twice = session.protect(PEOPLE, unit=dp.Rows(contributions=2), name="people").dp_count()
    assert "protects" in require_refused(session, lambda: twice.collect(epsilon=0.1))


def test_the_nearest_of_several_is_named(ledger: Path) -> None:
    session = session_of(ledger)
    people = people_of(session)
    far = people.filter(pl.col("age") > 3).filter(pl.col("sex") == "m").dp_sum("pay", (0, 5))
    near = people.dp_count()
    for query in (far, near, far):
        approved(ledger, query.plan(epsilon=0.1))
    said = require_refused(session, lambda: near.collect(epsilon=0.3))
    assert near.plan(epsilon=0.1).fingerprint[:16] in said
    assert "filter" not in said


def test_long_differences_are_cut_short(ledger: Path) -> None:
    session = session_of(ledger)
    people = people_of(session)
    approved(ledger, people.dp_count().plan(epsilon=0.1))
    many = people.agg(**{f"n{i}": dp.count() for i in range(40)})
    said = require_refused(session, lambda: many.collect(epsilon=0.1))
    assert re.search(r"and \d+ more", said)
    assert said.count("\n") < 26


def test_documents_that_are_not_those_of_their_fingerprint_are_not_compared(ledger: Path) -> None:
    session = session_of(ledger)
    query = people_of(session).dp_count()
    plan = query.plan(epsilon=0.2)
    for document in ("", "{}", '{"schema_version": 99}', plan.to_json().replace("people", "folk")):
        approve(store_at(ledger), "default", "f" * 64, document, "Ann", None)
    approve(store_at(ledger), "default", "e" * 64, plan.to_json(), "Ann", None)
    said = require_refused(session, lambda: query.collect(epsilon=0.2))
    assert "no approved plan to compare it with" in said


def as_an_earlier_version(plan: dp.Plan) -> dict[str, Any]:
    """Its document without what the first edition did not say."""
    document: dict[str, Any] = json.loads(of_version_1(plan))
    for number, release in enumerate(document["plan"]["releases"]):
        scores = {name: release["scores"][name] for name in ("l1", "l2_squared")}
        document = with_value(document, ("plan", "releases", number, "scores"), scores)
    return with_digest(with_fingerprint(document))


def test_plans_of_earlier_versions_are_compared_too(ledger: Path) -> None:
    session = session_of(ledger)
    people = people_of(session)
    query = people.dp_argmax("sex", None, ["f", "m"])
    document = as_an_earlier_version(query.plan(epsilon=0.1))
    assert document["fingerprint"] != query.plan(epsilon=0.1).fingerprint
    approve(store_at(ledger), "default", document["fingerprint"], json.dumps(document), "Ann", None)
    said = require_refused(session, lambda: query.collect(epsilon=0.2))
    assert f"it differs from {document['fingerprint'][:16]}, which Ann approved on" in said
    assert "epsilon of the plan 0.1 -> 0.2" in said
    said = require_refused(session, lambda: query.collect(epsilon=0.1))
    assert "nothing but what documents of earlier versions do not say" in said
    for false in (document, document | {"fingerprint": "f" * 64}):
        text = json.dumps(with_digest(false))
        approve(store_at(ledger), "default", "f" * 64, text, "Ann", None)
        last = session._payer.ledger.approvals[-1]
        assert payer.nearest_approval(query.plan(epsilon=0.2), (last,)) is None


def test_an_approval_is_for_one_name(ledger: Path) -> None:
    session = session_of(ledger, name="census")
    query = people_of(session).dp_count()
    approved(ledger, query.plan(epsilon=0.1))  # for "default"
    said = require_refused(session, lambda: query.collect(epsilon=0.1))
    assert "--name census`" in said
    approved(ledger, query.plan(epsilon=0.1), name="census")
    query.collect(epsilon=0.1)


def test_approvals_need_a_ledger() -> None:
    with pytest.raises(dp.LedgerError, match="approvals are kept in a ledger"):
        dp.Session(epsilon=1, require_approval=True)


# -- keys -----------------------------------------------------------------------------------------


def test_with_a_key_only_what_it_verifies_counts(
    ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = session_of(ledger)
    query = people_of(session).dp_count()
    plan = query.plan(epsilon=0.1)
    approved(ledger, plan)
    approved(ledger, plan, key=ApprovalKey.parse(new_pair()[0]))
    monkeypatch.setenv(KEY_VARIABLE, PUBLIC)
    said = require_refused(session, lambda: query.collect(epsilon=0.1))
    assert f"2 approvals are not signed with the key in {KEY_VARIABLE}, and cannot count" in said
    approved(ledger, plan, key=ApprovalKey.parse(PRIVATE))
    query.collect(epsilon=0.1)


@pytest.mark.parametrize("garbled", ["", "nonsense", "ed25519-public:00"])
def test_a_key_that_is_none_stops_everything(
    ledger: Path, monkeypatch: pytest.MonkeyPatch, garbled: str
) -> None:
    session = session_of(ledger)
    query = people_of(session).dp_count()
    approved(ledger, query.plan(epsilon=0.1))
    monkeypatch.setenv(KEY_VARIABLE, garbled)
    with pytest.raises(dp.LedgerError, match="is not a key for approvals"):
        query.collect(epsilon=0.1)
    assert session.spent.is_zero


# -- every way to run -----------------------------------------------------------------------------


def test_every_way_to_run_a_query_asks(ledger: Path) -> None:
    session = session_of(ledger, delta="1e-6")
    people = people_of(session, "id")
    query = people.limit_rows(2).dp_count()
    spend = {"epsilon": "0.1", "delta": "1e-8"}
    by_sex = people.limit_groups(1, by="sex").limit_rows(1, by="sex").group_by("sex")
    ways: list[Callable[[], object]] = [
        lambda: query.collect(**spend),
        lambda: query.collect(**spend, interval=0.9),
        lambda: query.collect(accuracy={"len": 50}),
        lambda: query.release(**spend),
        lambda: session.collect(query, **spend),
        lambda: session.release(query, **spend),
        lambda: query.suggest_limits(**spend),
        lambda: by_sex.agg(dp.count()).collect(**spend),  # groups that are discovered
        lambda: people.dp_n_unique("id").collect(**spend),
    ]
    for way in ways:
        require_refused(session, way)
    query.plan(**spend)
    query.explain(details=True, **spend)
    session.plan(query, **spend)
    assert session.spent.is_zero


def test_a_query_of_no_session_asks(ledger: Path) -> None:
    session = session_of(ledger)
    query = PEOPLE.lazy().dp_count(unit=dp.Rows())  # type: ignore[attr-defined]
    require_refused(session, lambda: session.collect(query, epsilon=0.1))
    approved(ledger, session.plan(query, epsilon=0.1))
    session.collect(query, epsilon=0.1)


def test_discovered_groups_run_once_they_are_approved(ledger: Path) -> None:
    session = session_of(ledger, delta="1e-6")
    query = people_of(session).group_by("sex").agg(dp.count())
    spend = {"epsilon": "0.5", "delta": "1e-7"}
    require_refused(session, lambda: query.collect(**spend))
    approved(ledger, query.plan(**spend))
    query.collect(**spend)


def test_suggestions_run_once_they_are_approved(ledger: Path) -> None:
    session = session_of(ledger)
    query = people_of(session, "id").limit_rows(1).dp_count()
    with pytest.raises(dp.PlanMismatch):
        query.suggest_limits(epsilon=0.5)
    seen: list[dp.Plan] = []

    def noted(plan: dp.Plan, *_: object) -> None:
        seen.append(plan)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpframe.api.payer.require_approved", noted)
        with pytest.raises(dp.PlanMismatch):  # the charge asks, too
            query.suggest_limits(epsilon=0.2)
    approved(ledger, seen[0])
    with pytest.raises(dp.PlanMismatch):
        query.suggest_limits(epsilon=0.5)
    query.suggest_limits(epsilon=0.2)


def test_parts_and_parts_of_parts_ask(ledger: Path) -> None:
    session = session_of(ledger)
    parts = session.partition(people_of(session), "sex", keys=["f", "m"])
    inner = session.partition(parts["f"], pl.col("age") > 30, keys=[True, False])[True]
    for frame in (parts["f"], inner):
        query = frame.dp_count()
        require_refused(session, lambda query=query: query.collect(epsilon=0.1))  # type: ignore[misc]
        require_refused(
            session,
            lambda query=query: session.collect(query, epsilon=0.1),  # type: ignore[misc]
        )
    approved(ledger, parts["f"].dp_count().plan(epsilon=0.1))
    parts["f"].dp_count().collect(epsilon=0.1)
    said = require_refused(session, lambda: parts["m"].dp_count().collect(epsilon=0.1))
    assert "differs from" in said  # another part is another plan
    approved(ledger, inner.dp_count().plan(epsilon=0.1))
    inner.dp_count().collect(epsilon=0.1)
    assert session.spent == dp.PureDP("0.2")


@pytest.mark.parametrize(
    ("budget", "spend"),
    [
        ({"epsilon": None, "rho": "0.1"}, {"rho": "0.01"}),
        ({"delta": "1e-6", "composition": "zcdp"}, {"epsilon": "0.1", "delta": "1e-7"}),
        ({"delta": "1e-6"}, {"epsilon": "0.1", "delta": "1e-8"}),
    ],
)
def test_every_measure(ledger: Path, budget: dict[str, Any], spend: dict[str, str]) -> None:
    session = session_of(ledger, **budget)
    query = people_of(session).dp_count()
    require_refused(session, lambda: query.collect(**spend))
    approved(ledger, query.plan(**spend))
    query.collect(**spend)
    assert not session.spent.is_zero


def test_over_budget_and_unapproved_is_unapproved(ledger: Path) -> None:
    session = session_of(ledger)
    query = people_of(session).dp_count()
    require_refused(session, lambda: query.collect(epsilon=5))


def test_a_session_without_the_requirement_runs_as_before(ledger: Path) -> None:
    session = dp.Session(epsilon=1, ledger=ledger)
    people_of(session).dp_count().collect(epsilon=0.1)
    require_refused(session, lambda: people_of(session_of(ledger)).dp_count().collect(epsilon=0.1))


@pytest.mark.always
def test_one_place_runs_plans_and_asks_before_it() -> None:
    """Whoever adds another way to run has to ask too."""
    runs, reads, asks = [], set(), []
    for path in Path(dp.__file__).parent.rglob("*.py"):
        source = path.read_text()
        named = re.search(r"\b(?:run|require_approved|opened)\b", source)
        for node in nodes_of(source) if named else ():
            if isinstance(node, ast.FunctionDef):
                called = {ast.unparse(n.func) for n in ast.walk(node) if isinstance(n, ast.Call)}
                if called & {"runner.run"}:
                    runs.append((path.name, node.name, "self._approved" in called))
                if "require_approved" in called:
                    asks.append((path.name, node.name))
                if any(name.endswith(".opened") for name in called):
                    reads.add(path.name)
    assert sorted(runs) == [
        ("payer.py", "release", True),
        ("payer.py", "run", True),  # inside of it
    ]
    assert asks == [("payer.py", "_approved")]
    # query.py is of frames that are public, and what source.py opens payer.py runs; the ledger's
    # streams.py opens no data: streams have a record of theirs opened
    frames = {"query.py", "source.py", "stream.py", "session.py"}
    assert reads == frames | {"streams.py"}


def test_nearest_of_none_is_none() -> None:
    plan = people_of(dp.Session(epsilon=1)).dp_count().plan(epsilon=0.1)
    assert payer.nearest_approval(plan, ()) is None
