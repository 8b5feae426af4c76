"""Where a ledger is: nothing, a path or a URL."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from dpframe.core.budget import ApproxDP, Budget
from dpframe.core.windows import Every
from dpframe.errors import LedgerError, NoBudget, location
from dpframe.ledger import budgets
from dpframe.ledger.ledger import Ledger
from dpframe.ledger.store import MemoryStore, Store

if TYPE_CHECKING:
    from dpframe.ledger.record import Seal

Place: TypeAlias = "str | os.PathLike[str] | None"

SERVERS = ("postgresql://", "postgres://")

_PASSWORD = re.compile(r"(?i)\b(password|passwd|pwd)\s*=")
_VALUE = r"\s*=\s*(?:'(?:[^'\\]|\\.)*'|[^\s'/]*)"
_KEYWORD = (
    r"(?i:host|hostaddr|port|dbname|user|passfile|service|options|application_name|ssl\w+|"
    r"connect_timeout|target_session_attrs)"
)
_SETTINGS = re.compile(
    rf"\s*{_KEYWORD}{_VALUE}\s*|\s*(?:{_KEYWORD}\s*=\s*(?:'[^']*'|\S*)(?:\s+|$)){{2,}}"
)
"""Settings of a connection; a single one must have no slash, because it may be a folder."""
_OPTIONS = re.compile(r"\?\w+=")
_MISSPELT = re.compile(r"(?i)(sqlite|postgres(ql)?):")

HEAD_VARIABLE = "DPFRAME_LEDGER_HEAD"
"""The environment variable with the path of a head file apart from the ledger, if any."""

DEFAULT_NAME = "default"
"""The budget of a ledger that is opened without a name."""


def open_ledger(
    place: Place,
    name: str | None,
    budget: Budget,
    within: ApproxDP | None = None,
    *,
    must_exist: bool = False,
    create: bool = False,
    per: Every | None = None,
) -> Ledger:
    """The ledger at a place, with one budget opened or created.

    `within` is the (epsilon, delta) that a budget of rho implies, where sessions give that: the
    budget is then created with this rho, and opened with the rho that it was created with. If it
    `must_exist`, nothing is created; within `opening.only` that may depend on whether the session
    says `create`. With `per` it is for each window of time of that length.

    Raises
    ------
    LedgerError
        When it cannot be opened, does not verify, or holds another budget by that name; when
        `opening.only` allows another one.
    NoBudget
        When it does not exist and may not be new; nothing is created then.
    """
    named = DEFAULT_NAME if name is None else name
    if place is None:
        budgets.require_allowed(None, named, _full_place)
        return Ledger(MemoryStore(), DEFAULT_NAME, budget, within, per=per)
    new = budgets.new_budget(must_exist=must_exist, create=create)
    store = store_at(place, create=new == "open")
    budgets.require_allowed(store.where, named, _full_place)
    try:
        return Ledger(store, named, budget, within, must_exist=new != "open", per=per)
    except NoBudget as refusal:
        if new == "plan":
            budgets.tell_absent(refusal)
            return AbsentBudget(named, refusal, budget, within, per)
        if budgets.create_would_open(must_exist=must_exist):
            first = (refusal.remedy or "").partition("\n")[0]
            refusal.remedy = f"{first}\nlet this run open it: add --create"
        raise


class AbsentBudget(Ledger):
    """A budget that does not exist, for commands that only plan: plans are those of a new one, and
    every charge is refused.
    """

    def __init__(
        self,
        name: str,  # What it would be called
        refusal: NoBudget,  # Why nothing can be charged
        budget: Budget,
        within: ApproxDP | None = None,
        per: Every | None = None,
    ) -> None:
        super().__init__(MemoryStore(), DEFAULT_NAME, budget, within, per=per)
        self._called = name
        self._refusal = refusal

    @property
    def name(self) -> str:
        return self._called

    @property
    def where(self) -> str:
        return "not opened yet"

    def charge(self, *_: object, **__: object) -> NoReturn:
        """Raise `NoBudget`: what is released must be on record."""
        raise self._refusal


def _full_place(place: str | os.PathLike[str]) -> str:
    return store_at(place).where


def store_at(place: str | os.PathLike[str], *, create: bool = True, pinned: bool = True) -> Store:
    """The store that a path or URL names; the key comes from the environment, and so does the head
    file elsewhere if it is `pinned`. Raises `LedgerError` when it names none.
    """
    from dpframe.ledger.record import Seal

    text = _text(place)
    seal = Seal.from_environment()
    pin = _pin() if pinned else None
    if text.startswith(SERVERS):
        return _on_server(text, seal, pin, create=create)
    from dpframe.ledger.sqlite import SqliteStore

    return SqliteStore(_path(text), seal, pin=pin, create=create)


def _pin() -> Path | None:
    path = os.environ.get(HEAD_VARIABLE)
    return Path(path) if path else None


def _on_server(url: str, seal: Seal, pin: Path | None, *, create: bool) -> Store:
    try:
        from dpframe.ledger.postgres import PostgresStore
    except ImportError:
        raise LedgerError(
            "a ledger in PostgreSQL needs the package psycopg, version 3",
            where="ledger",
            remedy='pip install "dpframe[postgres]"',
        ) from None
    return PostgresStore.at(url, seal, witness=pin, create=create)


def _text(place: object) -> str:
    try:
        text = os.fspath(place)  # type: ignore[call-overload]
    except TypeError:
        text = None
    if not isinstance(text, str):
        raise _unusable(place, "is not a path")
    _require_no_connection(text)
    return text


def _path(text: str) -> Path:
    place = text
    scheme, separator, rest = text.partition("://")
    if separator:
        if scheme != "sqlite" or not rest.startswith("/"):
            raise _unusable(text, "is a URL of an unknown kind")
        text = rest[1:]  # after SQLAlchemy: three slashes and a relative path, four and absolute
    elif _MISSPELT.match(text):
        kind = text.partition(":")[0]  # what follows may be a password
        raise _unusable(f"{kind}:...", f"is neither a path nor a URL, which begins {kind}://")
    elif text.startswith("file:"):
        raise _unusable(text, "is a URL of an unknown kind")
    if _OPTIONS.search(text):
        raise _unusable(place, "has options after '?', which ledgers do not take")
    if not text.strip() or text == ":memory:" or "\0" in text:
        raise _unusable(place, "is not a file, so the budget would end with the process")
    if not os.path.basename(os.path.realpath(text)):
        raise _unusable(place, "is a directory")
    return Path(text)


def _require_no_connection(text: str) -> None:
    """Refuse what libpq or others read as a database, with a password perhaps: it is not shown."""
    if text.startswith(SERVERS) or not (_PASSWORD.search(text) or _SETTINGS.fullmatch(text)):
        return
    raise LedgerError(
        "ledger= is a connection string, which dpframe would take for the name of a file",
        where="ledger",
        remedy='write ledger="postgresql://host:5432/database", and put the password '
        "into ~/.pgpass",
    )


def _unusable(place: object, why: str) -> LedgerError:
    shown = location(place) if isinstance(place, str) else place
    return LedgerError(
        f"the ledger {shown!r} {why}",
        where="ledger",
        remedy=(
            'write the path of a file, ledger="budget.db", or ledger="postgresql://host/name"',
            "leave ledger= out to keep the budget in memory",
        ),
    )
