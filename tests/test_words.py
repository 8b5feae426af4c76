"""Prose is plain: the habits of `tests/words.py` are counted, and their number may only fall.

`python -m tests.words PATH` lists those of a file or folder, with the advice for each.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cache

import pytest

from tests import words
from tests.words import HABITS, ROOT, Habit, Hit, Sentence

ALLOWED = ROOT / "tests" / "words_allowed.txt"
BUDGETS = ROOT / "tests" / "words_budgets.txt"


@cache
def allowed() -> dict[str, tuple[tuple[str, str], ...]]:
    """Fragments of sentences that keep a habit, with the reason, by file."""
    lines = [line for line in ALLOWED.read_text("utf-8").splitlines() if line[:1] not in ("#", "")]
    found: defaultdict[str, tuple[tuple[str, str], ...]] = defaultdict(tuple)
    for path, fragment, reason in (line.split(" | ") for line in lines):
        found[path] += ((fragment, reason),)
    return found


@cache
def all_hits() -> tuple[Hit, ...]:
    return tuple(hit for sentence in words.prose() for hit in words.hits(sentence))


def is_allowed(hit: Hit) -> bool:
    return any(text in hit.sentence.written for text, _ in allowed().get(hit.sentence.path, ()))


def group(sentence: Sentence) -> str:
    """The part of the project that a sentence belongs to."""
    folders = sentence.path.split("/")
    name = "/".join(folders[:2]) if len(folders) > 2 else sentence.path
    return name if sentence.kind in ("page", "plan") else f"{name} {sentence.kind}s"


@cache
def budgets() -> dict[str, int]:
    lines = BUDGETS.read_text("utf-8").splitlines()
    return {name: int(number) for number, name in (line.split(maxsplit=1) for line in lines)}


@pytest.mark.always
def test_prose_has_no_more_habits_than_before() -> None:
    counted: defaultdict[str, list[Hit]] = defaultdict(list)
    for hit in all_hits():
        if not is_allowed(hit):
            counted[group(hit.sentence)].append(hit)
    over = {name: found for name, found in counted.items() if len(found) > budgets().get(name, 0)}
    report = [
        f"{name}: {len(found)} habits, at most {budgets().get(name, 0)} are left to rewrite\n"
        + "\n".join(str(hit) for hit in found)
        for name, found in over.items()
    ]
    assert not over, "\n\n".join(report)


@pytest.mark.always
def test_exceptions_have_a_reason_and_are_needed() -> None:
    by_file: defaultdict[str, list[str]] = defaultdict(list)
    for hit in all_hits():
        by_file[hit.sentence.path].append(hit.sentence.written)
    for path, entries in allowed().items():
        for fragment, reason in entries:
            assert len(reason.split()) >= 3, f"{path}: give a reason for {fragment!r}"
            assert any(fragment in text for text in by_file[path]), f"{path}: drop {fragment!r}"


EXAMPLES = {
    "hidden subject": "Whoever opens the ledger can read it.",
    "inverted clause": "What is none of its type becomes null.",
    "headless sentence": "What is left can be spent.",
    "of which": "Two tables of which one is charged.",
    "for as because": "Keys are listed, for they must not be read from the data.",
    "by itself": "Each output is drawn by itself.",
    "tells": "The plan tells how many rows there were.",
    "says": "It is said by the plan.",
    "is none": "The value is none of these.",
    "archaic": "A plan is dearer besides.",
    "demonstrative so": "Each row counts so much.",
    "hedge": "This is mostly right.",
    "headless": "That of the first output.",
    "empty clause": "The page speaks of ledgers.",
    "chain": "It reads; it adds; it draws.",
    "long": " ".join(["words"] * 40) + ".",
}


@pytest.mark.parametrize("habit", HABITS, ids=lambda h: h.name)
def test_each_habit_is_seen(habit: Habit) -> None:
    kind = habit.kinds[0] if habit.kinds else "docstring"
    (sentence,) = words.sentences("a.md", 1, kind, EXAMPLES[habit.name])
    assert habit in [hit.habit for hit in words.hits(sentence)]


def test_prose_is_found_with_its_lines() -> None:
    page = "# A heading here\n\nOne line\nmore of it. Then `a; b; c` two.\n"
    page += "\n```\ncode in a block\n```\n"
    found = [(s.line, s.text) for s in words.of_page("a.md", page)]
    assert found == [(1, "A heading here"), (3, "One line more of it."), (3, "Then CODE two.")]
    module = (
        '"""A module of one line."""\n# a comment of words\nx = f"a message of {x}"\n'
        'sql = "SELECT a FROM the_table"\nspell_out("one and two; three and four")\n'
    )
    kinds = Counter((s.kind, s.line) for s in words.of_module("a.py", module))
    assert kinds == {("docstring", 1): 1, ("comment", 2): 1, ("string", 3): 1}
