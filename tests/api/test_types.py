"""What type checkers say of programs that use dpframe: right ones pass, wrong ones do not."""

from __future__ import annotations

import inspect
import re
import shutil
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

import polars as pl
import pytest

import dpframe as dp
from dpframe.api.column import col
from tests.api.exactly import exactly, protected
from tests.column_types import PLACE, column_types
from tests.documentation import examples
from tests.polars_page import CURRENT

ROOT = Path(dp.__file__).parents[1]
PAGES = ("README.md", "docs/index.md", "docs/quickstart.md", "docs/concepts.md")
HEAD = """import polars as pl
import dpframe as dp

session = dp.Session(epsilon=1.0, delta=1e-6)
people = session.protect(pl.LazyFrame({"age": [31], "g": ["a"]}), unit=dp.Rows())
"""

RIGHT = {
    "methods of a column": """
query = people.agg(
    dp.col("age").dp_sum((0, 99)).alias("total"),
    dp.col("age").clip(0, 99).dp_mean(),
    (dp.col("age") * 2 + 1).dp_quantile(0.5, (0, 200)).alias("q"),
    (dp.col("age") > 40).dp_mean().alias("share"),
    (dp.col("age").dp_sum((0, 99)) / dp.count()).alias("each"),
)
result: pl.DataFrame = query.collect(epsilon=0.5)
reveal_type(dp.col("age").dp_sum)
""",
    "Polars' own aggregates": """
grouped: dp.PrivateQuery = people.group_by("g", keys=["a"]).agg(
    pl.len(), pl.col("age").clip(0, 99).mean(), (dp.col("age") > 40).sum().alias("n")
)
counts: dp.PrivateQuery = people.group_by_dynamic("at", every="1w").len()
print(grouped.plan(epsilon=0.5).explain(details=True), people.value_counts("g", keys=["a"]))
""",
    "functions and shortcuts": """
adults: dp.PrivateFrame = people.filter(pl.col("age") >= 18).with_columns(old=pl.col("age") > 60)
print(adults.dp_count().collect(epsilon=0.1), adults.dp_mean("age", (0, 99)))
print(people.agg(dp.sum(pl.col("age").abs(), (0, 99)), n=dp.count()))
ordered: dp.PrivateFrame = people.sort("age", descending=True)
n: int = people.pipe(lambda frame: len(frame.columns))
""",
    "namespaces of a column": """
dates = people.agg(
    dp.col("at").dt.year().dp_n_unique().alias("years"),
    dp.col("name").str.to_lowercase().str.slice(0, 3).dp_n_unique(),
    dp.col("visits").list.len().clip(0, 5).dp_sum(),
    dp.col("pair").struct.field("x").dp_mean((0, 9)),
    dp.col("age").replace_strict({1: 2}, default=None).dp_count(),
    dp.col("age").filter(dp.col("g") == "a").fill_null(0).dp_sum((0, 99)),
    dp.col("g").dp_argmax(candidates=["a", "b"]),
)
""",
    "amounts": """
counting = dp.count
spent: float = people.agg(counting()).plan(epsilon=0.5).cost.epsilon
left: tuple[float, float] = session.remaining.epsilon, session.spent.delta
rho: float = dp.Session(rho=1).remaining.rho
""",
    "individuals": """
guests = dp.Session(rho=1).protect(pl.LazyFrame({"who": [1], "x": [2], "y": [3]}), unit="who")
each: dp.PrivateQuery = guests.limit_groups(2, by="x").group_by("x", keys=[1, 2]).agg(
    dp.col("y").dp_ratio("x", (0, 9), denominator_bounds=(0, 9), per="unit").alias("r"),
    dp.col("y").dp_median((0, 50), per="unit"),
    dp.n_unique("who").alias("people"),
)
bins = guests.agg(dp.histogram("y", [0, 5, 10], per="unit"))
both = guests.limit_rows(2).join(guests.limit_rows(1), suffix="_again")
print(each.collect(rho=0.1, limits="auto"), bins.collect(rho=0.1), both.columns)
""",
    "plans and releases": """
asked = people.dp_count()
plan: dp.Plan = asked.plan(epsilon=0.1)
error: float = plan.accuracy("len")
risks: tuple[str, ...] = plan.risks
release: dp.Release = asked.release(epsilon=0.1)
first, second = session.collect([asked, people.dp_mean("age", (0, 99))], epsilon=0.2)
print(first.height + second.height, plan.fingerprint, release.frame.columns, error, risks)
""",
    "several sets of columns": """
sets = people.group_by(dp.rollup("g"), keys={"g": ["a"]}).agg(n=dp.count())
table: pl.DataFrame = sets.collect(epsilon=0.1)
described: dp.PrivateQuery = people.describe("age", bounds={"age": (0, 99)})
print(table.pivot("g", values="n"), described.explain(details=True, epsilon=0.1))
""",
}
WRONG = {
    "people.head()": "head",
    'people.sort("age", reverse=True)': "reverse",
    "people[0]": "",
    "for row in people: pass": "",
    'people.group_by("g").first()': "first",
    "people.dp_count().to_pandas()": "to_pandas",
    'dp.col("age").dp_max()': "dp_max",
    'people.dp_avg("age")': "dp_avg",
    "people.agg(dp.count()).collect(epsilons=1)": "epsilons",
    'dp.ratio("age")': "denominator",
    'dp.col("age").dp_median((0, 9), per="person")': "per",
    "people.limit_rows(by=3)": "",
    'people.dp_count().plan(epsilon=1).accuracy(5, "len")': "",
    'pl.DataFrame({"x": [1]}).dp_count()': "dp_count",
    'dp.col("age").dp_sum("0, 99")': "",
    'dp.mean("age", ("0", "99"))': "",
    'people.dp_sum("age", "0, 99")': "",
    'session.protect(pl.DataFrame({"x": [1]}), unit=3)': "unit",
    'people.group_by("g", keys=5)': "keys",
    'dp.Session(epsilon="1")': "epsilon",
    'people.dp_count().collect(epsilon="1")': "epsilon",
    'people.dp_count().collect(epsilon=1, interval="0.95")': "interval",
    'people.dp_count().collect(epsilon=1, limits="none")': "limits",
    'dp.quantile("age", "half", (0, 99))': "q",
    'people.join(people, on="g", how="outer")': "how",
    "people.dp_count().plan(epsilon=1).cost.epsilons": "epsilons",
    'dp.col("at").dt.year().dp_n_uniqe()': "dp_n_uniqe",
    "dp.cuont()": "cuont",
}
PROGRAMS = {"right": [*RIGHT.values()], "wrong": [*WRONG]}
STRICT = "# pyright: strict, reportUnknownParameterType=false"
"""The first line of a program that pyright checks strictly; mypy does so with all, by settings."""


