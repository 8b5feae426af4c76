"""Trees as expressions, facts and words."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import polars as pl
import pytest

from dpframe.core.dtypes import INT64, STRING, DType, domain_of_dtype
from dpframe.core.tree import Column, Literal
from dpframe.errors import UnsupportedOperation
from dpframe.rows import fold
from dpframe.rows.constants import constant
from dpframe.rows.maths import Abs
from tests.calls import call
from tests.rows.running import X


@pytest.mark.parametrize("method", ["domain", "lower"])
@pytest.mark.parametrize("error", [ValueError, OverflowError, pl.exceptions.ComputeError])
def test_what_goes_wrong_is_a_refusal_that_says_nothing_more(
    method: str, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> Any:
        raise error("secret")

    monkeypatch.setattr(Abs, method, fails)
    known = {"x": domain_of_dtype(INT64)}
    tree = call("add", call("abs", X), X)
    with pytest.raises(UnsupportedOperation) as caught:
        (fold.domain if method == "domain" else fold.lower)(tree, known)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("op", ["coalesce", "when", "min_horizontal"])
def test_categories_of_two_columns_meet_as_text(op: str) -> None:
    """Each numbers its categories for itself."""
    known = {name: domain_of_dtype(DType("Categorical")) for name in "xy"}
    known["b"] = domain_of_dtype(DType("Boolean"))
    operands = [Column("b"), X, Column("y")] if op == "when" else [X, Column("y")]
    if op == "min_horizontal":
        with pytest.raises(UnsupportedOperation, match="order"):
            fold.domain(call(op, *operands), known)
    else:
        assert fold.domain(call(op, *operands), known).dtype == STRING


def test_a_flag_beside_whole_numbers_is_one_of_them() -> None:
    known = {"x": domain_of_dtype(DType("Int8"))}
    for value in (True, False):
        tree = call("coalesce", X, Literal(value, DType("Boolean")))
        assert fold.domain(tree, known).dtype == INT64
    assert fold.domain(call("coalesce", X, Literal(1, INT64)), known).dtype == DType("Int8")
    assert fold.domain(call("coalesce", X, Literal(300, INT64)), known).dtype == INT64


@pytest.mark.parametrize(
    "text", ["9" * 38, "-" + "9" * 38, "0." + "1" * 38, "1" * 19 + "." + "2" * 19]
)
def test_constants_of_38_digits_are_exact(text: str) -> None:
    made = constant(Decimal(text))
    assert pl.select(fold.lower(made, {})).item() == Decimal(text)
