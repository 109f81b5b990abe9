# Headway. `make up` serves a model; `make test` checks everything but the long tests.

VENV  := .venv
BIN   := $(VENV)/bin
STAMP := $(VENV)/.installed

# Python 3.11 first: for it pip finds a CPU build of torch more often than for later ones.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)

# Where pip would fetch a CUDA build of torch (several GB):
#   make up TORCH_INDEX=https://download.pytorch.org/whl/cpu
TORCH_INDEX ?=
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input

# These give all operations of a server one name, by which workers could not tell them apart.
SCHEMATHESIS := $(wildcard tests/*/test_schemathesis.py tests/*/*/test_schemathesis.py)

.PHONY: install up test test-long test-gpu lint bench docs lock clean

install: $(STAMP)

# pip before 24 downloads a whole wheel to see what is in it, without showing progress.
$(STAMP): requirements.lock pyproject.toml $(wildcard csrc/*.* csrc/*/*)
	@if [ -z "$(PYTHON)" ]; then echo "Headway needs Python 3.11 or later; none was found. Set PYTHON=/path/to/python." >&2; exit 1; fi
	@echo "== Installing into $(VENV) with $(PYTHON) (once; about 1.5 GB on disk) =="
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "== 1/3 pip and torch =="
	-$(PIP) install --upgrade "pip>=24.2"
	$(PIP) install --constraint requirements.lock $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) torch
	@echo "== 2/3 locked dependencies =="
	$(PIP) install -r requirements.lock
	@echo "== 3/3 headway =="
	$(PIP) install --no-deps --editable .
	@touch $(STAMP)

up: $(STAMP)
	@exec $(BIN)/headway up

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint
	$(BIN)/python -m pytest -m "not long and not gpu" --numprocesses 2 --dist loadgroup --ignore-glob '*/test_schemathesis.py'
	$(BIN)/python -m pytest $(SCHEMATHESIS)

test-long: $(STAMP)
	$(BIN)/python -m pytest -m "long and not gpu" --timeout 1200

# The kernels of Triton on a CUDA device, which elsewhere run in its interpreter, and models on them.
test-gpu: $(STAMP)
	TRITON_INTERPRET=0 $(BIN)/python -m pytest -m gpu tests/kernels/triton tests/models/triton

# BENCH_ARGS="--sections concurrent,mixed --json" and so on; see benchmarks/engine.py --help.
bench: $(STAMP)
	$(BIN)/python benchmarks/engine.py $(BENCH_ARGS)

# The pages that are printed from tables.
docs: $(STAMP)
	$(BIN)/python -m headway.telemetry.metrics_doc > docs/metrics.md
	$(BIN)/python -m headway.router.metrics.page > docs/router-metrics.md
	$(BIN)/python -m headway.cli.flag_docs > docs/flags.md
	$(BIN)/python -m headway.doctor.guide en > docs/doctor-guide.md
	$(BIN)/python -m headway.doctor.guide zh > docs/doctor-guide.zh.md
	$(BIN)/python -m headway.telemetry.dashboard > examples/grafana/headway.json

# New versions of everything: a fresh environment, resolved from pyproject.toml, written to requirements.lock.
lock:
	rm -rf $(VENV)-lock
	$(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/python -m pip install $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) $(shell grep '^torch==' requirements.lock)
	$(VENV)-lock/bin/python -m pip install '.[dev]'
	grep '^#' requirements.lock > requirements.lock.new
	$(VENV)-lock/bin/python -m pip freeze --exclude headway | sed 's/^\(torch==[0-9.]*\)+.*/\1/' >> requirements.lock.new
	mv requirements.lock.new requirements.lock
	rm -rf $(VENV)-lock

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
