# Everything a checkout needs, from a bare machine with Python >= 3.11, pip and make.

PYTHON ?= python3
PYTEST_ARGS ?=
DIST ?= dist
FUZZ_SECONDS ?= 600
BENCH_ARGS ?=

PIPELINE := instances/synchronous/f10-i10-w10-c1-p4-m8-4p.yaml

VENV := .venv
BIN := $(VENV)/bin
RUN := $(BIN)/python
STAMP := $(VENV)/.ready
NOTEBOOK_STAMP := $(VENV)/.ready-for-notebooks
BROWSER_STAMP := $(VENV)/.ready-for-the-browser
TORCH_STAMP := $(VENV)/.ready-for-torch
PIP := $(RUN) -m pip --quiet --no-input --disable-pip-version-check

# The environment is trusted while its Python runs and finds this very checkout: not
# after an interrupted set-up, a removed Python, or a copy of the folder.
SOUND := import lpsched, os, sys; sys.exit(not os.path.samefile(lpsched.__path__[0], "lpsched"))
REBUILD := $(shell test -f $(STAMP) && $(RUN) -I -c '$(SOUND)' 2>/dev/null || echo rebuild)

# Some systems package pip but not the copy of it that venv would install.
BARE_VENV = { $(PYTHON) -m venv --clear --without-pip $(VENV) && \
	$(PYTHON) -m pip --python $(RUN) --quiet --no-input install pip; }

.DEFAULT_GOAL := help
.PHONY: help demo test test-browser test-torch notebooks bench instances docs figures
.PHONY: fuzz lint format wheel clean rebuild

help:  ## say what there is
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1|\2/p' $(MAKEFILE_LIST) | \
		while IFS='|' read -r name text; do printf '%-14s %s\n' "$$name" "$$text"; done

demo: $(STAMP)  ## compare the methods on VGG-16 with 8 devices, and draw gantt.png
	$(RUN) -m lpsched compare models/vgg16.yaml --devices 8 --plot gantt.png

test: $(STAMP)  ## run all tests
	$(RUN) -m pytest -q -n 2 $(PYTEST_ARGS)

test-browser: $(BROWSER_STAMP)  ## try the report in headless Chromium
	$(RUN) -m pytest -q -m browser tests/report

test-torch: $(TORCH_STAMP)  ## run the tests that need PyTorch
	$(RUN) -m pytest -q tests/with_torch

notebooks: $(NOTEBOOK_STAMP) $(TORCH_STAMP)  ## run all notebooks
	$(RUN) -m pytest -q --nbmake --nbmake-timeout=600 notebooks

bench: $(STAMP)  ## measure: proved, times, gaps, and what each part is worth
	$(RUN) -m benchmarks $(BENCH_ARGS)

docs: $(STAMP)  ## write the documentation that follows from the code
	$(RUN) docs/write.py

figures: $(STAMP)  ## make every picture and number of the README
	$(RUN) -m lpsched compare vgg16 --devices 8 --plot docs/vgg16-8.png
	$(RUN) -m lpsched compare $(PIPELINE) --methods 1f1b,optimal --plot docs/pipeline.png
	$(RUN) -m lpsched compare vgg16 --devices 2..9 --methods pipedream,layerpipe,optimal

fuzz: $(STAMP)  ## set the back ends against each other (FUZZ_SECONDS=600)
	$(RUN) tests/agreement.py --seconds $(FUZZ_SECONDS)

instances: $(STAMP)  ## write the instances that follow a rule
	$(RUN) -m benchmarks.instances
	$(RUN) -m benchmarks.pipeline_files

lint: $(STAMP)  ## check style, types and floors
	$(RUN) -m ruff check
	$(RUN) -m ruff format --check
	$(RUN) -m mypy
	$(BIN)/lint-imports

format: $(STAMP)  ## lay the code out
	$(RUN) -m ruff format
	$(RUN) -m ruff check --fix

wheel: $(STAMP)  ## build the wheel into dist/
	$(PIP) wheel --no-deps --wheel-dir $(DIST) .

clean:  ## remove all that make and the tools made
	rm -rf $(VENV) dist build gantt.png .coverage
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find lpsched tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): pyproject.toml $(REBUILD)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
		"lpsched needs Python >= 3.11, and $(PYTHON) is " + sys.version.split()[0] + \
		": name another, as in make PYTHON=python3.12")'
	@echo "Setting up $(VENV) (a minute or two, once)" >&2
	@$(if $(REBUILD),$(PYTHON) -m venv --clear $(VENV) >/dev/null || $(BARE_VENV))
	@$(PIP) install --editable '.[dev]'
	@touch $@

$(NOTEBOOK_STAMP): $(STAMP)
	@$(PIP) install --editable '.[dev,notebook]'
	@touch $@

$(BROWSER_STAMP): $(STAMP)
	@$(PIP) install --editable '.[dev,browser]'
	@touch $@

$(TORCH_STAMP): $(STAMP)
	@$(PIP) install torch==2.13.0
	@touch $@

rebuild:
