"""Trees as expressions, facts and words."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from dpframe.core.domain import domain_of_dtype
from dpframe.core.dtypes import INT64
from dpframe.core.tree import call
from dpframe.errors import UnsupportedOperation
from dpframe.rows import fold
from dpframe.rows.fold import operation
from tests.rows.running import X


@pytest.mark.parametrize("method", ["domain", "lower"])
@pytest.mark.parametrize("error", [ValueError, OverflowError, pl.exceptions.ComputeError])
def test_what_goes_wrong_is_a_refusal_that_says_nothing_more(
    method: str, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> Any:
        raise error("secret")

    monkeypatch.setattr(type(operation("abs")), method, fails)
    known = {"x": domain_of_dtype(INT64)}
    tree = call("add", call("abs", X), X)
    with pytest.raises(UnsupportedOperation) as caught:
        (fold.domain if method == "domain" else fold.lower)(tree, known)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
