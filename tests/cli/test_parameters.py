"""Parameters of jobs: declared, given, refused, shown, and never text of an expression."""

from __future__ import annotations

import json
from datetime import date, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from dpframe.api.parameters import Parameters, declaring
from dpframe.core.parameters import Parameter
from dpframe.parse.size import mark, marked
from dpframe.parse.sql import sql_expression
from tests.cli.commands import Done, Run

VISITS = pl.DataFrame(
    {
        "day": [date(2026, 11, 20 + i % 3) for i in range(300)],
        "city": ["Oslo", "Moss", "it's"] * 100,
        "age": [i % 90 for i in range(300)],
    }
)
JOB = """
[session]
epsilon = "1000"
ledger = "budget.db"
create = true

[source]
path = "visits.parquet"
name = "visits"
unit = {}

[parameters]
PARAMETERS

[query]
filter = FILTER

[query.outputs.n]
aggregate = "count"

[spend]
epsilon = "100"
"""
PYTHON = """
import polars as pl
import dpframe as dp

day = dp.parameter("day", pl.Date)
cities = dp.parameter("cities", pl.List(pl.String), default=["Oslo", "Moss"])
session = dp.Session(epsilon=1000, ledger="budget.db", create=True)
visits = session.protect("visits.parquet", unit=dp.Rows(), name="visits")
chosen = visits.filter(pl.col("day") == day)
query = chosen.group_by("city", keys=cities.value).agg(dp.count().alias("n"))
spend = {"epsilon": 100}
output = f"result-{day}.csv"
"""


@pytest.fixture
def visits(folder: Path) -> Path:
    VISITS.write_parquet(folder / "visits.parquet")
    return folder


def job(folder: Path, parameters: str, *conditions: str) -> None:
    text = JOB.replace("PARAMETERS", parameters).replace("FILTER", json.dumps(conditions))
    (folder / "job.toml").write_text(text)


def counted(done: Done) -> int:
    assert done.code == 0, done.err
    return int(done.json["result"][0]["n"])


DAY = 'day = {type = "date", default = 2026-11-20}'


def test_a_value_is_used_and_shown(run: Run, visits: Path) -> None:
    job(visits, DAY, "day = :day", "age >= 30")
    wanted = VISITS.filter(pl.col("day") == date(2026, 11, 22), pl.col("age") >= 30).height
    got = counted(run("run", "job.toml", "--param", "day=2026-11-22", "--json"))
    assert abs(got - wanted) <= 1
    explained = run("explain", "job.toml", "--param", "day=2026-11-22")
    assert ":day = 2026-11-22 (date)" in explained.out
    assert "day == :day" in explained.out
    plan = run("explain", "job.toml", "--json", "--param", "day=2026-11-22").json["plan"]
    assert plan["parameters"] == [{"name": "day", "type": "date", "value": "2026-11-22"}]


def test_where_values_come_from(run: Run, visits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job(visits, DAY, "day = :day")

    def day(*arguments: str) -> str:
        done = run("explain", "job.toml", "--json", *arguments)
        assert done.code == 0, done.err
        return str(done.json["plan"]["parameters"][0]["value"])

    assert day() == "2026-11-20"
    monkeypatch.setenv("DPFRAME_PARAM_DAY", "2026-11-21")
    assert day() == "2026-11-21"
    assert day("--param", "day=2026-11-22") == "2026-11-22"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--param", "dya=2026-11-22"], "no parameter 'dya'"),
        (["--param", "day=22.11.2026"], "is of type date"),
        (["--param", "day="], "is of type date"),
        (["--param", "day"], "NAME=VALUE"),
        (["--param", "day=2026-11-22", "--param", "day=2026-11-22"], "given twice"),
        ([], "has no value"),
    ],
)
@pytest.mark.parametrize("command", ["run", "explain", "audit"])
def test_what_is_given_wrongly_is_refused_before_anything_is_opened(
    run: Run, visits: Path, command: str, arguments: list[str], words: str
) -> None:
    job(visits, 'day = {type = "date"}', "day = :day")
    done = run(command, "job.toml", *arguments)
    assert done.code == 5, (done.out, done.err)
    assert words in done.err
    assert not (visits / "budget.db").exists()


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ('day = "date"', "has no type"),
        ('day = {type = "day"}', "is not a type"),
        ('day = {type = "date", zone = "UTC"}', "only a datetime has a zone"),
        ('day = {type = "datetime", zone = "Mars/Olympus"}', "no time zone"),
        ('day = {type = "date", default = "2026-11-20"}', "is of type date"),
        ('day = {type = "int", default = 1.5}', "is of type int"),
        ('day = {type = "date", values = []}', "does not take 'values'"),
        ('"a b" = {type = "int", default = 1}', "letters, digits and _"),
        ('other = {type = "int", default = 1}', "declares no parameter 'day'"),
    ],
)
def test_what_is_declared_wrongly(run: Run, visits: Path, declared: str, words: str) -> None:
    job(visits, declared, "day = :day")
    done = run("run", "job.toml")
    assert (done.code, done.out) == (5, "")
    assert words in done.err


