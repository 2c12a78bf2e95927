# `make` alone prints what there is to make.

PYTHON ?= python3
# Tests wait for servers, processes and clouds as much as they compute: five processes have work for two cores.
WORKERS ?= 5
VENV := .venv
BIN := $(VENV)/bin
# Programs of the tests whose own dependencies suit nobody else's: each in an environment of its own.
TOOLS := .tools/checkov/.done .tools/cloud/.done .tools/dist/.done .tools/docs/.done .tools/infra/.done .tools/lowest/.done \
	.tools/moto/.done .tools/sam/.done .tools/browser
PIP_INSTALL := $(BIN)/python -m pip install -qq --disable-pip-version-check
ARGS ?=

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help
help: ## say what each target does
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  PYTHON=python3.12 chooses the interpreter, WORKERS=8 the number of test processes,"
	@echo "  ARGS='...' goes to the program that run, example, cloud, aws-smoke, bench or lock starts; docs-serve takes a port."

.PHONY: run
run: $(VENV)/.local ## set up and run the demo, which ends by itself
	$(BIN)/python -m local.demo $(ARGS)

.PHONY: example
example: $(VENV)/.local ## set up and run the example application, which ends by itself
	$(BIN)/python -m examples.erp_sync $(ARGS)

.PHONY: cloud
cloud: $(VENV)/.dev .tools/cloud/.done ## set up and run all of the template in a local cloud, until Ctrl-C
	$(BIN)/python -m local.cloud $(ARGS)

.PHONY: aws-smoke
aws-smoke: $(VENV)/.dev .tools/cloud/.done ## deploy, try and destroy a stack in your AWS account (ARGS=--local: in a local cloud)
	$(BIN)/python -m local.aws_smoke $(ARGS)

.PHONY: test
test: setup ## set up and run every check and every test
	VENV=$(CURDIR)/$(VENV) WORKERS=$(WORKERS) scripts/check

.PHONY: nightly
nightly: setup ## pass what is too long for each check: nightly tests, 200 examples of each property, mutants
	VENV=$(CURDIR)/$(VENV) WORKERS=$(WORKERS) scripts/nightly

.PHONY: coverage
coverage: setup ## pass all tests, and measure which lines they execute: 95 % at least
	VENV=$(CURDIR)/$(VENV) WORKERS=$(WORKERS) scripts/coverage

.PHONY: quick
quick: $(VENV)/.dev ## check style, types and imports, and pass the quick tests: some two minutes
	VENV=$(CURDIR)/$(VENV) scripts/lint
	$(BIN)/python -m pytest -q -n $(WORKERS) tests/unit tests/rules tests/store tests/test_assertions.py tests/test_kit.py

.PHONY: setup
setup: $(VENV)/.dev $(TOOLS) ## set up everything for development, run nothing

.PHONY: lint
lint: $(VENV)/.dev ## check style, format, types and imports
	VENV=$(CURDIR)/$(VENV) scripts/lint

.PHONY: format
format: $(VENV)/.dev ## put the code in form and mend what can be mended
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

.PHONY: reference
reference: $(VENV)/.dev ## write the pages of docs/reference anew, from the code
	$(BIN)/python -m lint.reference

.PHONY: proof
proof: $(VENV)/.dev ## try to break the engine for some minutes, and write docs/proof.md (HOURS=8 goes on that long)
	$(BIN)/python -m tests.proof --hours $(or $(HOURS),0) $(ARGS)

.PHONY: bench
bench: $(VENV)/.dev ## measure, and print the table
	$(BIN)/python -m bench $(ARGS)

.PHONY: peers
peers: .tools/peers/.done .tools/peers-older/.done .tools/peers-node/.done ## install the libraries that bench.peers compares with

.PHONY: lock
lock: $(VENV)/.dev ## write the lock files anew (ARGS=--upgrade for newer versions)
	VENV=$(CURDIR)/$(VENV) scripts/lock $(ARGS)

.PHONY: dist
dist: $(VENV)/.dev .tools/dist/.done ## build the archives that are published, and rehearse their release
	VENV=$(CURDIR)/$(VENV) scripts/dist

.PHONY: docs
docs: $(VENV)/.dev .tools/docs/.done ## build the site of the docs into build/docs/site, and check it
	$(BIN)/python -m docs_build

.PHONY: docs-serve
docs-serve: docs ## build the site, and serve it on this machine until Ctrl-C
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory build/docs/site $(or $(ARGS),8000)

.PHONY: clean
clean: ## remove what the other targets made
	rm -rf $(VENV) .tools .aws-sam build dist htmlcov .coverage .coverage.* .hypothesis .import_linter_cache \
		.mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps: the set-up runs once, and again only when a lock or the package's own description changes.
$(VENV)/.local: requirements/local.txt pyproject.toml | $(VENV)/pyvenv.cfg
	$(call install,$<)
	@touch $@

$(VENV)/.dev: requirements/dev.txt pyproject.toml | $(BIN)/uv
	@echo "installing $< into $(VENV) (once, and again when it changes)"
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r $<
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@

# By uv, which is ten times quicker than pip; pip brings only uv, as the lock of development has it.
$(BIN)/uv: | $(VENV)/pyvenv.cfg
	@sed -n '/^uv==/,/[^\\]$$/p' requirements/dev.txt >$(VENV)/uv.txt
	@$(PIP_INSTALL) --require-hashes -r $(VENV)/uv.txt

.tools/%/.done: requirements/%.txt | $(VENV)/.dev
	@echo "installing $< into $(@D) (once, and again when it changes)"
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(@D)
	@$(BIN)/uv pip install --quiet --python $(@D)/bin/python --require-hashes -r $<
	@touch $@

# Without Node.js the peer that needs it is left out.
.tools/peers-node/.done: bench/peers/node/package-lock.json
	@mkdir -p $(@D) && cp bench/peers/node/package*.json $(@D)
	@if command -v npm >/dev/null; then npm ci --prefix $(@D) --ignore-scripts --no-audit --no-fund --silent && touch $@; \
		else echo "There is no npm: BullMQ is left out." >&2; fi

.tools/browser: scripts/browser
	@scripts/browser
	@mkdir -p $(@D) && touch $@

$(VENV)/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo \
		"lowkiq_lambda needs Python 3.11 or newer, and '$(PYTHON)' is not: choose one with make PYTHON=python3.12" >&2; \
		exit 1; }
	$(PYTHON) -m venv $(VENV)

# The package is built by the locked hatchling, so that nothing is fetched that the lock does not name.
define install
@echo "installing $(1) into $(VENV) (once, and again when it changes)"
@$(PIP_INSTALL) --require-hashes -r $(1)
@$(PIP_INSTALL) --no-deps --no-build-isolation -e .
endef
