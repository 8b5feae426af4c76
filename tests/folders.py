"""What wrong uses do with files, commands and ledgers, in a folder of their own."""

from __future__ import annotations

import fcntl
import gc
import json
import os
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from datetime import date
from functools import cache, cached_property
from io import StringIO
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, BinaryIO
from weakref import finalize

import polars as pl
import psycopg
import pytest

import dpframe as dp
from dpframe.audit import neighbours
from dpframe.cli.main import _parser
from dpframe.ledger import head_file, sqlite
from dpframe.ledger import head_file as places
from dpframe.ledger.postgres import PostgresStore
from dpframe.ledger.sqlite import SqliteStore
from tests import postgres, spawned
from tests.cli.commands import PEOPLE, PYTHON_JOB, ROOT, TOML_JOB
from tests.clocks import setter
from tests.ledger import ledgers
from tests.postgres import Server

PLACE = "budget.db"
_cached_parser = cache(_parser)


class Folder:
    """An empty folder, where code runs that names it or something of it."""

    def __init__(self) -> None:
        self._held: list[BinaryIO] = []

    _changed = ""
    """The setting of the server that was changed."""

    @cached_property
    def tmp(self) -> Path:
        place = Path(tempfile.mkdtemp(prefix="dpframe-remedies-"))
        finalize(self, shutil.rmtree, place, True)
        return place

    _patches: pytest.MonkeyPatch

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Within this, the folder is where commands start, and another process seems to run."""
        places._USED.clear()
        with pytest.MonkeyPatch.context() as patches:
            self._patches = patches
            patches.chdir(self.tmp)
            for name in ("_TRIES", "_CLIMBS", "_MOST_CLIMBS"):  # a small search in audits
                patches.setattr(neighbours, name, 3)
            for name in [name for name in os.environ if name.startswith("DPFRAME_")]:
                patches.delenv(name)
            try:
                yield
            finally:
                self._reset()

    # -- files and commands -----------------------------------------------------------------------

    def shell(self, line: str) -> str:
        """What ``dpframe`` prints with these arguments; it must end well."""
        with redirect_stdout(StringIO()) as printed, redirect_stderr(StringIO()):
            parsed = _cached_parser().parse_args(shlex.split(line))
            code = parsed.run(parsed)
        assert code == 0, f"`dpframe {line}` ends with exit code {code}"
        return printed.getvalue()

    def stopped(self, line: str) -> None:
        """The same, of a command that is interrupted."""
        with suppress(KeyboardInterrupt):
            self.shell(line)

    def write(self, name: str, text: str) -> None:
        """Write a file."""
        (self.tmp / name).write_text(text, "utf-8")

    def job(self, *changes: str, file: str = "job.toml") -> None:
        """Write a job and its data, with pairs of texts replaced."""
        PEOPLE.write_parquet(self.tmp / "people.parquet")
        python = file.endswith(".py")
        form = PYTHON_JOB if python else TOML_JOB
        text = form.format(approval="False" if python else "false", epsilon="0.25")
        for old, new in zip(changes[::2], changes[1::2], strict=True):
            assert old in text, f"the job has no {old!r}"
            text = text.replace(old, new, 1)
        self.write(file, text)

    def duplicate(self, name: str, other: str) -> None:
        """Copy a file or a folder."""
        if (self.tmp / name).is_dir():
            shutil.copytree(self.tmp / name, self.tmp / other, dirs_exist_ok=True)
        else:
            shutil.copy(self.tmp / name, self.tmp / other)

    def delete(self, *names: str) -> None:
        """Delete files or folders."""
        for name in names:
            if (self.tmp / name).is_dir():
                shutil.rmtree(self.tmp / name)
            else:
                (self.tmp / name).unlink()

    def spoil(self, folder: str) -> None:
        """Let the files of a folder have another content."""
        for path in (self.tmp / folder).iterdir():
            path.write_bytes(b"something else")

    # -- the machine ------------------------------------------------------------------------------

    def setenv(self, name: str, value: str) -> None:
        """Set a variable of the environment."""
        self._patches.setenv(name, value)

    def forbid(self, name: str) -> Callable[[], None]:
        """Let this user not write a file, until the result is called."""
        self.another_process()
        gc.collect()  # so that nothing has it open
        original, path = os.open, str(self.tmp / name)

        def opened(place: Any, flags: int, *more: Any, **options: Any) -> int:
            if str(place) == path and flags & os.O_RDWR:
                raise PermissionError(13, "Permission denied")
            return original(place, flags, *more, **options)

        self._patches.setattr(os, "open", opened)
        return lambda: self._patches.setattr(os, "open", original)

    def delenv(self, name: str) -> None:
        """Unset a variable of the environment."""
        self._patches.delenv(name)

    def today(self, *day: int) -> None:
        """Let it be a day, by the clock of the machine."""
        setter(self._patches)(*day)

    def uninstall(self, package: str, *users: str) -> None:
        """Let a package be missing; the modules that use it are loaded again."""
        for name in list(sys.modules):
            if name == package or name.startswith((f"{package}.", *users)):
                self._patches.delitem(sys.modules, name)
        self._patches.setitem(sys.modules, package, None)

    def forked(self) -> None:
        """Let this process be a fork of the one that ran until now."""
        number = os.getpid() + 1
        self._patches.setattr(os, "getpid", lambda: number)

    def without_descriptions(self) -> None:
        """Let the operating system have no locks of open files: a file beside is locked."""
        self._patches.setattr(sqlite, "BY_DESCRIPTION", False)

    def another_process(self) -> None:
        """Forget where this process has used ledgers."""
        places._USED.clear()

    def fail(self, function: str, error: BaseException) -> None:
        """Let a function of Python or of dpframe fail."""

        def failing(*_: object, **__: object) -> None:
            raise error

        self._patches.setattr(function, failing)

    @property
    def count(self) -> Callable[[], int]:
        """What another process does."""
        return spawned.count

    def resolve(self, name: str) -> Any:
        """What a name of Python or of dpframe stands for."""
        return resolve_name(name)

    def patch(self, name: str, value: object) -> None:
        """Let a name of Python or of dpframe stand for something else."""
        self._patches.setattr(name, value)

    # -- a server ---------------------------------------------------------------------------------

    @property
    def server(self) -> str:
        """The URL of an empty database of PostgreSQL."""
        return self._started().empty()

    def analyst(self) -> str:
        """The URL of a ledger on that server for a role that may do all that the manual lists."""
        from tests.ledger.test_postgres_rights import ROLES, STATEMENTS

        url, server = self.server, self._started()
        self.shell(f"ledger create --ledger {url} --name visits --epsilon 9 --delta 1e-6 --by Ada")
        for role in ROLES:
            with suppress(psycopg.errors.DuplicateObject):
                server.sql(f"CREATE ROLE {role} LOGIN")
        for statement in STATEMENTS:
            server.sql(statement)
        return server.url(user="analyst")

    def latin(self) -> str:
        """The URL of a database that has not all characters."""
        server = self._started()
        with suppress(psycopg.errors.DuplicateDatabase):
            server.sql(
                "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0",
                database="postgres",
            )
        return server.url("latin")

    def on_server(self, statement: str) -> None:
        """Run a statement as the owner of the server."""
        self._started().sql(statement)

    def setting(self, name: str, value: str) -> None:
        """Change a setting of the server, until another one is made or the folder is left."""
        server = self._started()
        server.sql(f"ALTER SYSTEM SET {name} = {value}")
        self._apply(name, value)

    def _apply(self, name: str, value: str) -> None:
        self._changed = name
        self._started().sql("SELECT pg_reload_conf()")
        for _ in range(1000):
            if self._started().sql(f"SHOW {name}") == [(value.strip("'"),)]:
                return
            time.sleep(0.01)
        raise AssertionError(f"the server does not take {name} = {value}")

    def _reset(self) -> None:
        if self._changed:
            self._started().sql(f"ALTER SYSTEM RESET {self._changed}")
            self._started().sql("SELECT pg_reload_conf()")

    def _started(self) -> Server:
        server = postgres.started("wrong uses")
        assert server is not None
        return server

    # -- ledgers ----------------------------------------------------------------------------------

    def tamper(self, statement: str, *values: Any, file: str = PLACE) -> list[tuple[Any, ...]]:
        """Run a statement on the file of a ledger, as anybody with access to it could."""
        return ledgers.sql(self.tmp / file, statement, *values)

    def ledger(self, file: str = PLACE) -> None:
        """Create a ledger with the budget 'default' of epsilon 1, and a charge."""
        session = dp.Session(epsilon=1, ledger=self.tmp / file)
        session.protect(PEOPLE, dp.Rows(), name="people").dp_count().collect(epsilon=0.25)

    def backup(self, file: str = PLACE) -> None:
        """Copy a ledger and what is next to it to the folder "backup"."""
        (self.tmp / "backup").mkdir()
        for path in list(self.tmp.glob(f"{file}*")):
            self.duplicate(path.name, f"backup/{path.name}")

    def restore(self, file: str = PLACE) -> None:
        """Put that copy in the place of the ledger."""
        for path in list(self.tmp.glob(f"{file}*")):
            self.delete(path.name)
        for path in list((self.tmp / "backup").glob(f"{file}*")):
            self.duplicate(f"backup/{path.name}", path.name)
        self.another_process()

    def impatient(self) -> None:
        """Let nobody wait for locks."""
        for store, seconds in ((SqliteStore, 0.0), (PostgresStore, 0.4)):
            defaults = {**(store.__init__.__kwdefaults__ or {}), "timeout": seconds}
            self._patches.setattr(store.__init__, "__kwdefaults__", defaults)

    def hold(self, file: str = PLACE) -> BinaryIO:
        """Lock a file as another process does, until it is closed; nobody waits for that."""
        self.impatient()
        self._patches.setattr(head_file, "TIMEOUT", 0.0)
        held = (self.tmp / file).open("r+b", buffering=0)
        fcntl.flock(held, fcntl.LOCK_EX)
        sqlite._set(held.fileno(), fcntl.F_WRLCK, sqlite.GATE, length=2)
        self._held.append(held)
        return held

    def meanwhile(self, function: str, act: Callable[[], object]) -> None:
        """Let another process act once, when a method of dpframe is called."""
        kind, _, name = function.rpartition(".")
        owner = resolve_name(kind)
        original, due = getattr(owner, name), [act]

        def interrupted(*arguments: Any, **options: Any) -> Any:
            while due:
                due.pop()()
            return original(*arguments, **options)

        self._patches.setattr(owner, name, interrupted)

    def earlier(self, name: str, file: str = PLACE) -> None:
        """A file that an earlier version of dpframe wrote."""
        kept = ROOT / "tests" / "kept" / name
        shutil.copy(kept, self.tmp / file)
        if (head := kept.with_name(f"{kept.name}.head")).exists():
            shutil.copy(head, self.tmp / f"{file}.head")

    def earlier_plan(self) -> str:
        """The document of a plan that an earlier version made."""
        lines = (ROOT / "tests" / "kept" / "eb8e43c" / "plans.jsonl").read_text("utf-8")
        return json.dumps(json.loads(lines.partition("\n")[0])["document"])

    def visits(
        self, *, needs_approval: bool = False, where: pl.Expr | None = None, **columns: Any
    ) -> tuple[Any, Any]:
        """A session of that ledger, and a query for streams, whose eight days begin with 2026."""
        days = [date(2026, 1, 1 + number % 8) for number in range(40)]
        rows = pl.DataFrame({"day": days, "x": range(40)}).with_columns(**columns)
        session = dp.Session(rho=1, ledger=PLACE, require_approval=needs_approval)
        frame = session.protect(rows, dp.Rows(), name="visits")
        return session, (frame if where is None else frame.filter(where)).agg(dp.count())

    @cached_property
    def growing(self) -> pl.DataFrame:
        """Individuals with rows on two days."""
        return pl.DataFrame({"user": [1, 1, 2, 2], "day": [1, 2, 1, 2]})

    def night(self, number: int) -> date:
        """The day of a period of these streams."""
        return date(2026, 1, number)


NIGHTLY: dict[str, Any] = {"by": "day", "start": date(2026, 1, 1), "periods": 8, "rho": "0.1"}
"""The schedule and the spend of these streams."""


def members() -> set[str]:
    """The names that code in a folder uses."""
    return {name for name in vars(Folder) if not name.startswith("_")}
