PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
RUN    := $(VENV)/.installed
TEST   := $(VENV)/.installed-test

.PHONY: demo test lint types imports pytest notebooks bench clean

demo: $(RUN)
	$(BIN)/geoedge run monaco

test: lint types imports pytest notebooks

lint: $(TEST)
	$(BIN)/ruff check geoedge tests
	$(BIN)/ruff format --check geoedge tests

types: $(TEST)
	$(BIN)/mypy

imports: $(TEST)
	$(BIN)/lint-imports

# one thread of linear algebra a process, as there is a process a core
pytest: $(TEST)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

notebooks: $(TEST)
	$(BIN)/python -m pytest --nbmake --nbmake-timeout=300 -o addopts= -o filterwarnings=default notebooks

bench: $(TEST)
	for script in tests/benchmarks/bench_*.py; do $(BIN)/python $$script || exit 1; done

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("geoedge needs Python 3.11 or newer; give it as: make PYTHON=python3.11" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(RUN): pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(TEST): pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $(RUN) $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache build dist
