"""Tuples of candidates in order: bounds that hold for every proposal, and the law that follows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpframe.samplers import Runs, ordered, ordered_exponential
from dpframe.samplers import ordered as ordered_chain
from dpframe.samplers.exponential import bracket_exp
from dpframe.samplers.ordered import Chain, _coin, windows_of
from tests.laws.amounts import amounts
from tests.samplers.scripted import Script
from tests.samplers.seeded import Seeded


@dataclass(frozen=True)
class Rows:
    """Rows of which each is before all candidates from a number on."""

    keys: tuple[int, ...]
    candidates: int

    @property
    def rows(self) -> int:
        return len(self.keys)

    def runs(self, windows: Sequence[tuple[int, int]]) -> Runs:
        ranks = self.ranks(range(self.candidates))
        starts = [i for i in range(self.candidates) if i == 0 or ranks[i] > ranks[i - 1]]
        lengths = [b - a for a, b in pairwise([*starts, self.candidates])]
        found = [
            (start, length, ranks[start])
            for start, length in zip(starts, lengths, strict=True)
            if any(lo <= ranks[start] <= hi for lo, hi in windows)
        ]
        columns = np.array(found, np.int64).reshape(-1, 3).T
        return Runs(columns[0], columns[1], columns[2])

    def ranks(self, chosen: Sequence[int]) -> list[int]:
        return [sum(key <= place for key in self.keys) for place in chosen]


@dataclass(frozen=True)
class Case:
    """What is drawn."""

    line: Rows
    shares: tuple[int, ...]
    step: int
    scale: Fraction

    @property
    def parts(self) -> list[int]:
        n = self.line.rows
        return [b - a for a, b in pairwise([0, *(s * n for s in self.shares), self.step * n])]

    def chain(self, reach: int) -> Chain:
        goals = [share * self.line.rows for share in self.shares]
        windows = windows_of(goals, self.step, reach, self.line.rows)
        runs = self.line.runs(windows)
        return Chain(runs, self.parts, self.step, self.scale, windows, self.line)

    def cost(self, chosen: Sequence[int]) -> int:
        ranks = [0, *self.line.ranks(chosen), self.line.rows]
        each = zip(pairwise(ranks), self.parts, strict=True)
        return sum(abs(self.step * (b - a) - part) for (a, b), part in each)

    def law(self) -> dict[tuple[int, ...], float]:
        """From the definition."""
        tuples = combinations_with_replacement(range(self.line.candidates), len(self.shares))
        costs = {chosen: self.cost(chosen) for chosen in tuples}
        least = min(costs.values())
        masses = {c: math.exp(-float((cost - least) / self.scale)) for c, cost in costs.items()}
        return {chosen: mass / sum(masses.values()) for chosen, mass in masses.items()}


CASES = [
    Case(Rows((1, 2, 2, 4, 6), 6), (1, 2, 3), 4, Fraction(5)),
    Case(Rows((), 4), (1, 2), 3, Fraction(1)),
    Case(Rows((1, 1, 3, 3, 3, 4, 5), 5), (0, 1, 2), 2, Fraction(1, 2)),
    Case(Rows((*range(1, 9), 8, 8, 8, 2), 8), (1, 2, 3), 4, Fraction(20)),
    Case(Rows((1, 2, 2, 3, 3, 3), 4), (3, 7), 10, Fraction(40)),
    Case(Rows((3, 3, 3, 3, 3, 3, 3, 3, 3), 5), (1, 2), 4, Fraction(3)),
]


def assert_has_law(case: Case, seen: Counter[tuple[int, ...]]) -> None:
    """By chi squared."""
    law, total = case.law(), sum(seen.values())
    assert seen.keys() <= law.keys()
    common = [chosen for chosen, mass in law.items() if mass * total >= 5]
    rest = total - sum(law[chosen] * total for chosen in common)
    others = total - sum(seen[chosen] for chosen in common)
    far = sum((seen[c] - law[c] * total) ** 2 / (law[c] * total) for c in common)
    far += (others - rest) ** 2 / max(rest, 5)
    assert far < len(common) + 6 * math.sqrt(2 * len(common)) + 20, (far, len(common))


@amounts("times", 300, 1_000)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_draws_have_the_law_of_the_definition(case: Case, times: int) -> None:
    source: Any = Seeded(7)
    drawn = (
        ordered_exponential(case.line, case.shares, case.step, case.scale, source)
        for _ in range(times)
    )
    assert_has_law(case, Counter(map(tuple, drawn)))


@amounts("times", 300, 1_000)
@pytest.mark.parametrize("reach", [4, 9])
@pytest.mark.parametrize("case", [CASES[0], CASES[3]], ids=str)
def test_what_is_out_of_reach_is_drawn_as_often_as_it_should(
    case: Case, reach: int, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However short the reach is."""
    monkeypatch.setattr(ordered, "reach_of", lambda *_: reach)
    monkeypatch.setattr(ordered, "_RARE", Fraction(1, 4))
    source: Any = Seeded(8)
    drawn = (
        ordered_exponential(case.line, case.shares, case.step, case.scale, source)
        for _ in range(times)
    )
    assert_has_law(case, Counter(map(tuple, drawn)))


