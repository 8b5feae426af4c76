"""Text in the form for plans and messages."""

from __future__ import annotations

import json
import re

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def quoted(text: str) -> str:
    """Text as an analyst would write it, with odd characters escaped."""
    return json.dumps(text, ensure_ascii=not text.isprintable())


def snake(name: str) -> str:
    """``"CumSum"`` as ``"cum_sum"``."""
    return _CAMEL.sub("_", name).lower()
