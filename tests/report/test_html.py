"""Plans as HTML: all that the text says; nothing runs or is loaded, whatever names there are."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

import dpframe as dp
from dpframe.core.tree import visible
from dpframe.report.first_page import DECIDE, first_page
from dpframe.report.html import PAGE_STYLE, STYLE
from dpframe.report.story import chapters
from tests.golden.queries import QUERIES, SECRET, Golden
from tests.html_reader import Reader

each = pytest.mark.parametrize("golden", QUERIES, ids=lambda golden: golden.name)
HOSTILE = [
    "</style><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "<!-- -->",
    "&lt;b&gt; &amp;",
    "a\nb\r\tc",
    "\x1b[2J\x00",
    "\u202egnp\u2066x",
    "\ud800",
    "אבג",
    "𝕏 ± √",
]


def named(name: str) -> dp.Plan:
    """A plan in which a name and a constant stand wherever they can."""
    text = name.replace("\ud800", "?")  # which Polars has not in texts
    rows = pl.LazyFrame(schema={text: pl.Int64, "s": pl.String})
    people = dp.Session(epsilon=1).protect(rows, dp.Rows(), name=name)
    return (
        people.filter(pl.col("s") == text)
        .group_by("s", keys=[text])
        .agg(pl.col(text).dp_sum((0, 1)).alias(name), dp.count())
        .plan(epsilon=1)
    )


@each
def test_it_says_all_that_the_text_says(golden: Golden) -> None:
    plan = golden.plan()
    said = Reader(plan.explain("html")).text
    (chapter,) = chapters(plan)
    for entry in first_page(plan):
        assert entry.label in said or entry.label == DECIDE
        assert all(visible(line) in said for line in entry.lines)
        for one in entry.outputs:
            assert all(visible(cell) in said for cell in (one.name, one.error, one.words))
    for section in chapter.sections:
        assert section.title in said
        for item in section.items:
            assert visible(item.head) in said
            assert all(visible(detail) in said for detail in item.details)
    assert SECRET not in said


@each
def test_nothing_runs_and_nothing_is_loaded(golden: Golden) -> None:
    plan = golden.plan()
    for html in (plan.explain("html"), plan._repr_html_()):
        read = Reader(html)  # which knows no scripts, handlers or addresses
        assert read.tags.count("style") == 1
        assert not re.search(r"url\(|@import|http|expression", read.styles)
        assert html.isascii()


def test_a_page_of_its_own_has_what_browsers_and_screen_readers_need() -> None:
    page = QUERIES[1].plan().explain("html")
    read = Reader(page)
    assert page.startswith('<!DOCTYPE html>\n<html lang="en"')
    for tag in ("title", "main", "nav", "h1"):
        assert read.tags.count(tag) == 1
    for words in ('charset="utf-8"', 'name="viewport"', "prefers-color-scheme", "@media print"):
        assert words in page
    assert len(read.anchors) == len(set(read.anchors))
    assert {*re.findall(r'href="#(\w+)"', page)} <= {*read.anchors}
    assert "details::details-content" in page  # "Open all" without a script
    part = QUERIES[1].plan()._repr_html_()
    assert not {"html", "body", "main", "a"} & {*Reader(part).tags}
    assert Reader(part).anchors == []


@pytest.mark.parametrize("name", HOSTILE)
def test_names_and_constants_are_shown_and_do_nothing(name: str) -> None:
    html = named(name).explain("html")
    honest, hostile = Reader(named("plain").explain("html")), Reader(html)
    assert Counter(hostile.tags) == Counter(honest.tags)
    assert hostile.styles == honest.styles == PAGE_STYLE + STYLE
    assert hostile.text.count(visible(name)) >= 3
    assert html.isascii()
    assert all(c.isprintable() or c in "\n\xa0" for c in hostile.text)


def test_its_style_stays_with_it() -> None:
    rules = re.findall(r"([^{}]+)\{", STYLE)
    assert rules
    for rule in rules:
        if rule.strip().startswith("@media"):
            continue
        assert all(part.strip().startswith(".dpframe") for part in rule.split(","))


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("page", ["#ffffff", "#1e1e1e", "#111111"])
def test_colours_can_be_told_from_light_and_dark_pages(page: str) -> None:
    colours = set(re.findall(r"#[0-9a-f]{6}", STYLE))
    assert len(colours) == 3
    for colour in colours:
        dark, light = sorted((luminance(colour), luminance(page)))
        assert (light + 0.05) / (dark + 0.05) > 3  # what graphics need, by WCAG 2.2


def test_text_has_the_colour_of_the_page() -> None:
    assert set(re.findall(r"(?<![-a-z])color:([^;}]+)", STYLE)) == {"inherit"}


def test_the_bar_is_the_share_of_what_is_left() -> None:
    people = dp.Session(epsilon=2).protect(pl.LazyFrame(schema={"a": pl.Int64}), dp.Rows())
    query = people.dp_count()
    read = Reader(query.explain(epsilon="0.5", format="html"))
    assert read.widths == ["width:25.0%"]
    assert read.labels[-1] == "25% of what is left"
    refused = Reader(query.explain(epsilon=3, format="html"))
    assert refused.labels[-1] == "epsilon 3, more than is left"
    assert "cannot run: it costs more than the budget has left" in refused.text


def test_what_to_look_at_twice_comes_first() -> None:
    people = dp.Session(epsilon=99).protect(pl.LazyFrame(schema={"a": pl.Int64}), dp.Rows())
    said = Reader(people.dp_count().explain(epsilon=20, format="html")).text
    assert said.index("epsilon 20 is above 10") < said.index("Protects")


@each
def test_plans_that_were_read_from_documents_look_the_same(golden: Golden) -> None:
    plan = golden.plan()
    read = dp.Plan.from_json(plan.to_json())
    for format in ("text", "html", "mermaid"):
        assert read.explain(format, size=100) == plan.explain(format, size=100)  # type: ignore[arg-type]


def test_a_plan_shows_itself_in_notebooks() -> None:
    plan = QUERIES[0].plan()
    assert plan._repr_html_().startswith('<div class="dpframe"')
    assert repr(plan) == "<Plan for 'patients': 1 release for epsilon 0.1; see .explain()>"


def test_lines_run_from_left_to_right_whatever_names_are_in_them() -> None:
    html = named("אבג").explain("html")
    assert not re.search(r"<bdi>[^<]*person", html)
    assert re.search(r'<bdi dir="ltr">one row of one person', html)


def test_on_a_narrow_screen_each_cell_has_a_line_with_its_name() -> None:
    """Nothing has to be scrolled to: errors and verdicts are named where they are."""
    html = QUERIES[0].plan()._repr_html_()
    for name in ("error", "verdict", "what it is"):
        assert f'data-name="{name}"' in html
    style = html.partition("<style>")[2].partition("</style>")[0]
    narrow = style.partition("@media (max-width:40em){")[2]
    for rule in (".dpf-cards td{display:block", "content:attr(data-name)", "white-space:normal"):
        assert rule in narrow
    assert style.count("{") == style.count("}")
    rows = re.findall(r'<tr class="dpf-line">(.*?)</tr>', html)
    cells = [cell for row in rows for cell in re.findall("<td([^>]*)>(.)", row)]
    assert all('data-name="' in made or "dpf-number" not in made for made, _ in cells)


def test_pages_have_what_readers_of_screens_need(tmp_path: Path) -> None:
    """What axe-core asks of pages, as far as it can be read without a browser."""
    people = dp.Session(epsilon=99).protect(pl.LazyFrame({"a": [1], "b": ["x"]}), dp.Rows())
    query = people.group_by("b", keys=["x"]).agg(dp.count(), dp.mean("a", (0, 9)).alias("m"))
    plan = query.plan(epsilon=20).explain("html", details=True)
    release = query.release(epsilon=20).to_html(tmp_path / "release.html")
    for page in (plan, release):
        assert page.startswith('<!DOCTYPE html>\n<html lang="en"')
        for tag in ("<title>", "<main>", "<h1>", 'name="viewport"', "<meta charset"):
            assert page.count(tag) == 1, tag
        assert not re.search(r"<th>|<th scope=\"col\"[^>]*><bdi dir=\"ltr\"></bdi>", page)
        assert all("aria-label=" in tag for tag in re.findall(r'<[^>]* role="img"[^>]*>', page))
        names = re.findall(r' id="([^"]+)"', page)
        assert len(names) == len({*names})


def test_text_of_pages_has_contrast() -> None:
    """Also quiet text, in the light, in the dark and on paper."""
    quiet = min(float(share) for share in re.findall(r"opacity:(\.\d+)", STYLE))
    pairs = re.findall(r"background:(#[0-9a-f]{6});color:(#[0-9a-f]{6})", PAGE_STYLE)
    assert len(pairs) == 3
    for back, front in pairs:
        parts = [[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in (front, back)]
        shades = [round(quiet * f + (1 - quiet) * b) for f, b in zip(*parts, strict=True)]
        mixed = "#" + "".join(f"{shade:02x}" for shade in shades)
        dark, light = sorted((luminance(back), luminance(mixed)))
        assert (light + 0.05) / (dark + 0.05) > 4.5
