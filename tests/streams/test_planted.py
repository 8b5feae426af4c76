"""The laws of streams can fail: each mistake, planted in the product, is caught."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dpframe as dp
from dpframe import streaming as released
from dpframe.frames import contribution_limits, nights
from dpframe.frames.nights import Schedule
from dpframe.kernel import moves
from dpframe.kernel.frame import Facts, GroupLimit, RowLimit
from dpframe.ledger import contents as row_contents
from dpframe.workloads import prefix_sums
from dpframe.workloads.prefix_sums import PeriodTree, SquareRoot
from tests.laws import kernel_mistakes
from tests.streams.child import opened, totals
from tests.streams.nights import START, Row, assert_within, day, moved, prepared_of, vectors
from tests.streams.test_sensitivities import private

PERIODS = 6
SCHEDULE = Schedule("day", "1d", START, PERIODS)
ON_TIME = list(range(PERIODS))
Patch = pytest.MonkeyPatch


def on_time(*days: int, key: str = "a") -> list[Row]:
    """A row with each date, there from that night on."""
    return [Row(0, d, key, 3, frozenset(range(d, PERIODS))) for d in days]


def check(narrowed: Callable[[Any], Any], unit: Any, mine: list[Row], **spend: Any) -> None:
    """Without the rows and with them, nights move by no more than the plan declares."""
    frame = narrowed(private(spend, unit))
    prepared = prepared_of(frame.agg(dp.count().alias("n")), SCHEDULE, **spend)
    for _ in range(4):  # each with other salts
        none, found = (vectors(prepared, SCHEDULE, rows, ON_TIME) for rows in ([], mine))
        assert_within(moved(none[0], found[0]), prepared.parts[0].sensitivity)


def rows_are_within() -> None:
    for spend in ({"rho": 1}, {"epsilon": 1}):
        for first in ON_TIME:
            check(lambda f: f, dp.Rows(), on_time(first), **spend)
        check(lambda f: f, dp.Rows(contributions=2), on_time(0, 0), **spend)


def first_rows_are_within() -> None:
    check(lambda f: f.limit_rows(1, order_by="day"), "who", on_time(*ON_TIME), rho=1)


def first_dates_are_within() -> None:
    def limited(frame: Any) -> Any:
        return frame.limit_groups(3, by="day", order_by="day").limit_rows(1, by="day")

    check(limited, "who", on_time(*ON_TIME), rho=1)


def a_hash_before_is_refused() -> None:
    mine = [row for d in ON_TIME for row in on_time(d, key=f"key {d}")]
    with pytest.raises(dp.UnboundedSensitivity):
        check(
            lambda f: f.limit_groups(1, by="key").limit_rows(1, order_by="day"),
            "who",
            mine,
            rho=1,
        )


def a_hash_alone_is_refused() -> None:
    with pytest.raises(dp.UnboundedSensitivity):
        check(lambda f: f.limit_rows(1), "who", on_time(*ON_TIME), rho=1)


def a_step_of_many_rows_is_refused() -> None:
    with pytest.raises(dp.UnsupportedOperation):
        check(lambda f: f.concat(f), dp.Rows(), on_time(0), rho=1)


def each_row_is_drawn_once(tmp_path: Any) -> None:
    """Of two who find nothing at the same time, both hand out what the first one drew."""
    place = tmp_path / "b.db"
    second, first = opened(place), opened(place)
    before = second._now()
    found = totals(first, 3)
    contents = type(second._payer.ledger.streams.contents)
    seen, read = iter([before]), iter([[None]])
    now, kept = second._now, contents.rows
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(second), "_now", lambda self: next(seen, None) or now())
        patch.setattr(contents, "rows", lambda *given: next(read, kept(*given)))
        second.release(day(0))
    assert totals(opened(place), 3) == found
    assert not opened(place).periods["lost"].any()


def totals_are_exact(patch: Patch) -> None:
    """What was drawn without noise adds up."""
    exact = np.arange(2 * PERIODS).reshape(2, PERIODS)
    for sums in (SquareRoot(PERIODS), PeriodTree(PERIODS, 2, 3)):
        drawn = [sums.sums(exact, t) for t in range(PERIODS)]
        for t in range(PERIODS):
            assert np.allclose(sums.total(drawn, t), exact[:, : t + 1].sum(axis=1))
            assert np.allclose(sums.own(drawn, t), exact[:, t])


def test_all_is_well(tmp_path: Any, monkeypatch: Patch) -> None:
    rows_are_within()
    first_rows_are_within()
    first_dates_are_within()
    a_hash_before_is_refused()
    a_hash_alone_is_refused()
    a_step_of_many_rows_is_refused()
    each_row_is_drawn_once(tmp_path)
    totals_are_exact(monkeypatch)


def off_by_one(patch: Patch) -> None:
    """The coefficient of the night before in place of each."""

    def sums(self: SquareRoot, exact: Any, period: int) -> Any:
        weights = np.array([self.unit, *self.coefficients][: period + 1][::-1], dtype=np.int64)
        return (exact[..., : period + 1] * weights).sum(axis=-1)[..., None]

    patch.setattr(SquareRoot, "sums", sums)


def the_wrong_way_round(patch: Patch) -> None:
    def sums(self: SquareRoot, exact: Any, period: int) -> Any:
        weights = np.array(self.coefficients[: period + 1], dtype=np.int64)
        return (exact[..., : period + 1] * weights).sum(axis=-1)[..., None]

    patch.setattr(SquareRoot, "sums", sums)


def too_short_a_column(patch: Patch) -> None:
    right = moves._root_column
    patch.setattr(moves, "_root_column", lambda c, periods, run: right(c[:-1], periods - 1, run))


def one_period_of_several(patch: Patch) -> None:
    right = moves._root_column
    patch.setattr(moves, "_root_column", lambda c, periods, run: right(c, periods, 1))


def rows_of_one(patch: Patch) -> None:
    kernel_mistakes.plans(
        lambda plan, facts: (plan, [replace(one, rows=1, limits=(RowLimit(1),)) for one in facts])
    )(patch)


def any_rows(patch: Patch) -> None:
    right = contribution_limits.keep_first
    patch.setattr(contribution_limits, "keep_first", lambda *given: right(*given[:6]))


def hashes_before(patch: Patch) -> None:
    def first(relation: Any, by: str) -> list[RowLimit | GroupLimit]:
        return [limit for limit in relation.facts.limits if limit.first == by]

    patch.setattr(nights, "first_limits", first)


def hashes_alone(patch: Patch) -> None:
    """Rows that a hash chooses, taken for the first ones."""
    right = moves.through_all_nights

    def wrong(facts: Facts, table: Any, what: Any, keys: int) -> Any:
        limits = tuple(replace(limit, first=what.by) for limit in facts.limits)
        return right(replace(facts, limits=limits), table, what, keys)

    patch.setattr(nights, "first_limits", lambda relation, by: relation.facts.limits)
    patch.setattr(nights, "through_all_nights", wrong)
    patch.setattr(moves, "through_all_nights", wrong)


def any_step(patch: Patch) -> None:
    from dpframe.parse import parts

    patch.setattr(parts, "require_rowwise", lambda relation: None)


def the_last_draw_counts(patch: Patch) -> None:
    def keep(self: Any, stream: int, first: int, content: bytes) -> bytes:
        self.streams.mkdir(exist_ok=True)
        self._place_of_rows(stream, first).write_bytes(content)
        return content

    patch.setattr(row_contents.FolderContents, "keep_rows", keep)


MISTAKES: Mapping[str, tuple[Callable[[Patch], None], Callable[[], None]]] = {
    "another night's coefficient": (off_by_one, rows_are_within),
    "coefficients the wrong way round": (the_wrong_way_round, rows_are_within),
    "the norm of too short a column": (too_short_a_column, rows_are_within),
    "the norm of one period": (one_period_of_several, first_dates_are_within),
    "two rows that count as one": (rows_of_one, rows_are_within),
    "rows chosen by a hash": (any_rows, first_rows_are_within),
    "a hash before the first rows": (hashes_before, a_hash_before_is_refused),
    "a hash alone": (hashes_alone, a_hash_alone_is_refused),
    "any step": (any_step, a_step_of_many_rows_is_refused),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_caught(mistake: str, monkeypatch: Patch) -> None:
    plant, law = MISTAKES[mistake]
    moves._root_column.cache_clear()
    plant(monkeypatch)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        law()


def test_a_second_draw_is_caught(tmp_path: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        the_last_draw_counts(patch)
        with pytest.raises((AssertionError, dp.LedgerError)):
            each_row_is_drawn_once(tmp_path)


def test_a_wrong_inverse_is_caught(monkeypatch: Patch) -> None:
    right = prefix_sums.prefix_inverse
    monkeypatch.setattr(prefix_sums, "prefix_inverse", lambda length: right(length) * 1.001)
    with pytest.raises(AssertionError):
        totals_are_exact(monkeypatch)
    assert released.fill_gaps  # the module that uses it
