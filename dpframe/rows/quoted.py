"""Text as it is shown in plans and messages."""

from __future__ import annotations

import json


def quoted(text: str) -> str:
    """Text as an analyst would write it, with odd characters escaped."""
    return json.dumps(text, ensure_ascii=not text.isprintable())
