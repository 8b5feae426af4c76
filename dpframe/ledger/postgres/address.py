"""Where a server's database is, with user and password kept out of everything that people see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

import psycopg
from psycopg.conninfo import conninfo_to_dict

from dpframe.errors import LedgerError

SHOWN = "postgresql://..."
"""Shown for an unreadable URL, because the end of its password is unknown."""

DEFAULTS = {
    "application_name": "dpframe ledger",
    "connect_timeout": "10",
    "keepalives_idle": "10",  # so that a server that vanished is noticed in half a minute
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}


@dataclass(frozen=True, slots=True)
class Address:
    """A database of a server.

    Parameters
    ----------
    words
        For people: host, port and database.
    parameters
        For libpq; they may hold a password.
    """

    words: str
    parameters: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, url: str) -> Address:
        """The address that a URL names, with what libpq takes from the environment left to it.

        Raises
        ------
        LedgerError
            When it cannot be read, or reading it could show part of a password.
        """
        rest = url.partition("://")[2]
        before, at, after = rest.partition("@")
        # libpq would read "u:a/b@h" as host u and database b@h, and "u:a@b@h" as host b@h.
        if "@" in after or (at and any(mark in before for mark in "/?#[]")):
            raise _unreadable()
        try:
            found = conninfo_to_dict(url)
        except psycopg.Error:  # its message quotes the URL
            raise _unreadable() from None
        given = {k: str(v) for k, v in found.items() if v is not None}
        if not given.get("port", "0").replace(",", "").isdigit():
            raise _unreadable()
        return cls(_words(given), {**DEFAULTS, **given})


def _words(given: Mapping[str, str]) -> str:
    """All settings that identify the database, so that different ones never look the same."""
    host = quote(given.get("host", given.get("hostaddr", "")), safe=",:")
    port = f":{given['port']}" if "port" in given else ""
    name = given.get("dbname") or given.get("user", "")  # as libpq does
    named = ("hostaddr", "service") if "host" in given else ("service",)
    more = "&".join(f"{k}={quote(given[k], safe=',:')}" for k in named if k in given)
    return f"postgresql://{host}{port}/{quote(name, safe='')}" + (f"?{more}" if more else "")


def _unreadable() -> LedgerError:
    return LedgerError(
        f"the URL {SHOWN} cannot be read",
        where="ledger",
        remedy='write ledger="postgresql://host:5432/database", with special characters in '
        "any of its parts percent-encoded (@ is %40, / is %2F), and the password in ~/.pgpass",
    )
