# make demo   sets up .venv and runs the embedded default
# make test   sets up .venv with every extra and runs the tests; PYTEST="-n 0 tests/tasks" narrows them
# make test-torch-free   runs the tests that need no torch on TORCH_FREE_PYTHON, in .venv-torch-free
# make dist   builds what an index takes into dist, and checks it
# make bench  runs every benchmark that fits the machine; BENCH="data train" narrows them
PYTHON ?= python3
TORCH_FREE_PYTHON ?= python3.13
BIN := .venv/bin
PYTEST ?= -n auto --maxprocesses 8
# One thread per process: torch's threads get in each other's way under load.
export OMP_NUM_THREADS ?= 1

.PHONY: demo test test-torch-free lint bench dist clean

demo: .venv/.demo
	$(BIN)/statetrack demo

test: .venv/.all
	$(BIN)/python -m pytest $(PYTEST)

# On another Python, without torch: what has to work there, and the examples in its docstrings.
TORCH_FREE := tasks theory results data verdicts reports notebook cli
test-torch-free: .venv-torch-free/.made
	.venv-torch-free/bin/python -m pytest $(PYTEST) $(TORCH_FREE:%=tests/%) $(TORCH_FREE:%=src/statetrack/%)

lint: .venv/.all
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/.all
	$(BIN)/python -m benchmarks $(BENCH)

# The second is the folder of task files that the extra lm-eval asks for.
dist: .venv/.all
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m build --wheel --outdir dist lm_eval_tasks
	$(BIN)/twine check --strict dist/*

clean:
	rm -rf .venv .venv-torch-free dist

.venv/.made:
	@$(PYTHON) -c 'import sys; ok = (3, 11) <= sys.version_info < (3, 14); sys.exit(None if ok else "statetrack needs Python 3.11 to 3.13; this is %s. Try: make PYTHON=python3.12 ..." % sys.version.split()[0])'
	$(PYTHON) -m venv .venv
	@touch $@

.venv/.demo: .venv/.made pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[train,report]'
	@touch $@

.venv-torch-free/.made: pyproject.toml
	$(TORCH_FREE_PYTHON) -m venv .venv-torch-free
	.venv-torch-free/bin/python -m pip install --quiet --disable-pip-version-check -e '.[data,report]' pytest pytest-xdist hypothesis sympy
	@touch $@

.venv/.all: .venv/.made pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[all,dev]'
	@touch $@ .venv/.demo
