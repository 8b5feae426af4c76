"""Operations that are one method of Polars, with constants."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
from types import MappingProxyType
from typing import Any, ClassVar

import polars as pl

from dpframe.core.tree import Tree
from dpframe.rows.given import Operand, integer, integer_or_none, text, text_or_none
from dpframe.rows.operation import Namespace, ParametricOperation
from dpframe.rows.quoted import quoted, snake

_CONSTANTS: Mapping[str, Callable[[Operand, str], Any]] = MappingProxyType(
    {"str": text, "str | None": text_or_none, "int": integer, "int | None": integer_or_none}
)
"""What reads a constant from an operand, by the type of its field."""


def _fields(kind: Any) -> tuple[Any, ...]:
    """The constants of a class or a value that `operation` has made a dataclass."""
    return fields(kind)


class MethodOperation(ParametricOperation):
    """One method of Polars, on one operand, with constants.

    Everything follows from the class statement. ``class StripPrefix`` with the `namespace` ``str``
    and the field ``prefix: str`` is ``.str.strip_prefix(prefix)``:

    - `name` is ``str_strip_prefix``, and `reads` has ``StripPrefix`` of each of its `groups`. Where
      the name of the class begins with the namespace, it counts once: ``ListGet`` is ``list_get``.
    - `summary` is the first paragraph of the docstring.
    - `read` takes constants from the operands after the first one, in the order of the fields. The
      fields for which no operand is left are parameters of Polars, with the same names.
    - `words` and `apply` call the method with the constants in this order. A flag has its keyword.

    A subclass states what differs. One without examples is a base of others.
    """

    __slots__ = ()
    namespace: ClassVar[str] = ""
    groups: ClassVar[tuple[str, ...]] = ()
    """The groups of Polars' functions that have one of this name."""
    called: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """What refusals call a constant, where its field has a name that says little."""
    method: str
    """With its namespace: ``"str.strip_prefix"``."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        own = vars(cls)
        if "examples" not in own:
            return
        prefix = cls.namespace.capitalize()
        camel = cls.__name__
        if prefix and camel.removeprefix(prefix)[:1].isupper():  # ListGet, but not StripChars
            camel = camel.removeprefix(prefix)
        if "name" not in own:
            cls.name = "_".join(filter(None, (cls.namespace, snake(camel))))
        if "reads" not in own:
            cls.reads = tuple(f"{group}.{camel}" for group in cls.groups)
        if "summary" not in own:
            cls.summary = inspect.cleandoc(cls.__doc__ or "").split("\n\n")[0].replace("\n", " ")
        if "method" not in own:
            cls.method = cls.name.replace("_", ".", 1) if cls.namespace else cls.name

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
        source, *given = operands
        constants, left = _fields(cls)[: len(given)], _fields(cls)[len(given) :]
        values = {
            field.name: _CONSTANTS[field.type](
                value, f"the {cls.called.get(field.name, field.name)} of {cls.method}"
            )
            for field, value in zip(constants, given, strict=True)
        }
        if left:
            named = cls.parameters(params)
            values |= {field.name: named[field.name] for field in left}
        return cls(**values).of(source)

    @classmethod
    def parameters(cls, params: Any) -> Mapping[str, Any]:
        """Constants by their names, from the parameters in Polars' form; one may stand alone."""
        return params if isinstance(params, Mapping) else {_fields(cls)[-1].name: params}

    def apply(self, ns: Namespace, operand: pl.Expr) -> pl.Expr:
        """The method of an operand that has the type which it takes."""
        values = {field.name: getattr(self, field.name) for field in _fields(self)}
        flags = {name: value for name, value in values.items() if isinstance(value, bool)}
        others = (value for name, value in values.items() if name not in flags)
        result: pl.Expr = attrgetter(self.method)(operand)(*others, **flags)
        return result

    def arguments(self) -> str:
        """The constants between the parentheses, without those that are as if left out."""
        shown = []
        for field in _fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool):
                shown += [f"{field.name}=True"] * value
            elif value is not None:
                shown.append(quoted(value) if isinstance(value, str) else repr(value))
        return ", ".join(shown)

    def words(self, args: Sequence[str]) -> str:
        return f"{args[0]}.{self.method}({self.arguments()})"
