"""From exact tables to released results: noise, selection, post-processing."""

from dpframe.release.draw import draw
from dpframe.release.results import assemble, check_post, rehearse

__all__ = ["assemble", "check_post", "draw", "rehearse"]
