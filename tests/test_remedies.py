"""What a message says to do leads to a result, and code in messages is code.

``python -m tests.remedies PATH`` lists the places that construct errors and are not followed yet.
"""

from __future__ import annotations

import pytest

from tests import remedies
from tests.postgres import binaries
from tests.remedies import Block, blocks, outcome, refusal


@pytest.mark.parametrize("block", blocks(), ids=lambda block: block.name)
def test_following_a_message_leads_to_a_result(block: Block) -> None:
    result = outcome(block)
    assert result.failure is None, result.failure
    ways = refusal(block).ways
    assert len(ways) <= 2
    assert set(block.ways) <= set(range(len(ways))), "the message has no such way"
    for piece in (piece for way in ways for piece in remedies.pieces(way)):
        remedies.parsed(piece)  # what looks like code is code


@pytest.mark.nightly
@pytest.mark.parametrize("block", blocks(), ids=lambda block: block.name)
def test_following_a_message_runs_to_its_end(block: Block) -> None:
    for code in block.ways.values():
        if not remedies.is_action(code):
            remedies.result_of(code, run=True)


@pytest.mark.skipif(
    not remedies.NEWEST or binaries() is None,
    reason="some wrong uses need a newer Polars, or PostgreSQL",
)
def test_each_message_is_followed() -> None:
    left = remedies.left()
    assert not left, (
        "add wrong uses to tests/misuse that reach these errors, and follow their messages: "
        + ", ".join(left)
    )


def test_code_must_do_what_the_message_says() -> None:
    way = "write .dp_sum((low, high)) with the range that you expect"
    assert not remedies.unlike(way, "people.agg(age.dp_sum((0, 9)))")
    assert not remedies.unlike(way, "people.dp_sum('age', (0, 9))")
    assert remedies.unlike(way, "people.agg(age.dp_mean((0, 9)))")
    assert remedies.unlike('add unit="user_id"', "session.protect(raw, dp.Rows())")
    assert not remedies.unlike('add unit="user_id"', "session.protect(raw, unit='name')")
    assert remedies.unlike("did you mean 'age'?", "people.dp_mean('income', (0, 9))")
    assert remedies.unlike("write mechanism='x2'", "people.agg(dp.count(mechanism='auto'))")
    assert remedies.pieces("use .agg(f(1)).x[0] or n_unique=3, as pl.col('a b').sum()") == [
        ".agg(f(1)).x[0]",
        "n_unique=3",
        "pl.col('a b').sum()",
    ]


def test_a_remedy_that_fails_is_seen() -> None:
    block = Block(
        "made", "people.agg(dp.count(weight=0))", "InvalidBudget", (), {0: "people.head(2)"}
    )
    assert "head" in str(outcome(block).failure)
