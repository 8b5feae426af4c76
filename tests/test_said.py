"""What the pages say in words, and no example shows, is so."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

import dpframe as dp
from dpframe.api.registration import FRAME_METHODS
from dpframe.cli import main
from tests.documentation import ROOT


def page(name: str) -> str:
    """A page as one line."""
    return " ".join((ROOT / name).read_text(encoding="utf-8").split())


def test_a_page_names_the_methods_of_plain_frames() -> None:
    text = page("docs/coming-from-polars.md").partition("## Methods on plain Polars frames")[2]
    assert set(re.findall(r"`(dp_\w+)", text.partition("## ")[0])) == set(FRAME_METHODS)
    frame = pl.DataFrame({"x": [1]})
    assert {name for name in dir(frame) if name.startswith("dp_")} == set(FRAME_METHODS)


def test_the_page_of_evidence_quotes_measured_imports() -> None:
    said = page("docs/evidence.md").partition("takes as long as `import polars`")[2][:120]
    table = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (polars|dpframe[\w, ]*) \| ([\d.]+) \|", table, re.MULTILINE))
    quoted = re.findall(r"\d+\.\d{3}", said)
    assert quoted == [rows["dpframe"], rows["polars"], rows["dpframe, and a first session"]]


def test_intervals_do_not_cover_what_limits_drop() -> None:
    said = "It does not cover what your query leaves out: values that `clip` cuts, rows"
    assert said in page("docs/quickstart.md")
    visits = pl.DataFrame({"person": [i % 100 for i in range(1000)]})
    people = dp.Session(epsilon=100).protect(visits, unit="person").limit_rows(3)
    found = people.dp_count().collect(epsilon=100, interval=0.95)
    assert found["len_high"].item() < visits.height


def test_the_quickstart_converts_numbers_with_commas_and_local_dates() -> None:
    codes = [
        'pl.col("fee").str.replace_all(",", "").cast(pl.Float64)',
        'pl.col("joined").str.to_date("%d.%m.%Y")',
    ]
    assert all(f"`{code}`" in page("docs/quickstart.md") for code in codes)
    rows = pl.DataFrame({"fee": ["1,234,567"], "joined": ["31.12.2024"]})
    members = dp.Session(epsilon=2000).protect(rows, unit=dp.Rows())
    typed = members.with_columns(*(eval(code) for code in codes))
    query = typed.agg(
        pl.col("fee").clip(0, 2_000_000).sum(), pl.col("joined").dt.year().clip(2000, 2030).sum()
    )
    found = query.collect(epsilon=2000)
    assert abs(found["fee"].item() - 1_234_567) < 30_000
    assert abs(found["joined"].item() - 2024) < 30


def test_ratios_of_clamped_totals_are_biased_at_any_budget() -> None:
    rows = [(person, row < 2) for person in range(300) for row in range(2 + 8 * (person % 2))]
    taxi = pl.DataFrame(rows, schema=["person", "card"], orient="row")
    people = dp.Session(epsilon=2000).protect(taxi, unit="person")
    card = pl.col("card").cast(pl.Int64)
    query = people.with_columns(card=card).agg(
        share=dp.sum("card", (0, 4), per="unit") / dp.count(per="unit", bounds=(0, 4))
    )
    exact = taxi["card"].mean()
    assert query.collect(epsilon=1000)["share"].item() > exact + 0.2


def test_sizes_do_not_find_bounds_that_are_too_wide() -> None:
    """As the page on reviewing says: noise is compared with what bounds allow."""
    assert "Bounds that are far too wide then get no warning" in page("docs/reviewing.md")
    people = dp.Session(epsilon=1).protect(pl.LazyFrame(schema={"pay": pl.Int64}), unit=dp.Rows())
    for top in (10_000, 100_000_000):
        said = people.dp_sum("pay", (0, top)).explain(epsilon=0.5, size=5000)
        assert "more than a tenth" not in said


def test_approvals_are_for_the_budget_that_is_named() -> None:
    said = page("docs/approval.md")
    assert "An approval is for one budget of the ledger: the one that the plan names" in said


def test_holes_are_reported_somewhere() -> None:
    assert "`SECURITY.md`" in page("docs/threat-model.md")
    assert "privately" in page("SECURITY.md")
    assert "example." not in page("SECURITY.md")


@pytest.mark.parametrize("command", ["explain", "run"])
def test_the_job_of_the_examples_runs_in_any_folder(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([command, str(ROOT / "examples" / "hours.toml")]) == 0
    assert "mean_overtime" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())
