"""The project's prose, sentence by sentence, and the habits that make it hard to read.

`python -m tests.words [PATH...]` lists what `test_words.py` counts, as ``file:line: advice``.

Prose is Markdown pages (without code, generated tables, and what the changelog says of older
releases), docstrings and comments of the package, examples and benchmarks, all of their string
literals with three words or more (messages, help of commands, words of plans and charts), and the
golden plans.
"""

# ruff: noqa: E501, because a pattern is read in one line

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from dpframe.report.numbers import reword
from tests.syntax import nodes_of

ROOT = Path(__file__).parents[1]
CODE = "CODE"
"""What stands for a name, a number or a formula in a sentence: one word."""


class Sentence(NamedTuple):
    """A sentence, or a part of a text that ends without a full stop, such as a cell of a table."""

    path: str
    line: int
    kind: str
    text: str
    """As the patterns see it: names, numbers and formulas in backticks are one word, `CODE`."""
    written: str
    """As it stands in the file, on one line."""
    heading: bool = False

    @property
    def words(self) -> int:
        """How many words it has; symbols of formulas are not words."""
        return len(re.findall(r"[A-Za-z'’-]{2,}", self.text))


@dataclass(frozen=True)
class Habit:
    """A habit: how it looks, and what to write instead."""

    name: str
    pattern: re.Pattern[str]
    advice: str
    kinds: tuple[str, ...] = ()
    """Where it counts; everywhere if empty."""


def habit(name: str, pattern: str, advice: str, *kinds: str, case: bool = False) -> Habit:
    return Habit(name, re.compile(pattern, 0 if case else re.IGNORECASE), advice, kinds)


