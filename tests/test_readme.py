"""The README opens with what dpframe is, the two commands and an example with its real output."""

from __future__ import annotations

from pathlib import Path

from tests.documentation import ROOT, examples


def readme() -> str:
    return (ROOT / "README.md").read_text()


def test_opens_with_what_it_is_and_the_two_commands() -> None:
    opening, _, rest = readme().partition("```python")
    assert opening.startswith("# dpframe\n")
    assert "differential privacy" in opening
    assert "make demo" in opening
    assert "make test" in opening
    assert rest


def test_first_example_shows_a_table_with_its_error() -> None:
    first = examples(readme())[0]
    assert first.output is not None, "the first example shows its output"
    for word in ("Oslo", "Bergen", "Moss", "members_low", "age_high"):
        assert word in first.output


def test_the_table_comes_before_the_plan() -> None:
    text = readme()
    assert text.index("pip install") < text.index(".collect(epsilon=") < text.index(".explain(")


def test_names_no_file_that_is_missing() -> None:
    for name in ("LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "docs/index.md"):
        assert Path(ROOT / name).exists()
