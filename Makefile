# Two commands set up a fresh machine: `make serve` and `make test`. The rest is for those who change things.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
PEERS := tests/interop/peers

.PHONY: help install dev serve test test-slow test-full programs test-interop interop-matrix test-adapters test-web test-packages web-pictures docs lint types format bench bench-peers clean

help:  ## what can be made
	@grep -hE '^[a-z.-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP) install --constraint constraints.txt --editable .
	@touch $@

.venv/dev: .venv/installed
	$(PIP) install 'pip>=25.1'  # the first with dependency groups
	$(PIP) install --constraint constraints.txt --group dev --editable .
	@touch $@

# What interop, adapters and web need beside: other people's packages, a browser's driver.
.venv/extras: .venv/dev
	$(PIP) install --constraint constraints.txt --group dev --group interop --group web \
		--editable '.[agent-framework,langchain,openai-agents,pydantic-ai]'
	@touch $@

.venv/docs: .venv/dev
	$(PIP) install --constraint constraints.txt --group docs --editable .
	@touch $@

# Without npm nothing is installed and the tests that need it say so; where CI is set, they fail.
$(PEERS)/node_modules/.installed: $(PEERS)/package.json
	@if ! command -v npm >/dev/null; then echo "npm is missing: tests against Node peers cannot run" >&2; \
	else cd $(PEERS) && npm install --no-package-lock --no-audit --no-fund --silent && touch node_modules/.installed; fi

# Without Python 3.12 the same; those tests are skipped everywhere.
.venv/fast-agent/installed: $(PEERS)/fast-agent.txt $(PEERS)/install_fast_agent.sh | .venv/installed
	$(PEERS)/install_fast_agent.sh .venv/fast-agent

install: .venv/installed  ## an environment with a working .venv/bin/skillwire

dev: .venv/dev  ## the same with everything that tests and linters need

serve: .venv/installed  ## serve examples/skills over HTTP, on port 8000 or a free one
	$(BIN)/skillwire serve examples/skills --http auto

# One worker more than cores: tests often wait for a server or a disk. Compiled tests are kept, whatever the environment
# says: they halve the time until the first test runs.
WORKERS = $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')
PYTEST = PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

test: .venv/dev  ## the quick tests: what a change breaks in daily work (two minutes)
	$(PYTEST) -m 'not slow' tests

# Without HAProxy the test of several replicas says so and is skipped; where CI is set, nothing goes on.
test-slow: .venv/dev  ## the others: stdio, the handshake era, processes, docs, conformance
	@tests/registry/install_haproxy.sh || [ -z "$$CI" ]
	$(PYTEST) -m slow tests

test-full: test test-slow  ## both

conformance.md: .venv/dev  ## for a release: each rule and the tests that prove it
	$(BIN)/python tests/rules.py > $@

INTEROP := .venv/extras $(PEERS)/node_modules/.installed .venv/fast-agent/installed

programs: $(PEERS)/node_modules/.installed .venv/fast-agent/installed  ## other people's programs, and Chromium
	@tests/web/install_chromium.sh || [ -z "$$CI" ]

test-interop: $(INTEROP)  ## against programs we did not write (npm, FastMCP, fast-agent); docs/explanation/interop.md must agree
	$(PYTEST) --maxprocesses 4 -rsx --matrix check tests/interop

interop-matrix: $(INTEROP)  ## the same, and write docs/explanation/interop.md
	$(PYTEST) --maxprocesses 4 -rsx --matrix write --ignore tests/interop/test_matrix.py tests/interop

test-adapters: .venv/extras  ## against the agent frameworks' own packages, offline; and the types of adapters and examples
	$(PYTEST) tests/adapters
	$(BIN)/pyright -p tests/adapters

# Without Chromium its tests say so and are skipped; where CI is set, nothing goes on.
test-web: .venv/extras  ## the pages, in Debian's Chromium
	@tests/web/install_chromium.sh || [ -z "$$CI" ]
	$(PYTEST) --maxprocesses 4 -rsx --timeout 300 tests/web

web-pictures: .venv/extras  ## write the pictures of the documentation, and of every state to tests/web/artefacts
	@tests/web/install_chromium.sh
	$(BIN)/python -m pytest -n 2 --timeout 600 --pictures tests/web

test-packages: .venv/dev  ## install the wheel and the source distribution with every Python from 3.11 on that is here
	tests/packages.sh $(BIN)/python

docs: .venv/docs  ## the documentation as a site in build/site; fails on broken links and anchors
	$(BIN)/python docs/website.py

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
	$(BIN)/python -m benchmarks.client
	$(BIN)/python -m benchmarks.host
	$(BIN)/python -m benchmarks.search
	$(BIN)/python -m benchmarks.page
	$(BIN)/python -m benchmarks.gateway
	$(BIN)/python -m benchmarks.gateway_soak
	$(BIN)/python -m benchmarks.registry

bench-peers: .venv/dev  ## ours beside other projects' servers and beside floors (half an hour; npm for some)
	$(BIN)/python -m benchmarks.peers

clean:  ## remove the environment and caches
	rm -rf .venv build .ruff_cache .hypothesis $(PEERS)/node_modules benchmarks/.cache tests/web/artefacts
