"""How much work something is, told by how often it enters functions of dpframe: a number that does
not depend on how busy a machine is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from tests.structure import PACKAGE


def entered(run: Callable[[], Any]) -> int:
    """How many calls of functions of the package there are while it runs, in this thread."""
    found = 0

    def watch(frame: FrameType, event: str, _: Any) -> None:
        nonlocal found
        found += event == "call" and frame.f_code.co_filename.startswith(str(PACKAGE))

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        run()
    finally:
        sys.setprofile(before)
    return found
