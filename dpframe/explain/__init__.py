"""From plans to words."""

from dpframe.explain.render import render

__all__ = ["render"]
