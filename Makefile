# Toolbench. `make help` lists the verbs.
PYTHON ?= python3
BIN := .venv/bin
CPUS ?= 2
# Of `make mutants`.
SEED ?= 11
MUTANTS ?= 500
# One more than there are: kill tests and journeys mostly wait for processes of their own.
TESTS_AT_ONCE = $(shell expr $(CPUS) + 1)
ON_CHANGED = $(PYTHON) toolbench/running/bootstrap.py
# Every file with a test marked as long. A session that runs no other file collects no other test.
LONG_TESTS = tests/long tests/journeys/test_addresses.py
FRAMEWORKS = crewai langchain llama-index openai-agents pydantic-ai
BROWSER_TESTS = $(if $(filter 1,$(SKIP_BROWSER)), and not browser)

# Without bytecode each process compiles every file.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help up link worker reset run-environment environment browser test test-local test-frameworks format lint check check-long faketime mutants lock wheel clean

help:  ## This list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | while IFS='|' read -r verb text; do printf '%-22s %s\n' "$$verb" "$$text"; done
	@echo "  Settings of up: HOST, PORT, TOOLBENCH_BASE, ALLOWED_HOSTS, WORKERS, LOCAL_MODEL=0, DATABASE_URL, REDIS_URL"

up: export TOOLBENCH_STARTED_AT := $(shell date +%s)
up: run-environment  ## Start everything and print a link to sign in; Ctrl-C stops it
	@exec $(BIN)/python -m toolbench.running up

link: run-environment  ## Print another link to sign in
	@exec $(BIN)/python -m toolbench.running link

worker: run-environment  ## Run one more worker beside those of make up
	@exec $(BIN)/python -m toolbench.running worker

reset: run-environment  ## Delete all data (asks first; YES=1 does not ask)
	@exec $(BIN)/python -m toolbench.running reset

test: environment browser  ## Every test, pages in a real headless Chromium (SKIP_BROWSER=1 leaves those out)
	$(BIN)/python -m pytest -q -n $(TESTS_AT_ONCE) --ignore=tests/long --dist loadfile --no-loadscope-reorder -m "not local_model and not long and not frameworks$(BROWSER_TESTS)"

test-local: environment  ## Live tests on the local model
	$(BIN)/python -m pytest -q -m local_model

test-frameworks: environment $(FRAMEWORKS:%=var/frameworks/%/installed)  ## Agent frameworks on the gateway, each in an environment of its own
	$(BIN)/python -m pytest -q -m frameworks tests/frameworks

format: environment  ## Format code and templates
	$(BIN)/ruff format --quiet .
	$(BIN)/ruff check --fix --quiet .
	$(BIN)/djangofmt --quiet templates

lint: environment  ## Format, lint, types, import contracts, templates
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy toolbench tests benchmarks
	$(BIN)/lint-imports
	$(BIN)/djangofmt --check --quiet templates
	$(BIN)/djlint templates --lint --quiet

check: lint test  ## All that has to be green: lint and test

check-long: environment faketime  ## What is too slow for check, 45 minutes at most: ten rounds of chaos, accessibility, search for keys
	$(BIN)/python -m pytest -v -n $(CPUS) --dist loadfile -m long $(LONG_TESTS)
	$(BIN)/python -m benchmarks.canaries

# Sets clocks of workers wrong; without it, that test is skipped.
faketime:
	@ls /usr/lib/*/faketime/libfaketime.so.1 >/dev/null 2>&1 || apt-get install -y -qq --no-install-recommends faketime || true

mutants: environment  ## Change 500 places of judging, statistics and loop; 95 % must fail a test (SEED=11, MUTANTS=500)
	$(BIN)/python -m benchmarks.mutants --seed $(SEED) --count $(MUTANTS) --jobs $(CPUS)

lock: environment  ## Renew requirements/ from pyproject.toml (needs uv)
	uv lock
	uv export --quiet --no-annotate --no-header --no-emit-project --no-dev -o requirements/run.txt
	uv export --quiet --no-annotate --no-header --no-emit-project -o requirements/develop.txt

wheel: environment  ## Build the wheel into dist/
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

clean:  ## Remove the virtual environment and caches; data stays
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

run-environment:
	@$(ON_CHANGED) requirements/run.txt

environment:
	@$(ON_CHANGED) requirements/develop.txt

# Pins are complete, so nothing else is installed.
var/frameworks/%/installed: requirements/frameworks/%.txt
	rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --no-deps --no-compile --disable-pip-version-check -r $<
	touch $@

browser: environment
	@$(if $(filter 1,$(SKIP_BROWSER)),true,$(BIN)/python -m toolbench.running.chromium)
