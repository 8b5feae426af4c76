"""Jobs in TOML: every field, and every mistake."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from dpframe.cli import job as toml_job
from tests.cli.commands import TOML_JOB, Run
from tests.ledger.ledgers import opened

GOOD = TOML_JOB.format(approval="false", epsilon="0.25")
FULL = """
output = "out/result.csv"

[session]
epsilon = 2
delta = "1e-6"
ledger = "sqlite:///budget.db"
create = true
name = "census"
composition = "zcdp"

[source]
path = "people.parquet"
unit = "person"
name = "people"
bounds = {age = [0, 120]}
categories = {sex = ["f", "m"]}

[query]
with_columns = {overtime = "hours - 40", half = "hours / 2", twice = "age * 2"}
filter = ["age >= 18", "sex IN ('f', 'm')"]
limit_rows = {n = 3}
limit_groups = {n = 1, by = "sex"}
group_by = ["sex"]

[query.outputs.n]
aggregate = "count"
nonnegative = true
weight = 2

[query.outputs.people]
aggregate = "n_unique"
of = "person"

[query.outputs.total]
aggregate = "sum"
of = "overtime"
bounds = [0, 60]
mechanism = "discrete_gaussian"

[query.outputs.mean_age]
aggregate = "mean"
of = "age"

[query.outputs.upper]
aggregate = "quantile"
of = "age"
q = 0.9
candidates = [20, 40, 60, 80]

[spend]
epsilon = "0.3"
delta = "1e-8"
split = "equal"
"""
NEWEST = int(pl.__version__.split(".")[0]) >= 2


def job(folder: Path, text: str) -> None:
    (folder / "job.toml").write_text(text)


def test_every_field(run: Run, folder: Path) -> None:
    (folder / "out").mkdir()
    job(folder, FULL if NEWEST else FULL.replace("hours / 2", "hours * 0.5"))
    done = run("run", "job.toml")
    assert (done.code, done.out) == (0, ""), done.err
    result = pl.read_csv(folder / "out" / "result.csv")
    assert result.columns == ["sex", "n", "people", "total", "mean_age", "upper"]
    plan = run("inspect", "out/result.csv").out
    for words in ("all rows of one person", "people with more than 3 rows", "in [0, 120]"):
        assert words in plan
    session = dp.Session(
        epsilon=2, delta="1e-6", ledger=folder / "budget.db", name="census", composition="zcdp"
    )
    assert session.history.height == 1
    head, upper = FULL.split("[query.outputs.upper]")  # a quantile has no interval
    spend = upper[upper.index("[spend]") :].replace("split", "interval = 0.9\nsplit")
    job(folder, head.replace("hours / 2", "hours * 0.5") + spend)
    done = run("run", "job.toml")
    assert (done.code, done.out) == (0, ""), done.err
    result = pl.read_csv(folder / "out" / "result.csv")
    assert {"n_low", "n_high", "total_low", "mean_age_high"} <= set(result.columns)


def test_an_engine(run: Run, folder: Path) -> None:
    engine = GOOD.replace("unit = {}", 'unit = {}\nengine = "duckdb"')
    job(folder, engine)
    done = run("run", "job.toml")
    assert done.code == 0, done.err
    assert "f" in done.out
    job(folder, engine.replace("duckdb", "sqlite"))
    refused = run("run", "job.toml")
    assert refused.code == 5
    assert "there is no engine 'sqlite'" in refused.err


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_weights_in_place_of_limits(run: Run, folder: Path, engine: str) -> None:
    weighed = GOOD.replace("[query]\n", '[query]\nlimit_norm = {n = "1.5"}\n')
    job(folder, weighed.replace("unit = {}", f'unit = "person"\nengine = "{engine}"'))
    done = run("explain", "job.toml")
    assert done.code == 0, done.err
    assert "limit_norm(1.5)" in done.out
    assert run("run", "job.toml").code == 0
    job(folder, weighed.replace('{n = "1.5"}', '{n = 2, by = "sex"}'))
    assert "does not take 'by'" in run("run", "job.toml").err


GROUPS = """
[session]
epsilon = 2
delta = "1e-5"
ledger = "budget.db"
create = true

