"""The plans of "Approve or refuse": what is wrong with each is found by the plan's own words."""

from __future__ import annotations

from typing import Any

import pytest

from tests.documentation import ROOT, beside_data, examples

PAGE = ROOT / "docs" / "howto" / "approve-or-refuse.md"
BAD = {
    2: ["one row is protected, and 'patient' looks like a person"],
    4: ["the bounds of 'cost' reach 100,000,000, 111,111 times the typical 900"],
    5: ["singles people out: the plan compares 'patient' with a constant"],
    7: ["one individual may have 5000 rows in 'n'"],
    9: [
        "epsilon 8 is large for a person",
        "people appear half of the time",
        "numbers are too small where people are in several",
    ],
}


@pytest.fixture(scope="module")
def plans() -> Any:
    found: dict[str, Any] = {}
    with beside_data():
        for example in examples(PAGE.read_text()):
            exec(compile(example.code, str(PAGE), "exec"), found)
    return found["plans"]


def test_half_of_the_plans_are_bad(plans: Any) -> None:
    assert [*plans] == [*range(1, 11)]
    assert {number for number, plan in plans.items() if plan.risks} == BAD.keys()


@pytest.mark.parametrize("number", BAD)
def test_each_risk_is_found_in_every_form(plans: Any, number: int) -> None:
    plan = plans[number]
    assert len(plan.risks) == len(BAD[number])
    for words in BAD[number]:
        assert any(words in risk for risk in plan.risks)
        head = plan.explain().partition("\nProtects ")[0]
        assert words in head


def test_the_page_says_the_same() -> None:
    _, _, answers = PAGE.read_text().partition("## Answers")
    for number in range(1, 11):
        verdict = "refuse" if number in BAD else "approve"
        assert f"\n{number}. {verdict}\n" in answers
