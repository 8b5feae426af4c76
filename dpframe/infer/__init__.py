"""From a query to the parts that it releases: what one individual can change, without data."""

from dpframe.infer.joint import Noise, PlannedDraw, Way, arches_of, ways_of
from dpframe.infer.measurements import Effects, PlannedMeasurement, effects_of, measurements_of
from dpframe.infer.several import (
    LimitSearch,
    Place,
    Queries,
    Related,
    brought_together,
    merge,
    related_blocks,
)

__all__ = [
    "Effects",
    "LimitSearch",
    "Noise",
    "Place",
    "PlannedDraw",
    "PlannedMeasurement",
    "Queries",
    "Related",
    "Way",
    "arches_of",
    "brought_together",
    "effects_of",
    "measurements_of",
    "merge",
    "related_blocks",
    "ways_of",
]
