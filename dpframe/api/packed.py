"""Results as they are kept: Parquet that carries its plan, and what binds it to its charge.

Each is sealed together with the hash of its charge's record and everything that identifies it,
under the ledger's key if it has one. So a content that a process left behind is recognised before
a record names it.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import polars as pl

from dpframe.api.files import KEY, record_of
from dpframe.errors import DPFrameError
from dpframe.frames.public import digest
from dpframe.ledger.kept import Attempt, Identity, content_digest
from dpframe.ledger.ledger import Keeping
from dpframe.plan.document import stated_in
from dpframe.release import Doubt
from dpframe.release.results import Doubts
from dpframe.report import Plan
from dpframe.rows.failures import FAILURES

_BOUND = "kept"
"""What of the metadata binds a content to its charge."""
_DOUBTS = "doubts"
"""The field with the doubts about the result."""
_PLACE = "limit"
"""The field with the limit that was found."""


@dataclass(frozen=True, slots=True)
class Content:
    """What was kept of one charge.

    Parameters
    ----------
    frames
        Its results.
    plan
        The edges of the first result; all have the same.
    released
        When, UTC.
    doubts
        The doubts about each result that follow from its noisy numbers.
    place
        Which of the plan's limits was found; None where none was sought, and in what versions
        before kept, which did not record it.
    """

    frames: list[pl.DataFrame]
    plan: Plan
    released: datetime
    doubts: Doubts
    place: int | None = None


class NotKept(Exception):
    """Something is no content of a charge; says why."""


def packed(content: Content, identity: Identity, number: int, keeping: Keeping) -> list[bytes]:
    """The files of the results of a charge.

    Raises
    ------
    NotKept
        When one cannot be written, or is not read as it was written.
    """
    plan, charge, blobs = content.plan, keeping.hash_of(number), list[bytes]()
    for part, frame in enumerate(content.frames, start=1):
        said = record_of(plan, part if plan.queries else None, content.released)
        values = digest(frame)
        bound = _bound_to(identity, charge, part, len(content.frames))
        told = [[doubt.kind, doubt.words] for doubt in content.doubts[part - 1]]
        seal = keeping.seal(_sealed(bound, values, said["released"], told, content.place))
        said |= {"content": values, _BOUND: {"charge": number, "seal": seal}}
        said |= {_DOUBTS: told} if told else {}
        said |= {} if content.place is None else {_PLACE: content.place}
        blobs.append(_written(frame, said))
        if digest(_read(blobs[-1])[0]) != values:
            raise NotKept("Parquet does not keep all of its types")
    return blobs


def kept_blobs(attempt: Attempt, keeping: Keeping) -> list[bytes] | None:
    """The files that are kept of a charge, or what lies in their place; None where nothing does."""

    def is_right(blobs: list[bytes]) -> bool:
        try:
            unpacked(blobs, attempt, keeping)
        except NotKept:
            return False
        return True

    return keeping.contents.read(attempt.number, len(attempt.begun.identity.outputs), is_right)


def unpacked(blobs: Sequence[bytes], attempt: Attempt, keeping: Keeping) -> Content:
    """The results of a charge.

    Raises
    ------
    NotKept
        When these are others, or were changed.
    """
    if attempt.content is not None and content_digest(blobs) != attempt.content:
        raise NotKept("it was changed since it was kept")
    identity, frames = attempt.begun.identity, list[pl.DataFrame]()
    doubts = list[tuple[Doubt, ...]]()
    charge = keeping.hash_of(attempt.number)
    document, released, place = None, "", None
    for part, blob in enumerate(blobs, start=1):
        frame, said = _read(blob)
        content = digest(frame)
        try:
            document, released = said["plan"], said["released"]
            values = _bound_to(identity, charge, part, len(blobs))
            right = content == said["content"]
            told, place = said.get(_DOUBTS, []), said.get(_PLACE)
            if place is not None and type(place) is not int:
                raise TypeError
            doubts.append(tuple(Doubt(str(kind), str(words)) for kind, words in told))
            if attempt.content is None:  # the ledger may have another key since
                right = said[_BOUND]["seal"] == keeping.seal(
                    _sealed(values, content, released, told, place)
                )
        except (KeyError, TypeError, ValueError):
            right = False
        if not right:
            raise NotKept("it is not what was released by this charge")
        frames.append(frame)
    try:
        text = json.dumps(document)
        plan, stated = Plan.from_json(text), stated_in(text)
        time = datetime.fromisoformat(released)
    except (DPFrameError, ValueError):
        raise NotKept("its plan was changed") from None
    if identity.fingerprint not in (plan.fingerprint, stated):  # of an earlier version the latter
        raise NotKept("it has another plan")
    if place is not None and (plan.found is None or not 0 <= place < len(plan.found.choices)):
        raise NotKept("its plan does not have this limit")
    return Content(frames, plan, time, tuple(doubts), place)


def _sealed(
    bound: list[object], values: str, released: str, told: list[Any], place: int | None
) -> list[object]:
    """The fields that a seal covers; doubts about a result, and a limit, are included where they
    exist.
    """
    limit = [] if place is None else [{_PLACE: place}]
    return [*bound, values, released, *([told] if told else []), *limit]


def _bound_to(identity: Identity, charge: str, part: int, count: int) -> list[object]:
    return [charge, identity.digest, part, count]


def _written(frame: pl.DataFrame, said: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    try:
        frame.write_parquet(buffer, metadata={KEY: json.dumps(said)})
    except FAILURES as error:
        raise NotKept(f"it cannot be written as Parquet ({type(error).__name__})") from None
    return buffer.getvalue()


def _read(blob: bytes) -> tuple[pl.DataFrame, dict[str, Any]]:
    try:
        said = json.loads(pl.read_parquet_metadata(io.BytesIO(blob))[KEY])
        frame = pl.read_parquet(io.BytesIO(blob), glob=False, hive_partitioning=False)
    except (*FAILURES, KeyError, ValueError):
        raise NotKept("it is no file that was kept, or is damaged") from None
    if not isinstance(said, dict):
        raise NotKept("it is no file that was kept")
    return frame, said
