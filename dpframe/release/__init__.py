"""From exact tables to released results: noise, selection, post-processing."""

from dpframe.release.intervals import Intervals, MissingRows, read_intervals
from dpframe.release.results import (
    Doubt,
    Keep,
    aggregate_column,
    assemble,
    check_post,
    doubts_of,
    in_order,
    laws_of,
    make_up_result,
    output_column,
    rehearse,
    shown_groups,
    with_some_key,
)

__all__ = [
    "Doubt",
    "Intervals",
    "Keep",
    "MissingRows",
    "aggregate_column",
    "assemble",
    "check_post",
    "doubts_of",
    "in_order",
    "laws_of",
    "make_up_result",
    "output_column",
    "read_intervals",
    "rehearse",
    "shown_groups",
    "with_some_key",
]
