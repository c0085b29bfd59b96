# Everything a person runs. `make` lists it.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help demo serve rollout-demo test check figures format lock clean
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV

BIN := .venv/bin
INSTALLED := .venv/.installed
PIP := $(BIN)/python -m pip -qq --disable-pip-version-check

# The first interpreter that is new enough: `make PYTHON=/path/to/python3` overrides it.
PYTHON ?= $(shell for name in python3 python3.13 python3.12 python3.11 python3.14; do \
	$$name -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { echo $$name; break; }; done)

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */  make \1 \t/' | expand -t 22

demo: $(INSTALLED)  ## generate the shipped corpus, speculative and plain, and compare
	@$(BIN)/python jobs/bulk.py preset=demo

serve: $(INSTALLED)  ## serve the default model live: OpenAI's API on loopback, until Ctrl-C
	@$(BIN)/python jobs/serve.py

rollout-demo: $(INSTALLED)  ## play a promotion, a rollback and a fallback, under load
	@$(BIN)/python jobs/rollout.py action=demo

test: $(INSTALLED)  ## every test
	@$(BIN)/python -m pytest

check: $(INSTALLED)  ## format, lint, types, import contracts
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-logo

figures: $(INSTALLED)  ## measure the figures of the README
	@$(BIN)/python jobs/bench.py

format: $(INSTALLED)  ## format and mend what can be mended
	@$(BIN)/ruff format --quiet .
	@$(BIN)/ruff check --fix --quiet .

# The local version (+cpu) and the project itself are not for a lock that others install.
lock:  ## pin again what pip installs: new versions into requirements.lock
	@rm -rf .cache/lock && $(PYTHON) -m venv .cache/lock
	@.cache/lock/bin/python -m pip -qq install torch==2.13.0 hatchling editables
	@.cache/lock/bin/python -m pip -qq install --no-build-isolation -e '.[dev]'
	@{ echo '# What pip installs, made by `make lock`.'; \
	   .cache/lock/bin/python -m pip freeze --exclude-editable | sed 's/+cpu$$//'; } > requirements.lock
	@rm -rf .cache/lock

clean:  ## remove what was built and cached here, not what jobs wrote
	@rm -rf .venv .cache/lock .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# Made anew only when the lock changes, so that every later command starts at once.
$(INSTALLED): requirements.lock
	@test -n "$(PYTHON)" || { echo 'outrider: needs Python 3.11 or newer with the venv module;' \
		'install it, or give make PYTHON=/path/to/python3' >&2; exit 2; }
	@echo 'Installing into .venv (2.5 GB; once, a few minutes) ...'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(PIP) install -r requirements.lock
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@
