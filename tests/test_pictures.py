"""The pictures in the documentation show what dpframe computes."""

from __future__ import annotations

import importlib.util
import re
import sys
from types import ModuleType

import pytest

from tests.documentation import ROOT

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pictures", ROOT / "docs" / "pictures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


SCRIPT = _script()


@pytest.mark.parametrize("name", SCRIPT.PICTURES)
def test_pictures_are_current(name: str) -> None:
    kept, drawn = (SCRIPT.HERE / name).read_text(), SCRIPT.PICTURES[name]()
    assert _NUMBER.sub("#", kept) == _NUMBER.sub("#", drawn), "run docs/pictures.py"
    # a tenth of a pixel is left to the last digits of floats
    found = [[float(n) for n in _NUMBER.findall(text)] for text in (kept, drawn)]
    assert found[0] == pytest.approx(found[1], abs=0.11), "run docs/pictures.py"


def test_every_picture_is_made_and_shown() -> None:
    shown = "".join(page.read_text() for page in (ROOT / "docs").glob("*.md"))
    kept = {path.name for path in SCRIPT.HERE.iterdir()}
    assert kept == set(SCRIPT.PICTURES)
    assert all(f"](pictures/{name})" in shown for name in kept)
