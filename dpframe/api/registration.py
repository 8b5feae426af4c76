"""The methods that importing dpframe adds to Polars, which load what they need when they are used.

On expressions: ``pl.col("x").dp_sum((0, 1))`` and its family. On frames: ``dp_protect``, and
``dp_count``, ``dp_sum``, ``dp_histogram``, ``dp_argmax``. All are registered by Polars' own
extension interface, under names of their own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import polars as pl

__all__ = ["AGGREGATES", "FRAME_METHODS", "register"]

AGGREGATES: Final = (
    *("count", "sum", "mean", "var", "std", "median", "quantile"),
    *("n_unique", "bounds", "histogram", "argmax"),
)
"""The functions that make a dp expression; expressions have each as a method ``dp_...``."""
FRAME_METHODS: Final = ("dp_protect", "dp_count", "dp_sum", "dp_histogram", "dp_argmax")


class Method:
    """An accessor of Polars' extension interface: looked up on a frame or an expression, it is a
    function of that.

    Parameters
    ----------
    name
        Of the method.
    of_expressions
        Whether expressions have it, and not frames.
    """

    def __init__(self, name: str, of_expressions: bool) -> None:
        self._name, self._of_expressions = name, of_expressions

    def __call__(self, owner: Any) -> Callable[..., Any]:
        found = self._function
        return functools.update_wrapper(functools.partial(found, owner), found)

    @property
    def _function(self) -> Callable[..., Any]:
        if self._of_expressions:
            from dpframe.api.functions import BY_NAME

            return BY_NAME[self._name.removeprefix("dp_")]
        from dpframe.api import polars_methods

        found: Callable[..., Any] = getattr(polars_methods, self._name)
        return found

    @property
    def __doc__(self) -> str | None:  # type: ignore[override]
        return self._function.__doc__

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        """What signatures are read from."""
        return self._function


def register() -> None:
    """Add the methods to Polars; again is harmless."""
    for name in AGGREGATES:
        _add(pl.api.register_expr_namespace, pl.Expr, f"dp_{name}", of_expressions=True)
    for name in FRAME_METHODS:
        _add(pl.api.register_dataframe_namespace, pl.DataFrame, name, of_expressions=False)
        _add(pl.api.register_lazyframe_namespace, pl.LazyFrame, name, of_expressions=False)


def _add(register_namespace: Any, owner: type, name: str, *, of_expressions: bool) -> None:
    if not hasattr(owner, name):
        register_namespace(name)(Method(name, of_expressions))
