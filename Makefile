# make demo    mine, train, merge and evaluate a real 0.5B model
# make test    the tests (SmolLM2 and tiny random models; no large download)
# make lint    ruff and mypy

VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
RECIPE ?= quickstart

.PHONY: demo test lint clean

# Where the demo's model cannot be had any more, the smallest one takes its place, and the demo says so.
demo: $(VENV)/installed
	@recipe=$(RECIPE); \
	if [ $$recipe = quickstart ] && ! $(BIN)/python -m scope.models Qwen/Qwen2.5-Coder-0.5B-Instruct; then \
		echo "demo: going on with SmolLM2-135M, which is not competent on its pool"; recipe=smollm2_135m; \
	fi; set -ex; \
	$(BIN)/python mine.py recipe=$$recipe; \
	$(BIN)/accelerate launch --config_file accelerate_configs/one_cpu.yaml train.py recipe=$$recipe; \
	$(BIN)/python evaluate.py recipe=$$recipe

test: $(VENV)/installed
	$(BIN)/python -m pytest

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The mark is made last, so an interrupted installation is begun again.
$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, found " + sys.version)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) runs
