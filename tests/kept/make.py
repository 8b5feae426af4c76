"""Files as a version of dpframe writes them: plans, ledgers, approvals, releases and jobs.

Run with the version that is to write them, over the folder they are kept in::

    PYTHONPATH=CHECKOUT python tests/kept/make.py tests/kept/VERSION

where CHECKOUT is a copy of that version's sources. It uses nothing but what that version offers to
everybody, leaves out what it does not know, and says so. No rows are kept but invented ones, and
neither are paths or names of machines. `tests/kept/test_kept.py` reads the files.
"""

from __future__ import annotations

import importlib.util
import io
import json
import os
import pwd
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from datetime import date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
from polars.io.plugins import register_io_source

import dpframe as dp
from dpframe.cli import main as command

MADE = Path("/tmp/kept")
"""Where they are made: what was moved says from where."""

KEY = "the key of ledgers that are kept"
NEW_KEY = "the key that took the place of it"
SIGNING = "hmac:the key of approvals that are kept"

APPROX: Mapping[str, Any] = {"epsilon": 1, "delta": "1e-7"}
HALF: Mapping[str, Any] = {"epsilon": "0.5", "delta": "1e-8"}
SCHEMA: Mapping[str, Any] = {
    "person": pl.Int64,
    "age": pl.Int64,
    "sex": pl.Enum(["f", "m"]),
    "smoker": pl.Boolean,
    "region": pl.String,
    "cost": pl.Float64,
    "born": pl.Date,
    "since": pl.Datetime("us"),
    "stay": pl.Duration("us"),
    "tags": pl.List(pl.String),
}
REGIONS = ["north", "south", None]
PEOPLE = pl.DataFrame(
    {
        "person": [1, 1, 2, 3, 4, 5],
        "age": [31, 31, 64, 22, None, 48],
        "sex": ["f", "f", "m", "m", "f", "f"],
        "region": ["north", "south", "south", "north", None, "north"],
        "cost": [10.5, 0.0, 99.0, 12.25, 7.0, None],
    },
    schema_overrides={"sex": SCHEMA["sex"]},
)
"""Nobody's data."""


# -- Plans --------------------------------------------------------------------------------------


def frame(
    session: Mapping[str, Any] | dp.Session = APPROX, unit: Any = None, **options: Any
) -> dp.PrivateFrame:
    opened = session if isinstance(session, dp.Session) else dp.Session(**session)
    options = {"name": "visits", **options}
    rows = pl.LazyFrame(schema=dict(SCHEMA))
    return opened.protect(rows, unit=dp.Rows() if unit is None else unit, **options)


def pure_counts() -> dp.Plan:
    people = frame({"epsilon": 1}).filter(pl.col("age") >= 18, ~pl.col("smoker"))
    known = dp.count("cost", weight=2).alias("known")
    return people.agg(dp.count(), known, dp.n_unique("region")).plan(epsilon="0.3")


def pure_moments() -> dp.Plan:
    people = frame({"epsilon": 1}).group_by("region", keys=REGIONS)
    one = pl.col("cost")
    return people.agg(
        dp.sum("age", (0, 110)),
        one.dp_mean((0.1, 0.7)).alias("mean"),
        one.dp_var((-3, 1e6)).alias("var"),
        one.dp_std((0, "1/3"), ddof=0).alias("std"),
    ).plan(epsilon=1)


def pure_choices() -> dp.Plan:
    people = frame({"epsilon": 1}, categories={"region": ["north", "south"]})
    return people.agg(
        dp.median("age", (0, 110)).alias("median"),
        dp.quantile("cost", [0.25, 0.75], (0, 100)),
        dp.argmax("region").alias("most"),
        dp.bounds("cost").alias("range"),
    ).plan(epsilon=1)


def chosen_mechanisms() -> dp.Plan:
    people = frame(unit=dp.Rows(contributions=2), categories={"region": ["north", "south"]})
    return people.agg(
        dp.count(mechanism="discrete_laplace").alias("laplace"),
        dp.count("age", mechanism="discrete_gaussian").alias("gauss"),
        dp.argmax("region", mechanism="report_noisy_max").alias("noisy_max"),
        dp.argmax("sex", mechanism="exponential").alias("exponential"),
        dp.argmax("smoker", mechanism="permute_and_flip").alias("flipped"),
    ).plan(**HALF)


