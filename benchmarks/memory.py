"""How much memory a fresh process needs for one piece of work. Linux only, from /proc."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path


def peak(script: str, *arguments: str) -> tuple[float, float]:
    """What `report` prints in a fresh process that runs `script --peak arguments`."""
    done = subprocess.run(
        [sys.executable, script, "--peak", *arguments], check=True, capture_output=True, text=True
    )
    most, grown = (float(part) for part in done.stdout.split())
    return most, grown


def report(work: Callable[[], object]) -> None:
    """Print the megabytes of this process at most while it works, and the growth in that."""
    Path("/proc/self/clear_refs").write_text("5")  # forget the highest size so far
    before = _resident("VmRSS")
    work()
    most = _resident("VmHWM")
    print(most, most - before)


def _resident(field: str) -> float:
    status = Path("/proc/self/status").read_text()
    return next(
        int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith(field)
    )