@pytest.mark.parametrize("factor", [2, Fraction(1, 2)])
def test_another_scale_is_seen(factor: Any) -> None:
    case, source, times = CASES[0], Seeded(7), 1_000
    drawn = (
        ordered_exponential(case.line, case.shares, case.step, case.scale * factor, source)  # type: ignore[arg-type]
        for _ in range(times)
    )
    with pytest.raises(AssertionError):
        assert_has_law(case, Counter(map(tuple, drawn)))


def proposals(chain: Chain) -> Iterator[tuple[list[tuple[int, int]], Fraction]]:
    """All that may be proposed, with its probability."""

    def follow(
        number: int, rank: int, bound: float | None
    ) -> Iterator[tuple[list[tuple[int, int]], Fraction]]:
        if not number:
            yield [], Fraction(1)
            return
        first = chain._first[number - 1]
        weights, _ = chain.choices_of_run(number, rank, bound)
        for place, weight in enumerate(weights.tolist()):
            run = first + place
            sizes, _ = chain.choices_of_size(number, run)
            for size, other in enumerate(sizes.tolist(), 1):
                if not other:
                    continue
                odds = Fraction(weight * other, int(weights.sum()) * int(sizes.sum()))
                left = number - size
                before = float(chain._before[left][run])
                for rest, more in follow(left, int(chain.runs.ranks[run]), before):
                    yield [(run, size), *rest], odds * more

    yield from follow(chain.chosen, chain.line.rows, None)


@dataclass(frozen=True)
class Given:
    """Runs of any length, and any number of rows between two of them and behind the last."""

    lengths: tuple[int, ...]
    jumps: tuple[int, ...]
    behind: int

    @property
    def candidates(self) -> int:
        return sum(self.lengths)

    @property
    def rows(self) -> int:
        return sum(self.jumps) + self.behind

    def runs(self, windows: Sequence[tuple[int, int]]) -> Runs:
        ranks, starts = np.cumsum([0, *self.jumps]), np.cumsum([0, *self.lengths[:-1]])
        kept = np.any([(ranks >= lo) & (ranks <= hi) for lo, hi in windows], axis=0)
        lengths = np.array(self.lengths, np.int64)
        return Runs(starts[kept], lengths[kept], ranks[kept])

    def ranks(self, chosen: Sequence[int]) -> list[int]:
        raise AssertionError


LENGTHS = st.one_of(st.integers(1, 5), st.integers(1, 1 << 56), st.just(1 << 56))
JUMPS = st.one_of(st.integers(1, 5), st.integers(1, 10**9))