@pytest.mark.parametrize(
    ("declared", "condition", "given", "wanted"),
    [
        ('x = {type = "int"}', "age >= :x", "x=30", pl.col("age") >= 30),
        ('x = {type = "float"}', "age >= :x", "x=30.5", pl.col("age") >= 30.5),
        ('x = {type = "decimal", scale = 1}', "age >= :x", "x=30.5", pl.col("age") >= 30.5),
        ('x = {type = "bool"}', "(age >= 30) = :x", "x=false", pl.col("age") < 30),
        ('x = {type = "string"}', "city = :x", "x=it's", pl.col("city") == "it's"),
        (
            'x = {type = "list[string]"}',
            "city IN (:x)",
            'x=["Oslo", "it\'s"]',
            pl.col("city").is_in(["Oslo", "it's"]),
        ),
        ('x = {type = "list[int]"}', "age NOT IN (:x)", "x=1,2", ~pl.col("age").is_in([1, 2])),
        (
            'x = {type = "date"}\ny = {type = "date", default = 2026-11-21}',
            "day BETWEEN :x AND :y",
            "x=2026-11-21",
            pl.col("day") == date(2026, 11, 21),
        ),
        ('x = {type = "date"}', "day IN (:x)", "x=2026-11-22", pl.col("day") == date(2026, 11, 22)),
        (
            'x = {type = "date"}',
            "day >= :x - INTERVAL '1 day'",
            "x=2026-11-22",
            pl.col("day") >= date(2026, 11, 21),
        ),
        (
            'x = {type = "date"}\ny = {type = "date", default = 2026-11-21}',
            "day IN (:x, :y)",
            "x=2026-11-22",
            pl.col("day") >= date(2026, 11, 21),
        ),
        (
            'x = {type = "datetime"}',
            "day >= :x",
            "x=2026-11-21T12:00",
            pl.col("day") >= datetime(2026, 11, 21, 12),
        ),
        (
            'x = {type = "int"}',
            "CASE WHEN age > :x THEN age ELSE :x END > 40",
            "x=30",
            pl.col("age") > 40,
        ),
    ],
)
def test_every_type(
    run: Run, visits: Path, declared: str, condition: str, given: str, wanted: pl.Expr
) -> None:
    job(visits, declared, condition)
    got = counted(run("run", "job.toml", "--json", "--param", given))
    assert abs(got - VISITS.filter(wanted).height) <= 1


def test_keys_from_a_list(run: Run, visits: Path) -> None:
    job(visits, 'cities = {type = "list[string]"}', "age >= 0")
    text = (visits / "job.toml").read_text()
    grouped = 'filter = "age >= 0"\ngroup_by = ["city"]\nkeys = {city = ":cities"}'
    (visits / "job.toml").write_text(text.replace('filter = ["age >= 0"]', grouped))
    done = run("run", "job.toml", "--json", "--param", 'cities=["Moss", "Bern"]')
    assert done.code == 0, done.err
    assert [row["city"] for row in done.json["result"]] == ["Moss", "Bern"]


HOSTILE = [
    "x' OR '1' = '1",
    "x' --",
    "' OR age >= 0 OR city = '",
    '" OR age >= 0 OR "',
    "/* */ ' OR TRUE --",
    "$$ OR TRUE OR $$",
    ":y",
    "dpframe:parameter:5b5d",
    "dpframe:sql",
    "\\' OR 1=1 --",
    "Oslo\n') OR TRUE",
    "%",
    "🙂'\"",
]


def columns_in(found: Any) -> set[str]:
    """The columns that expressions of a plan read."""
    if isinstance(found, dict) and found.get("type") == "Column":
        return {found["name"]}
    inner = found.values() if isinstance(found, dict) else found if isinstance(found, list) else ()
    return set().union(*map(columns_in, inner))


