"""What holds for all tests: what is not collected for doctests where an engine is not installed,
and that linear algebra has one thread in each worker, as those of several wait for each other.
"""

import gc
import os
from importlib.util import find_spec

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when numpy is imported

_NEEDS = {
    "pyspark": "dpframe/lower/engines/spark_engine.py",
    "duckdb": "dpframe/lower/engines/duckdb_engine.py",
}
collect_ignore = [module for package, module in _NEEDS.items() if find_spec(package) is None]


def pytest_collection_finish() -> None:
    """Leave what was imported and collected out of each search for garbage."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Let what is frozen go as always when the process ends."""
    gc.unfreeze()
