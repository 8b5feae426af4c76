"""HTML that fits into any page: escaped text, one style of its own, no scripts, nothing loaded."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence

from dpframe.core.visible import visible
from dpframe.report.stylesheet import STYLE


def escaped(text: str) -> str:
    """Text as it is, on one line, whatever characters it has."""
    return html.escape(visible(text))


def code(text: str) -> str:
    """An expression; text of another direction in it moves nothing around it."""
    return f"<code>{line(text)}</code>"


def named(text: str) -> str:
    """A name that somebody chose."""
    return f"<strong><bdi>{escaped(text)}</bdi></strong>"


def line(text: str) -> str:
    """A line with names or constants in it, which runs from left to right whatever they are."""
    return f'<bdi dir="ltr">{escaped(text)}</bdi>'


def quiet(text: str) -> str:
    """A remark."""
    return f'<span class="dpf-quiet">{line(text)}</span>'


def remark(text: str) -> str:
    """A remark on a line of its own."""
    return f'<p class="dpf-quiet dpf-remark">{line(text)}</p>'


def chapter_title(text: str) -> str:
    """A heading above those of sections."""
    shown = escaped(text[:1].upper() + text[1:])
    name = f'<span class="dpf-name">{shown}</span>'
    return f'<div class="dpf-head" role="heading" aria-level="3">{name}</div>'


def title(text: str) -> str:
    """A heading, which tables of contents of notebooks do not list."""
    shown = escaped(text[:1].upper() + text[1:])
    return f'<div class="dpf-title" role="heading" aria-level="4">{shown}</div>'


def head(what: str, name: str, remark: str) -> str:
    """The first line."""
    shown = escaped(what) + (f" {named(name)}" if name else "")
    return (
        f'<div class="dpf-head" role="heading" aria-level="3"><span class="dpf-name">{shown}'
        f"</span><br>{quiet(remark)}</div>"
    )


def listed(lines: Iterable[str]) -> str:
    """A list of finished pieces; nothing if none exist."""
    inside = "".join(f"<li>{piece}</li>" for piece in lines)
    return f"<ul>{inside}</ul>" if inside else ""


def numbered(pieces: Iterable[str]) -> str:
    """A numbered list of finished pieces."""
    return f"<ol>{''.join(f'<li>{piece}</li>' for piece in pieces)}</ol>"


def opening(summary: str, details: str) -> str:
    """A line that opens to show more."""
    return f"<details><summary>{summary}</summary>{details}</details>" if details else summary


def table(
    heads: Iterable[str],
    rows: Iterable[str],
    numbers: Iterable[int] = (),
    over: Mapping[int, tuple[str, int]] | None = None,
    *,
    cards: bool = False,
) -> str:
    """A table of finished rows.

    Parameters
    ----------
    heads, numbers
        What is in the columns, and which of them are of numbers.
    over
        Heads of several columns: {the first: (text, how many)}.
    cards
        Whether rows are shown one below the other on narrow screens, each cell with its name.
    """
    names, right = list(heads), set(numbers)
    top = f"<tr>{''.join(_head(name, i in right) for i, name in enumerate(names))}</tr>"
    if over:
        top = f"<tr>{_spanning(over, len(names))}</tr>{top}"
    kind = "dpf-scroll dpf-cards" if cards else "dpf-scroll"
    return (
        f'<div class="{kind}"><table><thead>{top}</thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _head(name: str, number: bool) -> str:
    kind = ' class="dpf-number"' if number else ""
    return f'<th scope="col"{kind}>{line(name)}</th>'


def _spanning(over: Mapping[int, tuple[str, int]], columns: int) -> str:
    made, at = "", 0
    for first, (text, width) in over.items():
        made += f'<td colspan="{first - at}"></td>'
        made += f'<th scope="colgroup" class="dpf-over" colspan="{width}">{escaped(text)}</th>'
        at = first + width
    return made + f'<td colspan="{columns - at}"></td>'


def row(cells: Iterable[str], numbers: Iterable[int] = (), heads: Sequence[str] = ()) -> str:
    """A row of finished cells, some of which are numbers; where rows may be cards, with the names
    of their columns.
    """
    right = set(numbers)
    inside = ""
    for i, cell in enumerate(cells):
        kind = ' class="dpf-number"' if i in right else ""
        name = f' data-name="{escaped(heads[i])}"' if heads and heads[i] and cell else ""
        inside += f"<td{kind}{name}>{cell}</td>"
    return f'<tr class="dpf-line">{inside}</tr>'


def bar(shares: Iterable[tuple[str, float]], words: str, *, small: bool = False) -> str:
    """Shares of a whole, each ``"used"`` or ``"excess"``; a small bar stands beside text."""
    inside = "".join(
        f'<span class="dpf-{kind}" style="width:{100 * min(max(share, 0.0), 1.0):.1f}%"></span>'
        for kind, share in shares
    )
    size = " dpf-small" if small else ""
    drawn = f'<div class="dpf-bar{size}" role="img" aria-label="{escaped(words)}">{inside}</div>'
    return drawn if small else f"{drawn}{remark(words)}"


def fragment(*pieces: str) -> str:
    """The pieces with their style, in ASCII: it is read the same in whatever encoding."""
    inside = "\n".join(piece for piece in pieces if piece)
    made = f'<div class="dpframe" dir="ltr" lang="en">\n<style>{STYLE}</style>\n{inside}\n</div>'
    return made.encode("ascii", "xmlcharrefreplace").decode("ascii")
