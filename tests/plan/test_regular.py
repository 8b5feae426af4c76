"""Long lists of edges and candidates in documents, and fingerprints that they do not change."""

from __future__ import annotations

import datetime as dt
import json
from fractions import Fraction
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.errors import PlanMismatch
from dpframe.plan import document, regular
from dpframe.plan.codec import Malformed
from dpframe.plan.regular import by_rules, written_out

DAYS = [dt.date(2020, 1, 1) + dt.timedelta(i) for i in range(100)]
TENTHS = [i / 10 for i in range(300)]
QUERIES: dict[str, tuple[pl.Expr, str, int]] = {
    "equal": (
        dp.col("x").dp_histogram(1000, bounds=(0, 100)),
        "ef01213891b9143e7ebb166ca4ef53f1556d5efabeccfa5766c78ab3d659afcb",
        1,
    ),
    "odd": (
        dp.col("x").dp_histogram(999, bounds=("-0.3", "1e10"), other=True),
        "1c9dd1c0a8002f18010989f8803cd337684701fa40e38aff1359fb058a7703ce",
        1,
    ),
    "whole": (
        dp.col("i").dp_histogram(100, bounds=(0, 1000)),
        "a870fee4d3e096ffcb2680aaeb7b75e24306c00d757184f9210e9db05efaca28",
        1,
    ),
    "between whole ones": (
        dp.col("i").dp_histogram(70, bounds=(0, 1000)),
        "05efd72aeaff548f7be3cfa63515078d3d09fda5c1bed1dcd346e52e6e46f197",
        1,
    ),
    "few": (
        dp.col("i").dp_histogram([0, 10, 20]),
        "610b5af153c5bc446cf554d757c6bf183481e047f4f61729f0feba93d65df5e1",
        0,
    ),
    "listed": (
        dp.col("i").dp_histogram(range(0, 2000, 10)),
        "0deb037b57bfa70abd06bd92d1c44171e57663a4daf86969e1dcbdcae1a2c739",
        1,
    ),
    "unequal": (
        dp.col("x").dp_histogram([i / 7 for i in range(300)]),
        "76d30fe8e9f4b347182cf73683bd11a05bb5eec3767c24964c7869f1559565ff",
        0,
    ),
    "tenths": (
        dp.col("x").dp_histogram(TENTHS),
        "bb3705d22533afe4ad93e8f4d0e4dcccd561638f37594d568b0cc0d010449ab8",
        1,
    ),
    "dates": (
        dp.col("d").dp_histogram(DAYS),
        "af9853ba05056b8862d5ded6547b4eea957f18cc02027d243a8dfdab1ee60be0",
        1,
    ),
    "candidates": (
        dp.col("x").dp_quantile(0.5, candidates=range(-50, 100)),
        "31db2e0e9718577ad3335055b018087af0f7d29f3966ee32cd57c5b700d4e133",
        1,
    ),
    "several quantiles": (
        dp.col("x").dp_quantile([0.1, 0.5], candidates=TENTHS),
        "8291735069a1483021e1d470a632f4e790f90a21fda2f6560a754854fdcf9ec8",
        2,
    ),
    "bounds": (
        dp.col("x").dp_bounds(),
        "eb0adfe3fbb92489f355cc8c3e1eaa23ffe48d43cd87546610e75cf5c73b02d9",
        0,
    ),
}
"""Expressions, the fingerprints of their plans in version 0.2.0, and how many rules these have."""


def people(rows: int = 1) -> dp.PrivateFrame:
    frame = pl.DataFrame({"x": [1.0], "i": [1], "g": ["a"], "d": DAYS[:1], "u": [1]})
    frame = frame.cast({"u": pl.UInt64})
    return dp.Session(epsilon=100).protect(frame, dp.Rows(), name="data")


def same(one: dp.Plan, other: dp.Plan) -> bool:
    """Whether all fields are the same."""
    return all(getattr(one, n) == getattr(other, n) for n in dp.Plan.__dataclass_fields__)


def rules(value: Any) -> int:
    """How many rules JSON has."""
    if isinstance(value, dict):
        return ("regular" in value) + sum(map(rules, value.values()))
    return sum(map(rules, value)) if isinstance(value, list) else 0


