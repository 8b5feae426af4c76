"""What all charts have in common: Altair, colours that do on light and dark, titles and notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from dpframe.core.exact import show
from dpframe.errors import UnsupportedOperation

INK = "#7d7d7d"
"""Text and lines: a grey with a contrast of 4 to white and to the dark of notebooks."""
BAR = "#5b8fc9"
MARK = "#d9822b"
"""Intervals and errors: told from bars by people who see colours in any way."""
MIDDLE = "#10243d"
"""A mark on a bar."""
WIDTH = 420
ROW = 18
"""The height of one bar, in pixels."""


def altair() -> ModuleType:
    """Altair, which is imported only when something is drawn.

    Raises
    ------
    UnsupportedOperation
        When it is not installed.
    """
    try:
        import altair
    except ImportError:
        raise UnsupportedOperation(
            "charts are drawn with Altair, which is not installed",
            where=".plot()",
            remedy='install it: pip install "dpframe[plot]"',
        ) from None
    return altair


def plain(text: str) -> str:
    """Text that looks the same and ends no script: Altair writes the names and keys of a chart into
    the script of a page as they are. A space without width follows each sign that opens a tag.
    """
    return text.replace("<", "<\u200b")


def data(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Rows of a chart, inside of it; encodings name their types, so nothing is guessed."""
    return altair().Data(values=[{k: _value(v) for k, v in row.items()} for row in rows])


def _value(value: Any) -> Any:
    return plain(value) if isinstance(value, str) else value


def finished(chart: Any, title: str, notes: Sequence[str] = ()) -> Any:
    """A chart with its title, what is to be known next to it, and readable text."""
    alt = altair()
    heading = alt.Title(
        plain(title),
        subtitle=[plain(note) for note in notes],
        anchor="start",
        color=INK,
        subtitleColor=INK,
        fontSize=14,
        subtitleFontSize=12,
        offset=12,
    )
    return (
        chart.properties(title=heading, background="transparent", padding=10)
        .configure_view(strokeOpacity=0)
        .configure_axis(
            labelColor=INK,
            titleColor=INK,
            domainColor=INK,
            tickColor=INK,
            gridColor=INK,
            gridOpacity=0.25,
            labelFontSize=12,
            titleFontSize=12,
            titleFontWeight="normal",
            labelLimit=200,
        )
        .configure_legend(
            labelColor=INK, titleColor=INK, labelFontSize=12, titleFontSize=12, orient="bottom"
        )
        .configure_header(
            labelColor=INK, titleColor=INK, labelFontSize=13, labelFontWeight="bold", labelLimit=400
        )
    )


def panels(charts: Sequence[Any]) -> Any:
    """Charts below each other, each with a scale of its own."""
    if len(charts) == 1:
        return charts[0]
    made = altair().vconcat(*charts, spacing=24)
    return made.resolve_scale(x="independent", y="independent", color="independent")


def named(chart: Any, name: str) -> Any:
    """A chart with a small title of its own, beside others."""
    title = altair().Title(plain(name), anchor="start", color=INK, fontSize=13)
    return chart.properties(title=title)


def shown(number: float) -> str:
    """A number in a few digits."""
    if number == 0 or 0.001 <= abs(number) < 1e15:
        return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.4g}"
    return show(number, 3)


def only_first(total: int, most: int, what: str, which: str = "the first") -> list[str]:
    """The note that says that not all are shown."""
    return [f"{which} {most} of {total:,} {what}"] if total > most else []
