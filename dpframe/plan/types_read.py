"""The types of the columns that a query reads, which decide what its expressions mean.

The day that ``pl.col("t").dt.date()`` gives for a moment depends on the column's time zone, and the
number that ``pl.col("w").cast(pl.Int64)`` gives for a duration on its unit. So these types are part
of the identity of a division, stream or stored result of a named frame, as its expressions are.
They include time zones and units, widths of integers and floats, precision and scale of decimals,
categories in their order, and the types of elements and fields.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from dpframe.core.regular import canonical
from dpframe.frames.definition import Json, steps_of, type_words
from dpframe.frames.relation import Binary, Relation, frames_of

TypesRead: TypeAlias = "tuple[tuple[str, dict[str, str]], ...]"
"""Of each frame, in order of first use, its name and the type of each column that is read."""


def types_read(relation: Relation, *asked: Json) -> TypesRead:
    """The types of the columns of protected frames that steps read, and that `asked` do.

    Guarantee
    ---------
    Where named frames hold the same values, steps and expressions with equal definitions make the
    same of each row if these types are equal.

    Proof
    -----
    What an operation computes is decided by its definition, and by the values and types of its
    operands (and by a declaration that leaves one value only, which some take for a constant). So
    by induction over operands and steps everything follows from definitions and from the columns of
    protected frames that are read; public frames have their types in the definition. A column is
    read if it is named: each text in a definition that is the name of a column counts as reading
    it. So do all columns of a joined frame, because they may get other names there. Too many
    types may be bound, never too few. Whose a row is, and in which window, is read too.

    `asked` is what is read of the frame after its steps, as `dpframe.frames.definition` writes it.
    """
    names: set[str | None] = {*_texts([*steps_of(relation), *asked])}
    joined = {
        frame.token
        for step, _ in relation.steps
        if isinstance(step, Binary)
        for frame in frames_of(step.other)
    }
    result = []
    for frame in {frame.token: frame for frame in frames_of(relation)}.values():
        read: set[str] = set(frame.source.columns)
        if frame.token not in joined:
            owner = None if frame.owners is None else frame.owners.here
            read &= {*names, frame.source.identifier, frame.source.time, owner}
        columns = {}
        for name in sorted(read):
            domain = frame.source.columns[name]
            columns[name] = text = type_words(domain.dtype)
            lo, hi = domain.interval.lo, domain.interval.hi
            if lo is not None and lo == hi:  # the value that a declaration leaves
                columns[name] = f"{text}, always {lo}{' or null' if domain.nullable else ''}"
        result.append((frame.name, columns))
    return tuple(result)


def digest_of_types(types: Sequence[object]) -> str:
    """A digest of the types of several queries, and of everything listed with them."""
    whole = canonical(["dpframe types 1", types])
    return hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()


def _texts(open_: list[object]) -> Iterator[str]:
    """All texts in definitions, which are taken from the list."""
    while open_:
        said = open_.pop()
        if isinstance(said, str):
            yield said
        elif isinstance(said, dict):
            open_ += said.values()
        elif isinstance(said, list | tuple):
            open_ += said
