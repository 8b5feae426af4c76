"""What is kept of a budget's results, as a frame."""

from __future__ import annotations

import polars as pl

from dpframe.api.packed import kept_blobs
from dpframe.errors import LedgerError
from dpframe.ledger.kept import Attempt, content_digest
from dpframe.ledger.ledger import Keeping


def kept_frame(keeping: Keeping) -> pl.DataFrame:
    """One row per result whose content was kept, in the order of charges."""
    found = [a for a in keeping.every() if a.content is not None and a.pruned is None]
    columns = {name: [words(attempt)[name] for attempt in found] for name in _TEXTS}
    return pl.DataFrame(
        {
            "fingerprint": pl.Series(
                [a.begun.identity.fingerprint for a in found], dtype=pl.String
            ),
            "time": pl.Series([a.time for a in found], dtype=pl.Datetime("us", "UTC")),
            **{name: pl.Series(values, dtype=pl.String) for name, values in columns.items()},
            "number": pl.Series([a.number for a in found], dtype=pl.Int64),
        }
    )


_TEXTS = ("frame", "cost", "query", "run", "periods", "parameters")


def standing(keeping: Keeping, attempt: Attempt) -> str:
    """The state of a result: ``kept``, ``under way``, ``lost``, ``pruned``, ``missing`` or
    ``CHANGED`` contents, or ``unfinished`` if it was never handed out; and whether it was paid
    for again.
    """
    found = _found(keeping, attempt)
    return f"{found}, paid anew" if attempt.is_replaced else found


def _found(keeping: Keeping, attempt: Attempt) -> str:
    if attempt.pruned is not None:
        return "pruned"
    try:
        blobs = kept_blobs(attempt, keeping)
    except LedgerError:
        return "unreadable"
    if attempt.content is not None:
        if blobs is None:
            return "missing"
        return "kept" if content_digest(blobs) == attempt.content else "CHANGED"
    if keeping.contents.is_present(attempt.begun.token):
        return "under way"
    return "lost" if blobs is None or not keeping.is_open(attempt.number) else "unfinished"


def words(attempt: Attempt) -> dict[str, str | None]:
    """The text that describes a result, except its time and plan."""
    begun, identity = attempt.begun, attempt.begun.identity
    given = ", ".join(f"{name}={value}" for name, value in identity.parameters)
    return {
        "frame": ", ".join(identity.frames),
        "cost": attempt.cost.words(),
        "query": begun.words,
        "run": begun.run,
        "periods": identity.period or begun.place,
        "parameters": given or None,
    }
