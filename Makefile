# Two commands set up a fresh machine: `make serve` and `make test`. The rest is for those who change things.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: help install dev serve test lint types format bench clean

help:  ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP) install --constraint constraints.txt --editable .
	@touch $@

.venv/dev: .venv/installed
	$(PIP) install --constraint constraints.txt --editable '.[dev]'
	@touch $@

install: .venv/installed  ## an environment with a working .venv/bin/skillwire

dev: .venv/dev  ## the same with everything that tests and linters need

serve: .venv/installed  ## serve examples/skills over HTTP
	$(BIN)/skillwire serve examples/skills --http 8000

test: .venv/dev  ## every test that needs nothing but package registries
	$(BIN)/python -m pytest -n auto tests

lint: .venv/dev  ## style, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache

types: .venv/dev  ## pyright, strict
	$(BIN)/pyright

format: .venv/dev  ## rewrite files in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/dev  ## the benchmarks' report (minutes)
	$(BIN)/python -m benchmarks.scan

clean:  ## remove the environment and caches
	rm -rf .venv .ruff_cache .hypothesis
