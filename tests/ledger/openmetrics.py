"""A strict reader of OpenMetrics text, by the rules of its specification, version 1.0."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_NUMBER = r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?"
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"')
_SAMPLE = re.compile(rf"({_NAME})(?:\{{(.*)\}})? ({_NUMBER})")
_TYPES = {"gauge", "counter", "unknown", "info", "stateset", "histogram", "summary"}


@dataclass
class Family:
    type: str
    unit: str = ""
    help: str = ""
    samples: dict[tuple[tuple[str, str], ...], float] = field(default_factory=dict)


def read(text: str) -> dict[str, Family]:
    """The families of an exposition.

    Raises
    ------
    AssertionError
        When it breaks a rule.
    """
    assert text.endswith("# EOF\n"), "it ends with the end"
    found: dict[str, Family] = {}
    name = ""
    for line in text.removesuffix("# EOF\n").split("\n")[:-1]:
        if line.startswith("# "):
            _, kind, about, *rest = line.split(" ", 3)
            said = rest[0] if rest else ""
            if kind == "TYPE":
                assert about not in found, "metadata of a family stand together, once"
                assert re.fullmatch(_NAME, about)
                assert said in _TYPES
                found[about], name = Family(said), about
                continue
            assert about == name, "metadata follow the type of their family"
            assert not found[name].samples, "metadata stand before samples"
            assert kind in ("UNIT", "HELP")
            setattr(found[name], kind.lower(), said)
            if kind == "UNIT":
                assert name.endswith(f"_{said}"), "a name ends with its unit"
            continue
        sample = _SAMPLE.fullmatch(line)
        assert sample is not None, line
        assert sample[1] == name, "samples of a gauge have its name and stand below it"
        labels = _labels(sample[2] or "")
        assert labels not in found[name].samples, "a sample is written once"
        found[name].samples[labels] = float(sample[3])
    return found


def _labels(text: str) -> tuple[tuple[str, str], ...]:
    made, at = [], 0
    while at < len(text):
        label = _LABEL.match(text, at)
        assert label is not None, text
        made.append((label[1], _unescaped(label[2])))
        at = label.end()
        assert at == len(text) or text[at] == ",", text
        at += 1
    names = [name for name, _ in made]
    assert len({*names}) == len(names)
    return tuple(sorted(made))


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: {"n": "\n"}.get(found[1], found[1]), text)