@lru_cache
def said(checker: str, folder: Path) -> str:
    """What a checker says of all programs at once: starting it takes longest."""
    home = Path(sys.executable).parent
    command = {
        "pyright": [str(home / "pyright"), "--pythonpath", sys.executable],
        "mypy": [sys.executable, "-m", "mypy"],
    }[checker]
    if not shutil.which(command[0]):
        pytest.skip(f"{checker} is not installed")
    programs = {name: HEAD + "\n".join(lines) for name, lines in PROGRAMS.items()}
    programs["strict"] = f"{STRICT}\n{programs['right']}"
    for page in PAGES:
        text = (ROOT / page).read_text()
        programs[Path(page).stem.lower()] = _as_on_the_page(text)
    for name, program in programs.items():
        (folder / f"{name}.py").write_text(program)
    names = [str(folder / f"{name}.py") for name in programs]
    # From the root, so that mypy finds what it knows of the package from `make check`.
    done = subprocess.run([*command, *names], capture_output=True, text=True, cwd=ROOT, timeout=300)
    return done.stdout + done.stderr


def _as_on_the_page(text: str) -> str:
    """The blocks of a page as one program, with the numbers of its lines."""
    lines = [""] * (text.count("\n") + 1)
    for example in examples(text):
        code = example.code.splitlines()
        lines[example.line - 1 : example.line - 1 + len(code)] = code
    return "\n".join(lines)


def errors(checker: str, folder: Path, name: str) -> list[str]:
    """What a checker holds against one of the programs."""
    found = said(checker, folder)
    assert "right" in found, found  # a revealed type of it
    return re.findall(rf"\b{name}\.py:\d+.*error.*", found)


