"""Quantiles of one column in their order."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dpframe.aggregates.aggregate import MeasurementKey, Noisy
from dpframe.aggregates.cells import Cells
from dpframe.aggregates.quantile import QuantileChoice

__all__ = ["in_order"]


def in_order(noisy: Mapping[MeasurementKey, Noisy]) -> dict[MeasurementKey, Noisy]:
    """The same results where a larger quantile of the same candidates is no smaller: the codes of
    each group are sorted, which brings them nearer to the exact ones and is post-processing.
    """
    result = dict(noisy)
    families: dict[Cells, list[tuple[QuantileChoice, str]]] = {}
    for part, mechanism in noisy:
        if isinstance(part, QuantileChoice):
            families.setdefault(part.cells, []).append((part, mechanism))
    for keys in families.values():
        rising = sorted(keys, key=lambda key: key[0].q)
        codes = np.sort(np.concatenate([noisy[key] for key in rising], axis=1), axis=1)
        result |= {key: codes[:, i : i + 1] for i, key in enumerate(rising)}
    return result
