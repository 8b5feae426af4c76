"""Nothing that the kernel accepts loses more than it states, as far as the second judge sees."""

from __future__ import annotations

from contextlib import nullcontext
from itertools import islice

import pytest

from dpframe.kernel import Refused, verify
from dpframe.kernel import plan as p
from tests.kernel.generate import plans
from tests.kernel.mutate import run, show
from tests.kernel.oracle import judge, nodes


def test_generated_plans_hold() -> None:
    for number, plan in enumerate(islice(plans(2), 300)):
        by_rule = any(isinstance(node, p.Progression | p.Ratios) for node in nodes(plan))
        with pytest.raises(Refused, match="another form") if by_rule else nullcontext():
            assert p.read(p.write(plan)) == plan  # few numbers are listed
        assert verify(plan).costs == tuple(draw.cost for draw in plan.draws)
        verdict = judge(plan, worlds=2, changes=0, seed=number)
        assert not verdict.unsafe, f"{verdict.why}\n{show(plan)}"


def require_refused_or_safe(number: int, seed: int, worlds: int, changes: int) -> None:
    outcome = run(number, seed, worlds, changes)
    wrong = [*outcome.unsafe, *outcome.crashed]
    assert not wrong, "\n\n".join(f"{why}\n{show(plan)}" for plan, why in wrong[:5])
    assert not outcome.meaningless, outcome.meaningless
    assert outcome.accepted > number // 10
    assert outcome.refused > number // 3


@pytest.mark.always
def test_changed_plans_are_refused_or_as_safe_as_they_say() -> None:
    require_refused_or_safe(2000, 3, 1, 0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_many_changed_plans_are_refused_or_as_safe_as_they_say(seed: int) -> None:
    require_refused_or_safe(10_000, seed, 15, 10)
