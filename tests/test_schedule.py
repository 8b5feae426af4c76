"""The files in `examples/schedule`: they say what dpframe understands, and hold no secrets."""

from __future__ import annotations

import configparser
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from dpframe.cli.main import _parser
from tests.cli.commands import COMMAND, environment, in_process
from tests.documentation import ROOT

FOLDER = ROOT / "examples" / "schedule"
FILES = sorted(path for path in FOLDER.iterdir() if path.is_file())
DAY = "2027-01-31"


def text(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def require_known(arguments: Sequence[str]) -> None:
    """Refuse arguments that dpframe does not have."""
    try:
        _parser().parse_args(arguments)
    except SystemExit:
        pytest.fail(f"dpframe has no {shlex.join(arguments)}")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_secrets(path: Path) -> None:
    for line in path.read_text(encoding="utf-8").splitlines():
        assert not re.search(r"(?i)(password|secret|token|_KEY)\s*[=:]\s*[^.\s]", line), line
        assert not re.search(r"://\w+:\w+@", line), line


def test_the_page_names_every_file() -> None:
    page = (ROOT / "docs" / "howto" / "schedule.md").read_text(encoding="utf-8")
    for path in FILES:
        assert path.name in page, path.name


# -- the job --------------------------------------------------------------------------------------


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine as the units and the container have it, below a folder."""
    for name in ("data", "ledger", "results", "bin"):
        (tmp_path / name).mkdir()
    arrived = [datetime(2027, 1, 30, 12) + timedelta(minutes=3 * i) for i in range(1000)]
    pl.DataFrame(
        {
            "patient": [i % 400 for i in range(1000)],
            "clinic": [("north", "south", "west")[i % 3] for i in range(1000)],
            "arrived": arrived,
            "minutes": [float(i % 90) for i in range(1000)],
        }
    ).with_columns(pl.col("arrived").dt.replace_time_zone("Europe/Zurich")).write_parquet(
        tmp_path / "data" / "visits.parquet"
    )
    job = text("nightly.toml")
    for there, here in (("/var/lib/dpframe", "ledger"), ("/data", "data")):
        assert there in job
        job = job.replace(f'"{there}/', f'"{tmp_path / here}/')
    (tmp_path / "nightly.toml").write_text(job)
    command = tmp_path / "bin" / "dpframe"
    command.write_text(f'#!/bin/sh\nexec {shlex.join(COMMAND)} "$@"\n')
    command.chmod(0o755)
    for name in list(os.environ):
        if name.startswith("DPFRAME_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PATH", f"{command.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("DPFRAME_JOB_FILE", str(tmp_path / "nightly.toml"))
    monkeypatch.setenv("DPFRAME_RESULTS", str(tmp_path / "results"))
    monkeypatch.setenv("PYTHONPATH", environment()["PYTHONPATH"])
    return tmp_path


def ran(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(a) for a in arguments], capture_output=True, text=True, timeout=300, check=False
    )


def prepared(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The budget, and an approval of the year."""
    where = ("--ledger", machine / "ledger" / "budget.db", "--name", "visits-2027", "--by", "Ann")
    amounts = ("--epsilon", "3", "--delta", "1e-8", "--composition", "zcdp")
    made = in_process(("ledger", "create", *where, *amounts), capsys)
    assert made.code == 0, made.err
    year = ("--param", "day=2027-01-01..2027-12-31")
    done = in_process(("approve", machine / "nightly.toml", *year, *where), capsys)
    assert done.code == 0, done.err


def test_days_are_published_once_each(installed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = FOLDER / "publish.sh"
    prepared(installed, capsys)
    first = ran(script, DAY)
    assert first.returncode == 0, first.stderr
    result = installed / "results" / f"visits-{DAY}.parquet"
    before = pl.read_parquet(result)
    assert before["clinic"].to_list() == ["north", "south", "west"]
    assert ran(script, DAY).returncode == 0
    assert pl.read_parquet(result).equals(before)
    assert ran(script, "2028-01-01").returncode == 4
    session = dp.Session(
        epsilon=3,
        delta="1e-8",
        composition="zcdp",
        ledger=installed / "ledger" / "budget.db",
        name="visits-2027",
        must_exist=True,
    )
    assert session.history["status"].to_list() == ["released"]


def test_it_runs_only_on_what_was_prepared(
    installed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ("run", installed / "nightly.toml", "--param")
    assert in_process((*run, f"day={DAY}"), capsys).code == 9  # there is no budget
    prepared(installed, capsys)
    assert in_process((*run, "day=31.1.2027"), capsys).code == 5
    changed = (installed / "nightly.toml").read_text().replace("n = 3", "n = 4")
    (installed / "nightly.toml").write_text(changed)
    assert in_process((*run, f"day={DAY}"), capsys).code == 4


def test_a_year_of_days_fits(installed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What one day costs, 365 times, is within the budget."""
    prepared(installed, capsys)
    job = installed / "nightly.toml"
    done = in_process(("explain", job, "--param", f"day={DAY}", "--json"), capsys)
    assert done.code == 0, done.err
    plan = dp.Plan.from_json(done.out)
    assert plan.remaining is not None
    assert plan.cost.measure == plan.remaining.measure
    whole = plan.cost
    for _ in range(364):
        whole = whole + plan.cost
    assert plan.remaining.covers(whole)


def test_the_script(tmp_path: Path) -> None:
    """What it asks of dpframe, seen by a command that writes down its arguments."""
    fake = tmp_path / "dpframe"
    fake.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\nexit 4\n')
    fake.chmod(0o755)
    there = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    for given, day in [([DAY], DAY), ([], str(datetime.now(UTC).date() - timedelta(days=1)))]:
        done = subprocess.run(
            [FOLDER / "publish.sh", *given], env=there, capture_output=True, text=True, check=False
        )
        assert done.returncode == 4
        arguments = done.stdout.splitlines()
        require_known(arguments)
        assert f"day={day}" in arguments
        assert f"/results/visits-{day}.parquet" in arguments
        assert date.fromisoformat(arguments[arguments.index("--run-id") + 1]) == date.fromisoformat(
            day
        )


# -- the image ------------------------------------------------------------------------------------


def instructions() -> list[tuple[str, str]]:
    """Of the Dockerfile, in order; comments and continued lines put together."""
    lines = [line for line in text("Dockerfile").splitlines() if not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    parts = (line.partition(" ") for line in joined.splitlines() if line.strip())
    return [(name, " ".join(rest.split())) for name, _, rest in parts]


def test_the_image_is_of_a_named_release_and_not_of_root() -> None:
    found = instructions()
    (image,) = [rest for name, rest in found if name == "FROM"]
    assert re.fullmatch(r"python:3\.1[1-9]-slim-[a-z]+", image)
    assert found[0][0] == "FROM"
    users = [rest for name, rest in found if name == "USER"]
    assert len(users) == 1
    assert int(users[0].split(":")[0]) > 0
    names = [name for name, _ in found]
    assert set(names) <= {"FROM", "ENV", "COPY", "RUN", "USER", "WORKDIR", "VOLUME", "ENTRYPOINT"}
    after = names[names.index("USER") :]
    assert "RUN" not in after
    assert "COPY" not in after


def test_the_image_has_what_it_needs_and_no_more() -> None:
    found = instructions()
    for name, rest in found:
        if name == "COPY":
            *sources, _ = [part for part in rest.split() if not part.startswith("--")]
            for source in sources:
                assert source.startswith("dpframe-") or (FOLDER / source).is_file()
        if name == "RUN":
            assert not re.search(r"curl|wget|sudo|chmod 777|--trusted-host|--index-url", rest)
    ignored = [line for line in text(".dockerignore").splitlines() if not line.startswith("#")]
    assert ignored[0] == "*"
    copied = {"publish.sh", "nightly.toml", "dpframe-*.whl"}
    assert {line.removeprefix("!") for line in ignored[1:]} == copied
    (entry,) = [rest for name, rest in found if name == "ENTRYPOINT"]
    assert entry == '["/usr/local/bin/publish"]'
    assert any(f"{source} /usr/local/bin/publish" in rest for source in copied for _, rest in found)


def test_ledger_and_results_are_on_volumes() -> None:
    (volumes,) = [rest for name, rest in instructions() if name == "VOLUME"]
    assert '"/var/lib/dpframe"' in volumes
    assert '"/results"' in volumes
    assert 'ledger = "/var/lib/dpframe/budget.db"' in text("nightly.toml")


# -- systemd and cron -----------------------------------------------------------------------------


def unit(name: str) -> configparser.ConfigParser:
    found = configparser.ConfigParser(strict=False, interpolation=None)
    found.optionxform = str  # type: ignore[assignment,method-assign]
    found.read_string(text(name))
    return found


def test_the_service() -> None:
    service = unit("dpframe-nightly.service")["Service"]
    assert service["Type"] == "oneshot"
    assert service["User"] != "root"
    never = service["RestartPreventExitStatus"].split()
    assert {"3", "4", "5", "9"} <= {*never}
    assert "6" not in never
    assert service["SuccessExitStatus"] == "7"
    for name, value in [("NoNewPrivileges", "yes"), ("ProtectSystem", "strict")]:
        assert service[name] == value
    assert "/etc/dpframe/nightly.toml" in service["Environment"]


def test_the_timer() -> None:
    timer = unit("dpframe-nightly.timer")
    assert timer["Timer"]["OnCalendar"].endswith("UTC")
    assert timer["Timer"]["Persistent"] == "yes"
    assert timer["Install"]["WantedBy"] == "timers.target"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd")
def test_systemd_accepts_both(tmp_path: Path) -> None:
    for name in ("dpframe-nightly.service", "dpframe-nightly.timer"):
        content = text(name).replace("/usr/local/bin/publish", "/bin/true")
        (tmp_path / name).write_text(content)
    done = ran("systemd-analyze", "verify", *sorted(tmp_path.iterdir()))
    about = [line for line in done.stderr.splitlines() if "dpframe-nightly" in line]
    assert (done.returncode, about) == (0, [])


def test_cron_runs_what_there_is() -> None:
    lines = [line for line in text("crontab").splitlines() if line and line[0] in "*0123456789"]
    assert len(lines) == 3
    checked = 0
    for line in lines:
        *when, user, command = line.split(maxsplit=6)
        assert len(when) == 5
        assert all(re.fullmatch(r"[*/0-9,-]+", part) for part in when)
        assert user == "dpframe"
        assert "%" not in command.replace("\\%", "")
        for part in re.split(r"&&|\|\||;", command):
            words = shlex.split(part.split(">")[0])
            if words and words[0] == "dpframe":
                require_known(words[1:])
                checked += 1
    assert checked == 2


# -- Airflow --------------------------------------------------------------------------------------


class Stopped(Exception):
    """As Airflow's: the base of its exceptions."""


class Failed(Stopped):
    """As Airflow's: a failure that is not tried again."""


class Operator:
    """As far as the example uses Airflow's."""

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.after: list[Operator] = []

    def __rshift__(self, other: Operator) -> Operator:
        self.after.append(other)
        return other


class Graph:
    """As far as the example uses Airflow's DAG."""

    def __init__(self, **options: Any) -> None:
        self.options = options

    def __enter__(self) -> Graph:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class Timetable:
    def __init__(self, cron: str, timezone: str) -> None:
        self.cron, self.timezone = cron, timezone


def stand_ins(version: int) -> dict[str, dict[str, object]]:
    """The modules of Airflow that the example imports, by version."""
    made: dict[str, dict[str, object]] = {
        "airflow": {},
        "airflow.exceptions": {"AirflowException": Stopped, "AirflowFailException": Failed},
        "airflow.timetables": {},
        "airflow.timetables.interval": {"CronDataIntervalTimetable": Timetable},
    }
    if version == 2:
        made["airflow"]["DAG"] = Graph
        return made | {
            "airflow.operators": {},
            "airflow.operators.python": {"PythonOperator": Operator},
        }
    providers = ("airflow.providers", "airflow.providers.standard")
    operators = "airflow.providers.standard.operators"
    return made | {
        "airflow.sdk": {"DAG": Graph},
        **{name: {} for name in (*providers, operators)},
        f"{operators}.python": {"PythonOperator": Operator},
    }


@pytest.fixture(params=[2, 3], ids=["airflow 2", "airflow 3"])
def dag(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    for name in [name for name in sys.modules if name.partition(".")[0] == "airflow"]:
        monkeypatch.delitem(sys.modules, name)
    for name, content in stand_ins(request.param).items():
        module = ModuleType(name)
        module.__path__ = []
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    spec = importlib.util.spec_from_file_location("nightly_dag", FOLDER / "nightly_dag.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_dag(dag: ModuleType) -> None:
    options = dag.dag.options
    assert options["schedule"].cron == "30 4 * * *"
    assert options["schedule"].timezone == "UTC"
    assert options["catchup"] is True
    assert options["max_active_runs"] == 1
    assert dag.published.after == [dag.checked]
    assert dag.published.options["op_kwargs"] == {"ds": "{{ ds }}"}
    for task in (dag.published, dag.checked):
        names = task.options["python_callable"].__annotations__
        assert {*task.options["op_kwargs"]} == {*names} - {"return"}


def test_its_commands_are_known(dag: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(dag, "dpframe", lambda *arguments: asked.append(arguments))
    dag.publish(DAY)
    dag.check(**dag.checked.options["op_kwargs"])
    for arguments in asked:
        require_known(arguments)
    assert f"day={DAY}" in asked[0]
    assert asked[0][asked[0].index("--run-id") + 1] == DAY


@pytest.mark.parametrize("code", range(8))
def test_exit_codes_say_whether_it_is_tried_again(
    dag: ModuleType, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "dpframe"
    fake.write_text(f"#!/bin/sh\necho said\necho logged >&2\nexit {code}\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    if code == 0:
        dag.publish(DAY)
        return
    with pytest.raises(Stopped) as stopped:
        dag.publish(DAY)
    assert isinstance(stopped.value, Failed) == (code not in (6, 7))
    assert str(code) in str(stopped.value)
