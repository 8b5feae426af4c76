"""From exact tables to released results: noise, selection, post-processing."""

from dpframe.release.draw import CandidateScores, Draw, draw, without_noise
from dpframe.release.keep import Keep
from dpframe.release.keys import KeyChoice, chooser_of, drawn_with_groups, number_of, with_some_key
from dpframe.release.order import in_order
from dpframe.release.results import (
    aggregate_column,
    assemble,
    check_post,
    output_column,
    rehearse,
    shown_groups,
)

__all__ = [
    "CandidateScores",
    "Draw",
    "Keep",
    "KeyChoice",
    "aggregate_column",
    "assemble",
    "check_post",
    "chooser_of",
    "draw",
    "drawn_with_groups",
    "in_order",
    "number_of",
    "output_column",
    "rehearse",
    "shown_groups",
    "with_some_key",
    "without_noise",
]