_VERB = (
    r"(?:is|are|was|were|has|have|had|may|must|can|cannot|could|would|does|do|did|needs?|gives?|"
    r"makes?|takes?|holds?|counts?|adds?|knows?|comes?|costs?|gets?|stays?|reads?|shows?|fails?)"
)
HABITS: tuple[Habit, ...] = (
    habit(
        "hidden subject",
        r"\b(?:whoever|whatever|whosoever|nobody|somebody)\b",
        "name who does it: you, the analyst, the data owner, dpframe",
    ),
    habit(
        "inverted clause",
        r"^(?:what|who) (?:[\w'’-]+ ){0,9}(?:is|are|was|were|becomes?|has|have|may|must|stays?|costs?) "
        r"(?:[\w'’-]+ ){0,9}(?:is|are|becomes?|may|must|stays?|costs?)\b(?!.*\?)",
        "begin with the thing itself: 'a value that does not fit becomes null'",
    ),
    habit(
        "headless sentence",
        rf"^(?:what|who) {_VERB}\b(?!.*\?).*[.:]\)?$",
        "begin with the thing itself: 'the remaining budget', not 'what is left'",
        "page",
        "string",
    ),
    habit(
        "of which",
        r"\bof (?:which|whom|whose|theirs)\b|\bin (?:whose|which ones)\b",
        "use whose, for, in or from, or begin a sentence",
    ),
    habit(
        "for as because",
        r"[,;:] for (?:they|it|that|there|then|nothing|no|both|what|we|you|else|he|otherwise|this)\b"
        rf"|[,;:] for (?:the|a|an|its|their|\w+s) (?:\w+ ){{0,4}}{_VERB}\b",
        "write because or since, or begin a sentence",
    ),
    habit(
        "by itself",
        r"\bby (?:itself|themselves|himself)\b|\bapart\b(?! from)|\b(?:draw|drawn|draws) together\b",
        "write separately, alone, or jointly",
    ),
    habit(
        "tells",
        r"\b(?:tells?|told|telling)\b",
        "write prints, shows, reveals, identifies or distinguishes",
    ),
    habit(
        "says",
        r"\b(?:is|are|was|were|be|been) (?:said|asked)\b|\b(?:says?|said) (?:of|what|which|whose|how|by)\b"
        r"|\basks? (?:the(?! data owner)|of|what|which|how|instead)\b|\basked of\b|\bto say (?:of|what)\b",
        "write states, prints, shows, declares, requests, queries or raises",
    ),
    habit(
        "is none",
        r"(?<!there )\b(?:is|are|was|were|be) (?-i:none)\b|\bno such\b|\bnone of (?:its|their)\b"
        r"|\bthere (?:is|are) not\b",
        "say what it is not: 'is not a valid date', 'does not exist'",
    ),
    habit(
        "archaic",
        r"\b(?:mend(?:s|ed|ing)?|dearer|dearest|anew|beside|besides(?=[,.;:)]|$)|anyhow|afresh|hitherto|lest|thereof|"
        r"wherein|whence|minded|errs?|erred|likelier|belongs? into|empty place|caught up with|"
        r"com(?:es?|ing) about|came about|from the matter|at will|thrice|ere|nought|naught|erst|unto|"
        r"outweighs|makes? out|gone over|brought together|is meant|are meant|as good as|"
        r"the other way round)\b",
        "use the everyday word: fixed, more expensive, again, next to, differs, likelier = more likely",
    ),
    habit(
        "demonstrative so",
        r"\bso (?:many|much|few|long|often)\b(?! (?:that|as)\b)",
        "write that many, as many, or the name of the number",
    ),
    habit(
        "hedge",
        r"\b(?:mostly|hardly|as far as|more or less|somewhat|scarcely|nearly always|in a way)\b",
        "give the number or the rule",
    ),
    habit(
        "headless",
        r"^(?:that|those|of|these of|the one|the ones) (?:of |that |which |in |from |by )?"
        r"(?:each|all|which|the|a|an|one|its|their|this|these|some|such|what|how)\b(?!.* (?:this|that) is\b)"
        r"|^(?:that|those) (?:of|in|from|by|with|for|are|which|whose)\b",
        "name the thing: 'the error of the first output', not 'that of the first output'",
        "docstring",
    ),
    habit(
        "empty clause",
        r"\bspeaks? (?:of|about|against|last|first)\b|\bas it is\b|\bthat there (?:is|are)\b"
        r"|\bno telling\b|\bit is so\b|\bwhich there are\b|\bthat are there\b",
        "name the thing and what it does",
    ),
    habit(
        "chain",
        r";.*;|: .*: ",
        "one semicolon or colon a sentence: write two sentences",
        "page",
        "docstring",
        "comment",
        "string",  # lines of plans list facts
    ),
    habit("long", r"\A(?!)", "at most 35 words a sentence"),
)
LONGEST = 35


@dataclass(frozen=True)
class Hit:
    sentence: Sentence
    habit: Habit

    def __str__(self) -> str:
        s = self.sentence
        return f"{s.path}:{s.line}: {self.habit.name}: {self.habit.advice}\n    {s.text}"


def hits(sentence: Sentence) -> Iterator[Hit]:
    """What is hard to read in a sentence."""
    for one in HABITS:
        if one.kinds and sentence.kind not in one.kinds:
            continue
        if one.name == "long":
            if sentence.words > LONGEST:
                yield Hit(sentence, one)
        elif one.pattern.search(sentence.text) and not (
            sentence.heading and one.name == "inverted clause"
        ):
            yield Hit(sentence, one)


# -- Where prose is -----------------------------------------------------------------------------


