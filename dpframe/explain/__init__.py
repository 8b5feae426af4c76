"""From plans to words."""

from dpframe.explain.render import Format, render
from dpframe.explain.visible import quoted, visible

__all__ = ["Format", "quoted", "render", "visible"]
