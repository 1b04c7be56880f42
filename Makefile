# Needs Python 3.11 (PYTHON=... if it has another name) and Node.js 20. All that is installed stays in this folder.
PYTHON ?= python3.11
VENV := .venv
PY := $(VENV)/bin/python
WORKERS ?= 2
# By file, in the order that tests/marks.py makes: xdist's own begins files with few tests last, however long they take.
SPREAD := -n $(WORKERS) --dist loadfile --no-loadscope-reorder
CODE := function_app.py shared local infra tests bench docs/examples $(wildcard operate)

# Written after an installation, inside of what it installed: who deletes the folder installs anew.
PYTHON_READY := $(VENV)/installed
NODE_READY := local/azurite/node_modules/.installed

.DEFAULT_GOAL := help
.PHONY: help install demo up down test test-fast mutants lint infra bench clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 18

install: $(PYTHON_READY) $(NODE_READY) ## install what is needed, once (the other targets do it)

demo: install ## play HASTE's three messages through the worker, lose a node on the way, and check what came out
	@$(PY) -m local.demo $(ARGS)

up: install ## start the local stack with the worker, and leave it running
	@$(PY) -m local.stack up --detach $(ARGS)

down: $(PYTHON_READY) ## stop the local stack
	@$(PY) -m local.stack down

test: install ## run all tests (ARGS="tests/haste -k gpkg" for some)
	@$(PY) -m pytest $(SPREAD) $(ARGS)

test-fast: $(PYTHON_READY) ## run the unit tests: they start no process and open no port
	@$(PY) -m pytest -m unit $(SPREAD) $(ARGS)

mutants: $(PYTHON_READY) ## change shared/ in 60 small ways and see whether the unit tests notice (ARGS="--seed 2 --number 12")
	@$(PY) -m tests.mutants $(ARGS)

lint: $(PYTHON_READY) ## check format, lint, types, and the rules of the design
	@$(PY) -m ruff format --check .
	@$(PY) -m ruff check .
	@$(PY) -m mypy --strict $(CODE)
	@$(PY) -m pytest -q tests/architecture tests/docs/test_drift.py tests/docs/test_configuration.py

infra: $(PYTHON_READY) ## compile the Bicep templates and compare with the snapshots (ARGS=--update writes them anew)
	@$(PY) -m infra.check $(ARGS)

bench: $(PYTHON_READY) ## measure recovery, Azure calls, a tick over 10,000 jobs, and the Batch emulator (ARGS=calls for a part)
	@$(PY) -m bench $(ARGS)
	@$(PY) -m bench.batch_emulator

clean: ## remove all that was installed or made here
	rm -rf $(VENV) .local local/azurite/node_modules .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(PYTHON_READY): requirements.txt requirements-dev.txt requirements-host.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || \
		{ echo "Python 3.11 is needed and $(PYTHON) is not it; say make ... PYTHON=/path/to/it" >&2; exit 1; }
	@echo "installing Python packages into $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(PY) -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@$(PY) -m pip install --quiet --disable-pip-version-check --ignore-requires-python --no-deps -r requirements-host.txt
	@touch $@

$(NODE_READY): local/azurite/package.json local/azurite/package-lock.json $(wildcard local/azurite/stub/*)
	@command -v npm >/dev/null || { echo "Node.js 20 with npm is needed" >&2; exit 1; }
	@echo "installing Azurite into local/azurite"
	@npm ci --prefix local/azurite --no-audit --no-fund --loglevel=error
	@touch $@
