"""What the page for those who come from Polars says in two ways is the same, but for noise."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.from_polars import PAGE, TASKS, Task, codes, exact, setting

ALL = [task for tasks in TASKS.values() for task in tasks]


def flat(values: Any) -> Iterator[Any]:
    """The values of rows and lists, one after another."""
    if isinstance(values, (list, tuple)):
        for value in values:
            yield from flat(value)
    else:
        yield values


@pytest.mark.parametrize("task", [t for t in ALL if t.same], ids=lambda t: t.wanted)
def test_both_say_the_same_where_noise_is_small(task: Task) -> None:
    code = task.written.replace("epsilon=1)", "epsilon=20)")
    assert "epsilon=20)" in code
    told, noisy = (list(flat(f.rows())) for f in (exact(task), eval(code, dict(setting()))))
    assert len(told) == len(noisy)
    for ours, theirs in zip(noisy, told, strict=True):
        if isinstance(theirs, (int, float)):
            assert ours == pytest.approx(
                theirs, rel=0.1, abs=3 if theirs > 3 or theirs == 0 else 0.01
            )
        else:
            assert ours == theirs


def test_what_differs_says_so() -> None:
    for task in ALL:
        assert task.same or re.search("maximum: a high|minimum and maximum", task.wanted)


def test_every_task_is_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for section in TASKS:
        assert f"<!-- table: from_polars_{section} -->" in page
        for polars, dpframe in codes(section):
            assert polars in page
            assert dpframe in page
