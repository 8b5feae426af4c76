"""Jobs: a query, the session that pays for it, and what may be spent."""

from __future__ import annotations

import os
import runpy
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dpframe.api.parameters import Parameters, declaring
from dpframe.api.payer import Payer
from dpframe.api.paying_session import payer_of
from dpframe.api.query import PrivateQuery, owner_of
from dpframe.api.readers import missing_file
from dpframe.api.release import Releases
from dpframe.api.reuse import ONCE_MORE, Repeat
from dpframe.api.session import Session
from dpframe.api.several import asked_at_once, refuse_weights
from dpframe.api.source import Source, Sources
from dpframe.api.spend import Spend
from dpframe.audit import Audit, audit
from dpframe.cli.input import BadInput, not_a_job, require_file
from dpframe.cli.toml_job import read_toml
from dpframe.errors import DPFrameError, UnsupportedOperation
from dpframe.infer import Queries
from dpframe.ledger.amounts import left_fields
from dpframe.ledger.approvals import Allowed
from dpframe.redaction import location
from dpframe.release import Intervals, read_intervals
from dpframe.report import Plan
from dpframe.rows.failures import FAILURES
from dpframe.rows.suggest import did_you_mean


@dataclass(frozen=True, slots=True)
class Job:
    """One release that a job makes.

    Parameters
    ----------
    queries
        The query or queries.
    sources
        The data of each query.
    is_list
        Whether the job has a list of queries, with a separate file for each result.
    payer
        The session's state that is charged.
    spend
        The most that the release may cost.
    interval
        The intervals to release with the result, if any.
    output
        Where to write the result, if the job names a place.
    allowed
        The ranges of parameters that have a range instead of a value.
    """

    queries: Queries
    sources: Sequence[Source | Sources]
    is_list: bool
    payer: Payer
    spend: Spend
    interval: Intervals | None
    output: Path | None
    allowed: Allowed = ()

    def plan(self) -> Plan:
        """What it would do; nothing is charged."""
        return self.payer.prepare_several(self.queries, self.spend).plan

    def left(self) -> dict[str, Any]:
        """What is left of the budget that pays for it, for programs."""
        return left_fields(self.payer.ledger.remaining)

    def audit(self, runs: int, confidence: str) -> Audit:
        """What runs on worst-case neighbours prove about its plan; nothing is charged.

        Raises
        ------
        UnsupportedOperation
            When it asks several queries, or one that lacks a limit.
        """
        if self.queries.search is not None:
            raise UnsupportedOperation(
                "the job's query has no limit on what one individual adds, and an audit needs one",
                remedy="write a limit that its plan lists, for example .limit_rows(10)",
            )
        query, *others = self.queries.queries
        if others:
            raise UnsupportedOperation(
                "the job has several queries, and an audit is of one",
                remedy="write a job for each of them, at its share of the spend",
            )
        return audit(self.payer.prepare(query, self.spend), runs, confidence)

    def require_approval(self) -> None:
        """Run it only if its plan was approved, regardless of the job's own setting."""
        self.payer.needs_approval = True

    def require_other(self, path: Path) -> None:
        """Refuse to write the result over a file that was protected by its path, or where the path,
        which may be a pattern, would find it the next time.

        Raises
        ------
        BadInput
            When it is one.
        """
        if any(source.holds(path) for source in self.sources):
            refusal = UnsupportedOperation(
                "the result would replace the data that it is made from, or become part of it",
                remedy="write it to another file",
            )
            raise BadInput(refusal, path)

    def places(self, path: Path | None) -> list[Path] | None:
        """Where results go: of a list of queries the number of each is added to the name."""
        if path is None or not self.is_list:
            return None if path is None else [path]
        asked = len(self.queries.queries) - (self.queries.search is not None)
        numbers = range(1, asked + 1)
        return [path.with_name(f"{path.stem}-{number}{path.suffix}") for number in numbers]

    def keep(self) -> None:
        """Keep its result next to the ledger, regardless of the job's own setting.

        Raises
        ------
        UnsupportedOperation
            When its budget is in memory.
        """
        if not self.payer.ledger.identities:
            raise UnsupportedOperation(
                "the session keeps its budget in memory, which forgets that the job was run",
                where="--run-id, --once",
                remedy='keep it in a ledger: dp.Session(..., ledger="budget.db")',
            )
        self.payer.keeps = True

    def release(self, repeat: Repeat = ONCE_MORE) -> Releases:
        """Run it, or hand out what was kept."""
        how = self.spend, self.interval
        return self.payer.release_several(self.queries, self.sources, *how, repeat=repeat)


def is_job(path: Path) -> bool:
    """Whether a file is named as jobs are."""
    return path.suffix in (".py", ".toml")