@st.composite
def givens(draw: st.DrawFn) -> Case:
    """Up to four runs and three candidates; sharp and wide scales, so that floats end."""
    jumps = draw(st.lists(JUMPS, max_size=3))
    lengths = draw(st.lists(LENGTHS, min_size=len(jumps) + 1, max_size=len(jumps) + 1))
    shares = draw(st.sets(st.integers(0, 6), min_size=1, max_size=3))
    power = draw(st.integers(-30, 40))
    scale = Fraction(draw(st.integers(1, 9)), 7) * Fraction(2) ** power
    line: Any = Given(tuple(lengths), tuple(jumps), draw(st.one_of(st.just(0), JUMPS)))
    return Case(line, tuple(sorted(shares)), 6, scale)


def assert_bounded(chain: Chain) -> None:
    """f over the probability of a proposal is at most `total`: by an upper end of f."""
    proposed, tuples, total = Fraction(0), 0, chain.total
    for found, odds in proposals(chain):
        count, cost = chain.weight(found)
        (_, above), bits = bracket_exp(cost / chain.scale, 4000), 4000
        assert count * above <= (odds * total) * (1 << bits)
        proposed += odds
        tuples += int(count * chain.line.candidates**chain.chosen)
    assert proposed == 1
    # each tuple within reach once: the number of all, by whole runs
    runs, counts = chain.runs, 0
    for places in combinations_with_replacement(range(runs.ranks.size), chain.chosen):
        ends = zip(places, chain.windows, strict=True)
        if all(lo <= runs.ranks[place] <= hi for place, (lo, hi) in ends):
            each = Counter(places)
            counts += math.prod(
                math.comb(int(runs.lengths[place]) + size - 1, size) for place, size in each.items()
            )
    assert tuples == counts


@given(givens(), st.one_of(st.integers(0, 40), st.integers(0, 10**11)))
def test_nothing_is_proposed_less_often_than_it_is_accepted(case: Case, reach: int) -> None:
    """Exactly, whatever the rows and scales are; each tuple within reach is proposed once, and no
    proposal ends nowhere.
    """
    chain = case.chain(reach)
    if chain.has_tuples:
        assert_bounded(chain)


@given(givens())
def test_most_proposals_are_accepted_where_floats_are_large_enough(case: Case) -> None:
    """As often as the sum of f over all tuples is of `total`."""
    chain = case.chain(10**12)
    whole = Fraction(0)
    for found, _ in proposals(chain):
        count, cost = chain.weight(found)
        whole += count * Fraction(bracket_exp(cost / case.scale, 1200)[0], 1 << 1200)
    if whole > Fraction(1, 1 << 850):
        assert whole > chain.total * Fraction(99, 100)


