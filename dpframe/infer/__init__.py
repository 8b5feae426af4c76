"""From a query to the parts that it releases: what one individual can change, without data."""

from dpframe.infer.joint import PlannedDraw, Way, effects_of, ways_of
from dpframe.infer.measurements import PlannedMeasurement, measurements_of

__all__ = ["PlannedDraw", "PlannedMeasurement", "Way", "effects_of", "measurements_of", "ways_of"]