def responses() -> dp.Plan:
    people = frame({"epsilon": 1}, unit=dp.Rows("change-one"))
    return people.dp_histogram("sex", mechanism="randomized_response").plan(epsilon="0.5")


def histograms() -> dp.Plan:
    people = frame({"rho": 1}, categories={"region": ["north", "south"]})
    return people.agg(
        dp.histogram("age", bins=[0, 18, 65, 110]).alias("ages"),
        dp.histogram("region", other=True).alias("regions"),
    ).plan(rho="0.1")


def rho_of_everything() -> dp.Plan:
    people = frame({"rho": 1, "delta": "1e-6"}).group_by("sex")
    aggregates = (
        dp.count(),
        dp.mean("cost", (0, 100)),
        dp.median("age", (0, 110)).alias("median"),
    )
    return people.agg(*aggregates).plan(rho="0.01")


def within_zcdp() -> dp.Plan:
    people = frame({**APPROX, "composition": "zcdp"})
    return people.agg(dp.count(), dp.sum("cost", (0, 100)), dp.median("age", (0, 110))).plan(
        epsilon="0.1", delta="1e-9"
    )


def within_gdp() -> dp.Plan:
    people = frame({**APPROX, "composition": "gdp"})
    counts = dp.count(), dp.sum("cost", (0, 100)), dp.median("age", (0, 110))
    return people.agg(*counts).plan(epsilon="0.1")


def found_keys() -> dp.Plan:
    return frame().group_by("region").agg(dp.mean("cost", (0, 9))).plan(**HALF)


def found_keys_by_count() -> dp.Plan:
    return frame().group_by("region").agg(n=dp.count()).plan(**HALF)


def found_keys_of_many() -> dp.Plan:
    people = frame({"rho": 1, "delta": "1e-6"}, unit=dp.Rows(contributions=30))
    return people.group_by("region").agg(n=dp.count()).plan(rho="0.1", delta="1e-7")


def changed_rows() -> dp.Plan:
    people = frame(unit=dp.Rows("change-one", contributions=3)).group_by("region", keys=REGIONS)
    total = dp.sum("cost", (-100, 1000))
    return people.agg(n=dp.count(), total=total, mostly=dp.argmax("sex")).plan(**HALF)


def individuals() -> dp.Plan:
    people = frame(unit="person").drop("tags").limit_groups(2, by="region").limit_rows(3)
    return (
        people.group_by("region", keys=REGIONS)
        .agg(
            dp.count().alias("rows"),
            dp.n_unique("person").alias("people"),
            pl.col("cost").dp_sum((0, 100), per="unit").alias("totals"),
            pl.col("cost").dp_mean((0, 100)).alias("mean"),
            pl.col("cost").dp_mean((0, 100), per="unit").alias("mean_of_units"),
            pl.col("cost").dp_std((0, 100), per="unit").alias("std_of_units"),
        )
        .plan(**HALF)
    )


def found_individuals() -> dp.Plan:
    people = frame(unit="person").drop("tags")
    people = people.limit_groups(3, by="region").limit_rows(2, by="region")
    return people.group_by("region").agg(dp.n_unique("person")).plan(**HALF)


def quantiles_in_groups() -> dp.Plan:
    people = frame({"epsilon": 1}, unit=dp.Rows("change-one", contributions=2))
    grouped = people.group_by("region", keys=REGIONS)
    return grouped.agg(dp.quantile("cost", 0.9, candidates=[0, 5, 50, 500])).plan(epsilon=1)


def best_groups() -> dp.Plan:
    return frame().group_by("sex").dp_argmax(k=2).plan(epsilon="0.5")


def scored_candidates() -> dp.Plan:
    hours = pl.DataFrame({"hour": [7, 8, 9], "price": [0.5, 0.25, 0.0]})
    late = (pl.col("since").dt.hour() - pl.col("hour")).abs().clip(0, 6)
    people = frame({"epsilon": 1})
    return people.agg(dp.argmax(score=-late - pl.col("price"), candidates=hours)).plan(epsilon=1)


def joined() -> dp.Plan:
    prices = pl.DataFrame({"region": ["north", "south", None], "price": [0.1, float("nan"), -0.0]})
    people = frame().join(prices, on="region", how="inner")
    return people.agg(dp.sum("price", (0, 2))).plan(epsilon="0.5")


