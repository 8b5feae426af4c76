"""The scripts in `examples` run as they are, and show what they say they show."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import polars as pl
import pytest

from dpframe.report import Plan
from tests.documentation import ROOT

FOLDER = ROOT / "examples"
SCRIPTS = {path.stem: path for path in sorted(FOLDER.glob("*.py"))}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Scripts run in an empty folder, and leave nothing there."""
    monkeypatch.chdir(tmp_path)
    yield
    assert not list(tmp_path.iterdir())


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"{name}_example", SCRIPTS[name])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def printed_by(module: ModuleType, capsys: pytest.CaptureFixture[str]) -> str:
    """What a script prints; what the documentation shows of it must be there, but for noise."""
    module.main()
    printed = capsys.readouterr().out
    assert module.__file__ is not None
    name = Path(module.__file__).name
    lines = {blotted(line) for line in printed.splitlines()}
    for line in documented(name):
        assert blotted(line) in lines, f"{name} does not print {line!r}; see docs/examples.md"
    return printed


def documented(name: str) -> list[str]:
    """The lines that the page of examples shows of a script."""
    page = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")
    section = next(s for s in page.split("\n## ") if f"$ python examples/{name}\n" in s)
    blocks = re.findall(r"^```console\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.strip()]
    return [line for line in lines if not line.startswith("$ python")]


def blotted(line: str) -> str:
    """A line without its numbers and their widths."""
    return re.sub(r"\s+", " ", re.sub(r"-?\d[\d,]*(\.\d+)?", "#", line)).strip()


@pytest.mark.parametrize("path", SCRIPTS.values(), ids=SCRIPTS.keys())
def test_says_what_it_is_and_how_to_run_it(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert f"python examples/{path.name}" in (ast.get_docstring(tree) or "")
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert "main" in {function.name for function in functions}
    for function in functions:
        assert function.returns is not None, f"{function.name} does not say what it returns"
    assert path.name in (FOLDER / "README.md").read_text(encoding="utf-8")
    assert path.name in (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")


def test_census_table_holds_what_its_intervals_say(capsys: pytest.CaptureFixture[str]) -> None:
    module = loaded("census_table")
    printed = printed_by(module, capsys)
    assert "Only you can answer" in printed
    assert len(re.findall(r"^ (?:\S+) +-?\d+ \[", printed, re.MULTILINE)) == 16
    *_, last = printed.split("How far off it is")
    rows = re.findall(r"^ (to 100|to 1,000|larger) +(\d+).* (\d+) +(\d+) *$", last, re.MULTILINE)
    assert [(size, int(groups)) for size, groups, _, _ in rows] == [
        ("to 100", 6),
        ("to 1,000", 19),
        ("larger", 7),
    ]
    assert sum(int(n) for *_, n in rows) == 96
    # about 91 of 96 hold, less a few whose means are clamped; were 88 to be expected, and all
    # independent, fewer than 70 would hold once in 10^8 runs
    assert 70 <= sum(int(held) for *_, held, _ in rows) <= 96


def test_census_errors_are_found() -> None:
    """Where a number is off by much, the table of errors says so."""
    module = loaded("census_table")
    people = pl.read_parquet(module.DATA).rename({"hours_per_week": "hours"})
    exact = module.exact(people)
    same = exact.rename(lambda name: name.removesuffix("_exact")).with_columns(
        **{
            f"{name}_{end}": pl.col(name)
            for name in ("n", "age", "hours")
            for end in ("low", "high")
        }
    )
    for moved, held in ((0, 96), (1, 0)):
        off = same.with_columns(pl.exclude("education", "sex") + moved)
        found = module.errors(off, exact)
        assert found["intervals that hold"].sum() == held
        assert found["n"].to_list() == [moved] * 3


def test_product_analytics(capsys: pytest.CaptureFixture[str]) -> None:
    module = loaded("product_analytics")
    printed = printed_by(module, capsys)
    assert "protects all rows of one person (column user)" in printed
    assert "epsilon 0 of epsilon 4" in printed
    parts = re.split(r"\n\n(?=[A-Z<])", printed)
    back = next(part for part in parts if part.startswith("Of those"))
    users = [int(n) for n in re.findall(r"^ \d +(-?\d+)", back, re.MULTILINE)]
    assert len(users) == 8
    assert users == sorted(users, reverse=True)  # in each week fewer of them come back
    assert " f0001" in printed  # nobody listed it
    assert printed.count("<- least") == 1


def test_larger_clamps_leave_out_less_and_need_more_noise() -> None:
    module = loaded("product_analytics")
    compared = module.bias_and_noise(module.made_up_events(users=500))
    assert compared["left out"].is_sorted(descending=True)
    assert compared["noise"].is_sorted()
    assert compared["left out"][0] > compared["left out"][-1]


def test_etl_runs_what_is_approved_until_the_budget_is_spent(
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = Path.cwd()
    printed = printed_by(loaded("etl_approval"), capsys)
    assert Path.cwd() == before
    commands = re.findall(
        r"^\$ dpframe (\w+).*?-> exit code (\d)", printed, re.MULTILINE | re.DOTALL
    )
    assert commands == [
        ("ledger", "0"),
        ("run", "4"),
        ("explain", "0"),
        ("approve", "0"),
        ("run", "0"),
        ("run", "0"),
        ("run", "3"),
        ("inspect", "0"),
        ("run", "4"),
        ("ledger", "0"),
        ("ledger", "0"),
    ]
    assert "the file is as it was released" in printed
    assert "dp_mean((0, 60)) -> col" in printed  # what the changed job differs in
    assert "epsilon of the plan 0.4 -> 0.2" in printed
    assert "epsilon 0.8 in 2 charges: 2 released" in printed
    assert "verified" in printed


def test_meeting_is_chosen_and_nothing_else_comes_out(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = loaded("meeting_date")
    monkeypatch.setattr(module, "DRAWS", 20)
    printed = printed_by(module, capsys)
    chosen = re.search(r"The meeting is on \w+, (\d\d) March", printed)
    assert chosen is not None
    _, _, rest = printed.partition("The meeting is on ")
    released = rest.partition("On made-up people")[0].split("\n")
    assert [line.split(",")[0].split(" at most")[0] for line in released if line] == [
        released[0].split(",")[0],
        "With 95% confidence",
    ]
    rows = re.findall(r"^ (\w{3} \d\d) Mar +(\d+) +(\d+)% +(\d+)% *$", printed, re.MULTILINE)
    assert len(rows) == 10
    scores = {day: int(can) for day, can, *_ in rows}
    assert max(scores, key=lambda day: scores[day]) == "Wed 11"
    winner = next(day for day in scores if day.endswith(chosen[1]))
    # e^-20 is how likely a score of 40 fewer is at epsilon 1, were it exponential in half the gap
    assert scores[winner] > scores["Wed 11"] - 40
    for number in (2, 3):
        assert sum(int(row[number]) for row in rows) == 100


def test_availability_is_scored_as_it_is_counted() -> None:
    """With hardly any noise the private choice is the exact one."""
    module = loaded("meeting_date")
    session = module.dp.Session(epsilon=1000)
    query = module.chooser(session.protect(module.made_up_people(), unit=module.dp.Rows()))
    assert query.collect(epsilon=1000)["day"].item() == module.date(2026, 3, 11)


def test_averaging_gains_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = loaded("averaging_attack")
    monkeypatch.setattr(module, "QUESTIONS", 150)
    printed = printed_by(module, capsys)
    assert "spent: epsilon 15, which is no protection" in printed
    assert "question 101 is refused" in printed
    assert "question 345 is refused" in printed
    assert re.search(r"^   100 answers, average", printed, re.MULTILINE)
    assert re.search(r"^   344 answers, average", printed, re.MULTILINE)


def test_bounds_on_averages() -> None:
    """Laplace noise of scale n: the average has standard deviation sqrt(2 n). Gaussian noise of a
    share of rho: always the same.
    """
    best = loaded("averaging_attack").best
    (_, few), (_, many) = best(100, in_rho=False), best(10_000, in_rho=False)
    assert many == pytest.approx(10 * few, rel=0.01)
    assert best(10_000, in_rho=False)[0] == pytest.approx(29_957, abs=5)  # 10,000 log 20
    (_, few), (_, many) = best(100, in_rho=True), best(10_000, in_rho=True)
    assert many == pytest.approx(few, rel=0.01)
    assert best(1, in_rho=True)[0] == pytest.approx(few, rel=0.1)


def test_plan_review(capsys: pytest.CaptureFixture[str]) -> None:
    module = loaded("plan_review")
    printed = printed_by(module, capsys)
    assert "limit raised 2 -> 3" in printed
    assert "keeps it" in printed
    assert "excess rows of people with more than 3 values of region" in printed
    assert "approved " in printed
    assert "At most 3 regions of a person: it runs" in printed
    assert "At most 4 regions of a person: the plan" in printed
    assert "limit raised 3 -> 4" in printed.partition("--- 5.")[2]


def test_sensitivity_by_hand_is_what_the_plan_says() -> None:
    module = loaded("plan_review")
    plan = Plan.from_json(module.submitted(regions=3, most=200, epsilon=1.0))
    found = module.checked_by_hand(plan)
    assert found["worst person"].to_list() == pytest.approx(found["plan says"].to_list())
    # a plan that allows less than the worst person does is found out
    small = Plan.from_json(module.submitted(regions=2, most=100, epsilon=1.0))
    assert (module.checked_by_hand(small).select(pl.col("worst person") > pl.col("plan says")))[
        "worst person"
    ].all()
