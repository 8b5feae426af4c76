"""From exact tables to released results: noise, selection, post-processing."""

from dpframe.release.asked import Intervals, read_intervals
from dpframe.release.doubts import Doubt, doubts_of
from dpframe.release.draw import CandidateScores, Draw, Places, draw, draw_node
from dpframe.release.keep import Keep
from dpframe.release.keys import KeyChoice, chooser_of, drawn_with_groups, number_of, with_some_key
from dpframe.release.missing import MissingRows
from dpframe.release.nightly import Drawn, RunningResults, law_of, part_of
from dpframe.release.order import in_order
from dpframe.release.results import (
    aggregate_column,
    assemble,
    check_post,
    laws_of,
    made_up_result,
    output_column,
    rehearse,
    shown_groups,
)

__all__ = [
    "CandidateScores",
    "Doubt",
    "Draw",
    "Drawn",
    "Intervals",
    "Keep",
    "KeyChoice",
    "MissingRows",
    "Places",
    "RunningResults",
    "aggregate_column",
    "assemble",
    "check_post",
    "chooser_of",
    "doubts_of",
    "draw",
    "draw_node",
    "drawn_with_groups",
    "in_order",
    "law_of",
    "laws_of",
    "made_up_result",
    "number_of",
    "output_column",
    "part_of",
    "read_intervals",
    "rehearse",
    "shown_groups",
    "with_some_key",
]
