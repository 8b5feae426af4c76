"""The README opens with what dpframe is, the two commands and an example with its real output."""

from __future__ import annotations

from pathlib import Path

from tests.documentation import ROOT, beside_data, examples, run_page


def readme() -> str:
    return (ROOT / "README.md").read_text()


def test_opens_with_what_it_is_and_the_two_commands() -> None:
    opening, _, rest = readme().partition("```python")
    assert opening.startswith("# dpframe\n")
    assert "differential privacy" in opening
    assert "make demo" in opening
    assert "make test" in opening
    assert rest


def test_first_example_prints_a_plan_and_a_result_per_key() -> None:
    first = examples(readme())[0]
    assert first.output is not None, "the first example shows its output"
    with beside_data():
        _, printed = next(run_page(ROOT / "README.md"))
    assert "discrete box, scale" in printed
    assert "drawn together with" in printed
    assert "95%: within" in printed
    for education in ("Bachelors", "Masters", "Doctorate"):
        assert education in printed


def test_names_no_file_that_is_missing() -> None:
    for name in ("LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "docs/index.md"):
        assert Path(ROOT / name).exists()
