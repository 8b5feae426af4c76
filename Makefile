# Every target makes the environment it needs. Stamps in it are newer than pyproject.toml when it is
# up to date, so a second run starts at once.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= $(shell python3.11 -c '' 2>/dev/null && echo python3.11 || echo python3)
PIP_INSTALL = -m pip install --quiet --disable-pip-version-check
WORKERS ?= 2
SHARD ?= 1/1
# Folders and files whose subject does not depend on the version of Polars.
ANY_POLARS = accounting samplers mechanisms workloads core charge ledger optimise stats held mutants schedule \
	kernel plan report test_messages.py test_site.py test_words.py

.PHONY: help demo test test-oldest test-nightly test-spark test-clusters test-versions package mutants bench bench-error bench-large docs docs-update docs-pictures notebooks screenshots check check-text check-types-mypy check-types-pyright check-imports check-and-test clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | column -t -s $$'\t'

.venv/stamp-created:
	$(PYTHON) -m venv .venv
	touch $@

.venv/stamp-package: .venv/stamp-created pyproject.toml
	.venv/bin/python $(PIP_INSTALL) -e .
	touch $@

# Compiling every module takes longer than unpacking them, and tests import one in three: these are
# compiled then.
.venv/stamp-dev: .venv/stamp-created pyproject.toml
	.venv/bin/python $(PIP_INSTALL) --no-compile -e '.[dev]'
	touch $@ .venv/stamp-package

.venv/stamp-docs: .venv/stamp-created pyproject.toml
	.venv/bin/python $(PIP_INSTALL) -e '.[docs]'
	touch $@ .venv/stamp-package

.venv/stamp-notebooks: .venv/stamp-created pyproject.toml
	.venv/bin/python $(PIP_INSTALL) -e '.[notebooks]'
	touch $@ .venv/stamp-package

.venv-oldest/stamp: pyproject.toml
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python $(PIP_INSTALL) -e '.[dev]' 'polars==1.32.*'
	touch $@

demo: .venv/stamp-package ## six queries on census data, with their plans
	@.venv/bin/dpframe demo

check: .venv/stamp-dev ## format, lint, spelling, types and import rules
	@$(MAKE) --jobs $(WORKERS) --output-sync --no-print-directory check-types-pyright check-types-mypy check-text check-imports

check-text: .venv/stamp-dev
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/codespell README.md CONTRIBUTING.md SECURITY.md CHANGELOG.md docs dpframe examples

check-types-mypy: .venv/stamp-dev
	.venv/bin/mypy

# mypy reads everything. Pyright, which many editors use, reads what analysts import, and all at night.
check-types-pyright: .venv/stamp-dev
	.venv/bin/pyright --pythonpath .venv/bin/python dpframe/api

check-imports: .venv/stamp-dev
	.venv/bin/lint-imports

# Where the shell forbids to keep compiled modules, each process of tests would compile them again.
test test-oldest test-nightly test-spark: export PYTHONDONTWRITEBYTECODE :=

# The longest check runs beside the others and the tests, which leave no processor idle.
test: .venv/stamp-dev ## everything a change must pass
	@$(MAKE) --jobs 2 --no-print-directory check-types-pyright check-and-test

check-and-test: check-text check-imports check-types-mypy
	.venv/bin/python -m pytest -q -n $(WORKERS) --dist worksteal --doctest-modules dpframe tests

test-oldest: .venv-oldest/stamp ## the tests again, on the oldest Polars that is supported
	.venv-oldest/bin/python -c 'import polars; print("polars", polars.__version__)'
	.venv-oldest/bin/python -m pytest -q -n $(WORKERS) --dist worksteal --doctest-modules dpframe tests $(ANY_POLARS:%=--ignore=tests/%)

