"""Whatever stands in a document with the right digests is refused, or can be shown and compared."""

from __future__ import annotations

import contextlib
import json
import random
from pathlib import Path
from typing import Any

import pytest

import dpframe as dp
from dpframe.api.files import require_result
from dpframe.cli.main import main
from dpframe.report.render import Format
from tests.plan.documents import plan_of
from tests.plan.edits import paths, with_digest, with_fingerprint, with_value

NAMES = (
    "grouped", "quantiles", "part", "found_groups", "found_groups_by_number", "responses",
    "noisy_max", "best_group", "zcdp_session", "many_found_by_gaussian", "arithmetic",
    "found_groups_of_individuals", "found_by_weights_alone", "frames_together", "accurate",
)  # fmt: skip
VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2**31, 2**63, 10**30, 10**400, 0.0, -0.0, 0.5, 1e308, 5e-324,
    -1e308, "", "0", "1", "-1", "1/3", "9" * 4000, "1/" + "9" * 4000, "x", "\ud800", [], [0], {},
    {"kind": "Rows"}, [[]], "sum", "zcdp", "numerical", "9" * 4301, {"fraction": "1/0"}, [[["x"]]],
    {"fraction": "9" * 390}, {"int": "9" * 400}, {"type": ["a"]}, {"type": "Column", "name": [1]},
    {"type": "Call", "op": {}, "args": [[]]},
    {"regular": {"start": "0", "step": "1", "number": 99}}, {"regular": 1},
    {"ratios": {"numerators": " ".join(map(str, [*range(99), 100])), "denominator": "7"}},
]  # fmt: skip
FORMATS: tuple[Format, ...] = ("text", "markdown", "html", "mermaid")


def forged(name: str, chance: random.Random) -> Any:
    """A document with something else in one or two places, and the digests that it should have."""
    found = json.loads(plan_of(name).to_json())
    for _ in range(chance.choice((1, 1, 1, 2))):
        part = chance.choice(("plan", "plan", "plan", "session"))
        inside = chance.random() < 0.4  # definitions are most of a document
        every = [*paths(found[part], (part,))]
        places = [p for p in every if inside == ("definition" in p)] or every
        place = chance.choice(places)
        value = chance.choice(VALUES)
        found = with_value(found, place, value)
    return with_digest(with_fingerprint(found))


def check(found: Any, before: dp.Plan) -> bool:
    """Whether it was taken for a plan."""
    try:
        plan = dp.Plan.from_json(json.dumps(found))
    except dp.DPFrameError:
        return False
    for form in FORMATS:
        assert plan.explain(form)
        assert plan.explain(form, size=1000)
    assert isinstance(plan.diff(before) + before.diff(plan), str)
    assert "<Plan" in repr(plan)
    with contextlib.suppress(dp.DPFrameError):
        assert isinstance(plan.events, tuple)
    for output in plan.outputs:
        with contextlib.suppress(dp.DPFrameError):
            plan.accuracy(output.name, count=100)
    return True


@pytest.mark.parametrize("name", NAMES)
def test_forged_documents_are_refused_or_shown(name: str) -> None:
    chance = random.Random(name)
    for _ in range(60):
        check(forged(name, chance), plan_of(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_many_forged_documents_are_refused_or_shown(name: str) -> None:
    chance = random.Random(f"many {name}")
    taken = sum(check(forged(name, chance), plan_of(name)) for _ in range(4_000))
    assert taken > 100


@pytest.mark.parametrize("name", NAMES)
def test_an_output_of_nothing_is_refused(name: str) -> None:
    """It would have no error, or one of no release."""
    found = json.loads(plan_of(name).to_json())
    made = with_value(found, ("plan", "outputs", 0, "releases"), [])
    with pytest.raises(dp.PlanMismatch, match="outputs"):
        dp.Plan.from_json(json.dumps(with_digest(with_fingerprint(made))))


_NOISES = "DiscreteLaplace", "DiscreteGaussian", "DiscreteBox", "DiscreteHull"


@pytest.mark.parametrize("name", ["grouped", "zcdp_session", "found_groups", "arithmetic"])
def test_nothing_that_individuals_change_is_said_to_be_exact(name: str) -> None:
    seen = 0
    for i, release in enumerate(json.loads(plan_of(name).to_json())["plan"]["releases"]):
        if release["law"]["kind"] not in _NOISES:
            continue
        found = json.loads(plan_of(name).to_json())
        exact = {"law": {"kind": "NoNoise"}, "mechanism": "none", "scale": 0.0}
        for j, other in enumerate(found["plan"]["releases"]):
            if j == i or other.get("draw", "alone") == release.get("draw"):
                found["plan"]["releases"][j] |= exact
        with pytest.raises(dp.PlanMismatch, match=r"does not follow|contradicts the physical plan"):
            dp.Plan.from_json(json.dumps(with_digest(with_fingerprint(found))))
        seen += 1
    assert seen


def test_noise_is_added_once() -> None:
    """Its cost is that of one vector, however often it is said to be met."""
    found = json.loads(plan_of("grouped").to_json())
    found = with_value(found, ("plan", "releases", 0, "repeats"), 2)
    with pytest.raises(dp.PlanMismatch, match="repeats"):
        dp.Plan.from_json(json.dumps(with_digest(with_fingerprint(found))))


@pytest.mark.parametrize("name", ["grouped", "found_groups", "responses", "noisy_max"])
def test_a_contribution_of_nothing_is_refused_or_shown(name: str) -> None:
    """Spreads of zero rows, which other numbers are divided by."""
    found = json.loads(plan_of(name).to_json())
    for i, _ in enumerate(found["plan"]["releases"]):
        for zeros in (("rows",), ("groups",), ("per_group",), ("rows", "groups", "per_group")):
            made = found
            for zero in zeros:
                made = with_value(made, ("plan", "releases", i, "spread", zero), 0)
            check(with_digest(with_fingerprint(made)), plan_of(name))


JSONS = ["3", '"plan"', "[]", "{}", "null", "true", '["plan"]', '{"plan": 1}', "1e999", "[" * 9999]


@pytest.mark.parametrize("text", JSONS)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_files_that_dpframe_did_not_write_are_refused_and_kept(
    text: str, suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / f"mine{suffix}"
    mine.write_text("a\n1\n")
    (tmp_path / f"mine{suffix}.plan.json").write_text(text)
    assert main(["inspect", str(mine)]) == 5
    plan = tmp_path / "plan.json"
    plan.write_text(text)
    good = tmp_path / "good.json"
    good.write_text(plan_of("grouped").to_json())
    for command in (
        ["explain", str(plan)],
        ["diff", str(plan), str(good)],
        ["diff", str(good), str(plan)],
        ["approve", str(plan), "--by", "me", "--ledger", str(tmp_path / "ledger.db")],
        ["explain", str(good), "--output", str(plan)],
    ):
        assert main(command) == 5
    assert "Traceback" not in capsys.readouterr().err
    with pytest.raises(dp.UnsupportedOperation, match="not a result of dpframe"):
        require_result(mine)
    assert mine.read_text() == "a\n1\n"
    assert (tmp_path / f"mine{suffix}.plan.json").read_text() == plan.read_text() == text
