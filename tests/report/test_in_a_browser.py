"""Plans with hostile names in a real browser, where there is one: nothing runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.report.test_html import HOSTILE, named
from tests.screenshots import PHONE, browser, on_a_phone, page, queries, run

ATTACK = "<script>document.title='ran'</script><img src=x onerror=\"document.title='ran'\">"


@pytest.mark.skipif(browser() is None, reason="needs Chromium on the path")
def test_nothing_runs_in_a_browser(tmp_path: Path) -> None:
    chromium = browser()
    assert chromium is not None
    plans = [named(name) for name in (*HOSTILE, ATTACK, f"</style>{ATTACK}", f"</div>{ATTACK}")]
    path = tmp_path / "page.html"

    def title(content: str) -> str:
        path.write_text(page(content), encoding="utf-8")
        found = re.search(r"<title>(.*?)</title>", run(chromium, "--dump-dom", path.as_uri()))
        return "" if found is None else found[1]

    kept = "<title>quiet</title>"
    assert title(kept + "".join(plan.explain("html") for plan in plans)) == "quiet"
    assert title(kept + ATTACK) == "ran"  # the page would run what is not escaped


@pytest.mark.skipif(browser() is None, reason="needs Chromium on the path")
def test_plans_fit_on_a_phone(tmp_path: Path) -> None:
    chromium = browser()
    assert chromium is not None
    path = tmp_path / "page.html"

    def width(content: str) -> int:
        path.write_text(on_a_phone(page(content)), encoding="utf-8")
        found = re.search(r'data-width="(\d+)"', run(chromium, "--dump-dom", path.as_uri()))
        assert found is not None
        return int(found[1])

    assert width(queries()[2].explain(epsilon=0.5, format="html", size=100)) <= PHONE
    assert width('<div style="width:900px">wide</div>') > PHONE
