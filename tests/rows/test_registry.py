"""The registry: complete, and closed."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator

import pytest

from dpframe.rows import registry
from dpframe.rows.arithmetic import Add
from dpframe.rows.operation import Kind, ParametricOperation, PlainOperation, RowOperation
from dpframe.rows.registry import BY_NAME, OPERATIONS, READERS
from dpframe.rows.rounding import Round


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
        BY_NAME["new"] = Add()  # type: ignore[index]
    with pytest.raises(TypeError):
        READERS["New"] = Add().read  # type: ignore[index]


def test_two_operations_do_not_share_a_name_or_a_function() -> None:
    with pytest.raises(TypeError, match="'add'"):
        registry._by_name((Add(), Add()))
    with pytest.raises(TypeError, match=r"Operator\.Plus"):
        registry._readers((), (Add(), Add()))


@pytest.mark.parametrize("kind", OPERATIONS, ids=lambda kind: kind.name)
def test_an_operation_is_a_frozen_value(kind: Kind) -> None:
    cls = kind if isinstance(kind, type) else type(kind)
    assert issubclass(cls, PlainOperation) != issubclass(cls, ParametricOperation)
    assert all("__slots__" in vars(part) for part in cls.__mro__ if part is not object)
    assert isinstance(kind, type) == bool(issubclass(cls, ParametricOperation))


def test_constants_cannot_be_set() -> None:
    for operation, field in ((Round(2), "decimals"), (BY_NAME["dt_month"], "values")):
        with pytest.raises(AttributeError):
            setattr(operation, field, 3)
