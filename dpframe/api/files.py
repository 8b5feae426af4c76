"""Released results as files that carry their plan: who has the file can read what it cost, and why
it was safe to release.

Parquet holds the plan in its own metadata. CSV has no metadata, so the plan is in a second file
with ``.plan.json`` added to the name, and holds the digest of the CSV file."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from typing import Any
from uuid import uuid4

import polars as pl

from dpframe.errors import DPFrameError, UnsupportedOperation
from dpframe.frames.public import digest
from dpframe.ledger.contents import locked, removed_if_left, sync_folder
from dpframe.ledger.kept import Attempt, Identity, content_digest
from dpframe.ledger.ledger import Keeping
from dpframe.ledger.locks import close_all
from dpframe.plan.document import stated_in
from dpframe.release import Doubt
from dpframe.release.results import Doubts
from dpframe.report import Plan
from dpframe.rows.failures import FAILURES

KEY = "dpframe"
"""The key in the metadata of Parquet."""
_BESIDE = ".plan.json"
_RECORDED = {"fingerprint", "cost", "released", "plan", "content"}
"""What is written about a result."""
_WRITERS = (".parquet", ".csv")
_LONGEST_NAME = 200
"""Bytes of a name to which others may be added."""
_RANDOM = re.compile(r"[0-9a-f]{32}\.part")


@dataclass(frozen=True, slots=True)
class Written:
    """The record in a file."""

    plan: Plan  # The plan that its contents were released by
    released: datetime  # When, UTC
    unchanged: bool  # Whether the contents are those that were written with it
    # For a plan of several queries, the number of the query that they answer, from 1.
    query: int | None = None


def write_page(path: Path, text: str) -> None:
    """Write a page of HTML."""
    if path.is_dir():
        raise _unwritable(path, "it is a folder")
    with _replacing(path) as made:
        made.write_text(text, encoding="utf-8")


@contextmanager
def destination(path: Path) -> Iterator[Path]:
    """A new file in the folder of `path`, which becomes `path` when everything is written.

    Whether one can write there is found out before anything is charged.
    """
    if path.suffix not in _WRITERS:
        raise UnsupportedOperation(
            f"a result can be written as {' or '.join(_WRITERS)}, not as "
            f"{path.suffix or 'a file without an ending'!r}",
            where=str(path),
            remedy=f"name the file for example {path.with_suffix('.parquet').name}",
        )
    for place in (path, _beside(path)):
        if place.is_dir():
            raise _unwritable(place, "it is a folder")
    with _replacing(path) as made:
        yield made


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """A new and empty file that replaces the one at `path` as a whole, if nothing fails.

    It is locked meanwhile; what processes that were killed have left behind for the same path is
    not, and is removed. Keep the permissions of the file that it replaces. A new file is as
    readable as other new files of the process (its umask).
    """
    start = _temporary(path)
    mode = _mode_of(path)
    made = path.with_name(f"{start}{uuid4().hex}.part")
    files: list[FileIO] = []
    try:
        for name in os.listdir(path.parent):
            if _is_temporary(name, start):
                removed_if_left(path.with_name(name))
        held = locked(made, files, 0o666 if mode is None else 0o600)
        yield made
        if mode is not None:
            made.chmod(mode)
        os.fsync(held.fileno())
        if os.name == "nt":  # where no open file gets another name
            held.close()
        os.replace(made, path)
        sync_folder(path.parent)
    except OSError as error:
        raise _unwritable(path, error.strerror or type(error).__name__) from None
    finally:
        with suppress(OSError):
            made.unlink(missing_ok=True)
        close_all(files)


def _mode_of(path: Path) -> int | None:
    """The permissions of a file; None if it does not exist."""
    try:
        return stat.S_IMODE(path.stat().st_mode) & 0o777
    except OSError:
        return None


def _temporary(path: Path) -> str:
    """What temporary files for a path begin with; long names are shortened to their digest."""
    name = path.name
    if len(os.fsencode(name)) > _LONGEST_NAME:
        name = _sha256(os.fsencode(name))
    return f".{name}."


def _is_temporary(name: str, start: str) -> bool:
    return name.startswith(start) and bool(_RANDOM.fullmatch(name[len(start) :]))


def require_result(path: Path) -> None:
    """Refuse to replace a file, or the plan next to it, that does not hold a result."""
    there = [p for p in (path, _beside(path)) if p.exists()]
    if path.suffix == ".parquet":
        there = [p for p in there if p == path]
    try:
        if not there or _record(path):
            return
    except UnsupportedOperation:
        pass
    raise UnsupportedOperation(
        f"{there[0].name!r} is not a result of dpframe, so it is not replaced",
        where=str(path),
        remedy=("write the result to another file", "remove this file"),
    )


def _unwritable(path: Path, why: str) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"nothing can be written there: {why}",
        where=str(path),
        remedy="give a path in a folder that exists and can be written to",
    )


def record_of(plan: Plan, query: int | None, released: datetime | None = None) -> dict[str, Any]:
    """What is written about a result, but for the digest of its content."""
    time = released or datetime.now(UTC)
    record: dict[str, Any] = {
        "fingerprint": plan.fingerprint,
        "cost": plan.cost.words(),
        "released": time.isoformat(timespec="seconds"),
        "plan": json.loads(plan.to_json(None)),
    }
    return record if query is None else record | {"query": query}


def write(
    frame: pl.DataFrame,
    plan: Plan,
    path: Path,
    made: Path,
    query: int | None = None,
    released: datetime | None = None,
) -> None:
    """Write a released frame and its plan to `made`, which will be named `path`. For a plan of
    several queries it includes the number of the query, and for a kept result the time of its
    release.
    """
    record = record_of(plan, query, released)
    try:
        if path.suffix == ".parquet":
            text = json.dumps(record | {"content": digest(frame)})
            frame.write_parquet(made, metadata={KEY: text})
            return
        frame.write_csv(made)
    except FAILURES as error:
        lists = path.suffix == ".csv" and any(t.is_nested() for t in frame.dtypes)
        raise UnsupportedOperation(
            f"the result cannot be written as {path.suffix} ({type(error).__name__})",
            where=str(path),
            remedy="CSV has no lists: write it as .parquet" if lists else "write it elsewhere",
        ) from None
    text = json.dumps(record | {"content": _sha256(made.read_bytes())}, indent=2)
    with _replacing(_beside(path)) as beside:
        beside.write_text(text + "\n", encoding="utf-8")


def inspect(path: Path) -> Written:
    """The plan and the record in a file that `write` made."""
    record = _record(path)
    try:
        plan = Plan.from_json(json.dumps(record["plan"]))
        stated, released = record["content"], datetime.fromisoformat(record["released"])
        query = record.get("query")
    except (KeyError, RecursionError, TypeError, ValueError):
        raise _without_plan(path) from None
    numbers = range(1, len(plan.queries) + 1) if plan.queries else (None,)
    if query not in numbers:
        raise _without_plan(path)
    content = _content(path)
    return Written(plan, released, bool(content) and stated == content, query)


def _record(path: Path) -> dict[str, Any]:
    """What was written about the file."""
    try:
        if path.suffix == ".parquet":
            found = json.loads(pl.read_parquet_metadata(path)[KEY])
        else:
            found = json.loads(_beside(path).read_text(encoding="utf-8"))
    except DPFrameError:
        raise
    except (*FAILURES, OSError, KeyError, ValueError):
        raise _without_plan(path) from None
    if not isinstance(found, dict) or not found.keys() >= _RECORDED:
        raise _without_plan(path)
    return found


def _beside(path: Path) -> Path:
    return path.with_name(path.name + _BESIDE)


def _content(path: Path) -> str:
    """The digest of the contents, as `write` takes it."""
    try:
        if path.suffix == ".parquet":
            return digest(pl.read_parquet(path, glob=False, hive_partitioning=False))
        return _sha256(path.read_bytes())
    except (*FAILURES, OSError):
        return ""


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _without_plan(path: Path) -> UnsupportedOperation:
    return UnsupportedOperation(
        "the file holds no plan of dpframe",
        where=str(path),
        remedy=(
            "give a file that `dpframe run --output FILE` wrote",
            "give one that release.write(path) wrote; the plan of a CSV is next to it, in the file "
            f"with {_BESIDE} added to its name",
        ),
    )


# Results as they are kept: Parquet that carries its plan, and what binds it to its charge.
#
# Each is sealed together with the hash of its charge's record and everything that identifies it,
# under the ledger's key if it has one. So a content that a process left behind is recognised before
# a record names it.


_BOUND = "kept"
"""What of the metadata binds a content to its charge."""
_DOUBTS = "doubts"
"""The field with the doubts about the result."""
_PLACE = "limit"
"""The field with the limit that was found."""


@dataclass(frozen=True, slots=True)
class Content:
    """What was kept of one charge."""

    frames: list[pl.DataFrame]  # Its results
    plan: Plan  # By which the results were released
    released: datetime  # When, UTC
    doubts: Doubts  # The doubts about each result that follow from its noisy numbers
    # Which of the plan's limits was found; None where none was sought, and in what versions before
    # kept, which did not record it.
    place: int | None = None


class NotKept(Exception):
    """Something is no content of a charge; says why."""


def pack(content: Content, identity: Identity, number: int, keeping: Keeping) -> list[bytes]:
    """The files of the results of a charge."""
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
            unpack(blobs, attempt, keeping)
        except NotKept:
            return False
        return True

    return keeping.contents.read(attempt.number, len(attempt.begun.identity.outputs), is_right)


def unpack(blobs: Sequence[bytes], attempt: Attempt, keeping: Keeping) -> Content:
    """The results of a charge."""
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
    bound: Sequence[object], values: str, released: str, told: Sequence[object], place: int | None
) -> list[object]:
    """The fields that a seal covers; doubts about a result, and a limit, are included where they
    exist.
    """
    limit = [] if place is None else [{_PLACE: place}]
    return [*bound, values, released, *([told] if told else []), *limit]


def _bound_to(identity: Identity, charge: str, part: int, count: int) -> list[object]:
    return [charge, identity.digest, part, count]


def _written(frame: pl.DataFrame, said: Mapping[str, object]) -> bytes:
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