@pytest.mark.parametrize("name", QUERIES)
def test_documents_are_short_and_fingerprints_stay(name: str) -> None:
    expression, fingerprint, number = QUERIES[name]
    plan = people().agg(expression).plan(epsilon=1)
    assert document.earlier_fingerprint(plan) == fingerprint
    text = plan.to_json()
    assert rules(json.loads(text)["plan"]) == number
    read = dp.Plan.from_json(text)
    assert same(read, plan)
    assert read.to_json() == text
    if number:
        assert len(text) < 10_000


@pytest.mark.parametrize("name", QUERIES)
def test_documents_that_list_all_numbers_are_read(name: str) -> None:
    plan = people().agg(QUERIES[name][0]).plan(epsilon=1)
    earlier = json.dumps(document.document_of(plan))
    assert rules(json.loads(earlier)) == 0
    assert same(dp.Plan.from_json(earlier), plan)


@pytest.mark.parametrize(
    ("field", "edit"),
    [
        ("start", "1"),
        ("step", "1/5"),
        ("step", "0"),
        ("number", 1000),
        ("number", 10**12),
        ("number", True),
        ("start", "0/1"),
        ("start", "1/0"),
        ("start", 0),
        ("step", "1e9"),
    ],
)
def test_an_edited_rule_is_refused(field: str, edit: object) -> None:
    text = people().agg(QUERIES["equal"][0]).plan(epsilon=1).to_json()
    whole = json.loads(text)
    edges = whole["plan"]["outputs"][0]["definition"][0]["table"]["cells"]["edges"]
    assert edges == {"regular": {"start": "0", "step": "1/10", "number": 1001}}
    edges["regular"][field] = edit
    with pytest.raises(PlanMismatch, match="edited or damaged"):
        dp.Plan.from_json(json.dumps(whole))


def test_rules_cannot_ask_for_any_amount_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regular, "_MOST_IN_ALL", 400)
    rule = {"regular": {"start": "0", "step": "1", "number": 100}}
    listed = as_definition([rule] * 4)
    with pytest.raises(Malformed):
        as_definition([rule] * 5)
    assert by_rules([*listed, listed[0]]) == [rule] * 4 + [listed[0]]
    with pytest.raises(Malformed):
        as_definition({"regular": {"start": "0", "step": "1", "number": 10**6 + 2}})
    with pytest.raises(Malformed):
        written_out([rule])  # where no plan has one


def as_definition(found: Any) -> Any:
    """What is written out where plans have long lists."""
    return written_out({"definition": found})["definition"]


def test_nor_for_any_amount_of_time() -> None:
    start, step = Fraction(10**99 + 1, 10**99 + 3), Fraction(10**98 + 7, 10**99 + 9)
    rule = {"start": str(start), "step": str(step), "number": 100}
    with pytest.raises(Malformed):
        as_definition({"regular": rule})
    listed = [{"fraction": str(start + i * step)} for i in range(100)]
    assert by_rules(listed) == listed
    with pytest.raises(Malformed):
        as_definition({"regular": {**rule, "start": "1" * 101}})


@given(
    st.fractions(max_denominator=100),
    st.fractions(max_denominator=100),
    st.integers(60, 70),
    st.integers(0, 69),
)
def test_what_is_written_by_rules_is_written_out_again(
    start: Fraction, step: Fraction, size: int, moved: int
) -> None:
    numbers = [{"fraction": str(start + i * step)} for i in range(size)]
    assert ("regular" in by_rules(numbers)) == (size > 64 and step != 0)
    assert as_definition(by_rules([numbers, "x"])) == [numbers, "x"]
    if moved < size:
        numbers[moved] = {"fraction": str(start + moved * step + 1)}
        assert by_rules(numbers) == numbers


@pytest.mark.parametrize(
    "expression",
    [
        dp.col("x").dp_histogram(100_000, bounds=(0, 1000)),
        dp.col("x").dp_histogram(range(100_001)),
        dp.col("x").dp_quantile(0.5, candidates=range(100_000)),
    ],
)
def test_a_hundred_thousand_bins_are_planned_and_printed_in_short(expression: pl.Expr) -> None:
    plan = people().agg(expression).plan(epsilon=1)
    assert len(plan.explain()) < 2000
    assert len(plan.to_json()) < 8000
