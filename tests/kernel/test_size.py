"""The kernel stays small enough to be read, and plain enough to be believed."""

from __future__ import annotations

import ast
from pathlib import Path

import dpframe.kernel

FOLDER = Path(dpframe.kernel.__file__).parent
MOST_LINES = 3_300
"""Of code: without docstrings, comments, blank lines and imports."""


def _code_lines(file: Path) -> int:
    source = file.read_text(encoding="utf-8")
    left_out = set[int]()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant):
            continue
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Expr):
            left_out |= {*range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    lines = enumerate(source.splitlines(), 1)
    return sum(
        1 for n, line in lines if line.strip() and line.strip()[0] != "#" and n not in left_out
    )


def test_the_verifier_is_small() -> None:
    assert sum(map(_code_lines, FOLDER.glob("*.py"))) <= MOST_LINES


def test_nothing_in_it_is_decided_elsewhere() -> None:
    """No value of an unknown type, no attribute by name, no class that another one extends."""
    for file in FOLDER.glob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        assert not names & {"Any", "getattr", "setattr", "eval", "exec", "globals"}, file.name
        bases = [
            base
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef) and node.name != "Refused"
            for base in node.bases
        ]
        assert not bases, file.name
