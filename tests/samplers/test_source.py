"""The door to randomness: shapes, fairness, no state, no other door."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import numpy as np
import pytest

import dpframe.samplers
from dpframe.samplers import OS, OSBits
from tests.syntax import nodes_of

PACKAGE = Path(dpframe.samplers.__file__).parents[1]


@pytest.mark.parametrize("n", [0, 1, 7, 8, 1000])
def test_shapes_and_types(n: int) -> None:
    for drawn, dtype in (
        (OS.u16(n), "uint16"),
        (OS.u32(n), "uint32"),
        (OS.u64(n), "uint64"),
        (OS.bits(n), "int8"),
    ):
        assert drawn.shape == (n,)
        assert drawn.dtype == dtype
    assert set(np.unique(OS.bits(n))) <= {0, 1}
    assert 0 <= OS.int64bits() < 1 << 64


def test_every_bit_is_fair() -> None:
    # 1e5 words; each frequency is within 7 standard deviations except with probability 1e-10
    n = 100_000
    for width, words in ((16, OS.u16(n)), (32, OS.u32(n)), (64, OS.u64(n)), (1, OS.bits(n))):
        for place in range(width):
            ones = int(((words >> words.dtype.type(place)) & words.dtype.type(1)).sum())
            assert abs(ones - n / 2) < 7 * np.sqrt(n / 4)
    ones = sum(OS.int64bits().bit_count() for _ in range(2000))
    assert abs(ones - 64_000) < 7 * np.sqrt(32_000)


def test_there_is_no_state_to_share() -> None:
    assert not hasattr(OSBits(), "__dict__")
    assert OSBits.__slots__ == ()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forked_workers_never_repeat_each_other() -> None:
    OS.u64(4)
    outputs = []
    for _ in range(2):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:  # pragma: no cover
            os.write(write, OS.u64(4).tobytes())
            os._exit(0)
        os.waitpid(child, 0)
        outputs.append(os.read(read, 32))
        os.close(read)
        os.close(write)
    assert len(outputs[0]) == 32
    assert outputs[0] != outputs[1]


def _imports(path: Path) -> set[str]:
    names: set[str] = set()
    for node in nodes_of(path.read_text()):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            names.add(f"{node.value.id}.{node.attr}")
    return names


NO_NOISE = {"ledger/postgres.py": {"secrets"}}
"""Not noise: the number of a row that nobody can guess, which the operating system draws too."""


def test_there_is_no_other_door() -> None:
    forbidden = {"random", "numpy.random", "np.random", "secrets"}
    for path in PACKAGE.rglob("*.py"):
        allowed = NO_NOISE.get(path.relative_to(PACKAGE).as_posix(), set())
        imports = _imports(path)
        assert imports & forbidden == allowed, path
        if path.name != "source.py" or path.parent.name != "samplers":
            assert "os.urandom" not in imports, path


def test_only_mechanisms_import_the_samplers() -> None:
    for path in PACKAGE.rglob("*.py"):
        if path.parent.name not in ("samplers", "mechanisms"):
            assert not {n for n in _imports(path) if n.startswith("dpframe.samplers")}, path