@pytest.mark.parametrize("text", HOSTILE)
def test_a_value_is_never_read_as_sql(run: Run, visits: Path, text: str) -> None:
    for condition in ("city = :x", "city IN (:x)", "NOT city <> :x", "/* :x */ city = :x -- :x"):
        job(visits, 'x = {type = "string"}', condition)
        done = run("explain", "job.toml", "--json", "--param", f"x={text}")
        assert done.code == 0, done.err
        assert columns_in(done.json["plan"]["steps"]) == {"city"}
        assert done.json["plan"]["parameters"][0]["value"] == text
        assert dp.Plan.from_json(done.out).parameters[0].value == text


@pytest.mark.parametrize(
    "sql",
    ["city = ':x'", 'city = ":x"', "city = $$:x$$", "city = '' || ':x'", "city = 'a'':x'"],
)
def test_a_name_in_quotes_is_text(sql: str) -> None:
    made = sql_expression(sql, {"x": Parameter("x", "string", "Oslo")})
    assert "dpframe:parameter" not in str(made)


@pytest.mark.parametrize(
    "sql", ["city LIKE :x", "SUBSTR(city, :x) = 'a'", "city = :x:x", "STRPTIME(city, :x) = day"]
)
def test_where_a_parameter_cannot_stand(run: Run, visits: Path, sql: str) -> None:
    job(visits, 'x = {type = "string", default = "Oslo"}', sql)
    done = run("explain", "job.toml")
    assert done.code == 5, done.out
    assert "pl." not in done.err


def test_names_that_only_look_like_a_parameter() -> None:
    for name in ("dpframe:parameter:", "dpframe:parameter:zz", "dpframe:parameter:5b5d"):
        with pytest.raises(dp.UnsupportedOperation, match="rename it"):
            marked(name)
    good = Parameter("x", "string", "a")
    assert marked(mark(good)) == good


def test_a_python_job(run: Run, visits: Path) -> None:
    (visits / "job.py").write_text(PYTHON)
    done = run("run", "job.py", "--param", "day=2026-11-22")
    assert done.code == 0, done.err
    result = pl.read_csv(visits / "result-2026-11-22.csv")
    assert result["city"].to_list() == ["Oslo", "Moss"]
    plan = run("inspect", "result-2026-11-22.csv", "--json").json["plan"]["plan"]
    assert [p["name"] for p in plan["parameters"]] == ["cities", "day"]
    for arguments, code in [
        ((), 5),
        (("--param", "day=x"), 5),
        (("--param", "day=2026-11-22", "--param", "city=Oslo"), 5),
    ]:
        assert run("run", "job.py", *arguments).code == code
    charges = run("ledger", "show", "--ledger", "budget.db", "--json").out.count('"released"')
    assert charges == 1


def test_parameters_outside_of_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = dp.Session(epsilon=1).protect(VISITS, unit=dp.Rows())
    with pytest.raises(dp.UnsupportedOperation, match="DPFRAME_PARAM_DAY"):
        dp.parameter("day", pl.Date)
    monkeypatch.setenv("DPFRAME_PARAM_DAY", "2026-11-22")
    day = dp.parameter("day", pl.Date)
    assert (day.value, f"{day}", f"{day:%d.%m.}") == (date(2026, 11, 22), "2026-11-22", "22.11.")
    assert VISITS.filter(pl.col("day") == day).height == 100  # plain Polars knows the value too
    plan = frame.filter(day <= pl.col("day")).with_columns(day).dp_count().plan(epsilon=1)
    assert plan.steps[1].words == "with_columns(day=:day)"
    assert plan.parameters == (Parameter("day", "date", "2026-11-22"),)


@pytest.mark.parametrize(
    ("dtype", "default", "words"),
    [
        (pl.Int32, 5, "int"),
        (int, 5, "int"),
        (pl.Float64, 1, "float"),
        (pl.Decimal(10, 2), "1.5", "decimal[2]"),
        (pl.Boolean, True, "bool"),
        (pl.String, "a", "string"),
        (pl.Datetime("ms", "Europe/Zurich"), datetime(2026, 11, 22), "datetime[Europe/Zurich]"),
        (pl.Datetime, datetime(2026, 11, 22), "datetime"),
        (pl.List(pl.Date), [date(2026, 11, 22)], "list[date]"),
        (pl.List(pl.Int64), pl.Series([1, 2]), "list[int]"),
    ],
)
def test_types_of_polars_and_python(dtype: Any, default: Any, words: str) -> None:
    with declaring(parameters := Parameters({})):
        made = dp.parameter("x", dtype, default=default)
    assert parameters.declared[0].type == words
    assert isinstance(made, pl.Expr)