@cache
def prose() -> tuple[Sentence, ...]:
    """Every sentence of the project."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]
    pages += [ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
    found = [s for page in pages for s in of_page(_path(page), page.read_text("utf-8"))]
    pages = [ROOT / "examples" / "README.md", ROOT / "examples" / "data" / "README.md"]
    found += [s for page in pages for s in of_page(_path(page), page.read_text("utf-8"))]
    for folder in ("dpframe", "examples", "benchmarks"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            found += of_module(_path(path), path.read_text("utf-8"))
    for path in sorted((ROOT / "tests" / "golden" / "plans").glob("*.txt")):
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            found += sentences(_path(path), number, "plan", line)
    return tuple(found)


def _path(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


_GENERATED = re.compile(r"^<!-- table: \w+ -->\n.*?^<!-- end -->$", re.MULTILINE | re.DOTALL)
_FENCED = re.compile(r"^( *)```.*?^\1```\s*$|(?<=\n\n)(?: {4}[^\n]*\n)+", re.MULTILINE | re.DOTALL)

_REFERENCE = re.compile(r"^::: .*(?:\n    .*)*", re.MULTILINE)


def of_page(path: str, text: str) -> Iterator[Sentence]:
    """The sentences of a page of Markdown."""
    if path == "CHANGELOG.md":
        start = text.index("## [Unreleased]")
        end = text.find("\n## [", start + 1)
        text = "\n" * text.count("\n", 0, start) + text[start : end if end > 0 else None]
    for pattern in (_GENERATED, _FENCED, _REFERENCE, re.compile(r"<!--.*?-->|<[^>]+>", re.DOTALL)):
        text = pattern.sub(lambda m: "\n" * m[0].count("\n"), text)
    yield from _blocks(path, "page", text, 1)


def of_module(path: str, text: str) -> Iterator[Sentence]:
    """The sentences of a module: docstrings, strings of three words or more, comments."""
    nodes = nodes_of(text)
    docs = {
        node.value
        for node in nodes
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    }
    for node in docs:
        yield from _docstring(path, node)
    yield from _strings(path, nodes, docs)
    yield from _comments(path, text)


def _docstring(path: str, node: ast.Constant) -> Iterator[Sentence]:
    text = str(node.value)
    kept, example = [], False
    for line in text.split("\n"):
        bare = line.strip()
        example = bare.startswith((">>>", "...")) or (example and bool(bare))
        drawn = re.fullmatch(r"-{3,}", bare) or bare.startswith(("├", "└", "│"))
        kept.append("" if example or drawn else line)
    yield from _blocks(path, "docstring", "\n".join(kept), node.lineno)


_PLANNING = "aggregates api frames mechanisms optimise plan workloads"
_OF_PLANS = tuple(f"dpframe/{folder}/" for folder in _PLANNING.split())
"""Folders with sentences that plans store, and show in the words of `dpframe.report.numbers`."""
_CALL = re.compile(r"[\w.]*\w\((?:[^()]|\([^()]*\))*\)|\{[^{}]*\}")
"""Code in a message, which is one word."""


def _strings(path: str, nodes: Sequence[ast.AST], docs: set[ast.Constant]) -> Iterator[Sentence]:
    inside = set[ast.AST]()
    shown = path.startswith(_OF_PLANS)
    raised = [node for node in nodes if shown and isinstance(node, ast.Raise)]
    messages = {part for node in raised for part in ast.walk(node)}
    for node in nodes:
        if path == "dpframe/report/numbers.py" and isinstance(node, ast.Tuple):
            inside.update(node.elts[:1])  # what is replaced
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "spell_out":
            inside.update(node.args)  # examples of row operations, which are code
        if node in inside or node in docs:
            continue
        if isinstance(node, ast.JoinedStr):
            inside.update(node.values)
            text = "".join(
                str(v.value) if isinstance(v, ast.Constant) else CODE for v in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        if len(re.findall(r"[A-Za-z]{2,} ", text)) >= 2 and not _is_markup(text):
            if shown and node not in messages:
                text = reword(text.replace(CODE, "16"))
            yield from _blocks(path, "string", _CALL.sub(CODE, text), node.lineno)


def _is_markup(text: str) -> bool:
    """Whether a string is SQL, HTML, CSS, a program or a list of words rather than prose."""
    sql = (
        r"\b(?:SELECT|CREATE|INSERT|UPDATE|DELETE FROM|FROM|WHERE|ALTER|PRAGMA|ORDER BY|SET LOCAL"
        r"|BEGIN)\b"
    )
    return bool(
        re.search(sql, text)
        or re.search(r"</?\w+[^>]*>|\{[^}]*;[^}]*\}|\bconst \w+ =|^\s*import \w", text)
        or (len(text.split()) > 20 and not re.search(r"[.,;:]", text))
    )


def _comments(path: str, text: str) -> Iterator[Sentence]:
    """Comments on lines of their own, in blocks, and those after code."""
    block: list[str] = []
    start = 0
    for number, line in enumerate([*text.split("\n"), ""], 1):
        found = _COMMENT.match(line)
        if block and not (found and not found[1].strip()):
            yield from sentences(path, start, "comment", " ".join(block))
            block = []
        if found and not found[1].strip():
            start = start if block else number
            block.append(found[2])
        elif found:
            yield from sentences(path, number, "comment", found[2])


_COMMENT = re.compile(r"""((?:[^"'#]|"[^"]*"|'[^']*')*)#!? (?!type:|noqa|pragma|pyright|-- )(.*)""")


def _blocks(path: str, kind: str, text: str, first: int) -> Iterator[Sentence]:
    """The sentences of a text in paragraphs, lists and tables."""
    block: list[str] = []
    start = first
    lines = [*text.split("\n"), ""]
    for number, line in enumerate(lines, first):
        bare = line.strip()
        item = re.match(r"(?:[-*+]|\d+\.) +", bare)
        name = (
            kind == "docstring" and number > first and _is_name(line, lines[number - first + 1 :])
        )
        if block and (not bare or item or name or bare.startswith(("|", "#", "===", ">", "!!!"))):
            yield from sentences(path, start, kind, " ".join(block))
            block = []
        if not bare or name:
            continue
        if bare.startswith("|"):
            for cell in re.split(r"(?<!\\)\|", bare):
                yield from sentences(path, number, kind, cell)
        elif bare.startswith("#") and kind == "page":
            yield from sentences(path, number, kind, bare.lstrip("# "), heading=True)
        else:
            if not block:
                start = number
            block.append(bare[item.end() :] if item else bare.lstrip("> "))


def _is_name(line: str, after: list[str]) -> bool:
    """Whether a line of a docstring names what the deeper lines after it explain."""
    return bool(after) and _indent(after[0]) > _indent(line) and not line.lstrip().startswith("-")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


_ENDS = re.compile(r"(?<=[.!?])[)\"'”*]*\s+(?=[\"'“(*\[]*(?:[A-Z0-9]|dpframe\b|(?<=\")[a-z]))")
_CODE = re.compile(r"``.+?``|`[^`]+`")
_ABBREVIATED = re.compile(r"\b(?:e\.g|i\.e|cf|etc|al|vs|Fig|Thm|pp?)\.(?= )")


def sentences(
    path: str, line: int, kind: str, text: str, *, heading: bool = False
) -> Iterator[Sentence]:
    """The sentences of a paragraph."""
    text = " ".join(text.split())
    masked = _CODE.sub(lambda found: "C" * len(found[0]), text)
    masked = _ABBREVIATED.sub(lambda found: found[0][:-1] + ",", masked)
    start = 0
    for end in [*(found.end() for found in _ENDS.finditer(masked)), len(text)]:
        written = text[start:end].strip()
        start = end
        if len(written.split()) >= 3:
            seen = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", _CODE.sub(CODE, written))
            yield Sentence(path, line, kind, re.sub(r"\*\*|__", "", seen), written, heading)


def main() -> None:
    wanted = sys.argv[1:]
    total = 0
    for sentence in prose():
        if not wanted or any(sentence.path.startswith(one) for one in wanted):
            for hit in hits(sentence):
                total += 1
                print(hit)
    print(total)


if __name__ == "__main__":
    main()
