"""Makes the notebooks in ``examples/notebooks``: ``make notebooks``.

Each is written as a Python file in which ``# %%`` begins a cell and ``# %% [markdown]`` one of
text, so that it is linted and reviewed like other code. The notebook beside it holds the same cells
with what they show: no times, no paths, no versions, and ids that stay as they are.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.documentation import ROOT

FOLDER = ROOT / "examples" / "notebooks"
SOURCES = tuple(sorted(FOLDER.glob("*.py")))
_CELL = re.compile(r"^# %%(?: \[(markdown)\])?\n", re.MULTILINE)
_DRAWN = "import altair\naltair.renderers.enable('svg')"
"""Run before the cells and not kept: charts become pictures, which any viewer shows."""
_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


@dataclass(frozen=True)
class Cell:
    """Text or code."""

    kind: str
    text: str


def cells(source: Path) -> list[Cell]:
    """What a source file holds, in order."""
    _, *found = _CELL.split(source.read_text(encoding="utf-8"))
    made = []
    for kind, text in zip(found[::2], found[1::2], strict=True):
        if kind:
            text = re.sub(r"^# ?", "", text, flags=re.MULTILINE)
        made.append(Cell(kind or "code", text.strip("\n")))
    return made


def notebook(source: Path) -> dict[str, Any]:
    """The notebook of a source file, not yet executed."""
    made = []
    for number, cell in enumerate(cells(source), start=1):
        common = {
            "id": f"{source.stem}-{number}",
            "metadata": {},
            "source": cell.text,
        }
        if cell.kind == "code":
            made.append({"cell_type": "code", "execution_count": None, "outputs": [], **common})
        else:
            made.append({"cell_type": "markdown", **common})
    return {"cells": made, "metadata": _METADATA, "nbformat": 4, "nbformat_minor": 5}


def executed(source: Path) -> dict[str, Any]:
    """The same with its outputs."""
    import nbformat
    from nbclient import NotebookClient

    drawn = {"id": "drawn", "metadata": {}, "source": _DRAWN}
    made = notebook(source)
    made["cells"].insert(0, drawn | {"cell_type": "code", "execution_count": None, "outputs": []})
    running: Any = nbformat.reads(json.dumps(made), as_version=4)
    NotebookClient(running, resources={"metadata": {"path": str(source.parent)}}).execute()
    found: dict[str, Any] = json.loads(json.dumps(running))
    del found["cells"][0]
    code = [cell for cell in found["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(code, start=1):
        cell["execution_count"] = number
        for output in cell["outputs"]:
            if "execution_count" in output:
                output["execution_count"] = number
    for cell in found["cells"]:
        cell["metadata"] = {}  # when it ran, and for how long
    return found | {"metadata": _METADATA}


def make(source: Path) -> None:
    """Execute a notebook and write it beside its source."""
    import nbformat

    made: Any = nbformat.reads(json.dumps(executed(source)), as_version=4)
    source.with_suffix(".ipynb").write_text(nbformat.writes(made) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for path in SOURCES:
        make(path)
        print("made", path.with_suffix(".ipynb").relative_to(ROOT))
    sys.exit(0)
