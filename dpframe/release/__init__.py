"""From exact tables to released results: noise, selection, post-processing."""

from dpframe.release.draw import Ballots, draw, without_noise
from dpframe.release.keys import KeyChoice
from dpframe.release.results import (
    Column,
    assemble,
    check_post,
    output_column,
    rehearse,
    request_column,
)

__all__ = [
    "Ballots",
    "Column",
    "KeyChoice",
    "assemble",
    "check_post",
    "draw",
    "output_column",
    "rehearse",
    "request_column",
    "without_noise",
]
