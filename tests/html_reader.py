"""Reads HTML strictly, for tests: tags must close in order, and nothing may run or be loaded."""

from __future__ import annotations

import re
from html.parser import HTMLParser

VOID = {"br", "meta"}
KNOWN = {
    *("div", "style", "span", "strong", "bdi", "code", "p", "ul", "ol", "li", "br"),
    *("details", "summary", "table", "thead", "tbody", "tr", "th", "td"),
    *("html", "head", "meta", "title", "body", "nav", "main", "h1", "a"),
}


class Reader(HTMLParser):
    """The tags, attributes and text of a fragment.

    Raises
    ------
    AssertionError
        For tags that are not known, do not close in order, or have handlers or addresses.
    """

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.text = ""
        self.styles = ""
        self.labels: list[str] = []
        self.widths: list[str] = []
        self.anchors: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert not self._open, self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in KNOWN, tag
        for name, value in attrs:
            assert not name.startswith("on"), name
            assert name != "src", name
            if name == "href":
                assert str(value).startswith("#"), value
            if name == "id":
                assert re.fullmatch("[a-z]+", str(value)), value
                self.anchors.append(str(value))
            if name == "aria-label":
                self.labels.append(str(value))
            if name == "style":
                self.widths.append(str(value))
        self.tags.append(tag)
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "style":
            self.styles += data
        else:
            self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def handle_decl(self, decl: str) -> None:
        assert decl == "DOCTYPE html", decl
        assert not self.tags
