"""A process that has read the large libraries and forks to run tests: each run starts at once.

Run as a script, not as a module of the package: nothing of the project may be imported before the
fork, as each run meets another copy of it. One request a line on standard input, as JSON: the
copy's folder, the tests, and the seconds they may take; one answer a line: `passed`, `failed`.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path

import duckdb  # noqa: F401
import hypothesis  # noqa: F401
import narwhals  # noqa: F401
import numpy as np  # noqa: F401
import polars as pl  # noqa: F401
import pytest
import scipy.stats  # type: ignore[import-untyped]  # noqa: F401


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        print(_run(Path(asked["copy"]), asked["tests"], asked["seconds"]), flush=True)


def _run(copy: Path, tests: list[str], seconds: float) -> str:
    child = os.fork()
    if child == 0:
        _child(copy, tests)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            _stop(child)
            return "passed" if os.waitstatus_to_exitcode(status) == 0 else "failed"
        time.sleep(0.01)
    _stop(child)
    os.waitpid(child, 0)
    return "failed"  # it hangs, which is seen


def _stop(child: int) -> None:
    """End what the tests started, and what still runs of them."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)


def _child(copy: Path, tests: list[str]) -> None:
    code = 1
    try:
        os.setsid()
        os.chdir(copy)
        os.environ["PYTHONPATH"] = str(copy)
        os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = str(copy / "cache")
        sys.dont_write_bytecode = False  # else each run compiles all modules again
        sys.path[:] = [str(copy), *sys.path[1:]]
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        code = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "--no-header", *tests]))
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
