"""What messages about Spark say to do leads to a result; see `tests/remedies.py`."""

from __future__ import annotations

from typing import Any

import pytest

from tests import remedies
from tests.engines.spark import session
from tests.remedies import Block, blocks, outcome, refusal

__all__ = ["session"]

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("block", blocks(spark=True), ids=lambda block: block.name)
def test_following_a_message_about_spark(block: Block, session: Any) -> None:
    session.range(1)  # makes it the active session
    try:
        use = refusal(block)
        assert type(use.error).__name__ == block.error
        assert all(part in str(use.error) for part in block.words)
        result = outcome(block)
    finally:
        session.sparkContext.setLogLevel("OFF")
    assert result.failure is None, result.failure
    assert not result.unfollowed


def test_the_list_of_what_is_followed_on_spark(session: Any) -> None:
    places = {remedies.site_of(refusal(block).place) for block in blocks(spark=True)}
    session.sparkContext.setLogLevel("OFF")
    found = sorted({f"{site.path} {site.function}" for site in places if site is not None})
    assert found == remedies.SPARK.read_text("utf-8").splitlines()
