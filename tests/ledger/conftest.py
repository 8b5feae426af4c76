"""Where ledgers of tests lie: in memory where that is possible, because each charge waits for the
disk. What a killed process leaves behind is the same there.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

_FAST = "/dev/shm"


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    place = tempfile.mkdtemp(dir=_FAST if os.access(_FAST, os.W_OK) else None)
    yield Path(place)
    shutil.rmtree(place, ignore_errors=True)
