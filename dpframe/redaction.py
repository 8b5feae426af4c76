"""What of a location people may see: an address without what gives access to it.

A presigned address carries its permission in its query, a server's address its password before the
host. Messages, representations, plans, histories and ledgers quote locations through here.
"""

from __future__ import annotations

import re

_URL = re.compile(
    r"[A-Za-z][A-Za-z0-9+.\-]*://"
    r"(?:(?=\S*[@?#])\S*?(?=['\"<>)\],.;:]*(?:\s|$))|[^\s'\"<>]*)"
)
"""A quotation mark ends an address, but may be part of a secret: where one may be, marks at the end
of the word do.
"""
_HIDDEN = "..."


def location(place: object) -> str:
    """A path or address as messages may quote it: without user, password, query and fragment."""
    text = str(place)
    scheme, separator, rest = text.partition("://")
    if not separator:
        return text
    return f"{scheme}://{_shown(rest)}"


def redacted(text: str) -> str:
    """A message with each address in it as `location` gives it."""
    if "://" not in text:
        return text
    return _URL.sub(lambda found: location(found[0]), text)


def _shown(rest: str) -> str:
    """Host and path. If an ``@`` follows a ``?`` or ``#``, it is unknown whether a password
    continues there, so nothing is shown.
    """
    end = min((i for i in map(rest.find, "?#") if i >= 0), default=len(rest))
    kept, cut = rest[:end], rest[end:]
    if "@" in cut:
        return _HIDDEN
    _, user, place = kept.rpartition("@")
    return (f"{_HIDDEN}@" if user else "") + place + (f"{cut[0]}{_HIDDEN}" if cut else "")
