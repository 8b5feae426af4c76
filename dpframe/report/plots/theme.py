"""What all charts have in common: Altair, colours that do on light and dark, titles and notes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from dpframe.core.exact import show
from dpframe.errors import UnsupportedOperation

INK = "#7d7d7d"
"""Text and lines: a grey with a contrast of 4 to white and to the dark of notebooks."""
BAR = "#5b8fc9"
MARK = "#d9822b"
"""Intervals and errors: a colour that colour-blind people can distinguish from bars."""
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
    result = (
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
    object.__setattr__(
        result, "__class__", _offline(result.__class__)
    )  # Altair's own would add a property
    return result


class _Offline:
    """A chart whose saved page holds all that it needs, so that it shows without a network."""

    def save(self, fp: Any, format: Any = None, *args: Any, **options: Any) -> None:
        """As Altair's method, but with ``inline=True`` by default."""
        if "inline" not in options:
            if find_spec("vl_convert") is None:
                raise UnsupportedOperation(
                    "charts are saved with vl-convert, which is not installed",
                    where=".plot().save(...)",
                    remedy='install it: pip install "dpframe[plot]"',
                )
            page = format == "html" or (format is None and str(fp).endswith(".html"))
            options |= {"inline": True} if page else {}
        super().save(fp, format, *args, **options)  # type: ignore[misc]


@cache
def _offline(kind: Hashable) -> type:
    """The same kind of chart, saved with all that it needs."""
    assert isinstance(kind, type)
    return type(kind.__name__, (_Offline, kind), {})


def panels(charts: Sequence[Any]) -> Any:
    """Charts below each other, each with a scale of its own."""
    if len(charts) == 1:
        return charts[0]
    made = altair().vconcat(*charts, spacing=24)
    return made.resolve_scale(x="independent", y="independent", color="independent")


def named(chart: Any, name: str) -> Any:
    """A chart with a small title, as one of several."""
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
