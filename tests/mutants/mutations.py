"""Every one-line mistake that this program knows how to make in a file.

A mutant is a small edit of the source: another comparison, another sign, a constant off by one, a
condition turned round, a statement left out, a lock not taken, a rounding the other way. Texts for
people are left alone: names, docstrings, messages and the methods that make words.
"""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path

_COMPARISONS: dict[type[ast.cmpop], tuple[str, ...]] = {
    ast.Lt: ("<=", ">="),
    ast.LtE: ("<", ">"),
    ast.Gt: (">=", "<="),
    ast.GtE: (">", "<"),
    ast.Eq: ("!=",),
    ast.NotEq: ("==",),
    ast.Is: ("is not",),
    ast.IsNot: ("is",),
    ast.In: ("not in",),
    ast.NotIn: ("in",),
}
_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "/",
    ast.Div: "*",
    ast.FloorDiv: "*",
    ast.Mod: "*",
    ast.Pow: "*",
    ast.LShift: ">>",
    ast.RShift: "<<",
    ast.BitAnd: "|",
    ast.BitOr: "&",
    ast.BitXor: "&",
}
_PAIRS = {"min": "max", "any": "all", "floor": "ceil", "expm1": "exp", "log1p": "log"}
_NAMES = _PAIRS | {other: one for one, other in _PAIRS.items()}
_SILENT = {"words", "label", "__repr__", "_repr_html_", "summary", "stability"}
"""What makes texts for people."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One mistake.

    Parameters
    ----------
    path
        The file, from the root of the project.
    line
        The first line that it changes, from 1.
    where
        The class and function that it is in.
    start, end
        The part of the text that is replaced.
    before, after
        What stands there, and what the mistake puts there.
    number
        Tells equal mistakes of one function apart.
    """

    path: str
    line: int
    where: str
    start: int
    end: int
    before: str
    after: str
    number: int = 0

    @property
    def name(self) -> str:
        """Stays the same when other parts of the file change."""
        one, other = (" ".join(text.split()) for text in (self.before, self.after))
        again = f" #{self.number}" if self.number else ""
        return f"{self.path} {self.where}: {one} -> {other}{again}"

    def applied(self, text: str) -> str:
        """The file with the mistake."""
        data = text.encode()
        return (data[: self.start] + self.after.encode() + data[self.end :]).decode()


def mutants_of(path: Path, root: Path) -> list[Mutant]:
    """All mistakes in a file, in order; each gives a file that is still Python."""
    data = path.read_text(encoding="utf-8").encode()
    statements = _statements(data)
    return [m for m in numbered(path, root) if _is_python(m, data, statements)]


def numbered(path: Path, root: Path) -> Iterator[Mutant]:
    """All edits of a file, in order; some may give what is no Python."""
    text = path.read_text(encoding="utf-8")
    seen: dict[str, int] = {}
    for mutant in _Finder(text, str(path.relative_to(root))).found():
        number = seen.get(mutant.name, 0)
        seen[mutant.name] = number + 1
        yield replace(mutant, number=number)


def _statements(data: bytes) -> list[tuple[int, int]]:
    """Where the statements of a module begin and end: an edit is inside of one."""
    lines = data.splitlines(keepends=True)
    starts = [0, *accumulate(map(len, lines))]
    return [
        (
            starts[
                min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))]) - 1
            ],
            starts[node.end_lineno or node.lineno],
        )
        for node in ast.parse(data).body
    ]


def _is_python(mutant: Mutant, data: bytes, statements: Sequence[tuple[int, int]]) -> bool:
    """Whether the statement with the mistake can still be read."""
    place = bisect_right(statements, (mutant.start, len(data) + 1)) - 1
    start, end = statements[place]
    assert start <= mutant.start <= mutant.end <= end
    try:
        ast.parse(data[start : mutant.start] + mutant.after.encode() + data[mutant.end : end])
    except SyntaxError:
        return False
    return True


