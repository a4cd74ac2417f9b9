# Every verb a contributor or a pipeline needs; each makes .venv first when it is missing or stale.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
CHART_STAMP := $(VENV)/.chart
INPUTS := requirements/dev.txt pyproject.toml

.DEFAULT_GOAL := help
.PHONY: help install demo test test-chart e2e e2e-tools check format generate alerts lock bench bench-load bench-e2e clean

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(STAMP) ## make .venv with rollout-lws and kubectl-rollout_lws in it (needs only Python 3.11 or newer)

$(STAMP): $(INPUTS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "rollout-lws needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version). Try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "Making $(VENV) (once, about a minute) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(STAMP) ## the main job: a canary release of a LeaderWorkerSet on an embedded cluster, told live
	@$(BIN)/rollout-lws demo

test: $(STAMP) ## all tests but the longer lanes (under five minutes on two cores)
	@$(BIN)/python -m pytest -m "not long and not e2e" -n 2

test-chart: $(CHART_STAMP) ## tests of the chart, by Helm as a library (fetches 100 MB, once)
	@$(BIN)/python -m pytest tests/chart -n 2

$(CHART_STAMP): $(STAMP) requirements/chart.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/chart.txt
	@touch $@

# A kubeconfig that a shell happens to export must not send stories to somebody's cluster: it has to be asked for.
ifeq ($(origin KUBECONFIG),command line)
e2e: $(STAMP)
	@ROLLOUT_LWS_E2E_ALL='$(ALL)' ROLLOUT_LWS_E2E_KUBECONFIG='$(KUBECONFIG)' $(BIN)/python -m pytest -m e2e tests/e2e
else
e2e: e2e-tools ## the stories on a control plane of their own (etcd, kube-apiserver, ...), or on KUBECONFIG=path
	@ROLLOUT_LWS_E2E_ALL='$(ALL)' ROLLOUT_LWS_E2E_KUBECONFIG= $(BIN)/python -m pytest -m e2e tests/e2e tests/conformance
endif

e2e-tools: $(STAMP) ## build that control plane, once for each version (needs Go; some minutes, 2.5 GB of memory)
	@$(BIN)/python -m tests.e2e.tools

check: $(STAMP) ## format, lint, types, layers, generated files
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m rollout_lws.api.generate --check
	@$(BIN)/python -m rollout_lws.cli.install.chart --check

format: $(STAMP) ## rewrite the sources the way 'make check' wants them
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format .

generate: $(STAMP) ## write crds/, schemas/ and what the chart has of both
	@$(BIN)/python -m rollout_lws.api.generate
	@$(BIN)/python -m rollout_lws.cli.install.chart

alerts: $(STAMP) ## write monitoring/alerts-test.yaml from stories
	@$(BIN)/python -m tests.metrics

lock: $(STAMP) ## renew requirements/*.txt from pyproject.toml (needs uv: pip install uv)
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate pyproject.toml -o requirements/run.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate --extra dev pyproject.toml -o requirements/dev.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate --group pyproject.toml:chart -c requirements/dev.txt -o requirements/chart.txt

bench: $(STAMP) ## the figures that the README quotes
	@$(BIN)/python -m tests.bench

bench-load: $(STAMP) ## fleets of 1,000 and 5,000 Rollouts, releases in flight, takeovers (about ten minutes)
	@$(BIN)/python -m tests.bench.load

bench-e2e: e2e-tools ## the same on a real control plane (about ten minutes)
	@$(BIN)/python -m tests.e2e.bench

clean: ## remove .venv and what tools left
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache .e2e-failures dist