[source]
path = "many.csv"
unit = "person"

[source.schema]
person = "Int64"
sex = "String"

[query]
group_by = ["sex"]
dp_groups = {rounds = 1}

[spend]
epsilon = 1
delta = "1e-6"
"""


def test_groups_that_nobody_listed(run: Run, folder: Path) -> None:
    pl.DataFrame({"person": range(4000), "sex": ["f", "m"] * 2000}).write_csv(folder / "many.csv")
    for asked in ("{rounds = 1}", "{}"):
        job(folder, GROUPS.replace("{rounds = 1}", asked))
        done = run("run", "job.toml", "--output", "found.csv")
        assert done.code == 0, done.err
        assert pl.read_csv(folder / "found.csv")["sex"].to_list() == ["f", "m"]


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ('group_by = ["sex"]\n', "", "needs group_by"),
        ("dp_groups =", 'keys = {sex = ["f"]}\ndp_groups =', "takes no keys"),
        ("{rounds = 1}", "{rounds = 9}", "rounds"),
        ("{rounds = 1}", "{turns = 1}", "does not take 'turns'"),
        ("{rounds = 1}", "2", "is a table"),
        ('["sex"]', "[3]", "names of columns"),
    ],
)
def test_groups_that_are_asked_for_wrongly(
    run: Run, folder: Path, old: str, new: str, what: str
) -> None:
    pl.DataFrame({"person": [1], "sex": ["f"]}).write_csv(folder / "many.csv")
    job(folder, GROUPS.replace(old, new))
    done = run("explain", "job.toml")
    assert done.code == 5
    assert what in done.err


@pytest.mark.parametrize(
    "output",
    [
        'aggregate = "count"\nof = "age"',
        'aggregate = "count"\nper = "row"',
        'aggregate = "var"\nof = "age"\nbounds = [0, 100]\nddof = 0',
        'aggregate = "std"\nof = "age"\nbounds = [0, 100]',
        'aggregate = "median"\nof = "age"\nbounds = [0, 100]',
        'aggregate = "histogram"\nof = "age"\nbins = [0, 40, 100]\nother = true',
        'aggregate = "histogram"\nof = "age"\nbins = 4\nbounds = [0, 100]',
        'aggregate = "cdf"\nof = "age"\nbins = [20, 40, 100]\nnonnegative = true',
        'aggregate = "histogram"\nof = "sex"\nbins = ["f", "m"]',
        'aggregate = "argmax"\nof = "sex"\ncandidates = ["f", "m"]\nk = 1',
        'aggregate = "argmax"\nof = "sex"\nk = 1\n'
        'candidates = ["f", "m"]\nscore = "least(greatest(age, 0), 9)"',
    ],
)
def test_every_aggregate(run: Run, folder: Path, output: str) -> None:
    query = f"[query.outputs.x]\n{output}\n"
    job(folder, re.sub(r"\[query\].*?(?=\[spend\])", query, GOOD, flags=re.DOTALL))
    done = run("run", "job.toml", "--json")
    assert done.code == 0, done.err


def test_the_form_that_help_shows_is_one(run: Run, folder: Path) -> None:
    pl.DataFrame(
        {"user_id": [1], "age": [50], "hours": [45], "education": ["Masters"], "day": [None]}
    ).write_csv(folder / "people.csv")
    form = (toml_job.__doc__ or "").partition("::")[2].partition("\nSeveral")[0]
    text = "\n".join(line.removeprefix("    ") for line in form.splitlines())
    assert set(tomllib.loads(text)) == {
        *("output", "session", "source", "parameters", "query", "spend"),
    }
    job(folder, text)
    assert run("explain", "job.toml").code == 0
    shown = run("run", "--help").out
    for line in text.splitlines():
        assert line.strip() in shown


def test_paths_start_from_the_folder_of_the_job(run: Run, folder: Path) -> None:
    inner = folder / "jobs"
    inner.mkdir()
    text = GOOD.replace('path = "people', 'path = "../people')
    (inner / "job.toml").write_text('output = "result.parquet"\n' + text)
    assert run("run", "jobs/job.toml").code == 0
    assert (inner / "result.parquet").exists()
    assert (inner / "budget.db").exists()
    assert not (folder / "budget.db").exists()
    for where in ("sqlite:///budget.db", str(inner / "budget.db"), f"sqlite:///{inner}/budget.db"):
        (inner / "job.toml").write_text(text.replace('"budget.db"', f'"{where}"'))
        assert run("run", "jobs/job.toml").code == 0
    assert opened(inner / "budget.db").spent == dp.PureDP(1)


def test_a_url_of_the_source_is_left_as_it_is(run: Run, folder: Path) -> None:
    job(folder, GOOD.replace('"people.parquet"', f'"file://{folder}/people.parquet"'))
    assert run("run", "job.toml").code == 0


MISTAKES: list[tuple[str, str, str]] = [
    ("[session]", "[sessions]", "the job does not take 'sessions'"),
    ("[session]", "session = 3\n[query.x]", ""),
    ('epsilon = "1"', 'budget = "1"', "[session] does not take 'budget'"),
    ('epsilon = "1"', "", "InvalidBudget"),
    ('epsilon = "1"', 'epsilon = "much"', "InvalidBudget"),
    ('epsilon = "1"', "epsilon = []", "InvalidBudget"),
    ('epsilon = "1"', "epsilon = 2020-01-01", "InvalidBudget"),
    ('ledger = "budget.db"', "ledger = 3", "ledger is text, not 3"),
    ("require_approval = false", "name = 3", "name must be text"),
    ("require_approval = false", 'composition = "best"', ""),
    ('path = "people.parquet"', "", "[source] has no path"),
    ('path = "people.parquet"', 'path = "nothing.parquet"', "there is no file"),
    ('path = "people.parquet"', 'path = "people.xlsx"', "cannot be protected"),
    ('path = "people.parquet"', "path = []", "path is text"),
    ("unit = {}", "", "[source] has no unit"),
    ("unit = {}", "unit = 3", "neither the name of a column nor a table"),
    ("unit = {}", 'unit = "nobody"', "nobody"),
    ("unit = {}", 'unit = {adjacency = "near"}', "near"),
    ("unit = {}", "unit = {contributions = 0}", ""),
    ("unit = {}", 'unit = {contributions = "x"}', ""),
    ("unit = {}", "unit = {rows = 3}", "unit does not take 'rows'"),
    ("unit = {}", "unit = {}\nbounds = 3", "bounds in [source] is not a table"),
    ("unit = {}", "unit = {}\nbounds = {age = 3}", ""),
    ("unit = {}", "unit = {}\nbounds = {age = [3, 'x']}", ""),
    ("unit = {}", "unit = {}\nbounds = {nobody = [0, 1]}", "nobody"),
    ("unit = {}", "unit = {}\ncategories = {sex = 3}", ""),
    ("unit = {}", "unit = {}\nengines = 'x'", "[source] does not take 'engines'"),
    ('filter = "age >= 40"', "filter = 3", "an expression is text, not 3"),
    ('filter = "age >= 40"', 'filter = "age >"', "this is not an SQL expression"),
    ('filter = "age >= 40"', 'filter = ""', "this is not an SQL expression"),
    ('filter = "age >= 40"', 'filter = "SELECT 1"', ""),
    ('filter = "age >= 40"', "filter = \"read_csv('x') > 1\"", "this is not an SQL expression"),
    ('filter = "age >= 40"', 'filter = "age > (SELECT max(age) FROM t)"', ""),
    ('filter = "age >= 40"', 'filter = "EXISTS (SELECT 1)"', "UnsupportedOperation"),
    ('filter = "age >= 40"', 'filter = "age > avg(age)"', "cannot be used"),
    ('filter = "age >= 40"', 'filter = "sum(age) OVER (PARTITION BY sex) > 3"', "cannot be used"),
    ('filter = "age >= 40"', 'filter = "rank() OVER (ORDER BY age) > 3"', ""),
    ('filter = "age >= 40"', 'filter = "age"', "a filter needs a Boolean expression"),
    ('filter = "age >= 40"', 'filter = "aeg >= 40"', "did you mean 'age'"),
    ('filter = "age >= 40"', 'with_columns = "age"', "[with_columns] is a table"),
    ('filter = "age >= 40"', "with_columns = {x = 3}", "an expression is text"),
    ('filter = "age >= 40"', "limit_rows = 3", "[limit_rows] is a table"),
    ('filter = "age >= 40"', "limit_rows = {}", "limit_rows"),
    ('filter = "age >= 40"', "limit_rows = {n = 'x'}", ""),
    ('filter = "age >= 40"', "limit_rows = {rows = 3}", "does not take 'rows'"),
    ('filter = "age >= 40"', "sort = 'age'", "[query] does not take 'sort'"),
    ('group_by = "sex"', "", "[query] has keys, and no group_by"),
    ('group_by = "sex"', "group_by = 3", "group_by is a list of names"),
    ('group_by = "sex"', 'group_by = "nobody"', "nobody"),
    ('keys = ["f", "m"]', "", "MissingKeys"),
    ('keys = ["f", "m"]', "keys = 3", ""),
    ('keys = ["f", "m"]', "keys = [3, 4.5, 'x']", ""),
    ('keys = ["f", "m"]', "keys = {nobody = [1]}", ""),
    ("[query.outputs.n]", "[query.x]", "[query] does not take 'x'"),
    ('aggregate = "count"', "", "[query.outputs.n] needs an aggregate"),
    ('aggregate = "count"', 'aggregate = "first"', "needs an aggregate"),
    ('aggregate = "count"', "aggregate = []", "needs an aggregate"),
    ('aggregate = "count"', 'aggregate = "sum"', "[query.outputs.n] has no `of`"),
    ('aggregate = "count"', 'aggregate = "sum"\nof = "age"', "UnboundedSensitivity"),
    ('aggregate = "count"', 'aggregate = "sum"\nof = "age"\nbounds = [1]', ""),
    ('aggregate = "count"', 'aggregate = "sum"\nof = "age"\nbounds = "x"', ""),
    ('aggregate = "count"', 'aggregate = "sum"\nof = "age"\nbounds = 3', ""),
    ('aggregate = "count"', 'aggregate = "sum"\nof = 3', "an expression is text"),
    ('aggregate = "count"', 'aggregate = "quantile"\nof = "age"', "q"),
    ('aggregate = "count"', 'aggregate = "count"\nfunction = 3', "does not take 'function'"),
    ('aggregate = "count"', 'aggregate = "count"\ncolumn = "age"', "does not take 'column'"),
    ('aggregate = "count"', 'aggregate = "count"\nmechanism = "x"', "x"),
    ('aggregate = "count"', 'aggregate = "count"\nweight = []', ""),
    ('aggregate = "count"', 'aggregate = "argmax"\nscore = 3', "an expression is text"),
    ('epsilon = "0.25"', "", "[spend] is empty"),
    ('epsilon = "0.25"', "cost = 3", "`spend` does not take 'cost'"),
    ("[spend]", "[spent]", "does not take 'spent'"),
    ("[spend]", "spend = 3\n[query.outputs.m]", ""),
    ("[session]", "output = 3\n[session]", "output is text"),
    (
        "[session]",
        'output = "./people.parquet"\n[session]',
        "would replace the data that it is made from",
    ),
    ("[session]", "[session", "it is not TOML"),
    ("[session]", "epsilon = \ud800", ""),
]


@pytest.mark.parametrize(("old", "new", "words"), MISTAKES)
def test_every_mistake_is_5_and_says_what(
    run: Run, folder: Path, old: str, new: str, words: str
) -> None:
    assert old in GOOD
    (folder / "job.toml").write_bytes(GOOD.replace(old, new, 1).encode("utf-8", "surrogatepass"))
    done = run("run", "job.toml")
    assert done.code in (5, 6)
    assert done.code == 5 or done.said.startswith("LedgerError: name must be text")
    assert done.out == ""
    assert words in done.err
    assert "Traceback" not in done.err
    assert "\n  in" in done.err or "\n  instead" in done.err
    budget = folder / "budget.db"
    assert not budget.exists() or opened(budget).spent.is_zero


@pytest.mark.parametrize("output", ["result.parquet", "./result.parquet", "{0}/result.parquet"])
def test_an_output_that_the_source_would_then_hold_is_refused(
    run: Run, folder: Path, output: str
) -> None:
    """The second run would fail after its charge, or count released rows."""
    whole = f'output = "{output.format(folder)}"\n{GOOD}'
    job = whole.replace("people.parquet", "*.parquet")
    (folder / "job.toml").write_text(job)
    done = run("run", "job.toml")
    assert done.code == 5
    assert "or become part of it" in done.err
    assert not (folder / "result.parquet").exists()
    (folder / "job.toml").write_text(job.replace("result.parquet", "result.csv"))
    assert run("run", "job.toml").code == 0
    done = run("run", "job.toml", "--output", output.format(folder))
    assert done.code == 5
    assert "or become part of it" in done.err
    assert opened(folder / "budget.db").spent == dp.PureDP("0.25")


@pytest.mark.parametrize(
    ("source", "output", "among"),
    [
        ("*.parquet", "inner/result.parquet", False),
        ("**/*.parquet", "inner/result.parquet", True),
        ("**/*.parquet", "result.parquet", True),
        ("peop[kl]e.parquet", "peopke.parquet", True),
        ("peop[kl]e.parquet", "peopme.parquet", False),
    ],
)
def test_patterns_match_as_engines_match_them(
    run: Run, folder: Path, source: str, output: str, among: bool
) -> None:
    (folder / "inner").mkdir()
    (folder / "job.toml").write_text(GOOD.replace("people.parquet", source))
    assert run("run", "job.toml", "--output", output).code == (5 if among else 0)


@pytest.mark.parametrize("source", ["people.parquet", "peop*.parquet"])
@pytest.mark.parametrize("output", ["people.parquet", "./people.parquet", "link.parquet"])
def test_the_source_is_not_replaced_by_the_result(
    run: Run, folder: Path, source: str, output: str
) -> None:
    (folder / "link.parquet").symlink_to("people.parquet")
    (folder / "job.toml").write_text(GOOD.replace("people.parquet", source))
    before = (folder / "people.parquet").read_bytes()
    done = run("run", "job.toml", "--output", output)
    assert done.code == 5
    assert "the result would replace the data that it is made from" in done.err
    assert (folder / "people.parquet").read_bytes() == before
    budget = folder / "budget.db"
    assert not budget.exists() or opened(budget).spent.is_zero


def test_values_of_any_type_anywhere_are_refused_in_order(run: Run, folder: Path) -> None:
    """No field crashes on any type."""
    values = ["3", "-1", "1e400", "nan", "''", "[]", "[[]]", "{}", "true", "1979-05-27", "12:00:00"]
    fields = re.findall(r"^(\w+) = .*$", GOOD, flags=re.MULTILINE)
    for field in fields:
        for value in values:
            text = re.sub(rf"^{field} = .*$", f"{field} = {value}", GOOD, flags=re.MULTILINE)
            text = text.replace('ledger = "budget.db"', "")
            if "require_approval = false" not in text:
                continue
            job(folder, text)
            done: Any = run("explain", "job.toml")
            assert done.code in (0, 5, 6), (field, value)
