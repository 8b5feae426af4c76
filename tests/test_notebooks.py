"""The notebooks hold the code of their sources, run, and show what it shows now."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.documentation import ROOT, without_noise
from tests.notebooks import SOURCES, notebook

CHARTS = find_spec("altair") is not None
EVERY = pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)


def committed(source: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(source.with_suffix(".ipynb").read_text(encoding="utf-8"))
    return found


def text_of(found: str | list[str]) -> str:
    return found if isinstance(found, str) else "".join(found)


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def shown(code: str, namespace: dict[str, Any]) -> tuple[str, str]:
    """What a cell prints, and the value of its last line, as a notebook shows them."""
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), namespace)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), namespace)
    return printed.getvalue(), "" if value is None else repr(value)


def test_there_are_two() -> None:
    assert [source.stem for source in SOURCES] == ["individuals", "quickstart"]


@EVERY
def test_cells_are_those_of_the_source(source: Path) -> None:
    cells = [(c["id"], c["cell_type"], text_of(c["source"])) for c in committed(source)["cells"]]
    now = [(c["id"], c["cell_type"], c["source"]) for c in notebook(source)["cells"]]
    assert cells == now, "run `make notebooks`"


@EVERY
def test_runs_anywhere_and_shows_what_is_committed(source: Path, tmp_path: Path) -> None:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    with inside(tmp_path):
        for cell in committed(source)["cells"]:
            code = text_of(cell["source"])
            if cell["cell_type"] != "code" or ("altair" in code and not CHARTS):
                continue
            printed, value = shown(code, namespace)
            streams = [o for o in cell["outputs"] if o["output_type"] == "stream"]
            values = [o["data"] for o in cell["outputs"] if o["output_type"] == "execute_result"]
            before = "".join(text_of(o["text"]) for o in streams)
            assert without_noise(printed) == without_noise(before), f"see {cell['id']}"
            old = "".join(text_of(data["text/plain"]) for data in values)
            assert without_noise(value) == without_noise(old), f"see {cell['id']}"


@EVERY
def test_outputs_are_small_and_tell_nothing_of_where_they_were_made(source: Path) -> None:
    found = committed(source)
    text = source.with_suffix(".ipynb").read_text(encoding="utf-8")
    assert len(text) < 80_000
    assert not re.search(r"/(home|root|tmp|Users|work)/|[A-Z]:\\\\", text)
    assert not re.search(r"\d{4}-\d\d-\d\d.\d\d:\d\d", text)
    assert found["metadata"].keys() == {"kernelspec", "language_info"}
    assert found["metadata"]["language_info"] == {"name": "python"}
    code = [cell for cell in found["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    for cell in found["cells"]:
        assert cell["metadata"] == {}
        for output in cell.get("outputs", []):
            assert output["output_type"] in ("stream", "execute_result")
            assert output.get("name", "stdout") == "stdout"
            assert "<script" not in json.dumps(output)


def test_bias_and_noise_are_drawn() -> None:
    (source,) = (source for source in SOURCES if source.stem == "individuals")
    outputs = [o for cell in committed(source)["cells"] for o in cell.get("outputs", [])]
    (picture,) = (o["data"]["image/svg+xml"] for o in outputs if "image/svg+xml" in str(o))
    for words in ("bias", "noise, 95%", "clamp on a customer"):
        assert words in text_of(picture)


@EVERY
def test_the_readme_names_it(source: Path) -> None:
    name = source.with_suffix(".ipynb").name
    assert name in (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    assert name in (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")