def test_floats_that_are_too_small_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same with no spare, and sums that are too small by a hundredth."""
    monkeypatch.setattr(ordered_chain, "_ENOUGH", 0.99)
    with pytest.raises(AssertionError):
        assert_bounded(CASES[0].chain(100))


def test_a_tuple_without_room_for_others_is_never_proposed() -> None:
    """Without rows there is one run, and both candidates are in it."""
    chain = CASES[1].chain(100)
    assert [size for size, _ in proposals(chain)] == [[(0, 2)]]
    weights, _ = chain.choices_of_size(2, 0)
    assert weights[0] == 0 < weights[1]


@pytest.mark.parametrize(
    ("lengths", "jumps", "shares", "scale", "reach"),
    [
        ((5, 1 << 56), (2,), (0, 4), Fraction(3 << 25, 7), 6),
        ((1, 1 << 55, 1 << 54), (3, 2), (0, 3, 4), Fraction(5 << 15, 7), 7),
    ],
)
def test_terms_that_are_out_of_reach_are_never_cast(
    lengths: Any, jumps: Any, shares: Any, scale: Fraction, reach: int
) -> None:
    """They may be far above the bound, and then have no whole number: numpy would warn of it."""
    line: Any = Given(lengths, jumps, 0)
    chain = Case(line, shares, 6, scale).chain(reach)
    with np.errstate(invalid="raise"):
        assert_bounded(chain)


@given(st.lists(st.integers(1, 50), max_size=30), st.integers(1, 3), st.integers(0, 60))
def test_tuples_out_of_reach_cost_more_than_twice_as_much(
    keys: list[int], share: int, reach: int
) -> None:
    case = Case(Rows(tuple(sorted(keys)), 50), (share, 4), 5, Fraction(1))
    goals = [s * case.line.rows for s in case.shares]
    windows = windows_of(goals, 5, reach, case.line.rows)
    for chosen in combinations_with_replacement(range(0, 50, 7), 2):
        ranks = case.line.ranks(chosen)
        if not all(lo <= r <= hi for r, (lo, hi) in zip(ranks, windows, strict=True)):
            assert case.cost(chosen) > 2 * reach


class Many(Rows):
    """The same for many rows at different places."""

    def runs(self, windows: Sequence[tuple[int, int]]) -> Runs:
        starts = np.append(0, self.keys)
        lengths = np.diff(np.append(starts, self.candidates))
        ranks = np.arange(starts.size)
        kept = np.any([(ranks >= lo) & (ranks <= hi) for lo, hi in windows], axis=0)
        kept &= lengths > 0
        return Runs(starts[kept], lengths[kept], ranks[kept])


SPREAD = tuple(np.sort(np.random.default_rng(1).integers(1, 1 << 40, 3000)).tolist())


@pytest.mark.parametrize("keys", [SPREAD, tuple(range(1, 3001)), SPREAD[:1], ()])
@pytest.mark.parametrize(("chosen", "places"), [(10, 44), (12, 52), (20, 37)])
def test_far_and_wide_candidates_are_proposed_in_few_tries(
    keys: tuple[int, ...], chosen: int, places: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long and short runs, and as many rows as there are places of a point."""
    tried: list[bool] = []

    def counting(chain: Chain, total: Fraction, source: Any) -> list[int] | None:
        found = inside(chain, total, source)
        tried.append(found is not None)
        return found

    inside = ordered._draw_inside
    monkeypatch.setattr(ordered, "_draw_inside", counting)
    line: Any = Many(tuple(key >> max(0, 44 - places) for key in keys), 1 << places)
    if len({*line.keys}) < len(keys):
        line = Many(tuple(range(5, 5 + len(keys))), 1 << places)
    source: Any = Seeded(3)
    for _ in range(3):
        found = ordered_exponential(line, range(1, chosen + 1), chosen + 1, Fraction(40), source)
        assert found == sorted(found)
        assert 0 <= found[0] <= found[-1] < line.candidates
    assert len(tried) <= 4


def test_ranks_that_do_not_exist_lengthen_reach() -> None:
    """All rows are at one place: no candidate has a rank near the middle."""
    line: Any = Given((5, 5), (10**6,), 0)
    source: Any = Seeded(3)
    found = ordered_exponential(line, (1, 2), 3, Fraction(20_000), source)
    assert found == sorted(found)


THIRD = ((1 << 64) - 1) // 3
"""The first 64 binary digits of one third, and all that follow are these again."""


@pytest.mark.parametrize(
    ("ratio", "words", "heads"),
    [
        (Fraction(1, 2), [(1 << 63) - 1], True),
        (Fraction(1, 2), [1 << 63], False),
        (Fraction(1, 3), [THIRD - 1], True),
        (Fraction(1, 3), [THIRD + 1], False),
        (Fraction(1, 3), [THIRD, THIRD - 1], True),
        (Fraction(1, 3), [THIRD, THIRD, THIRD + 1], False),
    ],
)
def test_a_coin_compares_digits_until_they_differ(
    ratio: Fraction, words: list[int], heads: bool
) -> None:
    source = Script(single=words)
    assert _coin(ratio, Fraction(0), source) is heads
    assert source.exhausted()
