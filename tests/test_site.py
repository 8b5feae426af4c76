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


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site")
    done = built(ROOT, place)
    assert done.returncode == 0, done.stderr
    return place


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


@pytest.mark.parametrize("word", LOOKED_FOR)
def test_what_people_look_for_stands_on_a_page_that_answers_it(word: str, site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    separate = re.compile(index["config"]["separator"])
    found = {
        section["location"].partition("#")[0]
        for section in index["docs"]
        if word in separate.split(re.sub("<[^>]+>", " ", f"{section['title']} {section['text']}"))
    }
    assert LOOKED_FOR[word] in found


def test_pages_have_a_logo_a_toggle_and_lead_on(site: Path) -> None:
    home = (site / "index.html").read_text(encoding="utf-8")
    assert home.count('name="__palette"') == 3
    assert "images/logo.svg" in home
    page = (site / "quickstart" / "index.html").read_text(encoding="utf-8")
    assert 'rel="next"' in page
    assert "md-footer__link--prev" in page
    assert "md-footer__link--next" in page


def test_the_second_page_is_the_quickstart(site: Path) -> None:
    home = (site / "index.html").read_text(encoding="utf-8")
    following = re.search(r'<link rel="next" href="([^"]+)"', home)
    assert following is not None
    assert following[1] == "quickstart/"


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    home = (site / "index.html").read_text(encoding="utf-8")
    assert not re.findall(r'<(?:link|script|img)[^>]+(?:src|href)="https?://[^"]+', home)


def test_the_site_has_the_version_the_changelog_and_the_notebooks(site: Path) -> None:
    home = (site / "index.html").read_text(encoding="utf-8")
    assert f"dpframe {dp.__version__}" in home
    assert "Unreleased" in (site / "changelog" / "index.html").read_text(encoding="utf-8")
    notebook = (site / "notebooks" / "individuals" / "index.html").read_text(encoding="utf-8")
    assert "<svg" in notebook
    assert 'class="dataframe"' in notebook