def read_job(
    path: Path, given: Mapping[str, str] = MappingProxyType({}), *, ranged: bool = False
) -> Job:
    """The job in a file, with values of its parameters as text; or with ranges of them, and one
    value of each.

    Raises
    ------
    BadInput
        When it is no job, or fails before it has a query.
    DPFrameError
        What the job itself raises, such as a ledger that does not verify.
    """
    if not is_job(require_file(path)):
        raise not_a_job(
            path, "its name ends neither in .py nor in .toml", remedy="name it job.py or job.toml"
        )
    parameters = Parameters(given, ranged=ranged)
    with declaring(parameters):
        found = _from_python(path) if path.suffix == ".py" else read_toml(path, parameters)
    parameters.require_known([parameter.name for parameter in parameters.declared])
    query, spend = found.get("query"), found.get("spend")
    session, output = found.get("session"), found.get("output")
    is_list = isinstance(query, (list, tuple))
    listed: list[Any] = [*query] if isinstance(query, (list, tuple)) else [query]
    if not is_list and not isinstance(query, PrivateQuery):
        raise not_a_job(path, f"`query` is {_kind(query)}, not a private query")
    if not isinstance(spend, Mapping) or not spend:
        is_toml = path.suffix == ".toml"
        raise not_a_job(
            path,
            "[spend] is empty" if is_toml else f"`spend` is {_kind(spend)}, not a dict of amounts",
            remedy="write for example "
            + ("epsilon = 0.5" if is_toml else 'spend = {"epsilon": 0.5}'),
        )
    apart = ("interval", "sampling", "weights", "limits")
    allowed = ("epsilon", "delta", "rho", "accuracy", "split", *apart)
    unknown = [name for name in spend if name not in allowed]
    if unknown:
        raise not_a_job(
            path,
            f"`spend` does not take {unknown[0]!r}",
            remedy=did_you_mean(str(unknown[0]), allowed),
        )
    weights = spend.get("weights")
    if not is_list:
        refuse_weights(weights)
    costs = Spend(**{n: found for n, found in spend.items() if n not in apart})
    owner, limits = _payer(listed, session, path), spend.get("limits", "auto")
    limits = None if limits == "none" else limits  # TOML has no null
    asked, sources, payer = asked_at_once(listed, weights, limits, costs, owner)
    payer.parameters = parameters.declared
    if output is not None and not isinstance(output, str | os.PathLike):
        what = f"`output` is {_kind(output)}, not a path"
        raise not_a_job(path, what, remedy='write for example output = "result.csv"')
    place = None if output is None else Path(output)
    interval = read_intervals(spend.get("interval"), spend.get("sampling", False))
    return Job(asked, sources, is_list, payer, costs, interval, place, parameters.allowed)


def _payer(queries: Sequence[object], session: object, path: Path) -> Payer:
    """Who pays for the queries, or for the whole of a frame that some are of a part of."""
    owners = [owner_of(query) for query in queries if isinstance(query, PrivateQuery)]
    owner = next((owner for owner in owners if owner is not None), None)
    if owner is None:
        if not isinstance(session, Session):
            raise not_a_job(
                path,
                f"the query belongs to no session, and `session` is {_kind(session)}",
                remedy="write session = dp.Session(...) with the session that pays",
            )
        return payer_of(session)
    while owner.whole is not None:
        owner = owner.whole
    return owner


def _from_python(path: Path) -> dict[str, Any]:
    folder = str(path.parent.resolve())
    sys.path.insert(0, folder)  # as when it is run alone
    try:
        with redirect_stdout(sys.stderr):  # the standard output is the result's
            return runpy.run_path(str(path), run_name="__dpframe_job__")
    except DPFrameError:
        raise
    except SystemExit:
        raise not_a_job(path, "it called sys.exit()", remedy="leave sys.exit() out") from None
    except FAILURES as error:
        failed = f"it failed with {type(error).__name__}{_line(error, path)}"
        what = f"{failed}{_not_found(error, path)}"
        raise not_a_job(
            path, what, remedy=f"correct it: `python {path.name}` shows the error"
        ) from None
    finally:
        with suppress(ValueError):
            sys.path.remove(folder)


def _line(error: BaseException, path: Path) -> str:
    """Where the job failed. Not the message: what a job reads before it protects it is its own
    affair, and may be quoted there.
    """
    if isinstance(error, SyntaxError):
        return f" in line {error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f.lineno for f in frames if f.filename == str(path)]
    return f" in line {lines[-1]}" if lines else ""


def _not_found(error: BaseException, path: Path) -> str:
    """The file that was not there, if the job itself has its name."""
    if not isinstance(error, FileNotFoundError):
        return ""
    name = error.filename if isinstance(error.filename, str) else missing_file(error)
    written = path.read_text(encoding="utf-8", errors="replace")
    named = name is not None and Path(name).name and Path(name).name in written
    return f": there is no file {location(name)!r}" if named else ""


def _kind(value: object) -> str:
    return "missing" if value is None else f"a {type(value).__name__}"
