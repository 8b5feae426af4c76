"""What happened: one frozen value per mechanism that ran, and its form for other libraries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, Final, Self, TypeAlias, cast

from dpframe.core.exact import Number, exact, show, show_input
from dpframe.errors import InvalidBudget

# What happened: one frozen value per mechanism that ran. How it is counted is the accountants'.
#
# Parameters are exact: a float means the decimal that it prints as (see `dpframe.core.exact`).

_LARGEST: Final = Fraction(10**60)
_SMALLEST: Final = 1 / _LARGEST
"""Squares of ratios of parameters stay within floats."""


class Event:
    """A mechanism that ran, with its parameters; serialisable, never changed."""

    __slots__ = ()

    def to_dict(self) -> dict[str, str]:
        """The event as text: its name and its exact parameters, ready for JSON.

        Examples
        --------
        >>> LaplaceEvent(2.5).to_dict()
        {'event': 'LaplaceEvent', 'scale': '5/2', 'sensitivity': '1'}
        """
        return {"event": type(self).__name__} | {
            name: str(value) for name, value in self._parameters().items()
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> Self:
        """The event that `to_dict` wrote.

        Raises
        ------
        InvalidBudget
            When it names no event, another kind than this class, or wrong parameters.
        """
        kind = _KINDS.get(str(data.get("event")))
        arguments = {name: value for name, value in data.items() if name != "event"}
        if kind is None or not issubclass(kind, cls):
            raise InvalidBudget(
                f"{data.get('event')!r} is not the name of an event", remedy=_list_kinds(cls)
            )
        known = {field.name for field in fields(kind)}
        if unknown := arguments.keys() ^ known:
            raise InvalidBudget(
                f"missing or unknown parameters: {', '.join(sorted(unknown))}",
                where=kind.__name__,
                remedy=f"give {' and '.join(sorted(known))}",
            )
        return cast(Any, kind)(**arguments)  # type: ignore[no-any-return]

    def _parameters(self) -> dict[str, Fraction]:
        return {
            field.name: exact(getattr(self, field.name))
            for field in fields(self)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        }

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={show(v, 15)}" for name, v in self._parameters().items())
        return f"{type(self).__name__}({shown})"

    def _keep(self, name: str, least: int = 0, *, whole: bool = False, below: int = 0) -> None:
        """Store a parameter as an exact number, or refuse it.

        `least` 0 means that the number must be above 0, unless `below` bounds it from above.
        """
        value: object = getattr(self, name)
        try:
            number = exact(value)
        except (TypeError, ValueError, ZeroDivisionError):
            raise self._wrong(f"{name} must be a finite number", name, value) from None
        if number < least or (not number and not below):
            bound = f"at least {least}" if least or below else "above 0"
            raise self._wrong(f"{name} must be {bound}", name, value)
        if number and not _SMALLEST <= number <= _LARGEST and not below:
            raise self._wrong(f"{name} must lie between 1e-60 and 1e60", name, value)
        if below and number >= below:
            raise self._wrong(f"{name} must be below {below}", name, value)
        if whole and number.denominator != 1:
            raise self._wrong(f"{name} must be an integer", name, value)
        object.__setattr__(self, name, number)

    def _wrong(self, what: str, name: str, value: object) -> InvalidBudget:
        return InvalidBudget(
            what,
            where=f"{type(self).__name__}({name}={show_input(value)})",
            remedy=f"write for example {name}={'1e-8' if name == 'delta' else '1'}",
        )


@dataclass(frozen=True, slots=True, repr=False)
class LaplaceEvent(Event):
    """Continuous Laplace noise of this scale on a vector of this L1 sensitivity.

    Also noise on a grid that is fine against the scale and is rounded afterwards.

    Parameters
    ----------
    scale, sensitivity
        In the same units, above 0.

    Raises
    ------
    InvalidBudget
        When a parameter is out of range; so for all events.
    """

    scale: Number
    sensitivity: Number = 1

    def __post_init__(self) -> None:
        self._keep("scale")
        self._keep("sensitivity")


@dataclass(frozen=True, slots=True, repr=False)
class DiscreteLaplaceEvent(Event):
    """Discrete Laplace noise, P(x) ~ exp(-|x| / scale), on a vector of integers.

    Parameters
    ----------
    scale
        In grid steps, above 0.
    sensitivity
        L1, in grid steps, so an integer.
    """

    scale: Number
    sensitivity: Number = 1

    def __post_init__(self) -> None:
        self._keep("scale")
        self._keep("sensitivity", 1, whole=True)


@dataclass(frozen=True, slots=True, repr=False)
class GaussianEvent(Event):
    """Continuous Gaussian noise of this standard deviation on a vector of this L2 sensitivity.

    Parameters
    ----------
    sigma, sensitivity
        In the same units, above 0.
    """

    sigma: Number
    sensitivity: Number = 1

    def __post_init__(self) -> None:
        self._keep("sigma")
        self._keep("sensitivity")


@dataclass(frozen=True, slots=True, repr=False)
class DiscreteGaussianEvent(Event):
    """Discrete Gaussian noise, P(x) ~ exp(-x**2 / (2 sigma**2)), on a vector of integers.

    Parameters
    ----------
    sigma
        In grid steps, above 0.
    sensitivity
        L2, in grid steps, so at least 1.
    """

    sigma: Number
    sensitivity: Number = 1

    def __post_init__(self) -> None:
        self._keep("sigma")
        self._keep("sensitivity", 1)


@dataclass(frozen=True, slots=True, repr=False)
class ExponentialEvent(Event):
    """A choice by the exponential mechanism, epsilon its bounded range (Durfee and Rogers 2019)."""

    epsilon: Number

    def __post_init__(self) -> None:
        self._keep("epsilon")


@dataclass(frozen=True, slots=True, repr=False)
class SharedExponentialEvent(ExponentialEvent):
    """One of several choices whose ranges are known by their sum and their largest only.

    The events of all of them, as unequal as both allow, cost no less than the choices do; but of
    many equal ones no less is known than of each separately, see `dpframe.kernel.losses`.
    """


@dataclass(frozen=True, slots=True, repr=False)
class PermuteAndFlipEvent(Event):
    """A choice by permute-and-flip; of any purely epsilon-private mechanism it costs no less."""

    epsilon: Number

    def __post_init__(self) -> None:
        self._keep("epsilon")


@dataclass(frozen=True, slots=True, repr=False)
class RandomizedResponseEvent(Event):
    """One report by randomised response: the truth exp(epsilon) times as likely as any other.

    Parameters
    ----------
    epsilon
        Above 0.
    categories
        How many different reports there are, at least 2.
    """

    epsilon: Number
    categories: Number = 2

    def __post_init__(self) -> None:
        self._keep("epsilon")
        self._keep("categories", 2, whole=True)


@dataclass(frozen=True, slots=True, repr=False)
class ApproxEvent(Event):
    """Any (epsilon, delta)-private mechanism; nothing else is known of it. Delta may be 0."""

    epsilon: Number
    delta: Number

    def __post_init__(self) -> None:
        self._keep("epsilon")
        self._keep("delta", below=1)


@dataclass(frozen=True, slots=True, repr=False)
class ZCDPEvent(Event):
    """Any rho-zCDP mechanism; nothing else is known of it."""

    rho: Number

    def __post_init__(self) -> None:
        self._keep("rho")


AnyEvent: TypeAlias = (
    LaplaceEvent
    | DiscreteLaplaceEvent
    | GaussianEvent
    | DiscreteGaussianEvent
    | ExponentialEvent
    | SharedExponentialEvent
    | PermuteAndFlipEvent
    | RandomizedResponseEvent
    | ApproxEvent
    | ZCDPEvent
)
_KINDS: dict[str, type[AnyEvent]] = {
    kind.__name__: kind
    for kind in (
        LaplaceEvent,
        DiscreteLaplaceEvent,
        GaussianEvent,
        DiscreteGaussianEvent,
        ExponentialEvent,
        SharedExponentialEvent,
        PermuteAndFlipEvent,
        RandomizedResponseEvent,
        ApproxEvent,
        ZCDPEvent,
    )
}


def _list_kinds(cls: type[Event]) -> str:
    return f"use one of {', '.join(n for n, k in _KINDS.items() if issubclass(k, cls))}"
