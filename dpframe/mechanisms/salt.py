"""The salt of contribution limits. No mechanism: privacy does not rest on it, but randomness comes
through mechanisms alone.
"""

from __future__ import annotations

from dpframe.samplers import OS


def fresh_salt() -> int:
    """64 secret bits from the operating system."""
    return OS.int64bits()
