"""What reviewers should know of frames whose rows come from text files."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout
from typing import Any

import polars as pl

from dpframe.lower.engines.choice import native_engine
from dpframe.plan.remarks import SCANNED
from dpframe.rows.failures import FAILURES

ALL_TEXT = (
    "all columns of the text file are text, as no schema is declared: "
    "session.protect(path, ..., schema={column: dtype})"
)
_WORDS = {
    "polars": re.compile(r"^\W*(?:csv|ndjson) *scan\b", re.IGNORECASE | re.MULTILINE),
    "duckdb": re.compile(r"\bREAD_(?:CSV|JSON|NDJSON)"),
    "spark": re.compile(
        r"^\W*(?:(?:File|Batch)Scan|Relation) .*\b(?:csv|json|text)\b", re.MULTILINE
    ),
}


def remarks_of(frame: object) -> tuple[str, ...]:
    """Warnings about a frame that its owner scanned, from its plan, which holds no rows. A plan
    that cannot be seen gives none: what it does is the owner's.
    """
    try:
        engine, plan = _plan(frame)
        return (SCANNED,) if engine and _WORDS[engine].search(plan) else ()
    except FAILURES:
        return ()


def _plan(frame: Any) -> tuple[str | None, str]:
    """Whose frame it is, and the words of its plan."""
    if isinstance(frame, pl.LazyFrame):
        return "polars", frame.explain(optimized=False)
    match native_engine(frame):
        case "duckdb":
            return "duckdb", frame.explain()
        case "spark":
            return "spark", _printed(frame)
    return None, ""


def _printed(frame: Any) -> str:
    """A plan that Spark offers in public as print only."""
    with redirect_stdout(io.StringIO()) as printed:
        frame.explain(extended=True)
    return printed.getvalue()
