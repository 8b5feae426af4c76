"""From exact tables to released results: noise, selection, post-processing."""

from dpframe.release.draw import draw
from dpframe.release.results import assemble

__all__ = ["assemble", "draw"]
