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
from dpframe.samplers.ordered import Chain, reach_of, windows_of
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


@pytest.mark.parametrize("case", CASES, ids=str)
def test_draws_have_the_law_of_the_definition(case: Case) -> None:
    source: Any = Seeded(7)
    drawn = (
        ordered_exponential(case.line, case.shares, case.step, case.scale, source)
        for _ in range(1000)
    )
    assert_has_law(case, Counter(map(tuple, drawn)))


@pytest.mark.parametrize("reach", [4, 9])
@pytest.mark.parametrize("case", [CASES[0], CASES[3]], ids=str)
def test_what_is_out_of_reach_is_drawn_as_often_as_it_should(
    case: Case, reach: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However short the reach is."""
    monkeypatch.setattr(ordered, "reach_of", lambda *_: reach)
    monkeypatch.setattr(ordered, "_RARE", Fraction(1, 4))
    source: Any = Seeded(8)
    drawn = (
        ordered_exponential(case.line, case.shares, case.step, case.scale, source)
        for _ in range(1000)
    )
    assert_has_law(case, Counter(map(tuple, drawn)))


@pytest.mark.parametrize("factor", [2, Fraction(1, 2)])
def test_another_scale_is_seen(factor: Any) -> None:
    case, source = CASES[0], Seeded(7)
    drawn = (
        ordered_exponential(case.line, case.shares, case.step, case.scale * factor, source)  # type: ignore[arg-type]
        for _ in range(1000)
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
                odds = Fraction(weight * other, int(weights.sum()) * int(sizes.sum()))
                left = number - size
                before = float(chain._before[left][run])
                for rest, more in follow(left, int(chain.runs.ranks[run]), before):
                    yield [(run, size), *rest], odds * more

    yield from follow(chain.chosen, chain.line.rows, None)


@given(
    st.lists(st.integers(1, 7), max_size=6),
    st.sets(st.integers(0, 6), min_size=1, max_size=2),
    st.fractions(min_value=Fraction(1, 8), max_value=1000, max_denominator=8),
    st.integers(0, 40),
)
def test_nothing_is_proposed_less_often_than_it_is_accepted(
    keys: list[int], shares: set[int], scale: Fraction, reach: int
) -> None:
    """f over the probability of a proposal is at most `total`, and hardly less; all tuples within
    reach are proposed, and no others.
    """
    case = Case(Rows(tuple(sorted(keys)), 7), tuple(sorted(shares)), 6, scale)
    chain = case.chain(reach)
    if any(not any(lo <= r <= hi for r in chain.runs.ranks.tolist()) for lo, hi in chain.windows):
        return  # then reach is doubled
    proposed, tuples = Fraction(0), 0
    for found, odds in proposals(chain):
        count, cost = chain.weight(found)
        share = float(count / odds / chain.total) * math.exp(-float(cost / scale))
        assert share <= 1
        if cost / scale < 300:
            assert share > 1 - 2.0**-6
        proposed += odds
        tuples += int(count * case.line.candidates**chain.chosen)
    assert proposed == 1
    ranks = case.line.ranks(range(7))
    assert tuples == sum(
        all(lo <= ranks[c] <= hi for c, (lo, hi) in zip(chosen, chain.windows, strict=True))
        for chosen in combinations_with_replacement(range(7), chain.chosen)
    )


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


def test_far_and_wide_candidates_are_proposed_in_few_tries() -> None:
    """Ten quantiles, long and short runs, and as many rows as there are places of a point."""
    rng = np.random.default_rng(1)
    keys = np.sort(rng.integers(1, 1 << 40, 3000)).tolist()
    shares = tuple(range(1, 11))

    class Many(Rows):
        def runs(self, windows: Sequence[tuple[int, int]]) -> Runs:
            starts = np.append(0, self.keys)
            lengths = np.diff(np.append(starts, self.candidates))
            ranks = np.arange(starts.size)
            kept = np.any([(ranks >= lo) & (ranks <= hi) for lo, hi in windows], axis=0)
            kept &= lengths > 0
            return Runs(starts[kept], lengths[kept], ranks[kept])

    for line in (Many(tuple(keys), 1 << 44), Many(tuple(range(1, 3001)), 1 << 44)):
        case = Case(line, shares, 11, Fraction(40))
        chain = case.chain(reach_of(case.scale, 11, 10, line.candidates))
        source: Any = Seeded(3)
        tries = [chain.draw(source) for _ in range(20)]
        made = [found for found in tries if found is not None]
        assert len(made) >= 18
        assert all(found == sorted(found) for found in made)
