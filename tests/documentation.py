"""Runs the examples in the documentation, and keeps what it shows as output up to date.

A fenced ``python`` block is run; blocks of one page share a namespace, in which `adult.parquet`
lies in the working directory. A ``text`` block right after it is what it prints: compared exactly,
except in drawn tables and in lines that say so with ``±``, where numbers are noise and only
their shape counts. A ``python`` block whose first line is a comment with a path, such as
``# dpframe/rows/clip.py``, quotes that file and must be found in it.

Run as a script, this rewrites outputs and generated tables in place: ``make docs-update``.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dpframe.aggregates.registry import AGGREGATES
from dpframe.lower.engines.engine import TYPES
from dpframe.rows.registry import OPERATIONS

from . import from_polars, polars_page, rules_page
from .tasks import everyday

ROOT = Path(__file__).parents[1]
DATA = ROOT / "examples" / "data" / "adult.parquet"
PAGES = tuple(
    sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
)
_FENCE = re.compile(r"^```(\w*)[^\n`]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_QUOTE = re.compile(r"\A# ((?:dpframe|tests)/\S+\.py)\n")
_TABLE = re.compile(r"^<!-- table: (\w+) -->\n(.*?)^<!-- end -->$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Example:
    """A block of code on a page, and the block that shows what it prints."""

    code: str
    line: int
    output: str | None
    output_span: tuple[int, int] | None


def examples(text: str) -> list[Example]:
    """The code on a page, in order."""
    blocks = list(_FENCE.finditer(text))
    found = []
    for i, block in enumerate(blocks):
        if block[1] != "python":
            continue
        after = blocks[i + 1] if i + 1 < len(blocks) else None
        shows = after is not None and after[1] == "text" and _adjacent(text, block, after)
        found.append(
            Example(
                block[2],
                text.count("\n", 0, block.start(2)) + 1,
                after[2] if after is not None and shows else None,
                after.span(2) if after is not None and shows else None,
            )
        )
    return found


def _adjacent(text: str, block: re.Match[str], after: re.Match[str]) -> bool:
    return not text[block.end() : after.start()].strip()


def run_page(page: Path, namespace: dict[str, Any] | None = None) -> Iterator[tuple[Example, str]]:
    """Each example of a page with what it printed; the caller is in a directory with the data."""
    namespace = {} if namespace is None else namespace
    namespace["__name__"] = "__page__"
    for example in examples(page.read_text()):
        if _QUOTE.match(example.code):
            continue
        printed = io.StringIO()
        code = compile("\n" * (example.line - 1) + example.code, str(page), "exec")
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)
        yield example, printed.getvalue()


def quotes(page: Path) -> Iterator[tuple[str, str]]:
    """Path and text of each quotation of source code on a page."""
    for example in examples(page.read_text()):
        if quote := _QUOTE.match(example.code):
            yield quote[1], example.code[quote.end() :]


@contextlib.contextmanager
def beside_data() -> Iterator[None]:
    """A working directory with the example data."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as directory:
        shutil.copy(DATA, directory)
        os.chdir(directory)
        try:
            yield
        finally:
            os.chdir(before)


def without_noise(output: str) -> str:
    """Output with noise blotted out: numbers and widths in drawn tables, and after ``±``."""
    lines = [_blotted(line) if re.search("[│┌└╞±]", line) else line for line in output.split("\n")]
    return "\n".join(line.rstrip() for line in lines).strip()


def _blotted(line: str) -> str:
    line = re.sub(r"-?\d+(\.\d+)?(e[-+]?\d+)?", "#", line)
    line = re.sub("[─═]+", "─", line)
    return re.sub(" +", " ", line)


def _operations() -> str:
    rows = ["| operation | what it gives | example |", "| --- | --- | --- |"]
    for operation in sorted(OPERATIONS, key=lambda o: o.name):
        example = operation.examples[0]
        rows.append(f"| `{operation.name}` | {_cell(operation.summary)} | `{_cell(example)}` |")
    return "\n".join(rows)


def _aggregates() -> str:
    rows = ["| aggregate | what it gives | mechanisms | examples |", "| --- | --- | --- | --- |"]
    for aggregate in AGGREGATES:
        shown = "<br>".join(f"`{_cell(example)}`" for example in aggregate.examples[:3])
        named = ", ".join(f"`{m}`" for m in aggregate.mechanisms)
        rows.append(f"| `{aggregate.kind}` | {_cell(aggregate.summary)} | {named} | {shown} |")
    return "\n".join(rows)


def _engines() -> str:
    duckdb, spark = TYPES["duckdb"], TYPES["spark"]
    operations = {o.name for o in OPERATIONS if "spark" in o.engines}
    assert operations == {o.name for o in OPERATIONS if "duckdb" in o.engines}
    assert spark < duckdb
    rows = ["| on DuckDB and Spark | |", "| --- | --- |"]
    share = f"{len(operations)} of {len(OPERATIONS)}, {len(operations) / len(OPERATIONS):.0%}"
    refused = {o.name for o in OPERATIONS} - operations
    rows.append(f"| operations ({share}) | {_names(operations)} |")
    rows.append(f"| operations that are refused | {_names(refused)} |")
    more = _names(duckdb - spark)
    rows.append(f"| types | {_names(spark)}; on DuckDB {more} |")
    return "\n".join(rows)


def _names(names: Collection[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


TABLES: Mapping[str, Callable[[], str | None]] = MappingProxyType(
    {
        **from_polars.TABLES,
        "everyday": lambda: everyday.table().rstrip(),
        "operations": _operations,
        "aggregates": _aggregates,
        "engines": _engines,
        "polars_supported": polars_page.supported,
        "polars_not_yet": polars_page.not_yet,
        "polars_never": polars_page.never,
        "frames": polars_page.frames,
        "frames_refused": polars_page.frames_refused,
        "rules_rows": rules_page.rows,
        "rules_steps": rules_page.steps,
        "rules_sums": rules_page.sums,
        "rules_aggregates": rules_page.aggregates,
        "rules_noise": rules_page.noise,
        "rules_composition": rules_page.composition,
        "rules_streams": rules_page.streams,
    }
)
"""What is generated, by name; a table that is None here stays as it is."""


def with_tables(text: str) -> str:
    """A page with its generated tables as they should be."""
    return _TABLE.sub(_current, text)


def _current(found: re.Match[str]) -> str:
    made = TABLES[found[1]]()
    return found[0] if made is None else f"<!-- table: {found[1]} -->\n{made}\n<!-- end -->"


def update(page: Path) -> bool:
    """Rewrite a page where it shows something outdated; whether it changed."""
    before = page.read_text()
    text = before
    for example, printed in reversed(list(run_page(page))):
        if example.output is None or example.output_span is None:
            continue
        if without_noise(printed) != without_noise(example.output):
            start, end = example.output_span
            text = text[:start] + printed.rstrip("\n") + "\n" + text[end:]
    text = with_tables(text)
    page.write_text(text)
    return text != before


if __name__ == "__main__":
    for page in PAGES:
        with beside_data():  # each by itself: two pages may name the same ledger
            print("updated" if update(page) else "as it was", page.relative_to(ROOT))
    sys.exit(0)
