"""From plans to words."""

from dpframe.explain.render import render
from dpframe.explain.visible import quoted, visible

__all__ = ["quoted", "render", "visible"]
