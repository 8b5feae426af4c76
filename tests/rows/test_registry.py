"""The registry: complete, and closed."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from dpframe.errors import InvalidBounds, UnsupportedOperation
from dpframe.rows import registry
from dpframe.rows.arithmetic import Add
from dpframe.rows.maths import Round
from dpframe.rows.operation import Kind, PlainOperation, RowMethod, RowOperation, operation
from dpframe.rows.registry import BY_NAME, OPERATIONS, READERS
from tests.calls import call


def operations(kind: type = RowOperation) -> Iterator[type]:
    """All classes of operations that the package has and that can be made."""
    for one in kind.__subclasses__():
        module = sys.modules[one.__module__]
        if getattr(module, one.__name__, None) is one and one.__module__.startswith("dpframe."):
            if not getattr(one, "__abstractmethods__", None) and hasattr(one, "name"):
                yield one
            yield from operations(one)


def test_every_operation_is_registered() -> None:
    gc.collect()
    registered = {kind if isinstance(kind, type) else type(kind) for kind in OPERATIONS}
    assert {kind.__qualname__ for kind in operations()} == {k.__qualname__ for k in registered}
    assert set(operations()) == registered
    assert all(kind.__module__.startswith("dpframe.rows.") for kind in registered)


def test_every_operation_has_one_name_and_says_what_it_is_read_from() -> None:
    assert len(BY_NAME) == len(OPERATIONS)
    for kind in OPERATIONS:
        for function in kind.reads:
            assert READERS[function] == kind.read
    with pytest.raises(TypeError):
        BY_NAME["new"] = Add  # type: ignore[index]
    with pytest.raises(TypeError):
        READERS["New"] = Add.read  # type: ignore[index]


def test_two_operations_do_not_share_a_name_or_a_function() -> None:
    with pytest.raises(TypeError, match="'add'"):
        registry._by_name((Add, Add))
    with pytest.raises(TypeError, match=r"Operator\.Plus"):
        registry._readers((), (Add, Add))


@pytest.mark.parametrize("kind", OPERATIONS, ids=lambda kind: kind.name)
def test_an_operation_is_a_frozen_value(kind: Kind) -> None:
    cls = kind if isinstance(kind, type) else type(kind)
    assert issubclass(cls, PlainOperation) != issubclass(cls, RowMethod)
    assert all("__slots__" in vars(part) for part in cls.__mro__ if part is not object)
    assert isinstance(kind, type) == bool(issubclass(cls, RowMethod))


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("str_head", {"n": "2"}, "the length of str.head is not an integer"),
    ("str_head", {"n": True}, "the length of str.head is not an integer"),
    ("str_starts_with", {"prefix": 1}, "the prefix of str.starts_with is not a text"),
    ("str_strip_chars", {"characters": 1}, "the characters of str.strip_chars is not a text"),
    ("struct", {"names": ["a"]}, "the names of struct is not a list of texts"),
    ("struct", {"names": ("a", 1)}, "the names of struct is not a list of texts"),
    (
        "mean_horizontal",
        {"ignore_nulls": None},
        "the ignore_nulls of mean_horizontal is not True or False",
    ),
    ("cast", {"dtype": "Int64"}, "the dtype of cast is not a type"),
    ("log", {"base": "e"}, "the base of log is not a number"),
    (
        "is_in",
        {"values": [1], "nulls_equal": False},
        "the values of is_in is not a list of constants",
    ),
]
LARGE: list[tuple[str, dict[str, Any], str]] = [
    ("str_head", {"n": 2**63}, "the length of str.head does not fit in Int64"),
    ("log", {"base": 10**400}, "the base of log does not fit in Float64"),
]


@pytest.mark.parametrize(("op", "constants", "message"), WRONG)
def test_constants_are_of_the_types_of_the_fields(
    op: str, constants: dict[str, Any], message: str
) -> None:
    with pytest.raises(UnsupportedOperation) as caught:
        call(op, **constants)
    assert caught.value.what == message


@pytest.mark.parametrize(("op", "constants", "message"), LARGE)
def test_integers_have_64_bits(op: str, constants: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidBounds) as caught:
        call(op, **constants)
    assert caught.value.what == message


def test_a_constant_of_a_type_that_nothing_checks_is_refused() -> None:
    @operation
    class Odd(RowMethod):
        name = "odd"
        constant: set[int]

        def domain(self, args: Any) -> Any:
            raise NotImplementedError

        def lower(self, ns: Any, args: Any, domains: Any) -> Any:
            raise NotImplementedError

        def words(self, args: Any) -> str:
            return ""

    with pytest.raises(TypeError, match=r"Odd\.constant"):
        Odd({1})


def test_constants_cannot_be_set() -> None:
    for value, field in ((Round(2), "decimals"), (BY_NAME["dt_month"], "values")):
        with pytest.raises(AttributeError):
            setattr(value, field, 3)
