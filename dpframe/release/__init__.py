"""From exact tables to released results: noise, selection, post-processing."""

from dpframe.release.draw import draw
from dpframe.release.keys import KeyChoice
from dpframe.release.results import assemble, check_post, rehearse

__all__ = ["KeyChoice", "assemble", "check_post", "draw", "rehearse"]
