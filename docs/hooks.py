"""What MkDocs adds to the site: the changelog, the notebooks of `examples`, and the version."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]


def changelog() -> str:
    """The changelog, with links as they are in the folder of the documentation."""
    return (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").replace("](docs/", "](")


def notebook(name: str) -> str:
    """A notebook as a page: text, code, and what each cell printed or returned."""
    source = ROOT / "examples" / "notebooks" / f"{name}.ipynb"
    cells = json.loads(source.read_text(encoding="utf-8"))["cells"]
    parts = [f"*This page is the notebook `examples/notebooks/{name}.ipynb` with its results.*"]
    for cell in cells:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(text)
            continue
        parts.append(f"```python\n{text}\n```")
        parts.extend(_output(output) for output in cell["outputs"])
    title, _, rest = parts[1].partition("\n")
    return "\n\n".join([title, parts[0], rest, *parts[2:]]) + "\n"


def _output(output: dict[str, Any]) -> str:
    """One result of a cell as Markdown."""
    if output["output_type"] == "stream":
        return f"```text\n{''.join(output['text'])}\n```"
    data = output["data"]
    for kind in ("text/html", "image/svg+xml"):
        if kind in data:
            # A blank line would end the block of HTML.
            markup = re.sub(r"\n\s*\n", "\n", "".join(data[kind]).strip())
            return f'<div class="notebook-output">{markup}</div>'
    return f"```text\n{''.join(data['text/plain'])}\n```"


PAGES = {
    "changelog.md": changelog,
    "notebooks/quickstart.md": lambda: notebook("quickstart"),
    "notebooks/individuals.md": lambda: notebook("individuals"),
}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Show the version at the foot of each page."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    config.copyright = f"dpframe {project['version']} · {project['license']}"
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made of other files."""
    for name, page in PAGES.items():
        files.append(File.generated(config, name, content=page()))
    return files


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Name the dialog of the search for screen readers, which the theme leaves without a name."""
    dialog = '<div class="md-search" data-md-component="search" role="dialog"'
    return output.replace(f"{dialog}>", f'{dialog} aria-label="Search">')