@pytest.mark.always
@pytest.mark.parametrize("checker", ["pyright", "mypy"])
def test_right_programs_and_pages_pass_and_wrong_programs_do_not(
    checker: str, tmp_path: Path
) -> None:
    """In one test, as starting a checker takes longest."""
    assert not errors(checker, tmp_path, "right")
    assert not errors(checker, tmp_path, "strict")
    known = re.search(r'[Tt]ype (?:of "dp\.col.*" )?is "(.*)"', said(checker, tmp_path))
    assert known is not None
    assert "bounds" in known[1], "editors know the arguments"
    for page in PAGES:
        check_page(checker, page, tmp_path)
    check_wrong_programs(checker, tmp_path)


def check_page(checker: str, page: str, folder: Path) -> None:
    """The programs on a page pass, except where it shows what is refused."""
    lines = (ROOT / page).read_text().splitlines()
    refused = [n for n, line in enumerate(lines, 1) if line.strip() in WRONG]
    found = errors(checker, folder, Path(page).stem.lower())
    assert [int(text.split(":")[1]) for text in found] == refused, found


def check_wrong_programs(checker: str, folder: Path) -> None:
    """Each line of a program with all mistakes is reported, and no other."""
    found = errors(checker, folder, "wrong")
    first = HEAD.count("\n") + 1
    lines = {int(text.split(":")[1]) for text in found}
    assert lines == {*range(first, first + len(WRONG))}
    for line, name in enumerate(WRONG.values(), first):
        assert any(f".py:{line}:" in text and name in text for text in found), (line, name, found)


def test_columns_are_polars_expressions() -> None:
    assert isinstance(col("x"), pl.Expr)
    assert col("x").meta.eq(pl.col("x"))
    assert col("x", "y").meta.eq(pl.col("x", "y"))
    hour = pl.col("at").dt.hour()
    assert col(hour).meta.eq(hour)
    with pytest.raises(dp.UnsupportedOperation, match=r"dp\.col"):
        col(3)  # type: ignore[arg-type]
    people = protected(pl.DataFrame({"x": [1, 2]}))
    assert exactly(people.agg(dp.col("x").dp_sum((0, 9)))).item() == 3


@pytest.mark.skipif(not CURRENT, reason="written with another Polars")
@pytest.mark.always
def test_types_of_columns_are_those_of_supported_methods() -> None:
    assert PLACE.read_text() == column_types(), "run python -m tests.column_types"


def test_names_of_the_package_are_public_ones() -> None:
    assert set(dir(dp)) == {*dp.__all__, "__version__"}
    assert all(hasattr(dp, name) for name in dir(dp))


def test_an_amount_says_which_of_its_names_it_has() -> None:
    with pytest.raises(AttributeError, match=r"ZCDP has no epsilon: zCDP counts rho; write \.rho"):
        _ = dp.ZCDP(1).epsilon
    with pytest.raises(AttributeError, match=r"write \.epsilon"):
        _ = dp.PureDP(1).mu
    assert not hasattr(dp.GDP(1), "delta")
    assert dp.ApproxDP(1, 0.5).delta == 0.5


PUBLIC = (
    *(dp.Session, dp.PrivateFrame, dp.PrivateGroupBy, dp.PrivateQuery, dp.Plan, dp.Release),
    *(dp.Releases, dp.Stream, dp.Simulation, dp.Audit, dp.Combination, dp.Estimate, dp.DPExpr),
    *(dp.PureDP, dp.ApproxDP, dp.ZCDP, dp.GDP, dp.Keys, dp.Rows, dp.Identifier),
)


@pytest.mark.parametrize("owner", PUBLIC, ids=lambda owner: owner.__name__)
def test_completion_shows_what_each_public_method_does(owner: type) -> None:
    names = [name for name in dir(owner) if not name.startswith("_")]
    known = {name: inspect.getattr_static(owner, name) for name in names}
    methods = {name: m for name, m in known.items() if callable(m) or isinstance(m, property)}
    assert not [name for name, method in methods.items() if not inspect.getdoc(method)]


@pytest.mark.parametrize("space", ["", "dt", "str", "list", "arr", "struct", "name"])
def test_completion_shows_what_each_method_of_a_column_does(space: str) -> None:
    column = dp.col("x")
    owner = getattr(column, space) if space else column
    names = [name for name in dir(owner) if not name.startswith("_")]
    assert not [name for name in names if not inspect.getdoc(getattr(owner, name))]


def test_the_package_says_that_it_is_typed() -> None:
    assert (ROOT / "dpframe/py.typed").is_file()
