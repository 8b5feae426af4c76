"""The text of docs/rules.md: what each rule guarantees and why, from the docstrings of the code.

A docstring's `Guarantee` section says what holds, its `Proof` section why. What is registered and
has none of these is found by tests.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

from dpframe import frames, mechanisms
from dpframe.aggregates.grouping_sets import AdditiveOfSet, SelectionOfSet
from dpframe.aggregates.keys import KeySelection, WeighedKeys
from dpframe.aggregates.margins import (
    JointMargins,
    Margin,
    RootSums,
)
from dpframe.aggregates.measurement import JointSums
from dpframe.aggregates.nightly import NightlySums
from dpframe.aggregates.registry import AGGREGATES
from dpframe.api.session import Session, Through
from dpframe.core.units import Identifier
from dpframe.frames import nights
from dpframe.frames.relation import Step
from dpframe.kernel.frame import Reach
from dpframe.kernel.moves import _of_changes, _of_coming, _with_total, moves_of
from dpframe.ledger.scopes import Timeline
from dpframe.rows.operation import RowOperation
from dpframe.workloads import prefix_sums

_SECTION = re.compile(r"^(?P<title>[A-Z][a-z]+)\n-{3,}\n", re.MULTILINE)
STEPS = {
    "Filter": "`filter`",
    "DropNulls": "`drop_nulls`",
    "WithColumns": "`with_columns`, `cast`, `fill_null`, `fill_nan`",
    "Select": "`select`",
    "Rename": "`rename`",
    "Drop": "`drop`",
    "LimitRows": "`limit_rows`",
    "LimitGroups": "`limit_groups`",
    "LimitNorm": "`limit_norm`",
    "Explode": "`explode`",
    "GroupByIndividual": "`group_by` of the identifier, with aggregates of Polars",
    "OverIndividual": "aggregates with `over` the identifier",
    "Gather": "aggregates of individuals as physical plans have them",
    "JoinPublic": "`join` with a public frame",
    "JoinPrivate": "`join` with a private frame",
    "JoinPrivateKeys": "`join` with a private frame on the identifier and other columns",
    "Concat": "`concat`",
    "PerIndividual": "`suggest_limits`",
    "WithoutFound": "`dp_groups` in rounds",
    "Part": "`session.partition`",
}
"""What an analyst writes for each step, in the order of the page."""


def sections(thing: Any) -> dict[str, str]:
    """A docstring by section; what comes before the first one has no title."""
    text = inspect.cleandoc(thing.__doc__ or "") + "\n"
    found = list(_SECTION.finditer(text))
    bounds = [match.start() for match in found] + [len(text)]
    parts = {"": text[: bounds[0]].strip()}
    for match, end in zip(found, bounds[1:], strict=True):
        parts[match["title"]] = text[match.end() : end].strip()
    return parts


def step_types() -> dict[str, type[Step]]:
    """All operations on frames, by class name."""
    for module in pkgutil.iter_modules(frames.__path__, "dpframe.frames."):
        importlib.import_module(module.name)
    return {step.__name__: step for step in _below(Step) if not inspect.isabstract(step)}


def _below(kind: type[Step]) -> Iterator[type[Step]]:
    # a dataclass with slots replaces the class that it decorates, which lives on here
    for step in kind.__subclasses__():
        if getattr(inspect.getmodule(step), step.__name__) is step:
            yield step
            yield from _below(step)


def steps() -> str:
    """Operations on frames."""
    found = step_types()
    general = [_entry("Every step", Step)]
    return "\n\n".join(general + [_entry(title, found[name]) for name, title in STEPS.items()])


def rows() -> str:
    """Operations on rows, which share one rule."""
    return _entry("Every operation", RowOperation)


def sums() -> str:
    """The rule that most aggregates rest on."""
    parts = []
    for rule in (moves_of, _of_coming, Reach.squares, _of_changes, _with_total):
        parts += [_where(rule), markdown(sections(rule)[""])]
    return "\n\n".join(parts)


def aggregates() -> str:
    """Aggregates, and the choice of groups."""
    parts = [_entry(f"`{a.kind}`", a) for a in AGGREGATES]
    parts.append(_entry("Grouping sets, and levels of distribution functions", Margin))
    parts.append(_entry("Grouping sets of tables of their own", AdditiveOfSet))
    parts.append(_entry("Choices by grouping sets", SelectionOfSet))
    parts.append(_entry("The square root of a distribution function", RootSums))
    parts.append(_entry("Several outputs of one draw", JointSums))
    parts.append(_entry("Several outputs of one draw, by grouping sets", JointMargins))
    found = _entry("Groups that nobody listed", KeySelection)
    weighed = _entry("Groups that nobody listed, by weights", WeighedKeys)
    return "\n\n".join([*parts, found, weighed])


def laws() -> tuple[type[Any], ...]:
    """All mechanisms."""
    return mechanisms.MECHANISMS


def noise() -> str:
    """Mechanisms; what makes them private stands before the sections."""
    parts = []
    for law in laws():
        name = "rounded_laplace" if law is mechanisms.RoundedLaplace else law.name
        parts.append(f"### `{name}`\n\n{_where(law)}\n\n{markdown(sections(law)[''])}")
    return "\n\n".join(parts)


def composition() -> str:
    """What a session guarantees."""
    parts = [markdown(sections(Session)["Guarantee"])]
    partition = markdown(sections(Session.partition)["Guarantee"])
    windows = [
        _entry("People in calendar windows", Identifier),
        _entry("Rows whose individual another frame knows", Through),
        _entry("A budget for each window", Timeline),
    ]
    return "\n\n".join([_where(Session), *parts, "### Disjoint parts", partition, *windows])


def streams() -> str:
    """What is proved of streams."""
    parts = [_entry("What is drawn each night", NightlySums)]
    for title, module in (("Columns of coefficients", prefix_sums), ("Growing frames", nights)):
        said = sections(module)
        where = f"*`{module.__name__.replace('.', '/')}.py`*"
        parts.append(f"### {title}\n\n{where}\n\n{markdown(said[''])}")
        parts.append(f"**Guarantee.** {markdown(said['Guarantee'])}")
        parts.append(f"**Why.** {markdown(said['Proof'])}")
    return "\n\n".join(parts)


def _entry(title: str, thing: Any) -> str:
    parts = sections(thing)
    text = f"### {title}\n\n{_where(thing)}\n\n{markdown(parts[''])}"
    text += f"\n\n**Guarantee.** {markdown(parts['Guarantee'])}"
    return text + (f"\n\n**Why.** {markdown(parts['Proof'])}" if "Proof" in parts else "")


def _where(thing: Any) -> str:
    name = thing.__qualname__
    return f"*`{name}` in `{thing.__module__.replace('.', '/')}.py`*"


def markdown(text: str) -> str:
    """Plain text with its signs kept as they are; what is indented is a formula, or says what a
    term above it means.
    """
    made: list[str] = []
    said = False
    for line in text.split("\n"):
        indented = line.startswith("    ")
        if indented and made[-1] and not made[-1].startswith((" ", ":")):
            made.append(f":   {_escaped(line.strip())}")
            said = True
        else:
            said = said and indented
            made.append(line if indented and not said else _escaped(line))
    return "\n".join(made)


def _escaped(line: str) -> str:
    pieces = re.split(r"(`+[^`]*`+)", line)
    pieces[::2] = [
        re.sub(r"\*\*|(?<= )\*(?= )|[\[\]]", lambda m: re.sub("(.)", r"\\\1", m[0]), piece).replace(
            "<", "&lt;"
        )
        for piece in pieces[::2]
    ]
    return "".join(pieces)
