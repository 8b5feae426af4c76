"""What package indexes show: the README without links that lead nowhere there.

The project has no public address, so links to its files are reduced to their words. Hatchling runs
this wherever metadata are made.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"!?\[([^\[\]]+)\]\((?!https?://|mailto:)[^()\s]*\)")


def without_relative_links(text: str) -> str:
    """A text in Markdown whose links all say where they lead, wherever it is read."""
    return _LINK.sub(lambda found: found[1], text)


class LongDescription(MetadataHookInterface):
    """The long description, made of the README."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": without_relative_links(text),
        }
