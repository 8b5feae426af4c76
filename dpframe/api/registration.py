"""The methods that importing dpframe adds to Polars, which load what they need when they are used.

On expressions: ``pl.col("x").dp_sum((0, 1))`` and its family. On frames: ``dp_protect``, and
``dp_count``, ``dp_sum``, ``dp_histogram``, ``dp_cdf``, ``dp_argmax``. All are registered by Polars'
own extension interface, under names of their own. Unknown names in ``dp_``, such as ``dp_max``,
are refused with what to write instead.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from typing import Final, TypeAlias

import polars as pl

__all__ = ["AGGREGATES", "FRAME_METHODS", "register"]

AGGREGATES: Final = (
    *("count", "sum", "mean", "var", "std", "ratio", "median", "quantile"),
    *("n_unique", "bounds", "histogram", "cdf", "argmax"),
)
"""The functions that make a dp expression; expressions have each as a method ``dp_...``."""
FRAME_METHODS: Final = (
    *("dp_protect", "dp_count", "dp_sum"),
    *("dp_histogram", "dp_cdf", "dp_argmax"),
)

_Function: TypeAlias = Callable[..., object]
_Getter: TypeAlias = Callable[[pl.Expr, str], object]


class Method:
    """An accessor of Polars' extension interface: looked up on a frame or an expression, it is a
    function of that.

    Parameters
    ----------
    home, name
        The module of the function and its name there. The module is loaded when the function is
        needed.
    """

    def __init__(self, home: str, name: str) -> None:
        self._home, self._name = home, name

    def __call__(self, owner: object) -> _Function:
        found = self._function
        return functools.update_wrapper(functools.partial(found, owner), found)

    @property
    def _function(self) -> _Function:
        found: _Function = getattr(import_module(self._home), self._name)
        return found

    @property
    def __doc__(self) -> str | None:  # type: ignore[override]
        return self._function.__doc__

    @property
    def __wrapped__(self) -> _Function:
        """What signatures are read from."""
        return self._function


def register() -> None:
    """Add the methods to Polars; again is harmless."""
    for name in AGGREGATES:
        method = Method("dpframe.api.functions", name)
        _add(pl.api.register_expr_namespace, pl.Expr, f"dp_{name}", method)
    for name in FRAME_METHODS:
        method = Method("dpframe.api.polars_methods", name)
        _add(pl.api.register_dataframe_namespace, pl.DataFrame, name, method)
        _add(pl.api.register_lazyframe_namespace, pl.LazyFrame, name, method)
    if getattr(vars(pl.Expr).get("__getattr__"), "__module__", None) != __name__:
        pl.Expr.__getattr__ = _naming_methods(  # type: ignore[attr-defined]
            vars(pl.Expr).get("__getattr__")
        )


def _naming_methods(before: _Getter | None) -> _Getter:
    """What answers for attributes that expressions do not have: as before, and of ``dp_`` methods
    with what to write instead.
    """

    def lacking(expression: pl.Expr, name: str) -> object:
        if name.startswith("dp_"):
            import_module("dpframe.api.expressions").refuse_method(expression, name)
        if before is not None:
            return before(expression, name)
        kind = type(expression).__name__
        raise AttributeError(
            f"{kind!r} object has no attribute {name!r}", name=name, obj=expression
        )

    return lacking


def _add(register: Callable[[str], _Function], owner: type, name: str, method: Method) -> None:
    if not hasattr(owner, name):
        register(name)(method)
