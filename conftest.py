"""What is not collected for doctests where an engine is not installed."""

from importlib.util import find_spec

_NEEDS = {
    "pyspark": "dpframe/lower/engines/spark_engine.py",
    "duckdb": "dpframe/lower/engines/duckdb_engine.py",
}
collect_ignore = [module for package, module in _NEEDS.items() if find_spec(package) is None]
