"""The documentation says what is so: its examples run, its quotations and tables are current."""

from __future__ import annotations

import code
import re
import runpy
from pathlib import Path

import pytest

from tests.documentation import (
    PAGES,
    ROOT,
    beside_data,
    examples,
    quotes,
    run_page,
    with_tables,
    without_noise,
)

GENERATED = {
    ROOT / "docs" / name for name in runpy.run_path(str(ROOT / "docs" / "hooks.py"))["PAGES"]
}
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
            place = (page.parent / target).resolve()
            assert place.exists() or place in GENERATED, f"{page.name} links to {target}"


def test_every_page_is_in_the_navigation() -> None:
    listed = (ROOT / "mkdocs.yml").read_text()
    for page in PAGES:
        if page.is_relative_to(ROOT / "docs"):
            assert str(page.relative_to(ROOT / "docs")) in listed, f"mkdocs.yml omits {page.name}"


class Prompt(code.InteractiveConsole):
    """Python's prompt, which reads what is pasted and runs nothing."""

    refused: str = ""

    def runcode(self, code: object) -> None:
        """Run nothing: other tests run the examples."""

    def showsyntaxerror(self, filename: str | None = None, **_: object) -> None:
        self.refused = "\n".join(self.buffer)


_ALSO = (
    "index quickstart coming-from-polars concepts aggregates sessions several-frames individuals"
)
PASTED = [
    ROOT / "README.md",
    *(page for page in PAGES if page.parent.name == "howto" or page.stem in _ALSO.split()),
]


@pytest.mark.parametrize("page", PASTED, ids=lambda p: p.name)
def test_examples_can_be_pasted_into_a_prompt(page: Path) -> None:
    """Line by line, as a prompt reads them: a block ends with an empty line."""
    for example in examples(page.read_text(encoding="utf-8")):
        prompt = Prompt()
        for line in [*example.code.splitlines(), ""]:
            more = prompt.push(line)
            assert not prompt.refused, f"{page.name}:{example.line}\n{prompt.refused}"
        assert not more, f"{page.name}:{example.line} does not end"
