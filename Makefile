PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
RUN    := $(VENV)/.installed
APP    := $(VENV)/.installed-app
TEST   := $(VENV)/.installed-test

.PHONY: demo app test lint types imports docs pytest notebooks bench clean

demo: $(RUN)
	$(BIN)/geoedge run monaco

app: $(APP)
	$(BIN)/geoedge app monaco

test: lint types imports docs pytest notebooks

lint: $(TEST)
	$(BIN)/ruff check geoedge tests notebooks/conftest.py .docs
	$(BIN)/ruff format --check geoedge tests notebooks/conftest.py .docs

types: $(TEST)
	$(BIN)/mypy

imports: $(TEST)
	$(BIN)/lint-imports

docs: $(TEST)
	$(BIN)/python .docs

# one thread of linear algebra a process, as there is a process a core
pytest: $(TEST)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

# a cell ends after 300 s whatever happens; notebooks/conftest.py holds each notebook to two minutes
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

$(APP): pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[app]'
	touch $(RUN) $@

$(TEST): pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $(RUN) $(APP) $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache build dist
