# Everything a fresh machine needs is Python >= 3.11 and git; `make run` does the rest.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := run

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# The first interpreter that really starts (a version manager's shim may exist and refuse) and is new enough.
PYTHON ?= $(shell for name in python3.12 python3.13 python3.11 python3; do \
	$$name -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$name && break; done)

.PHONY: install run test check bench fix lock

install: $(STAMP)
	@echo "install: $(VENV) is up to date"

$(STAMP): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "No Python >= 3.11 with venv found. Install one, or name it: make PYTHON=/path/to/python3.12" >&2; exit 1; }
	@echo "install: 1/3 virtual environment in $(VENV)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "install: 2/3 packages of requirements.lock"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -r requirements.lock
	@echo "install: 3/3 pilothouse itself, editable"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(STAMP)

run: $(STAMP)
	@$(BIN)/python manage.py up

test: $(STAMP)
	@.ci/test

# Every step runs, so that one look shows everything that is wrong.
check: $(STAMP)
	@failed=""; step() { local name=$$1; shift; echo "check: $$name"; "$$@" || failed="$$failed [$$name]"; }; \
	step "format" $(BIN)/ruff format --check --quiet .; \
	step "lint" $(BIN)/ruff check --quiet .; \
	step "types" $(BIN)/mypy --no-error-summary; \
	step "import contracts" $(BIN)/lint-imports --no-logo; \
	step "house sizes" $(BIN)/pytest --no-header -p no:cacheprovider -s tests/test_house.py; \
	step "templates" $(BIN)/djlint templates --lint --quiet; \
	if [ -n "$$failed" ]; then echo "check: failed:$$failed" >&2; exit 1; fi; echo "check: all good"

fix: $(STAMP)
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format --quiet .

bench: $(STAMP)
	@test -f tests/bench/__main__.py || { echo "bench: this version has no measurements yet" >&2; exit 1; }
	@$(BIN)/python -m tests.bench $(ONLY)

# After a change of the dependencies in pyproject.toml; pins that still fit stay.
lock: $(STAMP)
	@$(BIN)/pip-compile --quiet --extra dev --no-header --no-emit-index-url --no-emit-find-links --strip-extras \
		--output-file requirements.lock pyproject.toml
