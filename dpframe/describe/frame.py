"""A protected frame in words, from its facts alone."""

from __future__ import annotations

from collections.abc import Iterator

from dpframe.describe.notes import domain_words
from dpframe.frames.relation import Relation


def frame_words(relation: Relation) -> str:
    """Whom a frame protects, and what is known of its columns."""
    lines = [f"{relation.name}: protects {relation.facts.unit.words()}"]
    lines += [f"  {name}: {domain_words(found)}" for name, found in relation.facts.columns.items()]
    return "\n".join(lines)


def known_columns(relation: Relation) -> Iterator[tuple[str, str, str]]:
    """Name and type of each column, and what else is known of it."""
    for name, found in relation.facts.columns.items():
        dtype = str(found.dtype)
        yield name, dtype, domain_words(found).removeprefix(dtype).removeprefix(", ")
