"""Draws HTML and diagrams in a browser without a window, to be looked at, and kept in the docs.

``python -m tests.screenshots`` writes `docs/images/`; it needs Chromium on the path. With
``--mermaid PATH``, a copy of Mermaid's own script, diagrams are drawn too; ``--out DIRECTORY``
writes elsewhere. Results of releases are noise, so no two runs draw the same numbers.
"""

from __future__ import annotations

import argparse
import contextlib
import html
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import polars as pl

import dpframe as dp

ROOT = Path(__file__).parents[1]
DATA = ROOT / "examples" / "data" / "adult.parquet"
IMAGES = ROOT / "docs" / "images"
WIDTH = 980
PHONE = 390
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--hide-scrollbars",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-lcd-text",
    "--allow-file-access-from-files",
    "--virtual-time-budget=20000",
)
_THEMES = {"light": ("#ffffff", "#1f2328"), "dark": ("#16191d", "#d6dae0")}
_MEASURE = "document.body.dataset.height = Math.ceil(document.body.getBoundingClientRect().height)"


def browser() -> str | None:
    """The first Chromium on the path."""
    return next(filter(None, map(shutil.which, _BROWSERS)), None)


def page(fragment: str, theme: str = "light", before: str = "") -> str:
    """A page with a fragment on it, in light or dark; it knows its own height."""
    back, text = _THEMES[theme]
    return (
        f"<!doctype html><meta charset=utf-8>{before}"
        f'<body style="margin:0;padding:14px 18px;background:{back};color:{text}">{fragment}'
        f"<script>addEventListener('load', () => setTimeout(() => {{ {_MEASURE} }}, 3000))</script>"
    )


def run(chromium: str, *arguments: str) -> str:
    """What the browser prints, started with a profile of its own."""
    with tempfile.TemporaryDirectory() as profile:
        done = subprocess.run(
            [chromium, *_QUIET, f"--user-data-dir={profile}", *arguments],
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
    return done.stdout


def on_a_phone(content: str) -> str:
    """A page in a frame as wide as a phone is: windows of Chromium cannot be as narrow."""
    return (
        "<!doctype html><meta charset=utf-8><body style='margin:0'>"
        f"<iframe style='border:0;display:block' width={PHONE} height=9000 "
        f'srcdoc="{html.escape(content)}"></iframe><script>addEventListener("load", () => '
        "setTimeout(() => { const frame = document.querySelector('iframe');"
        "const body = frame.contentDocument.body, height = body.getBoundingClientRect().height;"
        "document.body.dataset.width = body.scrollWidth;"
        "document.body.dataset.height = frame.height = Math.ceil(height) }, 3500))</script>"
    )


def shoot(chromium: str, content: str, image: Path, width: int = WIDTH) -> None:
    """A picture of a page, as high as the page is."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "page.html"
        path.write_text(content, encoding="utf-8")
        address = path.as_uri()
        found = re.search(
            r'data-height="(\d+)"',
            run(chromium, f"--window-size={width},800", "--dump-dom", address),
        )
        assert found is not None
        height = int(found[1])
        run(chromium, f"--window-size={width},{height}", f"--screenshot={image}", address)
    shrink(image)


def shrink(image: Path) -> None:
    """Few colours, for a small file, where Pillow is installed."""
    with contextlib.suppress(ImportError):
        from PIL import Image  # type: ignore[import-not-found, unused-ignore]

        Image.open(image).convert("RGB").quantize(192).save(image, optimize=True)


def queries() -> tuple[dp.Session, dp.PrivateFrame, dp.PrivateQuery]:
    """What is drawn: a session on census data, one of its frames, and a query."""
    session = dp.Session(epsilon=1.0, delta=1e-8, name="census")
    people = session.protect(
        pl.scan_parquet(DATA).select("age", "sex", "education", "hours_per_week", "capital_gain"),
        unit=dp.Rows(),
        name="census",
        bounds={"age": (17, 90)},
    )
    query = (
        people.filter(pl.col("hours_per_week").is_between(1, 99))
        .with_columns(pay=pl.col("capital_gain").clip(0, 10_000) / 1000)
        .group_by("sex", keys=["Female", "Male"])
        .agg(dp.count().alias("n"), pl.col("pay").dp_mean().alias("mean_pay"), dp.median("age"))
    )
    return session, people, query


def fragments() -> Iterator[tuple[str, str]]:
    """Names of pictures, and what is on them."""
    session, people, query = queries()
    yield "plan", query.explain(epsilon=0.5, format="html", size=100)
    people.dp_count().collect(epsilon=0.1)
    release = query.release(epsilon=0.5)
    shown = (people.filter(pl.col("age") >= 40), query, release, session)
    yield "notebook", "<br>".join(str(thing._repr_html_()) for thing in shown)


SITE = {"home": "", "quickstart": "quickstart/", "coming-from-polars": "coming-from-polars/"}
"""Pages of the site that are drawn, by the name of their picture."""


def shoot_site(chromium: str, site: Path, out: Path) -> None:
    """The first screen of some pages of a built site."""
    for name, page_of_site in SITE.items():
        image = out / f"site-{name}.png"
        address = (site.resolve() / page_of_site / "index.html").as_uri()
        run(chromium, "--window-size=1300,1400", f"--screenshot={image}", address)
        shrink(image)


def main() -> None:
    """Draw everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mermaid", type=Path)
    parser.add_argument("--out", type=Path, default=IMAGES)
    parser.add_argument("--site", type=Path, help="folder of the built site, to draw its pages too")
    given = parser.parse_args()
    chromium = browser()
    if chromium is None:
        raise SystemExit(f"none of {', '.join(_BROWSERS)} is on the path")
    given.out.mkdir(parents=True, exist_ok=True)
    for name, fragment in fragments():
        for theme in _THEMES:
            shoot(chromium, page(fragment, theme), given.out / f"{name}-{theme}.png")
    phone = on_a_phone(page(dict(fragments())["plan"]))
    shoot(chromium, phone, given.out / "plan-phone.png", PHONE)
    if given.mermaid is not None:
        script = f'<script src="{given.mermaid.resolve().as_uri()}"></script>'
        diagram = queries()[2].explain(epsilon=0.5, format="mermaid")
        drawn = f'<pre class="mermaid">{html.escape(diagram)}</pre>'
        shoot(chromium, page(drawn, before=script), given.out / "plan-diagram.png")

    if given.site is not None:
        shoot_site(chromium, given.site, given.out)


if __name__ == "__main__":
    main()
