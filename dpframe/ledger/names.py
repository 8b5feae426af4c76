"""Names of budgets: what a new one may be, and which ones people take for each other.

A name that is mistyped opens a fresh budget for people whose budget is spent. So all characters
of a new name must be visible, and it must not look like an existing name. Names that a ledger has
already are used as they are, and shown with what cannot be seen escaped.
"""

from __future__ import annotations

import shlex
import unicodedata
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from dpframe.errors import LedgerError, NoBudget
from dpframe.ledger.record import plain_text

LONGEST = 200
"""Characters of a new name."""

_UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0") | {
    chr(c) for c in (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))
}
"""Letters and marks that show nothing: fillers, joiners and variation selectors."""


def require_distinct(name: str, known: Iterable[str]) -> None:
    """Refuse a new name that people would take for one that is there.

    Raises
    ------
    LedgerError
        With the name that is there.
    """
    for other in known:
        if other != name and _look(other) == _look(name):
            raise LedgerError(
                f"the ledger has no budget {name!r}, but {other!r}, which looks nearly the same",
                where=f"name={name!r}",
                remedy=(f"write name={other!r}", "choose a name that differs more"),
            )


def require_new(name: str, known: Iterable[str]) -> None:
    """Refuse a name for a new budget that looks like an existing one.

    Raises
    ------
    LedgerError
        When it looks like one of those, or has characters that cannot be seen.
    """
    require_distinct(plain_text(name, "name"), known)
    seen = name.isprintable() and name == name.strip() and _UNSEEN.isdisjoint(name)
    if not seen or len(name) > LONGEST:
        raise LedgerError(
            f"the name of a new budget has 1 to {LONGEST} visible characters on one line, and no "
            "space at either end",
            where=f"name={name[: LONGEST + 1]!r}",
            remedy='write for example name="census 2026"',
        )


def no_budget(name: str, known: Iterable[str], where: str | None = None) -> NoBudget:
    """The refusal of a budget that a ledger does not have; `where` is its place."""
    names = tuple(known)
    close = close_names(name, names)
    ledger = "the ledger" if where is None else f"the ledger {where!r}"
    create = f"open it first: {create_command(shlex.quote(name))}"
    return NoBudget(
        f"{ledger} has no budget {name!r}",
        where=f"name={name!r}",
        why=f"its budgets are {name_list(names)}" if names else "it has no budget yet",
        remedy=(f"write name={' or '.join(map(repr, close))}", create) if close else create,
    )


def create_command(name: str = "NAME") -> str:
    """The command that opens a budget."""
    return f"`dpframe ledger create --ledger WHERE --name {name} --epsilon AMOUNT --by WHO`"


def name_list(names: Sequence[str]) -> str:
    """Some names of a ledger's budgets in words; empty if there are no names."""
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(map(repr, names[:5])) + more


def close_names(name: str, known: Iterable[str]) -> list[str]:
    """At most three known names that people may have meant, the closest first."""
    looks: dict[str, list[str]] = {}
    for other in known:
        looks.setdefault(_look(other), []).append(other)
    closest = get_close_matches(_look(name), looks, n=3, cutoff=0.6)
    return [other for look in closest for other in looks[look]][:3]


def _look(name: str) -> str:
    """What is the same for names that differ in case, spaces, ways to write a character, or what
    cannot be seen.
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    words = " ".join(folded.split())
    shown = (c for c in words if c not in _UNSEEN and unicodedata.category(c)[0] != "C")
    return " ".join("".join(shown).split())
