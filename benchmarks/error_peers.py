"""Errors of other libraries for the same work, each found in an environment of its own.

OpenDP: noise scales that its composition finds for the same outputs at the same spend, and tables
that it fits to noisy ones with mbi (`pip install "opendp[mbi]"`). Tumult Analytics: the scales that
its sessions state for the parts of each output (`pip install tmlt-analytics`, and Java).
"""

from __future__ import annotations

import json
import math
import subprocess
from typing import Any

OPENDP = """
import json
import opendp.prelude as odp
odp.enable_features("contrib")
space = odp.atom_domain(T=int), odp.absolute_distance(T=int)
def composed(made, count, scale):
    return odp.c.make_composition([made(*space, scale)] * count)
def gaussians(count, scale):
    rho = composed(odp.m.make_gaussian, count, scale)
    return odp.c.make_fix_delta(odp.c.make_zCDP_to_approxDP(rho), 1e-6)
found = {}
for d in (2, 3, 5, 10, 30):
    for name, made, spend in (
        ("laplace epsilon 1", lambda s: composed(odp.m.make_laplace, d, s), 1.0),
        ("gaussian rho 0.02436", lambda s: composed(odp.m.make_gaussian, d, s), 0.02436),
        ("gaussian (1, 1e-6)", lambda s: gaussians(d, s), (1.0, 1e-6)),
    ):
        found[f"{name} {d}"] = odp.binary_search_param(made, d_in=1, d_out=spend, T=float)
print(json.dumps(found))
"""
OPENDP_TABLES = """
import itertools, json, math, sys
import numpy as np
import polars as pl
import opendp.prelude as odp
from opendp.extras.mbi import Count, Fixed
odp.enable_features("contrib")
columns, runs = json.loads(sys.argv[2]), int(sys.argv[3])
data = pl.read_parquet(sys.argv[1])
data = data.rename({name: name.replace("-", "_") for name in data.columns}).select(columns)
data = data.with_columns(pl.all().cast(pl.String).fill_null("?"))
keys = {name: sorted(data[name].unique().to_list()) for name in columns}
codes = {
    name: data[name].replace_strict(found, range(len(found)), return_dtype=pl.Int64).to_numpy()
    for name, found in keys.items()
}
pairs, squares = list(itertools.combinations(columns, 2)), []
for _ in range(runs):
    context = odp.Context.compositor(
        data=data.lazy(), privacy_unit=odp.unit_of(contributions=1),
        privacy_loss=odp.loss_of(rho=0.02436), split_evenly_over=1,
    )
    fitted = context.query().contingency_table(
        keys=keys, algorithm=Fixed(queries=[Count(pair) for pair in pairs])
    ).release()
    for pair in pairs:
        shape = [len(keys[name]) for name in pair]
        place = np.ravel_multi_index([codes[name] for name in pair], shape)
        exact = np.bincount(place, minlength=math.prod(shape)).reshape(shape)
        found = np.asarray(fitted.project(pair))[: shape[0], : shape[1]]  # without what is no key
        squares.append(((found - exact) ** 2).ravel())
print(json.dumps(float(np.concatenate(squares).mean() ** 0.5)))
"""


def asked(python: str, code: str, *arguments: str) -> Any:
    """What a program prints as JSON in its last line."""
    command = [python, "-c", code, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


class OpenDP:
    """The figures of an environment with OpenDP; none without one."""

    def __init__(self, python: str | None) -> None:
        self.python = python
        self._scales: dict[str, float] = {} if python is None else asked(python, OPENDP)

    def deviation(self, spend: str, outputs: int, width: float = 1.0) -> float | None:
        """The standard deviation of one of `outputs` counts, or of sums that a row moves by
        `width`."""
        found = []
        scale = self._scales.get(f"laplace {spend.replace('(1, 1e-6)', 'epsilon 1')} {outputs}")
        if scale is not None:
            ratio = math.exp(-1 / scale / width)  # of discrete Laplace noise
            found.append(math.sqrt(2 * ratio) / (1 - ratio))
        scale = self._scales.get(f"gaussian {spend} {outputs}")
        if scale is not None:
            found.append(scale * width)
        return min(found, default=None)

    def tables(self, data: str, columns: list[str], runs: int) -> float | None:
        """The root mean square error over all cells of all pairs of columns, at rho 0.02436; None
        where mbi is not installed.
        """
        if self.python is None:
            return None
        try:
            return float(asked(self.python, OPENDP_TABLES, data, json.dumps(columns), f"{runs}"))
        except subprocess.CalledProcessError:
            return None
