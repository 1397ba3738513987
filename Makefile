# Thin by intent: each target is one command that can be typed by hand.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: setup test smoke lint format types kernels check bench bless docs clean

setup: $(BIN)/tilecheck

$(BIN)/tilecheck: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

test: setup
	$(BIN)/pytest

smoke: setup
	$(BIN)/pytest -m smoke

lint: setup
	$(BIN)/ruff check .

format: setup
	$(BIN)/ruff format .

types: setup
	$(BIN)/mypy

kernels: setup
	$(BIN)/tilecheck verify --no-cache kernels/

check: lint types kernels test

bench: setup
	$(BIN)/python benchmarks/verify_speed.py

# Rewrites the golden reports and the output in README; review the diff.
bless: setup
	$(BIN)/pytest tests/golden tests/e2e/test_readme.py --bless

# Pages made from the program; a test fails when they are stale.
docs: setup
	$(BIN)/tilecheck rules --format markdown > docs/rules.md

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache
