# Everything is one verb: make help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.set-up
CLASSES := $(VENV)/spark.jsa
# On a terminal it shows what it is at. Whatever it installs has its hash in the lock, also the tool that builds PySpark.
# The lock is the whole of it: pip chooses nothing, and says at the end if something is missing.
PIP = quiet=; test -t 1 || quiet=--quiet; $(BIN)/python -m pip install $$quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-cluster test tests coverage test-all lint types house reference docs bench lock lock-run release clean

help: ## List the verbs
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(STAMP) ## Make .venv with everything the project needs (done once)

$(STAMP): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Postroom needs Python 3.11 or newer; say make PYTHON=/path/to/python3.11")'
	@echo "setting up $(VENV): some minutes, once"
	@$(PYTHON) -m venv $(VENV)
	@sed -n '/^setuptools==/,/[^\\]$$/p' requirements.lock > $(VENV)/setuptools.lock
	@$(PIP) --require-hashes --requirement $(VENV)/setuptools.lock
	@$(PIP) --require-hashes --no-deps --use-pep517 --no-build-isolation --requirement requirements.lock
	@$(BIN)/python -m pip check
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $(STAMP)
	@echo "$(VENV) is set up"

demo: $(STAMP) ## Take the tour
	@$(BIN)/python examples/tour.py

demo-cluster: $(STAMP) ## The claims on PostgreSQL and a Spark cluster of two workers, one of which is killed half-way
	@$(BIN)/python examples/cluster/demo.py

# Java shares classes if the file is its own, and says nothing if it is another's. None of them runs for long enough for
# the second compiler to pay.
test coverage: export SPARK_SUBMIT_OPTS = -Xlog:disable -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:SharedArchiveFile=$(abspath $(CLASSES))
test: $(STAMP) ## Lint, types, import directions, and every test but the slow batteries
	@$(MAKE) --no-print-directory -j 2 lint house $(CLASSES)
	@$(MAKE) --no-print-directory -j 2 types tests

tests: $(STAMP)
	$(BIN)/python tests/side_by_side.py -m "not slow"

coverage: $(STAMP) $(CLASSES) ## The same tests, measured: which branches none of them takes; half as long again
	$(BIN)/coverage erase
	$(BIN)/python tests/side_by_side.py --coverage -m "not slow"
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

test-all: export POSTROOM_PACE_SECONDS = 1
test-all: lint types house $(STAMP) ## The same with the slow batteries
	$(BIN)/python -m pytest

$(CLASSES): $(STAMP)
	-@$(BIN)/postroom prepare --again --file $@

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

house: $(STAMP)
	$(BIN)/lint-imports --no-logo

reference: $(STAMP) ## Write the reference pages that are made from the code
	$(BIN)/python docs/reference/generate.py

docs: $(STAMP) reference ## Make a site of the docs, with search: build/site/index.html
	$(BIN)/sphinx-build -q -W --keep-going docs build/site
	@echo "build/site/index.html"

bench: $(STAMP) ## Measure everything beside its peers, half an hour long, and write docs/benchmarks.md
	$(BIN)/python bench/everything.py

lock: ## Choose newer versions of what the project depends on
	rm -rf $(VENV)/lock && $(PYTHON) -m venv $(VENV)/lock
	$(VENV)/lock/bin/python -m pip install --quiet --upgrade '.[dev,bench]'
	$(VENV)/lock/bin/python -m pip freeze --exclude postroom --all | grep -vE '^(pip|postroom)[ =@]' > requirements.lock
	$(VENV)/lock/bin/python tools/lock.py
	rm -rf $(VENV)/lock

# It can not ask for a new set-up: that would need the hashes.
lock-run: ## Write the hashes of requirements.lock, the run-time lock and the table of licences, after a pin was changed
	@test -e $(STAMP) || $(MAKE) --no-print-directory setup
	$(BIN)/python tools/lock.py

release: $(STAMP) ## Make sdist, wheel, SBOM and checksums in dist/, the same bytes from the same commit; HOME_URL= is the project's address
	$(BIN)/python tools/lock.py --check
	$(BIN)/python tools/release.py

clean: ## Remove what setup, tests and demo made
	rm -rf $(VENV) .coverage .coverage.* .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist
