"""From a query to the parts that it releases: what one individual can change, without data."""

from dpframe.infer.arches import arches_of
from dpframe.infer.effects import Effects, effects_of
from dpframe.infer.joint import Noise, PlannedDraw, Way, ways_of
from dpframe.infer.limit_search import LimitSearch
from dpframe.infer.measurements import PlannedMeasurement, measurements_of
from dpframe.infer.related import Related, brought_together, related_blocks
from dpframe.infer.several import Place, Queries, merge

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
