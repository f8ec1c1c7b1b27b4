# Two commands do everything: `make demo` and `make test`. Each sets up .venv first and says what it does.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready-cpu
READY_GPU := $(VENV)/.ready-gpu
UV := $(BIN)/python -m uv
SEED ?= 0
# Whole files side by side, in their order: the end-to-end runs come first and the rest goes on beside them.
SIDE_BY_SIDE := -n 2 --dist loadfile --no-loadscope-reorder

.PHONY: help demo test test-fast lint install install-gpu clean

help: ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 22

demo: $(READY) ## train, evaluate and answer on this machine (embedded tier, about half an hour)
	@$(BIN)/python -m maestro.cli.app demo --run runs/demo --seed $(SEED)

test: $(READY) ## all tests, the end-to-end run included
	@echo "== tests"
	@$(BIN)/python -m pytest $(SIDE_BY_SIDE)

test-fast: $(READY) ## all tests but the end-to-end run
	@$(BIN)/python -m pytest $(SIDE_BY_SIDE) -m "not e2e"

lint: $(READY) ## ruff, pyright, import arrows
	@echo "== ruff"
	@$(BIN)/ruff check .
	@echo "== pyright"
	@$(BIN)/pyright
	@echo "== import arrows"
	@$(BIN)/lint-imports

install: $(READY) ## set up .venv for the CPU tier
	@echo "ready: $(VENV) (CPU tier)"

install-gpu: $(READY_GPU) ## set up .venv for a GPU node
	@echo "ready: $(VENV) (GPU tier)"

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11 is needed; set PYTHON=/path/to/python3.11" >&2; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || { echo "$(PYTHON) is not Python 3.11" >&2; exit 2; }
	@echo "== virtual environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q uv==$$(sed -n 's/^uv==//p' constraints/cpu.txt)

$(READY): $(BIN)/python constraints/cpu.txt constraints/vllm-metadata/pyproject.toml pyproject.toml
	@echo "== packages of the CPU tier (about 7 GB, a few minutes)"
	@$(UV) pip install -q --python $(BIN)/python --no-deps -r constraints/cpu.txt
	@$(UV) pip install -q --python $(BIN)/python --no-deps --no-build-isolation ./constraints/vllm-metadata
	@$(UV) pip install -q --python $(BIN)/python --no-deps --no-build-isolation -e .
	@echo "== compiling to bytecode (without it every start takes minutes)"
	@$(BIN)/python -m compileall -q -j 2 $(VENV)/lib/python3.11/site-packages >/dev/null 2>&1 || true
	@rm -f $(READY_GPU)
	@touch $@

$(READY_GPU): $(BIN)/python constraints/gpu.txt pyproject.toml
	@echo "== packages of the GPU tier (about 11 GB, several minutes)"
	@$(UV) pip install -q --python $(BIN)/python --no-deps -r constraints/gpu.txt
	@$(UV) pip install -q --python $(BIN)/python --no-deps --no-build-isolation -e .
	@echo "== compiling to bytecode (without it every start takes minutes)"
	@$(BIN)/python -m compileall -q -j 2 $(VENV)/lib/python3.11/site-packages >/dev/null 2>&1 || true
	@rm -f $(READY)
	@touch $@

clean: ## remove runs and caches (not .venv)
	@rm -rf runs .pytest_cache .ruff_cache .hypothesis .import_linter_cache
