# `make demo` and `make test` set everything up by themselves; the second time they start at once.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test bench bench-scale clean

demo: .venv/core
	$(BIN)/fairperm demo

test: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	@sh scripts/browser.sh
	$(BIN)/pytest -n auto --dist loadgroup

bench: .venv/bench
	$(BIN)/pytest benchmarks -o python_files="bench_*.py" --benchmark-columns=min,median,rounds -q

# MOST and SPARK are the rows of the largest runs; WRITE=--write puts the table into docs/scale.md
MOST ?= 1e9
SPARK ?= 1e8
bench-scale: .venv/bench
	$(BIN)/python benchmarks/bench_scale.py --most $(MOST) --spark $(SPARK) $(WRITE)

.venv/python: Makefile
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "fairperm needs Python 3.11 or newer: make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	touch $@

.venv/core: .venv/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

.venv/dev: .venv/core
	$(BIN)/python -m pip install --quiet --group dev
	touch $@

.venv/bench: .venv/core
	$(BIN)/python -m pip install --quiet --group bench
	touch $@

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis .benchmarks dist
