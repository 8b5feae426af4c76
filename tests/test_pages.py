"""The generated pages and the reference are complete: nothing public is left out."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from dpframe.aggregates.registry import AGGREGATES
from dpframe.api.no_raw_access import FRAME_HINTS, GROUP_HINTS, INTENTS
from tests import polars_page, rules_page
from tests.documentation import ROOT

POLARS = (ROOT / "docs" / "polars.md").read_text()
ERRORS = (ROOT / "docs" / "errors.md").read_text()


def _written(table: str) -> set[str]:
    """The methods that a table on the page of Polars' operations names."""
    body = POLARS.split(f"<!-- table: {table} -->")[1].split("<!-- end -->")[0]
    first = (line.split(" | ")[0] for line in body.splitlines())
    names = {name for cell in first for name in re.findall(r"`([\w.()]+)`", cell)}
    if table == "polars_not_yet":  # a first table by namespace, with the methods in the second cell
        names |= set(re.findall(r"`([\w.]+)`", body.split("| refused")[0]))
    return names


WRITTEN = {
    "supported": _written("polars_supported"),
    "not yet": _written("polars_not_yet"),
    "never": _written("polars_never"),
}


def test_what_the_page_says_of_a_method_is_so() -> None:
    """On any Polars, of all methods that it shares with the one that the page was made with."""
    for outcome in polars_page.outcomes():
        said = {status for status, names in WRITTEN.items() if outcome.name in names}
        if outcome.status == "supported":
            assert said <= {"supported"}, f"{outcome.name}: {said}"
        else:  # why it is refused may be told otherwise by another version
            assert "supported" not in said, f"{outcome.name}: {said}"


@pytest.mark.skipif(not polars_page.CURRENT, reason="the page lists another version's methods")
def test_every_method_is_on_the_page() -> None:
    assert f"Polars {polars_page.WRITTEN_WITH}" in POLARS.split("\n## ")[0]
    listed = set().union(*WRITTEN.values())
    missing = [o.name for o in polars_page.outcomes() if o.name not in listed]
    assert not missing, "run `make docs-update`"
    called = {outcome.name for outcome in polars_page.outcomes()}
    left = [name for name in polars_page.methods() if name not in called]
    assert not left, "say in tests/polars_calls.py how these are called"


@pytest.mark.skipif(not polars_page.CURRENT, reason="the page lists another version's methods")
@pytest.mark.parametrize("owner", [pl.LazyFrame, pl.DataFrame])
def test_every_verb_of_frames_has_an_answer(owner: type[Any]) -> None:
    for name in dir(owner):
        private = name.startswith(("_", "dp_", "from_", "deserialize"))
        answered = name in FRAME_HINTS or name in INTENTS
        assert private or hasattr(dp.PrivateFrame, name) or answered, name


def test_hints_are_for_what_is_missing() -> None:
    assert not [name for name in FRAME_HINTS if name in vars(dp.PrivateFrame)]
    assert not [name for name in GROUP_HINTS if name in vars(dp.PrivateGroupBy)]


@pytest.mark.parametrize("step", rules_page.step_types().values(), ids=lambda s: s.__name__)
def test_every_step_says_what_it_guarantees_and_why(step: Any) -> None:
    assert step.__name__ in rules_page.STEPS
    assert {"Guarantee", "Proof"} <= set(rules_page.sections(step))


@pytest.mark.parametrize("aggregate", AGGREGATES, ids=lambda a: a.kind)
def test_every_aggregate_says_what_it_guarantees_and_why(aggregate: Any) -> None:
    assert {"Guarantee", "Proof"} <= set(rules_page.sections(aggregate))


@pytest.mark.parametrize("law", rules_page.laws(), ids=lambda law: law.__name__)
def test_every_mechanism_says_why_it_is_private(law: Any) -> None:
    said = rules_page.sections(law)[""]
    sources = r"\b(19|20)\d\d\b|post-processing|neighbouring data give the same"
    assert re.search(sources, said), "a theorem with its year, or the reason"


def test_docstrings_become_markdown() -> None:
    text = "A sum of 2**30, or *few*, in [0, 1] < 2:\n\n    f(x) = x**2\n\n"
    text += "term\n    says x**2\n    more"
    assert rules_page.markdown(text).splitlines() == [
        r"A sum of 2\*\*30, or *few*, in \[0, 1\] &lt; 2:",
        "",
        "    f(x) = x**2",
        "",
        "term",
        r":   says x\*\*2",
        "    more",
    ]


def _documented() -> Iterator[Any]:
    for name in re.findall(r"^::: ([\w.]+)$", (ROOT / "docs" / "reference.md").read_text(), re.M):
        try:
            found = importlib.import_module(name)
        except ImportError:
            home, _, attribute = name.rpartition(".")
            yield getattr(importlib.import_module(home), attribute)
            continue
        yield from (value for key, value in vars(found).items() if not key.startswith("_"))


def test_the_reference_has_every_public_name() -> None:
    documented = {id(thing) for thing in _documented()}
    public = {name: getattr(dp, name) for name in dp.__all__}
    for module in ("accounting", "examples"):
        named = public.pop(module)
        public |= {f"{module}.{name}": getattr(named, name) for name in named.__all__}
    assert not [name for name, thing in public.items() if id(thing) not in documented]


def _public() -> Iterator[tuple[str, Any]]:
    """Every public name, and the public methods and properties of public classes."""
    for home, module in (("dp", dp), ("dp.accounting", dp.accounting)):
        for name in module.__all__:
            thing = getattr(module, name)
            yield f"{home}.{name}", thing
            if inspect.isclass(thing):
                own = (
                    m for k in thing.__mro__ if k.__module__.startswith("dpframe") for m in vars(k)
                )
                for member in {m for m in own if not m.startswith("_")}:
                    made = getattr(thing, member)
                    if callable(made) or isinstance(made, property):
                        yield f"{home}.{name}.{member}", made


def test_everything_public_says_what_it_is() -> None:
    found = dict(_public())
    assert {"dp.sum", "dp.PureDP.epsilon", "dp.PrivateFrame.dp_sum"} <= found.keys()
    assert not [name for name, thing in found.items() if not inspect.getdoc(thing)]


TYPED = ("count", "sum", "mean", "var", "std", "median", "quantile", "n_unique", "histogram", "cdf")


@pytest.mark.parametrize("name", [*TYPED, "bounds", "argmax", "keys"])
def test_functions_say_what_they_take_and_raise(name: str) -> None:
    """Or name another, in the words of its first line, that does."""
    said = inspect.getdoc(getattr(dp, name)) or ""
    if "whose parameters and errors it has" in said:
        said = inspect.getdoc(getattr(dp, re.findall(r"see `(\w+)`", said)[0])) or ""
    taken = set(inspect.signature(getattr(dp, name)).parameters)
    section = said.partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    explained = {n for line in re.findall(r"^\S.*$", section, re.M) for n in line.split(", ")}
    assert taken <= explained
    assert "Raises\n------\n" in said


def test_the_page_of_errors_shows_each_with_a_message() -> None:
    errors = [
        name
        for name in dp.__all__
        if inspect.isclass(getattr(dp, name)) and issubclass(getattr(dp, name), dp.DPFrameError)
    ]
    for name in errors:
        assert f"`{name}`" in ERRORS or f"`dp.{name}`" in ERRORS, name
        # the root, and those that no example raises
        if name not in ("DPFrameError", "PlanMismatch", "Unsound"):
            assert re.search(
                rf"^{name}: .+\n(  in: .+\n)?(  why: .+\n)?  instead: ", ERRORS, re.M
            ), name
