"""Do the checks have teeth? Every planted one-line bug must be seen, and no bug where none is."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import dpframe.samplers
from tests.mechanisms.laws import exponential_law, flip_law

from . import checks

pytestmark = pytest.mark.slow

SOURCE = Path(dpframe.samplers.__file__).parent
SEEN = 1e-12

NOISE_BUGS = {
    "minus zero kept": ("cells", "keep[zero[negative[zero] != 0]] = False", "pass"),
    "every offset accepted": ("cells", "keep[lanes[rejected]] = False", "pass"),
    "every checked offset rejected": (
        "cells", "rejected = uniform > accept", "rejected = uniform > -accept"
    ),
    "acceptance draws its first bits again": (
        "cells",
        "words = known | source.u64(lanes.size) >> np.uint64(16)",
        "words = source.u64(lanes.size)",
    ),
    "zero counted twice": ("cells", "self.shift == 0 and cell else 1", "self.shift == 0 else 1"),
    "tail begins twice too far": (
        "cells", "return self.edge + beyond", "return 2 * self.edge + beyond"
    ),
    "tail accepts everything": ("cells", "if excess and not", "if excess and False and not"),
    "offset loses its lowest bit": ("cells", "((1 << self.shift) - 1)", "((1 << self.shift) - 2)"),
    "biased sign": (
        "cells",
        "negative = source.bits(n).astype(np.int64)",
        "negative = (source.bits(n) | (source.u16(n) < 2048)).astype(np.int64)",
    ),
    "sign shares a bit with the offset": ("cells", "(word >> sign) & 1", "word & 1"),
    "table draws its first bits again": (
        "source",
        "words = known | source.u64(undecided.size) >> np.uint64(16)",
        "words = source.u64(undecided.size)",
    ),
    "undecided cells taken as decided": ("source", "guide[inside > 0] = _UNDECIDED", "pass"),
    "geometric misses a digit": (
        "exponential", "for i in range(digits):", "for i in range(1, digits):"
    ),
    "geometric overflows by ones": ("exponential", "value += 1 << digits", "value += 1"),
}  # fmt: skip

CHOICE_BUGS = {
    "first success instead of any": (
        "selection", "successes[uniform_below(successes.size, source)]", "successes[0]"
    ),
    "envelopes without weights": ("selection", "rates[block] *= weights[block]", "pass"),
    "envelopes rounded down": (
        "selection", "np.ceil(rates, out=rates)", "np.floor(rates, out=rates)"
    ),
    "envelopes of one group alone": (
        "selection", "_spread(np.ldexp(1.0 + SLACK, shifts), sizes)", "2.0 ** int(shifts[0])"
    ),
    "what is proposed is chosen": (
        "selection",
        "accepted = (first < 0xFFFF) & (envelopes[found] >= _SURE)",
        "accepted = first >= 0",
    ),
    "small envelopes are accepted unseen": (
        "selection", "(envelopes[found] >= _SURE)", "(envelopes[found] >= 1)"
    ),
    "coins without weights": (
        "selection", "weight = 1 if weights is None else int(weights[i])", "weight = 1"
    ),
    "coins with the power of two of another group": (
        "selection", "int(shifts[left[lane]])", "int(shifts[lane])"
    ),
    "coins always come up": (
        "selection",
        "if prefix * unit >= weight * hi << up:\n            return False",
        "if prefix * unit >= weight * hi << up:\n            return True",
    ),
    "a rejected proposal ends the search": (
        "selection", "left = left[~accepted]", "left = left[:0]"
    ),
    "the sum at a place is above itself": (
        "selection", "sums[middle] - before > reach", "sums[middle] - before >= reach"
    ),
    "uniform choices wrap": (
        "source",
        "drawn = (source.u64(left.size) & used[left]).astype(np.int64)",
        "drawn = (source.u64(left.size) & used[left]).astype(np.int64) % ends[left]",
    ),
    "gaps wrap": ("selection", "unsigned[np.argmax(scores)] - unsigned", "unsigned - unsigned[0]"),
    "uniform choice wraps": (
        "source", "if value < n:\n            return value", "return value % n"
    ),
}  # fmt: skip

Load = Callable[..., ModuleType]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """Copies of the samplers, importable under another name, with one line changed."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def build(bug: tuple[str, str, str] | None) -> ModuleType:
        package = tmp_path / "planted"
        package.mkdir()
        for path in SOURCE.glob("*.py"):
            text = path.read_text().replace("dpframe.samplers", "planted")
            if bug is not None and path.stem == bug[0]:
                assert text.count(bug[1]) == 1, f"the line to change is not in {path.name} once"
                text = text.replace(bug[1], bug[2])
            (package / path.name).write_text(text)
        importlib.invalidate_caches()
        return importlib.import_module("planted")

    yield build
    for name in [name for name in sys.modules if name.split(".")[0] == "planted"]:
        del sys.modules[name]


