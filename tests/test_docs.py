"""The documentation says what is so: its examples run, its quotations and tables are current."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.documentation import (
    PAGES,
    ROOT,
    beside_data,
    quotes,
    run_page,
    with_tables,
    without_noise,
)

EVERY = pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))


@EVERY
def test_examples_run_and_print_what_is_shown(page: Path) -> None:
    with beside_data():
        for example, printed in run_page(page):
            if example.output is not None:
                assert without_noise(printed) == without_noise(example.output), (
                    f"{page.name}:{example.line} prints something else; see `make docs-update`"
                )


@EVERY
def test_quotations_are_found_in_the_source(page: Path) -> None:
    for path, text in quotes(page):
        assert text.strip("\n") in (ROOT / path).read_text(), f"{page.name} misquotes {path}"


@EVERY
def test_tables_list_what_is_registered(page: Path) -> None:
    text = page.read_text()
    assert with_tables(text) == text, f"the table in {page.name} is old; see `make docs-update`"


@EVERY
def test_links_to_files_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        if not re.match(r"https?:|mailto:", target):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_page_is_in_the_navigation() -> None:
    listed = (ROOT / "mkdocs.yml").read_text()
    for page in PAGES:
        if page.is_relative_to(ROOT / "docs"):
            assert str(page.relative_to(ROOT / "docs")) in listed, f"mkdocs.yml omits {page.name}"
