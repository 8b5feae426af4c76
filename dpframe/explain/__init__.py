"""From plans to words."""

from dpframe.explain.render import Format, render

__all__ = ["Format", "render"]
