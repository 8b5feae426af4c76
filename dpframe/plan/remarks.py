"""Sentences that plans keep and that are more than routine."""

from __future__ import annotations

from typing import Final

NOBODY: Final = "is above 10: it protects nobody in practice"
FAILS: Final = (
    "is above 1e-5: with that probability the guarantee may "
    "fail altogether; it should be far below one over the number of individuals"
)
SCANNED: Final = (
    "its rows are scanned from a text file, where one record can make a query fail after it was "
    "charged, change how others are read, or have changed a type that was inferred; "
    "protect the path itself with a schema: session.protect(path, ..., schema={column: dtype})"
)

OWNED: Final = "each row is of the individuals who have its "


def owner_remark(here: str, there: str, name: str | None) -> str:
    """The remark that another frame identifies the owners of rows, with its name, if it has one,
    and the keys here and there.
    """
    whose = "another protected frame" if name is None else f"the frame {name!r}"
    key = repr(here) if here == there else f"{here!r} as {there!r}"
    return f"{OWNED}{key} in {whose}; rows of nobody are dropped"


def is_risk(sentence: str) -> bool:
    """Whether a sentence that a plan keeps is a risk, which reviewers decide on; the others are
    notes. Plans begin each sentence with its subject, so the end of a sentence decides.
    """
    return sentence.endswith((NOBODY, FAILS, SCANNED))
