"""Code that generated parts of pages show: formatted, and beside other code."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence


def formatted(snippets: Sequence[str], width: int) -> list[str]:
    """Expressions as Ruff writes them, in lines of at most `width` where that can be."""
    apart = "# next"
    command = [sys.executable, "-m", "ruff", "format", "--isolated", f"--line-length={width}", "-"]
    done = subprocess.run(
        command, input=f"\n{apart}\n".join(snippets), capture_output=True, text=True, check=True
    )
    return [text.strip() for text in done.stdout.split(apart)]
