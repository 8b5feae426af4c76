"""`python -m tests.structure`: how large the code is, and how much one has to read of it.

Printed as a table: what a grouped count runs, modules that know concrete mechanisms, import
cycles (imports for type checkers counted), names, sizes. Decisions quote it. With ``--cycles``
also which modules are in circles.
`test_structure.py` holds some of it.
"""

from __future__ import annotations

import ast
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping
from io import StringIO
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "dpframe"


def main() -> None:
    trees = parsed()
    rows = {
        **counts(trees),
        **_mechanisms_known(trees),
        **_cycles(trees),
        **_sizes(trees),
        **_tests(),
    }
    for name, value in rows.items():
        print(f"{name:64}{value:>12}")
    if "--cycles" in sys.argv:
        for loop in cycles(trees):
            print(*sorted(loop), sep="\n  ")


def counts(trees: Mapping[Path, ast.Module]) -> dict[str, str]:
    """The part of the table that tests hold."""
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in trees)
    about = {"modules": str(len(trees)), "lines": str(lines)}
    return {**_read_for_a_count(), **_names(trees), **_hints(trees), **about}


def parsed() -> dict[Path, ast.Module]:
    """The files of the package."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in _files(PACKAGE)}


def _files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


# -- One query ----------------------------------------------------------------------------------


def _read_for_a_count() -> dict[str, str]:
    """What a grouped count enters, from `collect` to the noise, once imports are done."""
    import polars as pl

    import dpframe as dp

    rows = pl.DataFrame({"city": ["A", "B", "A"]})
    session = dp.Session(epsilon=10)
    people = session.protect(rows, unit=dp.Rows())
    people.group_by("city", keys=["A", "B"]).agg(dp.count().alias("n")).collect(epsilon=1)
    entered: set[tuple[str, str]] = set()
    deepest = 0

    def watch(frame: FrameType, event: str, _: Any) -> None:
        nonlocal deepest
        if event != "call" or not frame.f_code.co_filename.startswith(str(PACKAGE)):
            return
        entered.add((frame.f_code.co_filename, frame.f_code.co_qualname))
        deepest = max(deepest, sum(1 for _ in _inside(frame)))

    sys.setprofile(watch)
    try:
        people.group_by("city", keys=["A", "B"]).agg(dp.count().alias("n")).collect(epsilon=1)
    finally:
        sys.setprofile(None)
    return {
        "a grouped count: files that run": str(len({file for file, _ in entered})),
        "a grouped count: functions that run": str(len(entered)),
        "a grouped count: depth of calls": str(deepest),
    }


def _inside(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        if frame.f_code.co_filename.startswith(str(PACKAGE)):
            yield frame
        frame = frame.f_back


# -- Mechanisms ---------------------------------------------------------------------------------


def _mechanisms_known(trees: Mapping[Path, ast.Module]) -> dict[str, str]:
    return {"modules that tell concrete mechanisms apart": str(len(mechanisms_known(trees)))}


def mechanisms_known(trees: Mapping[Path, ast.Module]) -> dict[str, set[str]]:
    """Modules that tell concrete mechanisms apart by `isinstance` or `match`, and which. The kernel
    has nodes of the same names, and no mechanism.
    """
    concrete = {
        node.name
        for path, tree in trees.items()
        if path.parent.name == "mechanisms"
        for node in tree.body
        if isinstance(node, ast.ClassDef) and _has_name(node)
    }
    found = {
        path.relative_to(PACKAGE).as_posix(): _told_apart(tree) & concrete
        for path, tree in trees.items()
        if path.parent.name != "kernel"
    }
    return {path: names for path, names in found.items() if names}


def charges(trees: Mapping[Path, ast.Module]) -> list[tuple[str, str]]:
    """The functions outside of ledgers that name `charge` of something."""
    return sorted(
        {
            (path.relative_to(PACKAGE).as_posix(), function.name)
            for path, tree in trees.items()
            if path.parent.name != "ledger"
            for function in ast.walk(tree)
            if isinstance(function, ast.FunctionDef)
            for node in ast.walk(function)
            if isinstance(node, ast.Attribute) and node.attr == "charge"
        }
    )


def _has_name(node: ast.ClassDef) -> bool:
    """Whether plans can name a mechanism: it is not what several have in common."""
    return any(
        isinstance(line, ast.AnnAssign)
        and ast.unparse(line.target) == "name"
        and isinstance(line.value, ast.Constant)
        for line in node.body
    )


def _told_apart(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name("isinstance"), args=[_, kinds]):
                found |= {n.id for n in ast.walk(kinds) if isinstance(n, ast.Name)}
            case ast.MatchClass(cls=ast.Name(name)):
                found.add(name)
    return found


# -- Imports ------------------------------------------------------------------------------------


def _cycles(trees: Mapping[Path, ast.Module]) -> dict[str, str]:
    loops, at_run = cycles(trees), cycles(trees, type_checking=False)
    return {
        "modules": str(len(trees)),
        "modules in import cycles, TYPE_CHECKING counted": str(sum(map(len, loops))),
        "import cycles, TYPE_CHECKING counted (sizes)": " ".join(map(str, sorted(map(len, loops)))),
        "modules in import cycles when running": str(sum(map(len, at_run))),
    }


def cycles(trees: Mapping[Path, ast.Module], *, type_checking: bool = True) -> list[set[str]]:
    """Modules that import each other, with imports for type checkers or without."""
    names = {_module(path): path for path in trees}
    return _loops(
        {
            name: set(_imports(trees[path], name, names, type_checking=type_checking))
            for name, path in names.items()
        }
    )


def _module(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(
    tree: ast.Module, name: str, names: Mapping[str, Path], *, type_checking: bool = True
) -> Iterator[str]:
    skipped: set[ast.AST] = set()
    if not type_checking:
        for node in ast.walk(tree):
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                skipped.update(n for part in node.body for n in ast.walk(part))
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found = inner if inner in names else node.module
                if found in names and found != name:
                    yield found
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in names)


def _loops(graph: Mapping[str, set[str]]) -> list[set[str]]:
    """Strongly connected components of two modules or more (reachability, both ways)."""
    reach = {name: _reached(name, graph) for name in graph}
    loops: list[set[str]] = []
    placed: set[str] = set()
    for name in graph:
        loop = {other for other in reach[name] if name in reach[other]}
        if loop and name not in placed:
            loops.append(loop | {name})
            placed |= loop | {name}
    return loops


def _reached(name: str, graph: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    todo = list(graph[name])
    while todo:
        other = todo.pop()
        if other not in found:
            found.add(other)
            todo.extend(graph.get(other, ()))
    return found


# -- Names and sizes ----------------------------------------------------------------------------


def _names(trees: Mapping[Path, ast.Module]) -> dict[str, str]:
    classes = sum(isinstance(n, ast.ClassDef) for tree in trees.values() for n in ast.walk(tree))
    bases = Counter(path.name for path in trees if path.name != "__init__.py")
    paths = {_module(path): path for path in trees}
    users: dict[str, set[str]] = {name: set() for name in paths}
    for name, path in paths.items():
        for used in _imports(trees[path], name, paths):
            users[used].add(name)
    return {
        "classes": str(classes),
        "modules that only one other imports": str(sum(len(u) == 1 for u in users.values())),
        "file names used twice or more": str(sum(many > 1 for many in bases.values())),
    }


def _sizes(trees: Mapping[Path, ast.Module]) -> dict[str, str]:
    total: Counter[str] = Counter()
    for path, tree in trees.items():
        total.update(_kinds(path.read_text(encoding="utf-8"), tree))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    functions = sum(isinstance(n, kinds) for tree in trees.values() for n in ast.walk(tree))
    return {
        "functions": f"{functions:,}",
        "lines": f"{sum(total.values()):,}",
        "lines of code": f"{total['code']:,}",
        "lines of docstrings": f"{total['docstring']:,}",
        "lines blank or comment": f"{total['blank']:,}",
    }


def _kinds(text: str, tree: ast.Module) -> Counter[str]:
    lines = len(text.splitlines())
    docs: set[int] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                docs.update(range(node.lineno, (node.end_lineno or 0) + 1))
    code: set[int] = set()
    quiet = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    for token in tokenize.generate_tokens(StringIO(text).readline):
        if token.type not in quiet and token.type != tokenize.ENDMARKER:
            code.update(range(token.start[0], token.end[0] + 1))
    code -= docs
    found = {"code": len(code), "docstring": len(docs), "blank": lines - len(code) - len(docs)}
    return Counter(found)


def _hints(trees: Mapping[Path, ast.Module]) -> dict[str, str]:
    hints = unused = reaching = 0
    for tree in trees.values():
        for node in ast.walk(tree):
            hints += isinstance(node, ast.Name) and node.id == "Any"
            if isinstance(node, ast.Attribute) and _reaches_in(node):
                reaching += 1
            if isinstance(node, ast.ClassDef):
                unused += sum(_unused(n) for n in node.body if isinstance(n, ast.FunctionDef))
    return {
        "uses of Any": str(hints),
        "private access across objects": str(reaching),
        "arguments of methods that are not used": str(unused),
    }


def _reaches_in(node: ast.Attribute) -> bool:
    private = node.attr.startswith("_") and not node.attr.startswith("__")
    own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
    made = isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "super"
    return private and not own and not made


def _unused(method: ast.FunctionDef) -> int:
    given = [*method.args.posonlyargs, *method.args.args, *method.args.kwonlyargs]
    body = [n for n in method.body if not isinstance(n, ast.Expr) or not _is_text(n)]
    if all(isinstance(n, (ast.Raise, ast.Pass)) for n in body):
        return 0
    used = {n.id for part in body for n in ast.walk(part) if isinstance(n, ast.Name)}
    return sum(a.arg not in used and a.arg not in ("self", "cls") for a in given)


def _is_text(node: ast.Expr) -> bool:
    return isinstance(node.value, ast.Constant) and isinstance(node.value.value, (str, type(...)))


def _tests() -> dict[str, str]:
    modules = {f"test_{path.stem}" for path in _files(PACKAGE)}
    modules |= {f"test_{path.parent.name}" for path in _files(PACKAGE)}
    tests = [path for path in _files(ROOT / "tests") if path.stem.startswith("test_")]
    laws = sum("laws" in path.parts for path in tests)
    named = sum(path.stem in modules for path in tests if "laws" not in path.parts)
    return {
        "files of tests named after a module or package": f"{named} of {len(tests) - laws}",
        "files of laws": str(laws),
    }


if __name__ == "__main__":
    main()