def joined_individuals() -> dp.Plan:
    session = dp.Session(**APPROX)
    one, two = frame(session, "person"), frame(session, "person", name="earlier")
    both = one.drop("tags").concat(two.drop("tags").filter(pl.col("age") > 3)).limit_rows(4)
    old = two.select("person", old="cost").limit_rows(2)
    rows = both.join(old, on="person", how="left").limit_rows(5)
    return rows.agg(dp.sum("old", (0, 10))).plan(epsilon="0.5")


def exploded() -> dp.Plan:
    tags = frame(unit="person").explode("tags", max_length=2).limit_rows(3)
    return tags.group_by("tags", keys=["a", 'b"', "c\n", "é"]).agg(n=dp.count()).plan(**HALF)


def part() -> dp.Plan:
    session = dp.Session(**APPROX)
    parts = session.partition(frame(session, dp.Rows(contributions=2)), "region", REGIONS)
    return parts[None].dp_sum("age", (0, 9)).plan(epsilon="0.25")


def part_of_a_part() -> dp.Plan:
    session = dp.Session(**APPROX)
    outer = session.partition(frame(session), "region", REGIONS)["north"]
    assert outer.session is not None
    inner = outer.session.partition(outer, "sex", ["f", "m"])["f"]
    return inner.agg(dp.count(), dp.mean("cost", (0, 9))).plan(epsilon="0.25")


def accurate() -> dp.Plan:
    return frame().agg(n=dp.count(), s=dp.var("cost", (0, 9))).plan(accuracy={"n": 50})


def formulas() -> dp.Plan:
    share = (dp.count("cost") / dp.count() * 100).round(2).alias("share")
    return frame().agg(share, dp.sum("cost", (0, 9)) - 1).plan(epsilon="0.5")


def moments() -> dp.Plan:
    return (
        frame({"rho": 1})
        .with_columns(quarter=pl.col("since").dt.quarter())
        .group_by("quarter", keys=[1, 2, 3, 4])
        .agg(
            dp.mean("born", (date(1920, 1, 1), date(2024, 1, 1))).alias("born"),
            dp.median("since", (datetime(2024, 1, 1), datetime(2025, 1, 1))),
            dp.sum("stay", (timedelta(0), timedelta(hours=3))),
        )
        .plan(rho="0.1")
    )


