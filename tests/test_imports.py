"""Importing dpframe loads next to nothing; what it offers is loaded when it is first used."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

import dpframe as dp
from dpframe.api import functions, polars_methods
from dpframe.api.registration import AGGREGATES, FRAME_METHODS

HEAVY = ("numpy", "pyarrow", "altair", "narwhals", "duckdb", "pyspark", "cryptography", "psycopg")


def printed(code: str) -> str:
    """What a fresh process prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_importing_loads_no_more_than_polars_and_names_of_methods() -> None:
    code = (
        "import sys, polars; before = set(sys.modules); import dpframe\n"
        "print(*sorted({m for m in set(sys.modules) - before if m.startswith('dpframe')}))\n"
        f"print({{*{HEAVY}}} & (set(sys.modules) - before))"
    )
    ours, heavy = printed(code).splitlines()
    assert ours == "dpframe dpframe.api dpframe.api.registration"
    assert heavy == "set()"


@pytest.mark.parametrize(
    "use",
    [
        "dpframe.Session(epsilon=1)",
        "dpframe.count()",
        "polars.col('x').dp_sum((0, 1))",
        "polars.DataFrame({'x': [1]}).dp_count(unit=dpframe.Rows())",
        "polars.LazyFrame({'x': [1]}).dp_protect(dpframe.Session(epsilon=1), dpframe.Rows())",
        "dpframe.accounting.BasicAccountant([])",
        "dpframe.errors.UnknownColumn('x')",
    ],
)
def test_each_entrance_works_first(use: str) -> None:
    assert printed(f"import polars, dpframe; print(type({use}).__module__)").startswith("dpframe")


def names_for_type_checkers() -> Iterator[tuple[str, str]]:
    """What `dpframe/__init__.py` imports for type checkers only: names with their modules."""
    tree = ast.parse(Path(dp.__file__).read_text(encoding="utf-8"))
    (block,) = (
        node for node in tree.body if isinstance(node, ast.If) and isinstance(node.test, ast.Name)
    )
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        assert node.module is not None
        for alias in node.names:
            yield alias.name, node.module


def test_what_type_checkers_see_is_what_there_is() -> None:
    seen = dict(names_for_type_checkers())
    assert set(seen) == set(dp.__all__)
    for module in ("accounting", "examples"):
        assert seen.pop(module) == "dpframe"
        assert inspect.ismodule(getattr(dp, module))
    assert {name: f"dpframe.{home}" for name, home in dp._HOMES.items()} == seen
    assert set(dp.__all__) <= set(dir(dp))
    for name, home in seen.items():
        assert getattr(dp, name) is getattr(sys.modules[home], name)


def test_every_error_is_public() -> None:
    assert set(dp.errors.__all__) <= set(dp.__all__)


@pytest.mark.parametrize("name", ["nothing", "Sessions", "_nothing", "__wrapped__", "cout"])
def test_what_there_is_not_is_no_attribute(name: str) -> None:
    with pytest.raises(AttributeError, match=f"module 'dpframe' has no attribute '{name}'"):
        getattr(dp, name)
    assert not hasattr(dp, name)


def test_methods_have_the_signatures_and_words_of_their_functions() -> None:
    for name in AGGREGATES:
        function = functions.BY_NAME[name]
        for method in (getattr(pl.Expr, f"dp_{name}"), getattr(pl.col("x"), f"dp_{name}")):
            assert inspect.signature(method) == inspect.signature(function)
            assert method.__doc__ == function.__doc__
    for name in FRAME_METHODS:
        function = getattr(polars_methods, name)
        for owner in (pl.DataFrame, pl.LazyFrame, pl.DataFrame({"x": [1]})):
            method = getattr(owner, name)
            assert inspect.signature(method) == inspect.signature(function)
            assert method.__doc__ == function.__doc__
