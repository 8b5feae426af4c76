"""Files and functions stay short, and modules do not import each other in circles.

Files that are longer are listed; who shortens one takes it from the list.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from tests import structure

LONG_FILES = {
    "dpframe/api/frame.py",
    "dpframe/api/functions.py",
    "dpframe/api/query.py",
    "dpframe/api/session.py",
}


@cache
def trees() -> dict[Path, ast.Module]:
    return structure.parsed()


def test_files_are_short() -> None:
    assert structure.long_files(trees()).keys() <= LONG_FILES


def test_functions_are_short() -> None:
    assert structure.long_functions(trees()) == {}


def test_modules_do_not_import_each_other_in_circles() -> None:
    assert structure.cycles(trees()) == []


def test_a_circle_is_seen() -> None:
    package = structure.PACKAGE
    made = {
        package / "one.py": ast.parse("from dpframe.two import x"),
        package / "two.py": ast.parse("if TYPE_CHECKING:\n    from dpframe.three import y"),
        package / "three.py": ast.parse("def f():\n    import dpframe.one"),
        package / "four.py": ast.parse("import dpframe.one"),
    }
    assert structure.cycles(made) == [{"dpframe.one", "dpframe.two", "dpframe.three"}]
    assert not structure.cycles(made, type_checking=False)


def test_a_long_function_is_seen() -> None:
    lines = "\n".join(["    x = 1"] * 40)
    made = {structure.PACKAGE / "one.py": ast.parse(f'def f():\n    """A.\n\n    B."""\n{lines}')}
    assert structure.long_functions(made) == {"dpframe/one.py f": 41}
    assert structure.long_functions(made, docstrings=True) == {"dpframe/one.py f": 44}