class _Finder:
    def __init__(self, text: str, path: str) -> None:
        self._data = text.encode()
        self._path = path
        starts = [0]
        for line in self._data.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        self._starts = starts
        self._tree = ast.parse(text)

    def found(self) -> Iterator[Mutant]:
        yield from self._inside(self._tree, "")

    def _inside(self, node: ast.AST, where: str) -> Iterator[Mutant]:
        for child in ast.iter_child_nodes(node):
            if child is getattr(node, "annotation", None):
                continue  # nothing evaluates it
            inner = where
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                if child.name in _SILENT:
                    continue
                inner = f"{where}.{child.name}".lstrip(".")
                yield from self._of_definition(child, inner)
                continue
            if _is_text(child):
                continue
            yield from self._of(child, inner or "module")
            yield from self._inside(child, inner)

    def _of_definition(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, where: str
    ) -> Iterator[Mutant]:
        parts: list[ast.AST] = [*node.body]
        if not isinstance(node, ast.ClassDef):
            parts = [*node.args.defaults, *(d for d in node.args.kw_defaults if d), *parts]
        yield from self._inside(ast.Module(parts, []), where)  # type: ignore[arg-type]

    def _of(self, node: ast.AST, where: str) -> Iterator[Mutant]:
        for target, after in _edits(node):
            start, end = self._span(target)
            before = self._data[start:end].decode()
            if isinstance(after, tuple):  # what stands between two operands
                left, right = after[0], after[1]
                start, end = self._span(left)[1], self._span(right)[0]
                before, new = self._data[start:end].decode(), f" {after[2]} "
                if "(" in before or ")" in before or "\n" in before:
                    continue
            else:
                new = after.replace("{}", before)
            yield Mutant(self._path, target.lineno, where, start, end, before, new)  # type: ignore[attr-defined]

    def _span(self, node: ast.AST) -> tuple[int, int]:
        at = self._starts
        return (
            at[node.lineno - 1] + node.col_offset,  # type: ignore[attr-defined]
            at[node.end_lineno - 1] + node.end_col_offset,  # type: ignore[attr-defined]
        )


_Edit = tuple[ast.AST, "str | tuple[ast.AST, ast.AST, str]"]


def _edits(node: ast.AST) -> Iterator[_Edit]:
    """What is replaced, and by what: a text in which {} is what stands there, or both operands and
    what comes between them.
    """
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            for other in _COMPARISONS[type(op)]:
                yield node, (left, right, other)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            yield node, (left, right, _OPERATORS[type(op)])
        case ast.BoolOp(op=op, values=[left, right]):
            yield node, (left, right, "or" if isinstance(op, ast.And) else "and")
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield node, ast.unparse(operand)
        case ast.Constant(value=bool(value)):
            yield node, str(not value)
        case ast.Constant(value=int(value)):
            yield node, str(value + 1)
            if value > 1:
                yield node, str(value - 1)
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            yield test, "(not ({}))"
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
            yield from _calls(node, name)
        case ast.With(items=[ast.withitem(context_expr=manager, optional_vars=None)]):
            yield manager, "__import__('contextlib').nullcontext()"
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Raise():
            yield node, "pass"
        case _:
            return


def _calls(node: ast.AST, name: str) -> Iterator[_Edit]:
    """The same call of a function that does the opposite."""
    assert isinstance(node, ast.Call)
    other = _NAMES.get(name)
    if name.endswith("_up"):
        other = name.removesuffix("_up") + "_down"
    elif name.endswith("_down"):
        other = name.removesuffix("_down") + "_up"
    if other is None:
        return
    if isinstance(node.func, ast.Name) and other in ("min", "max", "any", "all"):
        yield node.func, other
    elif isinstance(node.func, ast.Attribute):
        yield node.func, f"{ast.unparse(node.func.value)}.{other}"
    elif name.endswith(("_up", "_down")):
        yield node.func, f"__import__('dpframe.core.exact', fromlist=['x']).{other}"


def _is_text(node: ast.AST) -> bool:
    """What no mistake is made in: texts, types, imports, and claims about types."""
    match node:
        case ast.Expr(value=ast.Constant(value=str())) | ast.JoinedStr():
            return True
        case ast.Import() | ast.ImportFrom() | ast.Assert() | ast.arguments():
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case _:
            return False