def test_what_dp_parameter_refuses() -> None:
    for dtype in (pl.Struct, pl.List(pl.List(pl.Int64)), "Date", object, pl.Categorical):
        with pytest.raises(dp.UnsupportedOperation, match="cannot be of type"):
            dp.parameter("x", dtype, default=1)  # type: ignore[arg-type]
    with pytest.raises(dp.UnsupportedOperation, match="is text"):
        dp.parameter(1, int)  # type: ignore[arg-type]
    with declaring(Parameters({})):
        dp.parameter("x", int, default=1)
        dp.parameter("x", int, default=1)
        with pytest.raises(dp.UnsupportedOperation, match="declared twice"):
            dp.parameter("x", int, default=2)


def test_two_values_of_one_name_are_refused() -> None:
    frame = dp.Session(epsilon=1).protect(VISITS, unit=dp.Rows())
    one, two = (dp.parameter("x", int, default=n) for n in (1, 2))
    query = frame.filter(pl.col("age") > one, pl.col("age") != two).dp_count()
    with pytest.raises(dp.UnsupportedOperation, match="two values"):
        query.plan(epsilon=1)


def test_differences(run: Run, visits: Path) -> None:
    job(visits, DAY, "day = :day")
    run("explain", "job.toml", "--output", "plan.json")
    done = run("diff", "plan.json", "job.toml", "--param", "day=2026-11-22")
    first, second = done.out.splitlines()
    assert (done.code, first) == (
        1,
        "parameter day = 2026-11-20 (date) -> day = 2026-11-22 (date)",
    )
    assert second.startswith("known after filter")
    assert run("diff", "plan.json", "job.toml").code == 0
    refused = run("diff", "plan.json", "plan.json", "--param", "day=2026-11-22")
    assert refused.code == 5


def test_an_edited_value_is_refused() -> None:
    x = dp.parameter("x", int, default=5)
    cities = dp.parameter("c", pl.List(pl.String), default=["a", "b"])
    frame = dp.Session(epsilon=1).protect(VISITS, unit=dp.Rows())
    chosen = frame.filter(pl.col("age") > x, pl.col("city").is_in(cities))
    plan = chosen.dp_count().plan(epsilon=1)
    from dpframe.plan import consistency
    from dpframe.plan.data import PlanData

    def with_parameters(*given: Parameter) -> PlanData:
        import dataclasses

        return dataclasses.replace(plan, parameters=given)

    right = plan.parameters
    assert consistency.contradiction(plan) is None
    for wrong in [
        (),
        right[:1],
        right[::-1],
        (*right, right[1]),
        (right[0], Parameter("x", "int", "6")),
        (right[0], Parameter("x", "float", "5.0")),
        (Parameter("c", "list[string]", '["a"]'), right[1]),
    ]:
        assert consistency.contradiction(with_parameters(*wrong)) == "parameters", wrong


def test_a_value_in_a_list_is_covered_by_a_range_too(run: Run, visits: Path) -> None:
    job(visits, 'x = {type = "string"}', "city IN (:x)")
    options = ("--by", "Ann", "--ledger", "budget.db", "--param", "x=Oslo,Moss")
    assert run("approve", "job.toml", "--create", *options).code == 0
    for value, code in (("Oslo", 0), ("Moss", 0), ("Bern", 4)):
        done = run("run", "job.toml", "--require-approval", "--param", f"x={value}")
        assert done.code == code, done.err


def test_what_is_refused_of_an_output_speaks_sql(run: Run, visits: Path) -> None:
    job(visits, DAY, "day = :day")
    text = (visits / "job.toml").read_text()
    wrong = 'aggregate = "sum"\nof = "LENGTH(day)"\nbounds = [0, 9]'
    (visits / "job.toml").write_text(text.replace('aggregate = "count"', wrong))
    done = run("run", "job.toml")
    assert done.code == 5
    assert "LENGTH works on text" in done.err
    assert "in: LENGTH(day)" in done.err
    assert ".dt" not in done.err
