# Every verb a contributor or a pipeline needs; each makes .venv first when it is missing or stale.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
CHART_STAMP := $(VENV)/.chart
BROWSER_STAMP := $(VENV)/.browser
DOCS_STAMP := $(VENV)/.docs
AUDIT := $(VENV)/audit
INPUTS := requirements/dev.txt pyproject.toml

.DEFAULT_GOAL := help
.PHONY: help install demo test test-long test-chart test-browser pictures e2e e2e-nodes e2e-tools check audit format generate alerts docs docs-serve lock bench bench-load bench-page bench-e2e clean

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(STAMP) ## make .venv with rollout-lws and kubectl-rollout_lws in it (needs only Python 3.11 or newer)

$(STAMP): $(INPUTS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "rollout-lws needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version). Try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "Making $(VENV) (once, about a minute) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q rollout_lws
	@touch $@

demo: $(STAMP) ## the main job: a canary release of a LeaderWorkerSet on an embedded cluster, told live
	@$(BIN)/rollout-lws demo

# Which variants are told changes with each commit, so that all are within a few of them.
SEED ?= $(shell git rev-parse --short HEAD 2>/dev/null || date +%F)
test: $(STAMP) ## all tests but the longer lanes, of stories with many variants some by SEED (about five minutes)
	@$(BIN)/python -m pytest -m "not long and not e2e and not nodes and not browser" -n 2 --seed '$(SEED)' $(if $(ALL),--each-change)

test-long: $(STAMP) ## the longer lanes, of each test one variant in sixteen by SEED (ALL=1: all of them)
	@$(BIN)/python -m pytest -m long -n 2 --seed '$(SEED)' $(if $(ALL),--each-change,--one-in 16)

test-chart: $(CHART_STAMP) ## tests of the chart, by Helm as a library (fetches 100 MB, once)
	@$(BIN)/python -m pytest tests/chart -n 2

$(CHART_STAMP): $(STAMP) requirements/chart.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/chart.txt
	@touch $@

test-browser: $(BROWSER_STAMP) ## the dashboard in Chromium (PICTURES=dir: keeps pictures; REQUIRED=1: no skipping)
	@$(if $(REQUIRED),$(BIN)/python -m tests.browser_tool --require)
	@ROLLOUT_LWS_PICTURES='$(abspath $(PICTURES))' $(BIN)/python -m pytest -m browser tests/browser -n 2

pictures: $(BROWSER_STAMP) ## take docs/pictures/dashboard-*.png anew, of a release in virtual time
	@ROLLOUT_LWS_PICTURES=docs/pictures $(BIN)/python -m pytest -m browser tests/browser/test_pictures.py

$(BROWSER_STAMP): $(STAMP) requirements/browser.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/browser.txt
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

e2e-nodes: $(STAMP) ## releases on real nodes behind a real gateway, with users (root on Linux; ALL=1: all of them)
	@ROLLOUT_LWS_E2E_ALL='$(ALL)' $(BIN)/python -m tests.nodes

check: $(STAMP) ## format, lint, types, layers, generated files
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m tests.sentences
	@$(BIN)/python -m tests.purity
	@$(BIN)/python -m rollout_lws.api.generate --check
	@$(BIN)/python -m rollout_lws.cli.install.chart --check
	@$(BIN)/python -m rollout_lws.notifications.schema --check
	@$(BIN)/python -m tests.docs.api_reference --check
	@$(BIN)/python -m tests.docs.flags --check
	@$(BIN)/python -m tests.docs.pictures --check

# In an environment of its own: what audits is not among what it audits, and newcomers do not get it.
audit: $(AUDIT)/.installed ## known vulnerabilities of the dependencies, and the workflows (REQUIRED=1: no skipping)
	@$(AUDIT)/bin/python -m tests.releasing.audit $(if $(REQUIRED),--require)

$(AUDIT)/.installed: requirements/audit.txt
	@$(PYTHON) -m venv $(AUDIT)
	@$(AUDIT)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/audit.txt
	@touch $@

format: $(STAMP) ## rewrite the sources the way 'make check' wants them
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format .

generate: $(STAMP) ## write crds/, schemas/, what the chart has of both, the pages of reference, and pictures
	@$(BIN)/python -m rollout_lws.api.generate
	@$(BIN)/python -m rollout_lws.cli.install.chart
	@$(BIN)/python -m rollout_lws.notifications.schema
	@$(BIN)/python -m tests.docs.api_reference
	@$(BIN)/python -m tests.docs.flags
	@$(BIN)/python -m tests.docs.pictures

alerts: $(STAMP) ## write monitoring/alerts-test.yaml from stories
	@$(BIN)/python -m tests.metrics

docs: $(DOCS_STAMP) ## build the site into site/; a link or an anchor that leads nowhere is an error
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

docs-serve: $(DOCS_STAMP) ## show the site at http://127.0.0.1:8000 and renew it while you write
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

$(DOCS_STAMP): $(STAMP) requirements/docs.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/docs.txt
	@touch $@

lock: $(STAMP) ## renew requirements/*.txt from pyproject.toml (needs uv: pip install uv)
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate --extra admission --extra lua --extra proxy --extra sandbox pyproject.toml -o requirements/run.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate --extra admission --extra lua -c requirements/run.txt pyproject.toml -o requirements/controller.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate --all-extras pyproject.toml -o requirements/dev.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate --group pyproject.toml:chart -c requirements/dev.txt -o requirements/chart.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate --group pyproject.toml:browser -c requirements/dev.txt -o requirements/browser.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate --group pyproject.toml:docs -c requirements/dev.txt -o requirements/docs.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate --group pyproject.toml:nodes -c requirements/dev.txt -o requirements/nodes.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate --group pyproject.toml:build -c requirements/dev.txt -o requirements/build.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate --group pyproject.toml:audit -c requirements/dev.txt -o requirements/audit.txt

bench: $(STAMP) ## the figures that the README quotes
	@$(BIN)/python -m tests.bench

bench-load: $(STAMP) ## fleets of 1,000 and 5,000 Rollouts, releases in flight, takeovers (about ten minutes)
	@$(BIN)/python -m tests.bench.load

bench-page: $(BROWSER_STAMP) ## the dashboard's page in Chromium (about a minute)
	@$(BIN)/python -m tests.bench.page

bench-e2e: e2e-tools ## the same on a real control plane (about ten minutes)
	@$(BIN)/python -m tests.e2e.bench

clean: ## remove .venv and what tools left
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache .e2e-failures dist site
