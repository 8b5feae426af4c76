"""Plans as HTML: a whole page for reviewers, a fragment for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from html import escape

from dpframe.core.exact import nearest
from dpframe.core.tree import visible
from dpframe.plan import PlanData
from dpframe.report.first_page import DECIDE, QUESTIONS, RISKS, Entry, spend_words
from dpframe.report.story import Chapter

# The style of dpframe's HTML.
#
# Text has the colour of the surrounding page. Lines and fills have middle tones, which contrast
# with white and with black. So the HTML is readable in light, dark and other themes of notebooks,
# and all text remains where a page strips styles.

PAGE_STYLE = """
body.dpf-page{margin:0;background:#ffffff;color:#1f2328}
.dpf-page .dpframe.dpframe{margin:0 auto;padding:1em 1.2em 3em;max-width:64em}
.dpf-page nav{display:flex;flex-wrap:wrap;gap:.2em 1.2em;font-size:.93em}
.dpf-page nav a{color:inherit;text-underline-offset:.2em}
.dpf-page h1{font-size:1.35em;margin:.6em 0 .4em}
.dpf-page:target details::details-content{content-visibility:visible;height:auto;block-size:auto}
@media (prefers-color-scheme:dark){body.dpf-page{background:#16191d;color:#d6dae0}}
@media print{body.dpf-page{background:#ffffff;color:#000000}.dpf-page nav{display:none}
.dpf-page details::details-content{content-visibility:visible;height:auto;block-size:auto}
.dpf-page .dpf-part,.dpf-page .dpf-warn{break-inside:avoid}}
"""
"""The additional style of separate pages: the colours that a fragment gets from its page."""

# The class is written twice to weigh more than the rules that notebooks have for tables.
STYLE = """
.dpframe.dpframe{font:14px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;
color:inherit;max-width:72em;margin:.5em 0;overflow-wrap:anywhere;text-align:left}
.dpframe.dpframe code{font:12.5px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",
monospace;color:inherit;background:rgba(128,128,128,.13);border:0;border-radius:3px;
padding:.1em .35em;white-space:pre-wrap}
.dpframe .dpf-head{border-bottom:2px solid #3f87c5;padding-bottom:.35em;margin-bottom:.7em}
.dpframe .dpf-name{font-size:1.15em;font-weight:600}
.dpframe .dpf-title{font-weight:600;margin:1.1em 0 .35em}
.dpframe .dpf-chapter{font-weight:600;margin:.9em 0 .2em}
.dpframe .dpf-decide{font-size:1.08em;font-weight:600}
.dpframe .dpf-part{display:grid;grid-template-columns:9.5em minmax(0,1fr);margin:.55em 0}
.dpframe .dpf-part>.dpf-title{margin:0}
.dpframe .dpf-part .dpf-bar{float:right;margin-top:.4em}
.dpframe .dpf-quiet{opacity:.8}
.dpframe .dpf-warn{border-left:4px solid #cf7f1b;background:rgba(207,127,27,.12);padding:.4em .8em;
margin:.7em 0}
.dpframe .dpf-warn ul{margin:.1em 0}
.dpframe.dpframe ul,.dpframe.dpframe ol{margin:.15em 0;padding-left:1.7em}
.dpframe.dpframe li{margin:.15em 0}
.dpframe.dpframe p{margin:.15em 0}
.dpframe.dpframe p.dpf-remark{margin:.4em 0 .6em}
.dpframe details>summary{cursor:pointer}
.dpframe .dpf-scroll{overflow-x:auto}
.dpframe.dpframe table{border-collapse:collapse;border:0;margin:.2em 0;font-size:inherit;
color:inherit;background:transparent}
.dpframe.dpframe tbody tr,.dpframe.dpframe thead tr{background:transparent;border:0}
.dpframe.dpframe td,.dpframe.dpframe th{text-align:left;vertical-align:top;border:0;
padding:.25em .9em .25em 0;font-weight:400;white-space:normal;overflow-wrap:break-word}
.dpframe.dpframe thead th{border-bottom:1px solid rgba(128,128,128,.55);font-size:.88em;opacity:.8;
vertical-align:bottom;white-space:nowrap}
.dpframe.dpframe thead th.dpf-over{text-align:center;padding-bottom:.1em}
.dpframe.dpframe tbody tr.dpf-line>td{border-top:1px solid rgba(128,128,128,.28)}
.dpframe.dpframe tbody tr.dpf-line:first-child>td{border-top:0}
.dpframe.dpframe td.dpf-number,.dpframe.dpframe th.dpf-number{text-align:right;white-space:nowrap;
font-variant-numeric:tabular-nums}
.dpframe.dpframe td.dpf-more{overflow-wrap:anywhere;padding-bottom:.5em;font-size:.93em}
.dpframe .dpf-bar{display:flex;height:.62em;border:1px solid rgba(128,128,128,.6);border-radius:3px;
overflow:hidden;margin:.45em 0 .3em;max-width:36em}
.dpframe .dpf-bar.dpf-small{display:inline-flex;width:4.5em;margin:0 .5em 0 0}
.dpframe .dpf-used{background:#3f87c5}
.dpframe .dpf-excess{background:#d2504a}
@media (max-width:40em){
.dpframe .dpf-part{display:block}
.dpframe.dpframe .dpf-cards thead{position:absolute;width:1px;height:1px;overflow:hidden;
clip-path:inset(50%)}
.dpframe.dpframe .dpf-cards table,.dpframe.dpframe .dpf-cards tbody{display:block;width:auto}
.dpframe.dpframe .dpf-cards tr{display:flex;flex-wrap:wrap}
.dpframe.dpframe .dpf-cards td{display:block;flex:0 0 100%;box-sizing:border-box;padding:.1em 0;
border:0}
.dpframe.dpframe .dpf-cards td:first-child{order:-2}
.dpframe.dpframe .dpf-cards tr.dpf-line>td:first-child{padding-top:.5em;
border-top:1px solid rgba(128,128,128,.28)}
.dpframe.dpframe .dpf-cards tr.dpf-line>td~td{border-top:0}
.dpframe.dpframe .dpf-cards td.dpf-number{text-align:left;white-space:normal}
.dpframe.dpframe .dpf-cards td[data-name]::before{content:attr(data-name);opacity:.72;
display:inline-block;min-width:6.5em}
.dpframe.dpframe .dpf-cards td[data-name] br{display:none}
.dpframe.dpframe .dpf-cards td:empty{display:none}
.dpframe.dpframe ul,.dpframe.dpframe ol{padding-left:1.2em}
}
"""


# HTML that fits into any page: escaped text, one style of its own, no scripts, nothing loaded.


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
    *,
    cards: bool = False,
) -> str:
    """A table of finished rows, given the headings of its columns, and the positions of those with
    numbers. On narrow screens `cards` are rows one below the other, each cell with its heading.
    """
    top, right = "", set(numbers)
    for place, name in enumerate(heads):
        kind = ' class="dpf-number"' if place in right else ""
        top += f'<th scope="col"{kind}>{line(name)}</th>'
    kind = "dpf-scroll dpf-cards" if cards else "dpf-scroll"
    return (
        f'<div class="{kind}"><table><thead><tr>{top}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


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


def page(
    name: str,  # The title and first heading of the page
    # Anchors with their words. The last link opens all details: it leads to the page itself, and
    # the style of a page that is a target shows what is closed.
    links: Iterable[tuple[str, str]],
    pieces: Iterable[str],  # The contents
) -> str:
    """A separate page in ASCII, without scripts, which loads nothing."""
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


_OUTPUTS = ("output", "error", "verdict", "what it is")
_CODE = frozenset(("rows", "outputs"))
"""Sections whose heads are code."""


def html(
    # `plan`, `entries`, `chapters`: the plan, its first page, and its details.
    plan: PlanData,
    entries: Sequence[Entry],
    chapters: Sequence[Chapter],
    *,
    # The plan's fingerprint, for a separate page that ends with it. Empty for HTML that becomes
    # part of another page.
    fingerprint: str = "",
    is_open: bool = False,  # Whether the details are open
) -> str:
    """The first page, and the details to be opened."""
    whole = bool(fingerprint)
    pieces = [_entry(plan, entry, whole) for entry in entries]
    pieces.append(section("Details", _details(chapters, is_open), "details" if whole else ""))
    if not whole:
        return fragment(f'<div class="dpf-head">Plan for {named(plan.source)}</div>', *pieces)
    pieces.append(f'<p class="dpf-quiet">fingerprint {code(fingerprint)}</p>')
    links = [("decide", "Decide"), ("publishes", "Publishes")]
    links += [("questions", "Questions")] if any(e.label == QUESTIONS for e in entries) else []
    return page(f"Plan for {plan.source}", [*links, ("details", "Details")], pieces)


def _entry(plan: PlanData, entry: Entry, whole: bool) -> str:
    anchors = {DECIDE: "decide", RISKS: "risks", QUESTIONS: "questions"}
    anchor = anchors.get(entry.label, "publishes" if entry.outputs else "") if whole else ""
    if entry.numbered:
        inside = numbered(line(one) for one in entry.lines)
    else:
        inside = "".join(f"<p>{line(one)}</p>" for one in entry.lines)
    if entry.label == DECIDE:
        return f'<div class="dpf-decide"{_id(anchor)}>{inside}</div>'
    if entry.label == RISKS:
        return (
            f'<div class="dpf-warn" role="note"{_id(anchor)}><strong>Risks</strong>{inside}</div>'
        )
    if entry.outputs:
        heads = ("", *_OUTPUTS[1:])
        rows = [
            row((named(name), *map(line, others)), heads=heads)
            for name, *others in (one.cells for one in entry.outputs)
        ]
        inside += table(_OUTPUTS, rows, cards=True)
    if entry.label == "Spends":
        inside = _spent_share(plan) + inside
    return section(entry.label, inside, anchor)


def _id(anchor: str) -> str:
    return f' id="{anchor}"' if anchor else ""


def _details(chapters: Sequence[Chapter], is_open: bool) -> str:
    result = ""
    for chapter in chapters:
        if chapter.title:
            shown = escaped(chapter.title[:1].upper() + chapter.title[1:])
            result += f'<p class="dpf-chapter">{shown}</p>'
        for part in chapter.sections:
            first = code if part.title in _CODE else line
            items = (first(item.head) + listed(map(quiet, item.details)) for item in part.items)
            inside = numbered(items) if part.numbered else listed(items)
            result += opening(escaped(part.title), inside, is_open=is_open)
    return result


def _spent_share(plan: PlanData) -> str:
    """What the plan takes of what the session has left."""
    if plan.remaining is None:
        return ""
    before, cost = plan.remaining.main, plan.cost.main
    if not plan.remaining.covers(plan.cost):
        return bar([("excess", 1.0)], f"{spend_words(plan.cost)}, more than is left", small=True)
    share = nearest(cost / before) if before else Fraction(0)
    return bar([("used", float(share))], f"{float(share):.0%} of what is left", small=True)
