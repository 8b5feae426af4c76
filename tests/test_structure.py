"""Files and functions stay short, modules do not import each other in circles, and none tells
mechanisms apart.

Files that are longer are listed; who shortens one takes it from the list.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests import structure


@cache
def trees() -> dict[Path, ast.Module]:
    return structure.parsed()


def test_files_are_short() -> None:
    assert not structure.long_files(trees())


def test_functions_are_short() -> None:
    assert structure.long_functions(trees()) == {}


def test_modules_do_not_import_each_other_in_circles() -> None:
    assert structure.cycles(trees()) == []


def test_no_module_tells_mechanisms_apart() -> None:
    assert structure.mechanisms_known(trees()) == {}


def test_who_tells_mechanisms_apart_is_seen() -> None:
    mechanisms = structure.PACKAGE / "mechanisms"
    made = {
        mechanisms / "one.py": ast.parse('class One(M):\n    name: ClassVar[str] = "one"'),
        mechanisms / "base.py": ast.parse("class M:\n    name: ClassVar[str]"),
        mechanisms / "two.py": ast.parse("isinstance(law, (One, M))"),
        mechanisms / "three.py": ast.parse("match law:\n    case M():\n        pass"),
    }
    two = (mechanisms / "two.py").as_posix()
    assert structure.mechanisms_known(made) == {two: {"One"}}


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


def test_a_long_file_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structure, "ROOT", tmp_path)
    for lines in (400, 401):
        (tmp_path / f"{lines}.py").write_text("\n" * lines)
    assert structure.long_files(tmp_path.iterdir()) == {"401.py": 401}
