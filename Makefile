# `make demo` and `make test` set everything up by themselves; the second time they start at once.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test bench clean

demo: .venv/core
	$(BIN)/python -m fairperm.demo

test: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -n auto

bench: .venv/bench
	$(BIN)/pytest benchmarks -o python_files="bench_*.py" --benchmark-columns=min,median,rounds -q

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
