"""From a query to the parts that it releases: what one individual can change, without data."""

from dpframe.infer.measurements import PlannedMeasurement, measurements_of

__all__ = ["PlannedMeasurement", "measurements_of"]
