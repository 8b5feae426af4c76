"""The data that come along are found, and the first lines of the documentation run as pasted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import dpframe as dp
from tests.documentation import DATA, ROOT, examples, without_noise

PAGES = ("README.md", "docs/quickstart.md", "docs/index.md")


def test_adult_is_a_new_scan_of_the_file_that_comes_along(adult: Path) -> None:
    frame = dp.examples.adult()
    assert isinstance(frame, pl.LazyFrame)
    assert frame is not dp.examples.adult()
    assert frame.collect().equals(pl.read_parquet(adult))


def test_its_docstring_names_every_column() -> None:
    said = dp.examples.adult.__doc__ or ""
    assert not [name for name in pl.read_parquet_schema(DATA) if f"``{name}``" not in said]


@pytest.mark.parametrize("page", PAGES)
def test_the_first_lines_run_as_pasted_into_an_empty_folder(page: str, tmp_path: Path) -> None:
    first = examples((ROOT / page).read_text(encoding="utf-8"))[0]
    assert "import dpframe as dp" in first.code
    assert ".protect(" in first.code
    done = subprocess.run(
        [sys.executable, "-W", "error", "-"],
        input=first.code,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert first.output is not None
    assert without_noise(done.stdout) == without_noise(first.output)
    left = [path.name for path in tmp_path.iterdir()]
    assert left == (["members.csv"] if page == "README.md" else [])
