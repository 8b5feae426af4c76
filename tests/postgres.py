"""A PostgreSQL server for tests: started when it is first needed, one for each worker."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from glob import glob
from pathlib import Path
from typing import Any

import psycopg

ADMIN = "ledgers"
"""The server's superuser, who needs no password on its socket."""

FAST = "/dev/shm"
"""A disk in memory."""

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": 60,
    "shared_buffers": "16MB",
    "fsync": "on",  # on a disk in memory that costs nothing
    "logging_collector": "off",
    # so that it gets in the way, if it can; each time it looks takes time from quick tests
    "autovacuum_naptime": 1 if os.environ.get("DPFRAME_PROFILE") == "slow" else 20,
}

HBA = "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n"


def binaries() -> Path | None:
    """The directory of the server's programs, the newest version's if there are several."""
    known = glob("/usr/lib/postgresql/*/bin") + glob("/usr/pgsql-*/bin")
    found = shutil.which("initdb")
    places = [Path(found).resolve().parent] if found else []
    places += sorted(map(Path, known), key=lambda p: [int(d) for d in p.parts if d.isdigit()])[::-1]
    return next((p for p in places if (p / "initdb").exists() and (p / "postgres").exists()), None)


class Server:
    """A server of its own, with data checksums, on a socket and a port of this machine."""

    def __init__(self, programs: Path, directory: str | None = None) -> None:
        self._programs = programs
        if directory is None and os.access(FAST, os.W_OK):
            directory = FAST
        self.place = Path(tempfile.mkdtemp(dir=directory))
        self.data = self.place / "data"
        self.port = _free_port()
        self.owner = _unprivileged()
        self._process: subprocess.Popen[bytes] | None = None
        if self.owner:
            shutil.chown(self.place, self.owner["user"])
        initdb = [programs / "initdb", "-D", self.data, "-U", ADMIN, "-A", "trust", "-k", "-N"]
        self._run(*initdb, "-E", "UTF8", "--no-locale", "--no-instructions")
        (self.data / "pg_hba.conf").write_text(HBA)
        with (self.data / "postgresql.conf").open("a") as settings:
            settings.writelines(f"{k} = '{v}'\n" for k, v in SETTINGS.items())
        self.start()

    def _run(self, *command: object) -> None:
        done = subprocess.run(
            list(map(str, command)), capture_output=True, text=True, cwd="/", **self.owner
        )
        if done.returncode:
            raise RuntimeError(done.stderr)

    # -- coming and going -----------------------------------------------------------------------

    def start(self) -> None:
        options = ["-D", self.data, "-k", self.place, "-p", self.port]
        with (self.place / "log").open("ab") as log:
            self._process = subprocess.Popen(
                list(map(str, [self._programs / "postgres", *options])),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
                **self.owner,
            )
        deadline = time.monotonic() + 60
        while True:
            try:
                self.sql("SELECT 1", database="postgres")
                return
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError((self.place / "log").read_text()) from None
                time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT ends all sessions in order, SIGQUIT at once, as a crash does."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(60)
            self._process = None

    def remove(self) -> None:
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.place, ignore_errors=True)

    # -- databases ------------------------------------------------------------------------------

    def url(self, database: str = "ledger", *, user: str = ADMIN) -> str:
        """Through the socket, without a password."""
        host = str(self.place).replace("/", "%2F")
        return f"postgresql://{user}@{host}:{self.port}/{database}"

    def network_url(self, user: str, password: str, database: str = "ledger") -> str:
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/{database}"

    def sql(self, statement: str, *values: Any, database: str = "ledger") -> list[tuple[Any, ...]]:
        """As the superuser."""
        return run_sql(self.url(database), statement, *values)

    def empty(self) -> str:
        """The URL of a database with nothing in it; what was in it is gone."""
        with suppress(psycopg.errors.DuplicateDatabase):
            self.sql("CREATE DATABASE ledger", database="postgres")
        self.sql("DROP SCHEMA IF EXISTS dpframe_ledger CASCADE")
        return self.url()


_SERVERS: dict[str, Server] = {}


def started(whose: str = "tests") -> Server | None:
    """A server of this process; None where it is not installed. Roles are those of a whole server,
    so wrong uses have a server of their own.
    """
    programs = binaries()
    if programs is not None and whose not in _SERVERS:
        _SERVERS[whose] = Server(programs)
    return _SERVERS.get(whose)


def remove_servers() -> None:
    """Stop all servers of this process."""
    for server in _SERVERS.values():
        server.remove()


def run_sql(url: str, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    """Run a statement, and let the server's statistics know at once."""
    connection = _connected(url)
    answer = connection.execute(statement.replace("?", "%s"), values or None)
    rows = answer.fetchall() if answer.description else []
    if connection.info.server_version >= 150000:
        connection.execute("SELECT pg_stat_force_next_flush()")
    return rows


_CONNECTIONS: dict[tuple[int, str], psycopg.Connection[Any]] = {}


def _connected(url: str) -> psycopg.Connection[Any]:
    """One connection for each process and URL, as long as it is good."""
    key = os.getpid(), url
    known = _CONNECTIONS.get(key)
    if known is not None and not known.closed:
        try:
            known.execute("SELECT 1")
            return known
        except psycopg.Error:
            known.close()
    path = "-c search_path=dpframe_ledger,pg_catalog"
    _CONNECTIONS[key] = psycopg.connect(url, autocommit=True, options=path)
    return _CONNECTIONS[key]


def forget_connections() -> None:
    """So that changed defaults of a database apply, and a role can be dropped."""
    for (process, _), connection in _CONNECTIONS.items():
        if process == os.getpid():
            connection.close()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def _unprivileged() -> dict[str, Any]:
    """Whom to run the server as: it refuses to run as root."""
    if os.geteuid():
        return {}
    import pwd  # which Windows does not have

    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            found = pwd.getpwnam(name)
            return {"user": name, "group": found.pw_gid, "extra_groups": []}
    raise RuntimeError("no user to run the server as")
