"""The documentation is built strictly: a link that leads nowhere fails it; what people look for is
found, and each page leads on.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dpframe as dp
from tests.documentation import ROOT

pytest.importorskip("mkdocs")
pytest.importorskip("material")
pytest.importorskip("mkdocstrings")


def recipe() -> list[str]:
    """What `make docs` runs, with this Python's MkDocs."""
    found = re.search(r"^docs:.*\n\t(.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    assert found is not None
    words = shlex.split(found[1], comments=True)
    at = words.index(".venv/bin/mkdocs")
    return [sys.executable, "-m", "mkdocs", *words[at + 1 :]]


def built(folder: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """The site of a folder with a `mkdocs.yml`, by the recipe."""
    return subprocess.run(
        [*recipe(), "--site-dir", str(site)],
        cwd=folder,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize(
    ("planted", "broken"),
    [
        ("", False),
        ("[a page](nowhere.md)", True),
        ("[a place](index.md#nowhere)", True),
        ("![a picture](images/nowhere.svg)", True),
    ],
)
def test_a_link_that_leads_nowhere_fails_the_build(
    planted: str, broken: bool, tmp_path: Path
) -> None:
    """On a site of one page, with all settings but the plug-ins and pages of the real one."""
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    plugins, pages = settings.index("plugins:"), settings.index("markdown_extensions:")
    settings = settings[:plugins] + settings[pages : settings.index("nav:")]
    (tmp_path / "mkdocs.yml").write_text(settings + "nav: [index.md]\n", encoding="utf-8")
    (tmp_path / "docs" / "images").mkdir(parents=True)
    shutil.copy(ROOT / "docs" / "images" / "logo.svg", tmp_path / "docs" / "images")
    (tmp_path / "docs" / "index.md").write_text(f"# Home\n\n{planted}\n", encoding="utf-8")
    done = built(tmp_path, tmp_path / "site")
    assert (done.returncode != 0) == broken, done.stderr
    assert ("WARNING" in done.stderr) == broken


LOOKED_FOR = {
    "ratio": "coming-from-polars/",
    "percent": "coming-from-polars/",
    "pivot": "coming-from-polars/",
    "rolling": "coming-from-polars/",
    "max": "coming-from-polars/",
    "describe": "coming-from-polars/",
    "median": "coming-from-polars/",
    "value_counts": "coming-from-polars/",
    "group_by_dynamic": "coming-from-polars/",
    "customers": "howto/three-tables/",
    "dp_max": "coming-from-polars/",
    "cumulative": "coming-from-polars/",
    "covariance": "coming-from-polars/",
    "correlation": "coming-from-polars/",
    "outliers": "coming-from-polars/",
    "crosstab": "coming-from-polars/",
    "tab": "coming-from-polars/",
    "normalize": "coming-from-polars/",
    "experiment": "howto/ab-test/",
    "weights": "howto/survey/",
    "retention": "howto/funnel/",
    "revenue": "howto/money/",
    "weekday": "howto/dates/",
    "dbt": "howto/dbt/",
    "Jupyter": "howto/notebooks/",
}


def test_the_site(tmp_path: Path) -> None:
    """In one test, as building the site takes longest."""
    done = built(ROOT, tmp_path)
    assert done.returncode == 0, done.stderr
    check_search(tmp_path)
    home = (tmp_path / "index.html").read_text(encoding="utf-8")
    check_that_pages_lead_on(tmp_path, home)
    nothing_else = re.findall(r'<(?:link|script|img)[^>]+(?:src|href)="https?://[^"]+', home)
    assert not nothing_else, "loaded from elsewhere"
    assert f"dpframe {dp.__version__}" in home
    assert re.search(r'role="dialog" aria-label="Search"', home), "a dialog without a name"
    assert "Unreleased" in (tmp_path / "changelog" / "index.html").read_text(encoding="utf-8")
    notebook = (tmp_path / "notebooks" / "individuals" / "index.html").read_text(encoding="utf-8")
    assert "<svg" in notebook
    assert 'class="dataframe"' in notebook


def check_search(site: Path) -> None:
    """What people look for stands on a page that answers it."""
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    separate = re.compile(index["config"]["separator"])
    words = [
        (
            section["location"].partition("#")[0],
            set(separate.split(re.sub("<[^>]+>", " ", f"{section['title']} {section['text']}"))),
        )
        for section in index["docs"]
    ]
    for word, page in LOOKED_FOR.items():
        assert page in {place for place, known in words if word in known}, word


def check_that_pages_lead_on(site: Path, home: str) -> None:
    assert home.count('name="__palette"') == 3
    assert "images/logo.svg" in home
    second = re.search(r'<link rel="next" href="([^"]+)"', home)
    assert second is not None
    assert second[1] == "quickstart/"
    page = (site / "quickstart" / "index.html").read_text(encoding="utf-8")
    assert 'rel="next"' in page
    assert "md-footer__link--prev" in page
    assert "md-footer__link--next" in page