def many_steps() -> dp.Plan:
    people = (
        frame(bounds={"age": (0, 110)})
        .fill_null(0)
        .with_columns(area=pl.when(pl.col("region").is_in(["north"])).then(1).otherwise(0))
        .rename({"cost": "paid"})
        .select("area", "paid", decade=pl.col("age") // 10)
        .filter(pl.col("decade") > 1)
    )
    return people.agg(dp.sum("area"), dp.mean("paid", (0, 5)), dp.median("decade")).plan(**HALF)


def many_together() -> dp.Plan:
    counts = [(pl.col("age") + i).dp_count().alias(f"n{i}") for i in range(12)]
    return frame().agg(*counts).plan(epsilon="0.5", delta="1e-8", split="equal")


PLANS: Mapping[str, Callable[[], dp.Plan]] = {
    make.__name__: make
    for make in (
        pure_counts,
        pure_moments,
        pure_choices,
        chosen_mechanisms,
        responses,
        histograms,
        rho_of_everything,
        within_zcdp,
        within_gdp,
        found_keys,
        found_keys_by_count,
        found_keys_of_many,
        changed_rows,
        individuals,
        found_individuals,
        quantiles_in_groups,
        best_groups,
        scored_candidates,
        joined,
        joined_individuals,
        exploded,
        part,
        part_of_a_part,
        accurate,
        formulas,
        moments,
        many_steps,
        many_together,
    )
}


def said(plan: dp.Plan) -> dict[str, Any]:
    """What a plan answers, beside its document."""
    return {
        "cost": [plan.cost.measure, str(plan.cost.main), str(plan.cost.slack)],
        "events": [repr(event) for event in plan.events],
        "accuracy": {output.name: accuracies(plan, output.name) for output in plan.outputs},
    }


def accuracies(plan: dp.Plan, name: str) -> list[Any]:
    """The accuracy of an output without a guess of how many rows there are, and with one."""
    found: list[Any] = []
    for count in (None, 1000):
        try:
            found.append(plan.accuracy(name, "0.9", count=count))
        except dp.UnsupportedOperation:
            found.append(None)
    return found


def write_plans(folder: Path) -> None:
    lines = []
    for name, make in PLANS.items():
        try:
            plan = make()
        except (dp.DPFrameError, TypeError, ValueError) as error:
            print(f"left out: plan {name} ({type(error).__name__}: {str(error).splitlines()[0]})")
            continue
        kept = {"name": name, **said(plan), "document": json.loads(plan.to_json(None))}
        lines.append(json.dumps(kept, separators=(",", ":")))
    (folder / "plans.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


# -- Ledgers ------------------------------------------------------------------------------------


def run(*arguments: str) -> tuple[int, str]:
    """A command, its exit code and what it printed; 2 where this version has no such command."""
    printed, errors = io.StringIO(), io.StringIO()
    try:
        with redirect_stdout(printed), redirect_stderr(errors):
            code = command([*arguments])
    except SystemExit as stopped:
        code = int(stopped.code or 0)
    if code:
        print(f"left out: {' '.join(arguments[:2])} ({errors.getvalue().splitlines()[-1]})")
    return code, printed.getvalue()


def failing() -> pl.LazyFrame:
    """A source that gives up."""

    def read(*_: object) -> Iterator[pl.DataFrame]:
        raise OSError("gone")
        yield

    return register_io_source(read, schema=dict(PEOPLE.schema))


def ending() -> pl.LazyFrame:
    """A source in which the process ends, so that a charge stays open."""

    def read(*_: object) -> Iterator[pl.DataFrame]:
        os._exit(0)
        yield

    return register_io_source(read, schema=dict(PEOPLE.schema))


def spend(place: str) -> None:
    """Budgets of every kind at a place, with charges, grants and approvals of every kind."""
    pure = dp.Session(epsilon=10, ledger=place, name="pure")
    people = pure.protect(PEOPLE, unit=dp.Rows(), name="people")
    people.dp_count().collect(epsilon="0.1")
    people.agg(dp.mean("cost", (0, 100)), dp.median("age", (0, 110))).collect(epsilon="1/3")
    people.group_by("region", keys=REGIONS).dp_count().collect(epsilon="0.5")
    with suppress(dp.DPFrameError):
        pure.protect(failing(), unit=dp.Rows(), name="people").dp_count().collect(epsilon="0.25")
    subprocess.run([sys.executable, __file__, "--open", place], check=True)
    parts(pure, people)
    for name, options in BUDGETS.items():
        try:
            session = dp.Session(**options, ledger=place, name=name)
        except dp.DPFrameError as error:
            print(f"left out: session {name} ({str(error).splitlines()[0]})")
            continue
        protected = session.protect(PEOPLE, unit=UNITS.get(name, dp.Rows()), name="people")
        query = protected.limit_rows(2).dp_count() if name == "person" else protected.dp_count()
        amount = {"rho": "0.01"} if "rho" in options else {"epsilon": "0.05"}
        query.collect(**amount)
        if name == "approx":
            protected.group_by("region").agg(n=dp.count()).collect(epsilon="0.5", delta="1e-7")
    more = ("--by", "Ann Owner", "--reason", 'second "wave"\nof 3 May')
    run("ledger", "grant", "--ledger", place, "--name", "pure", "--epsilon", "2", *more)
    run("ledger", "grant", "--ledger", place, "--name", "zcdp", "--epsilon", "1", *more)
    approved(place, people)


def spend_once(place: str) -> None:
    rows = dp.Session(epsilon=1, ledger=place).protect(PEOPLE, unit=dp.Rows(), name="people")
    rows.dp_count().collect(epsilon="0.25")


BUDGETS: Mapping[str, Mapping[str, Any]] = {
    "approx": {"epsilon": 2, "delta": "1e-6"},
    "rho": {"rho": "1/3", "delta": "1e-6"},
    "zcdp": {"epsilon": 1, "delta": "1e-8", "composition": "zcdp"},
    "gdp": {"epsilon": 1, "delta": "1e-8", "composition": "gdp"},
    "person": {"epsilon": 1},
}
UNITS: Mapping[str, Any] = {"person": "person"}


def parts(session: dp.Session, people: dp.PrivateFrame) -> None:
    """Disjoint parts, and parts of one of them."""
    outer = session.partition(people, "region", REGIONS)
    for part, epsilon in zip(outer.values(), ("0.2", "0.1", "0.05"), strict=True):
        part.dp_count().collect(epsilon=epsilon)
    north = outer["north"]
    assert north.session is not None
    for part in north.session.partition(north, "sex", ["f", "m"]).values():
        part.dp_count().collect(epsilon="0.3")


def approved(place: str, people: dp.PrivateFrame) -> None:
    """Approvals without a signature, with one, with limits, and one that was taken back."""
    query = people.group_by("region", keys=REGIONS).agg(dp.count(), dp.mean("cost", (0, 50)))
    Path("plan.json").write_text(query.plan(epsilon="0.2").to_json(), encoding="utf-8")
    where = ("plan.json", "--by", "Bob Reviewer", "--ledger", place, "--name", "pure")
    run("approve", *where)
    with environment(DPFRAME_APPROVAL_KEY=SIGNING):
        run("approve", *where)
        run("approve", *where, "--runs", "2", "--until", "2099-01-01")
    session = dp.Session(epsilon=10, ledger=place, name="pure", require_approval=True)
    again = session.protect(PEOPLE, unit=dp.Rows(), name="people")
    grouped = again.group_by("region", keys=REGIONS)
    grouped.agg(dp.count(), dp.mean("cost", (0, 50))).collect(epsilon="0.2")
    other = people.dp_count().plan(epsilon="0.7")
    Path("plan.json").write_text(other.to_json(), encoding="utf-8")
    run("approve", *where)
    who = ("--by", "Ann Owner", "--ledger", place, "--name", "pure")
    run("approve", "--revoke", other.fingerprint, *who)


def open_charge(place: str) -> None:
    session = dp.Session(epsilon=10, ledger=place, name="pure")
    session.protect(ending(), unit=dp.Rows(), name="people").dp_count().collect(epsilon="0.125")


def write_ledgers(folder: Path) -> None:
    """Ledgers in files: plain, with a key, with another key, moved, with a closed budget."""
    facts: dict[str, Any] = {}
    spend("plain.db")
    facts["plain.db"] = shown("plain.db")
    with environment(DPFRAME_LEDGER_KEY=KEY):
        spend_once("keyed.db")
        facts["keyed.db"] = shown("keyed.db")
    owner = ("--by", "Ann Owner")
    for name in ("rekeyed.db", "from.db", "closed.db"):
        spend_once(name)
    with environment(DPFRAME_LEDGER_NEW_KEY=NEW_KEY):
        code, _ = run("ledger", "rekey", "--ledger", "rekeyed.db", *owner)
    if not code:
        with environment(DPFRAME_LEDGER_KEY=NEW_KEY):
            facts["rekeyed.db"] = shown("rekeyed.db")
    if not run("ledger", "move", "--ledger", "from.db", "--to", "moved.db", *owner)[0]:
        facts["moved.db"] = shown("moved.db")
    reason = ("--name", "default", "--reason", "done")
    if not run("ledger", "close", "--ledger", "closed.db", *owner, *reason)[0]:
        facts["closed.db"] = shown("closed.db")
    for name in facts:
        keep(Path(name), folder)
        keep(Path(f"{name}.head"), folder)
    write(folder / "ledgers.json", facts)


def shown(place: str) -> dict[str, Any]:
    """What a ledger says of itself, and all of its records."""
    _, text = run("ledger", "show", "--ledger", place, "--json")
    _, lines = run("ledger", "export", "--ledger", place)
    shown = {**json.loads(text), "ledger": None}
    return {"shown": shown, "records": [json.loads(line) for line in lines.splitlines()]}


def write(path: Path, facts: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(facts, separators=(",", ":")) + "\n", encoding="utf-8")


def keep(path: Path, folder: Path) -> None:
    shutil.copy(path, folder / path.name)


_SETTINGS = ("--", "\\", "SET ", "SELECT pg_catalog.set_config")
"""What a dump says to the session that restores it; all names in it have their schema."""


def write_server(folder: Path) -> None:
    """A ledger in PostgreSQL, as its tables are dumped, and the head file that lay elsewhere."""
    found = importlib.util.spec_from_file_location(
        "server", Path(__file__).parents[1] / "postgres.py"
    )
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    programs = module.binaries()
    if programs is None:
        print("left out: PostgreSQL, which is not installed")
        return
    server = module.Server(programs)
    try:
        place = server.empty()
        with environment(DPFRAME_LEDGER_HEAD="server.head"):
            spend(place)
            facts = shown(place)
        dump = ["pg_dump", "--inserts", "--no-owner", "--no-privileges", "-d", place]
        done = subprocess.run(
            [programs / dump[0], *dump[1:]], check=True, capture_output=True, text=True
        )
    finally:
        server.remove()
    lines = [line for line in done.stdout.splitlines() if line and not line.startswith(_SETTINGS)]
    (folder / "server.sql").write_text("\n".join(lines) + "\n", encoding="utf-8")
    write(folder / "server.json", facts)
    keep(Path("server.head"), folder)


# -- Results and jobs ---------------------------------------------------------------------------

JOBS: Mapping[str, str] = {
    "count": """
[session]
epsilon = "1"

[source]
path = "people.parquet"
name = "people"
unit = {adjacency = "add-remove"}
bounds = {age = [17, 90]}

[query]
filter = "age >= 40"
group_by = "region"
keys = ["north", "south"]

[query.outputs.n]
aggregate = "count"

[query.outputs.mean_age]
aggregate = "mean"
of = "age"

[spend]
epsilon = "0.5"
""",
    "person": """
output = "result.csv"

[session]
epsilon = 2
delta = "1e-6"
composition = "zcdp"

[source]
path = "people.parquet"
unit = "person"
name = "people"
categories = {region = ["north", "south"]}

[query]
with_columns = {paid = "cost * 2"}
filter = ["age >= 18", "sex IN ('f', 'm')"]
limit_rows = {n = 3}
limit_groups = {n = 1, by = "region"}
group_by = ["region"]

[query.outputs.n]
aggregate = "count"
nonnegative = true
weight = 2

[query.outputs.people]
aggregate = "n_unique"
of = "person"

[query.outputs.total]
aggregate = "sum"
of = "paid"
bounds = [0, 60]
mechanism = "discrete_gaussian"

[query.outputs.upper]
aggregate = "quantile"
of = "age"
q = 0.9
candidates = [20, 40, 60, 80]

[spend]
epsilon = "0.3"
delta = "1e-8"
interval = 0.9
split = "equal"
""",
}


def write_results(folder: Path) -> None:
    people = dp.Session(epsilon=10).protect(PEOPLE, unit=dp.Rows(), name="people")
    grouped = people.group_by("region", keys=REGIONS).agg(
        dp.count(), dp.mean("cost", (0, 100)), dp.median("age", (0, 110)).alias("median")
    )
    for name in ("result.parquet", "result.csv"):
        grouped.release(epsilon=1).write(name)
        keep(Path(name), folder)
    keep(Path("result.csv.plan.json"), folder)


def write_jobs(folder: Path) -> None:
    PEOPLE.write_parquet("people.parquet")
    facts = {}
    for name, text in JOBS.items():
        job = Path(f"{name}.toml")
        job.write_text(text.lstrip(), encoding="utf-8")
        code, plan = run("explain", job.name, "--json")
        assert not code, job
        facts[name] = json.loads(plan)["fingerprint"]
        keep(job, folder)
    write(folder / "jobs.json", facts)


# -- All of it ----------------------------------------------------------------------------------


@contextmanager
def environment(**names: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(names)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def stay_unknown() -> None:
    """Let records name nobody who was there."""
    socket.gethostname = lambda: "machine"
    os.getpid = lambda: 1
    user = SimpleNamespace(pw_name="somebody")
    pwd.getpwuid = lambda _: user  # type: ignore[assignment, return-value]
    os.environ["DPFRAME_JOB"] = "make"


def require_no_places(folder: Path, *places: str) -> None:
    """Refuse files that say where they were made."""
    pattern = re.compile("|".join(map(re.escape, places)).encode())
    for path in folder.iterdir():
        found = pattern.search(path.read_bytes())
        if found:
            raise SystemExit(f"{path.name} holds {found.group().decode()!r}")


def main() -> None:
    host = socket.gethostname()
    stay_unknown()
    if sys.argv[1] == "--open":
        open_charge(sys.argv[2])
        return
    folder = Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    MADE.mkdir()
    try:
        os.chdir(MADE)
        write_plans(folder)
        write_ledgers(folder)
        write_server(folder)
        write_results(folder)
        write_jobs(folder)
        require_no_places(folder, host, str(Path(__file__).parents[2]), str(Path.home()))
    finally:
        shutil.rmtree(MADE)
    print(
        f"wrote {len([*folder.iterdir()])} files of dpframe at {Path(dp.__file__).parents[1].name}"
    )


if __name__ == "__main__":
    main()