test-nightly: .venv/stamp-dev ## what takes long, statistics, and every law with many more examples: hours; SHARD=1/4 for a part
	.venv/bin/pyright --pythonpath .venv/bin/python
	.venv/bin/python -m pytest -q -n $(WORKERS) --dist worksteal --shard $(SHARD) -m 'nightly and not slow and not spark' --doctest-modules dpframe tests
	DPFRAME_PROFILE=slow .venv/bin/python -m pytest -q -n $(WORKERS) --dist worksteal --shard $(SHARD) -m 'not spark' tests

.venv/stamp-spark: .venv/stamp-dev
	.venv/bin/python $(PIP_INSTALL) -e '.[spark,connect]'
	touch $@

test-spark: .venv/stamp-spark ## plans on Apache Spark, which needs Java: skipped without it
	.venv/bin/python -m pytest -q -rs -m 'spark and not slow and not nightly' tests/engines tests/storage

test-clusters: .venv/stamp-spark ## all plans on a master with workers, on a local cluster and on a server of Spark Connect: an hour
	.venv/bin/python -m pytest -q -rs -m 'spark and (slow or nightly)' tests/engines tests/storage

.venv/stamp-packaging: .venv/stamp-created pyproject.toml
	.venv/bin/python $(PIP_INSTALL) -e '.[package]'
	touch $@ .venv/stamp-package

package: .venv/stamp-packaging ## a wheel and a source archive into dist/, checked, and tried in an empty environment
	.venv/bin/python -m tests.wheel

test-versions: .venv/stamp-packaging ## the wheel on every Python that is supported; those that are missing are skipped
	.venv/bin/python -m tests.wheel --versions

.venv/stamp-mutants: .venv/stamp-dev
	.venv/bin/python $(PIP_INSTALL) -e '.[mutants]'
	touch $@

mutants: .venv/stamp-mutants ## plant one-line mistakes and list those that no test sees: hours; MUTANTS="--number 100"
	.venv/bin/python -m tests.mutants $(MUTANTS)

bench: .venv/stamp-dev ## ratios within one run: import, everyday queries in memory and from Parquet, planning, overhead, individuals, noise, many tables, ledgers
	.venv/bin/python benchmarks/import_time.py
	.venv/bin/python benchmarks/everyday.py 1e7 5 memory
	.venv/bin/python benchmarks/everyday.py 1e7 5 parquet
	.venv/bin/python benchmarks/planning.py
	.venv/bin/python benchmarks/overhead.py
	.venv/bin/python benchmarks/individuals.py
	.venv/bin/python benchmarks/noise.py
	.venv/bin/python benchmarks/workloads.py
	.venv/bin/python benchmarks/error_workloads.py
	.venv/bin/python benchmarks/error_several.py
	.venv/bin/python benchmarks/error_topk.py
	.venv/bin/python benchmarks/ledger.py

bench-error: .venv/stamp-dev ## errors of whole plans before and now; OPENDP=PYTHON to have its own beside, ADULT=TABLE.parquet
	.venv/bin/python benchmarks/error.py $(OPENDP) $(ADULT)

bench-large: .venv/stamp-spark ## 200 million rows in 2 GB of memory, and each engine at growing sizes
	.venv/bin/python benchmarks/large.py
	.venv/bin/python benchmarks/engines.py

docs: .venv/stamp-docs ## the documentation, into site/
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict # not --quiet, for then no warning is counted

docs-update: .venv/stamp-dev ## rewrite outputs, tables and pictures in the documentation
	.venv/bin/python -m tests.documentation
	.venv/bin/python docs/pictures.py

notebooks: .venv/stamp-notebooks ## execute the notebooks of examples again
	.venv/bin/python -m tests.notebooks

screenshots: .venv/stamp-dev ## draw plans and notebooks for the documentation; needs Chromium
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --quiet
	.venv/bin/python -m tests.screenshots --site site $(if $(MERMAID),--mermaid $(MERMAID))

docs-pictures: .venv/stamp-dev ## draw the charts in the documentation again
	.venv/bin/python -m tests.pictures

clean: ## forget environments and everything built
	rm -rf .venv .venv-oldest site dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .benchmarks
