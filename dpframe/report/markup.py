"""HTML that fits into any page: escaped text, one style of its own, no scripts, nothing loaded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from dpframe.core.visible import visible
from dpframe.report.stylesheet import PAGE_STYLE, STYLE


def escaped(text: str) -> str:
    """Text that HTML shows unchanged, on one line, for any characters."""
    return escape(visible(text))


def code(text: str) -> str:
    """An expression; text of another direction in it moves nothing around it."""
    return f"<code>{line(text)}</code>"


def named(text: str) -> str:
    """A name that the analyst or the data owner chose."""
    return f"<strong><bdi>{escaped(text)}</bdi></strong>"


def line(text: str) -> str:
    """A line with names or constants, which runs from left to right for any alphabet."""
    return f'<bdi dir="ltr">{escaped(text)}</bdi>'


def quiet(text: str) -> str:
    """A remark."""
    return f'<span class="dpf-quiet">{line(text)}</span>'


def remark(text: str) -> str:
    """A remark on a line of its own."""
    return f'<p class="dpf-quiet dpf-remark">{line(text)}</p>'


def title(text: str) -> str:
    """A heading, which tables of contents of notebooks do not list."""
    shown = escaped(text[:1].upper() + text[1:])
    return f'<div class="dpf-title" role="heading" aria-level="3">{shown}</div>'


def head(what: str, name: str, remark: str) -> str:
    """The first line."""
    shown = escaped(what) + (f" {named(name)}" if name else "")
    return (
        f'<div class="dpf-head" role="heading" aria-level="2"><span class="dpf-name">{shown}'
        f"</span><br>{quiet(remark)}</div>"
    )


def listed(lines: Iterable[str]) -> str:
    """A list of finished pieces; nothing if none exist."""
    inside = "".join(f"<li>{piece}</li>" for piece in lines)
    return f"<ul>{inside}</ul>" if inside else ""


def numbered(pieces: Iterable[str]) -> str:
    """A numbered list of finished pieces."""
    return f"<ol>{''.join(f'<li>{piece}</li>' for piece in pieces)}</ol>"


def opening(summary: str, details: str, *, is_open: bool = False) -> str:
    """A line that opens to show more."""
    tag = "<details open>" if is_open else "<details>"
    return f"{tag}<summary>{summary}</summary>{details}</details>" if details else summary


def section(label: str, inside: str, anchor: str = "") -> str:
    """Pieces below a heading; on a page of its own with an anchor."""
    at = f' id="{escaped(anchor)}"' if anchor else ""
    heading = f'<div class="dpf-title" role="heading" aria-level="2"{at}>{escaped(label)}</div>'
    return f'<div class="dpf-part">{heading}<div>{inside}</div></div>'


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
        The headings of the columns, and the positions of columns with numbers.
    over
        Headings above several columns: the first column, the text, and the number of columns.
    cards
        Whether narrow screens show rows one below the other, each cell with its heading.
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
    """A row of finished cells; `numbers` are the positions of numbers, and `heads` the headings of
    cells for tables with cards.
    """
    right = set(numbers)
    inside = ""
    for i, cell in enumerate(cells):
        kind = ' class="dpf-number"' if i in right else ""
        name = f' data-name="{escaped(heads[i])}"' if heads and heads[i] and cell else ""
        inside += f"<td{kind}{name}>{cell}</td>"
    return f'<tr class="dpf-line">{inside}</tr>'


def bar(shares: Iterable[tuple[str, float]], words: str, *, small: bool = False) -> str:
    """Shares of a whole, each ``"used"`` or ``"excess"``; a small bar stands in a line of text."""
    inside = "".join(
        f'<span class="dpf-{kind}" style="width:{100 * min(max(share, 0.0), 1.0):.1f}%"></span>'
        for kind, share in shares
    )
    size = " dpf-small" if small else ""
    drawn = f'<div class="dpf-bar{size}" role="img" aria-label="{escaped(words)}">{inside}</div>'
    return drawn if small else f"{drawn}{remark(words)}"


def fragment(*pieces: str) -> str:
    """The pieces with their style, in ASCII, which is the same in all encodings."""
    inside = "\n".join(piece for piece in pieces if piece)
    made = f'<div class="dpframe" dir="ltr" lang="en">\n<style>{STYLE}</style>\n{inside}\n</div>'
    return made.encode("ascii", "xmlcharrefreplace").decode("ascii")


def page(name: str, links: Iterable[tuple[str, str]], pieces: Iterable[str]) -> str:
    """A separate page in ASCII, without scripts, which loads nothing.

    Parameters
    ----------
    name
        The title and first heading of the page.
    links
        Anchors with their words. The last link opens all details: it leads to the page itself, and
        the style of a page that is a target shows what is closed.
    pieces
        The contents.
    """
    inside = "\n".join(piece for piece in pieces if piece)
    shown = line(name)
    anchors = "".join(f'<a href="#{anchor}">{escaped(what)}</a>' for anchor, what in links)
    made = (
        '<!DOCTYPE html>\n<html lang="en" dir="ltr">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escaped(name)}</title>\n<style>{PAGE_STYLE}{STYLE}</style>\n</head>\n"
        f'<body id="all" class="dpf-page">\n<div class="dpframe">\n'
        f'<nav aria-label="On this page">{anchors}<a href="#all">Open all</a></nav>\n'
        f"<main>\n<h1>{shown}</h1>\n{inside}\n</main>\n</div>\n</body>\n</html>\n"
    )
    return made.encode("ascii", "xmlcharrefreplace").decode("ascii")