def _noise(planted: Any) -> float:
    """The smallest p-value, times their number, over a few laws and a forced tail."""
    n, found = 1_000_000, []
    cells = importlib.import_module("planted.cells")
    for scale in (Fraction(1), Fraction(40), Fraction(1000)):
        drawn = planted.discrete_laplace(scale, n)
        found.append(checks.magnitudes(drawn, checks.laplace_upper(scale), float(scale)))
        found.append(checks.laplace_bits(drawn, scale) | checks.signs(drawn))
        drawn = planted.discrete_gaussian(scale**2, n)
        found.append(checks.magnitudes(drawn, checks.gaussian_upper(scale**2), float(scale)))
        found.append(_signed_parity(drawn) if scale == 1000 else {})
        shift = 0 if scale < 32 else 5
        law = cells.Cells(1 / scale, Fraction(0), shift, 6)
        tail = law.draw(10_000, planted.OS)
        found.append(checks.magnitudes(tail, checks.laplace_upper(scale), float(scale)))
        found.append(checks.laplace_bits(tail, scale))
    far = planted.discrete_laplace(Fraction(1), 10 * n)
    found.append(checks.magnitudes(far, checks.laplace_upper(Fraction(1)), 1.0))
    rate = Fraction(100, 199)
    geometric = importlib.import_module("planted.exponential").geometric_exp
    counted = np.array([geometric(rate, planted.OS) for _ in range(15_000)])
    found.append(checks.magnitudes(counted, lambda m: np.exp(-float(rate) * m), 2.0))
    law = cells.Cells(Fraction(0), Fraction(1, 200), 0, 7)
    found.append(
        checks.magnitudes(law.draw(20_000, planted.OS), checks.gaussian_upper(Fraction(100)), 10)
    )
    return checks.smallest(found)


def _signed_parity(drawn: checks.Integers) -> checks.PValues:
    """Whether a number is odd has nothing to do with its sign."""
    odd = drawn[(drawn & 1) != 0]
    return checks.signs(odd) | {
        "parity": checks.choices(np.bincount(drawn & 1, minlength=2), [0.5, 0.5])["choices"]
    }


def _choices(planted: Any) -> float:
    n, found = 15_000, []
    scores = [3, 3, 1, 0, -4]
    vector, weights = np.array(scores, np.int64), np.array([5, 1, 1, 30, 1000], np.int64)
    scale = Fraction(17, 10)
    runs = [
        (lambda: planted.permute_and_flip(vector, scale), flip_law(scores, 1.7)),
        (
            lambda: planted.exponential_mechanism(vector, scale),
            exponential_law(scores, 1.7, [1] * 5),
        ),
        (
            lambda: planted.exponential_mechanism(vector, scale, weights),
            exponential_law(scores, 1.7, weights.tolist()),
        ),
        (lambda: planted.uniform_below(5), [0.2] * 5),
    ]
    for run, law in runs:
        counts = np.bincount([run() for _ in range(n)], minlength=5)
        found.append(checks.choices(counts, law))
    found += _runs(planted)
    rising = np.array([-4, 0, 3, 3], np.int64)
    counts = np.bincount([planted.permute_and_flip(rising, scale) for _ in range(n)], minlength=4)
    found.append(checks.choices(counts, flip_law(rising.tolist(), 1.7)))
    return checks.smallest(found)


def _runs(planted: Any) -> list[checks.PValues]:
    """Groups of three kinds in turn, also under envelopes so small that every coin is settled in
    integers.
    """
    n, scale, found = 14_000, Fraction(17, 10), []
    envelope = importlib.import_module("planted.selection")
    kinds = [([3, 3, 1, 0, -4], [5, 1, 1, 30, 1000]), ([0, 90], [700, 1]), ([1, 0, 2], [8, 1, 2])]
    scores, weights = (np.tile([x for k in kinds for x in k[i]], n) for i in (0, 1))
    sizes = np.tile([len(k[0]) for k in kinds], n)
    for total in (envelope._TOTAL, 3):
        envelope._TOTAL = total
        chosen = planted.exponential_mechanism_runs(scores, sizes, scale, weights)
        places = chosen - (np.cumsum(sizes) - sizes)
        for i, kind in enumerate(kinds):
            counts = np.bincount(places[i :: len(kinds)], minlength=len(kind[0]))
            law = exponential_law(kind[0], 1.7, kind[1])
            if len(counts) > len(law):
                return [{"places": 0.0}]  # in another group
            found.append(checks.choices(counts, law))
    ends = planted.uniforms_below(np.full(2 * n, 5))
    return [*found, checks.choices(np.bincount(ends, minlength=5), [0.2] * 5)]


def test_without_a_bug_nothing_is_seen(load: Load) -> None:
    planted = load(None)
    assert _noise(planted) > checks.ALARM
    assert _choices(planted) > checks.ALARM


@pytest.mark.parametrize("name", NOISE_BUGS)
def test_noise_bug_is_seen(name: str, load: Load) -> None:
    assert _noise(load(NOISE_BUGS[name])) < SEEN


@pytest.mark.parametrize("name", CHOICE_BUGS)
def test_choice_bug_is_seen(name: str, load: Load) -> None:
    planted = load(CHOICE_BUGS[name])
    try:
        seen = _choices(planted)
    except (IndexError, ValueError, AssertionError):
        return  # fails loudly, which is as good
    assert seen < SEEN
