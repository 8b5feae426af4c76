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
from dpframe.core.regular import (
    RULES,
    by_rules,
    canonical,
    ends_of_rule,
    numbers_of_rule,
    require_room,
    rule_of,
    write_out,
)
from dpframe.errors import PlanMismatch
from dpframe.frames.definition import definition
from dpframe.plan import document
from tests.plan import edits
from tests.plan.documents import of_version_1

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
        1,
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
    "percentiles": (
        dp.col("x").dp_quantile([i / 100 for i in range(1, 100)], candidates=[0, 1]),
        "b97c298104c0bae87710385a0f4e856b65b87dc0a2027592e1294926b28e05de",
        0,
    ),
    "bounds": (
        dp.col("x").dp_bounds(),
        "eb0adfe3fbb92489f355cc8c3e1eaa23ffe48d43cd87546610e75cf5c73b02d9",
        1,
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
        return bool(RULES & value.keys()) + sum(map(rules, value.values()))
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
        assert len(text) < 30_000


def list_numbers(value: Any) -> Any:
    """JSON with all numbers listed, as the edition before had them."""
    return json.loads(write_out(canonical(value)))


@pytest.mark.parametrize("name", QUERIES)
def test_documents_of_the_edition_before_list_numbers(name: str) -> None:
    plan = people().agg(QUERIES[name][0]).plan(epsilon=1)
    first = json.loads(of_version_1(plan))
    whole = list_numbers(first)
    assert rules(whole) == 0
    assert first["digest"] == edits.with_digest(whole)["digest"]
    assert same(dp.Plan.from_json(json.dumps(whole)), dp.Plan.from_json(json.dumps(first)))
    assert dp.Plan.from_json(json.dumps(whole)).fingerprint == whole["fingerprint"]


@pytest.mark.parametrize("name", [name for name, query in QUERIES.items() if query[2]])
def test_a_list_is_refused_where_a_rule_belongs(name: str) -> None:
    whole = json.loads(people().agg(QUERIES[name][0]).plan(epsilon=1).to_json())
    whole["plan"] = list_numbers(whole["plan"])
    with pytest.raises(PlanMismatch, match="a list has a value"):
        dp.Plan.from_json(json.dumps(edits.with_digest(edits.with_fingerprint(whole))))


EDITS: list[tuple[str, object]] = [
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
]


@pytest.mark.parametrize(("field", "edit"), EDITS)
def test_an_edited_rule_is_refused(field: str, edit: object) -> None:
    plan = people().agg(QUERIES["equal"][0]).plan(epsilon=1)
    whole = json.loads(plan.to_json())
    edges = whole["plan"]["outputs"][0]["definition"][0]["table"]["cells"]["edges"]
    assert edges == {"regular": {"start": "0", "step": "1/10", "number": 1001}}
    edges["regular"][field] = edit
    for forged in (whole, edits.with_digest(edits.with_fingerprint(whole))):
        with pytest.raises(PlanMismatch, match="edited or damaged"):
            dp.Plan.from_json(json.dumps(forged))
    first = json.loads(of_version_1(plan))
    first["plan"] = whole["plan"]
    with pytest.raises(PlanMismatch, match="edited or damaged"):
        dp.Plan.from_json(json.dumps(first))


@pytest.mark.parametrize(
    "rule",
    [
        {"regular": {"start": "0", "step": "1", "number": 64}},
        {"regular": {"start": "0", "step": "1", "number": 10**6 + 2}},
        {"regular": {"start": "0", "step": "0", "number": 100}},
        {"regular": {"start": "0", "step": "1/0", "number": 100}},
        {"regular": {"start": "0", "step": "2/2", "number": 100}},
        {"regular": {"start": "0", "step": "1", "number": 100, "more": 1}},
        {"regular": {"start": "1" * 101, "step": "1", "number": 100}},
        {"regular": {"start": "0", "step": f"{10**98 + 7}/{10**99 + 9}", "number": 100}},
        {"ratios": {"numerators": " ".join(map(str, range(100))), "denominator": "7"}},
        {"ratios": {"numerators": "1 2 4", "denominator": "7"}},
        {"ratios": {"numerators": "1 " * 99, "denominator": "7"}},
        {"ratios": {"numerators": " ".join(str(7 * n**2) for n in range(99)), "denominator": "7"}},
        {"ratios": {"numerators": " ".join(str(n**2) for n in range(99)), "denominator": "0"}},
        {"ratios": {"numerators": " ".join(str(n**2) for n in range(99)), "denominator": 7}},
        {"regular": 1},
        {"more": 1},
    ],
)
def test_other_rules_are_refused(rule: dict[str, Any]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        numbers_of_rule(rule)


def test_rules_cannot_ask_for_any_amount_of_time() -> None:
    rule = {"regular": {"start": "0", "step": "1", "number": 10**6}}
    require_room(canonical([rule] * 10))
    with pytest.raises(ValueError):  # noqa: PT011
        require_room(canonical([rule] * 11))


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
    for kind in ("regular", "ratios"):
        ruled = by_rules({"x": [numbers, "y"]})
        assert rules(ruled) == (size > 64)
        assert (kind in ruled["x"][0]) == (size > 64 and (step != 0 or kind == "ratios"))
        assert list_numbers(ruled) == {"x": [numbers, "y"]}
        if size > 64:
            exact = numbers_of_rule(ruled["x"][0])
            assert list(exact) == [Fraction(number["fraction"]) for number in numbers]
            assert ends_of_rule(ruled["x"][0]) == (exact[0], exact[-1])
            assert rule_of(exact) == definition(exact) == ruled["x"][0]
        if moved < size:
            numbers[moved] = {"fraction": str(start + moved * step + 1)}
        else:
            break


def test_numbers_over_a_long_denominator_are_listed() -> None:
    numbers = [{"fraction": f"{n * n}/{3**59 * 2**n}"} for n in range(65)]
    assert rules(by_rules(numbers)) == 1
    start, step = Fraction(10**99 + 1, 10**99 + 3), Fraction(10**98 + 7, 10**99 + 9)
    numbers = [{"fraction": str(start + i * step)} for i in range(65)]
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
