# Each target sets up what it needs on a machine that has Python ≥ 3.11 and make.
#
#   make demo     the main job, from nothing: a study of real people, its answers, receipt and report
#   make demo-service  the same data behind a service: three analysts ask through the client
#   make examples the examples in Python
#   make paper    the paper's figures and tables, recomputed, in build/paper
#   make test     every check: style, types, layers, tests, coverage
#   make quick    what changes most, in half a minute
#   make lint     style, types, layers
#   make soak     the long forms: a thousand kills of each ledger, many random questions to hostile tables, all cases
#   make adapters the tests of libraries that have environments of their own: diffprivlib, and Opacus (torch: 1.1 GB)
#   make switching what `docs/coming-from.md` shows of other libraries, each in an environment of its own
#   make bench    the benchmarks, or one subject: make bench ONLY=ledger
#   make docs     the documentation, in docs/_build/html
#   make wheel    the wheel, built and used in empty environments, with every tutorial from pip install on
#   make release  everything that a release must pass, and its files in dist
#   make proofs   the machine-checked proofs: installs Coq where it may (Debian, root), compiles and checks them

# Bytecode is kept even where the environment says otherwise: each of several hundred processes would compile its imports.
export PYTHONDONTWRITEBYTECODE :=

PYTHON ?= python3
KILLS  ?= 1000
CASES  ?= 20000
VENV   := .venv
BIN    := $(VENV)/bin
PEERS  := .venvs
PIP     = $(BIN)/python -m pip --quiet --disable-pip-version-check

.PHONY: demo examples paper adapters switching test tests-alone quick lint soak bench docs wheel release proofs format clean demo-service

demo: $(VENV)/.demo
	rm -rf build/demo
	$(BIN)/python examples/randhie.py build/demo
	$(BIN)/expost plan examples/randhie.toml
	$(BIN)/expost run examples/randhie.toml --record build/demo/randhie.run.json --report build/demo/randhie.html

demo-service: $(VENV)/.demo
	$(PIP) install -c constraints.txt -e '.[cli,client,data,service]'
	rm -rf build/demo-service
	$(BIN)/python examples/randhie.py build/demo-service
	$(BIN)/python examples/service/demo.py build/demo-service

examples: $(VENV)/.dev
	$(BIN)/python examples/coin.py
	$(BIN)/python examples/large_entries.py
	$(BIN)/python examples/robust.py
	$(BIN)/python examples/early_stopping.py
	$(BIN)/python examples/tables.py
	$(BIN)/python examples/durable.py
	$(BIN)/python examples/tested_model.py
	$(BIN)/python examples/tuning.py

paper: $(VENV)/.dev
	$(BIN)/python -m paper build/paper

# Databases that tests make are in memory where it is large enough: waiting for a disk proves nothing, and takes long.
test quick: export TMPDIR := $(shell df -k --output=avail /dev/shm 2>/dev/null | awk 'NR == 2 && $$1 > 4000000 {print "/dev/shm"}')
test: export OPENBLAS_NUM_THREADS = 1  # two workers on two cores leave none for more
test: $(VENV)/.browser $(PEERS)/diffprivlib/.installed
	$(MAKE) --jobs 2 lint tests-alone  # mypy takes a minute, and tests wait now and then

tests-alone:
	$(BIN)/pytest -n 2 --dist worksteal --cov --cov-report=
	$(BIN)/python tests/coverage_floor.py

quick: $(VENV)/.dev
	$(BIN)/pytest -n 2 --dist worksteal -m "not slow"

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache > $(VENV)/layers.txt || (cat $(VENV)/layers.txt; false)

soak: $(VENV)/.dev
	EXPOST_CASES=$(CASES) EXPOST_SOAK=$(KILLS) $(BIN)/pytest -n 2 --dist worksteal tests/conformance/test_expressions.py tests/conformance/test_engines.py tests/conformance/test_sources.py tests/conformance/test_spark.py tests/conformance/test_spark_sources.py -o faulthandler_timeout=3600
	EXPOST_SOAK=$(KILLS) $(BIN)/pytest -n 2 --dist worksteal tests/faults tests/laws tests/statistical tests/unit -o faulthandler_timeout=1800
	$(BIN)/python tests/wheel.py build/wheel

adapters: $(VENV)/.dev $(PEERS)/diffprivlib/.installed $(PEERS)/opacus/.installed
	$(BIN)/pytest tests/unit/adapters

switching: $(VENV)/bin/python $(patsubst %,$(PEERS)/%/.installed,opendp diffprivlib smartnoise tumult)
	for peer in opendp diffprivlib smartnoise tumult; do $(BIN)/python tests/switching.py with_$$peer.py $(PEERS)/$$peer/bin/python || exit 1; done

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# ---- benchmarks: ours and the peers on the same work in one run

ONLY ?= $(filter-out report,$(basename $(notdir $(wildcard benchmarks/*.py))))

bench: export PYTHONPATH = .
bench: $(VENV)/.dev $(PEERS)/opendp/.installed $(PEERS)/diffprivlib/.installed $(PEERS)/opacus/.installed $(PEERS)/tumult/.installed
	for subject in $(ONLY); do $(BIN)/python benchmarks/$$subject.py || exit 1; done
	$(BIN)/python benchmarks/report.py

$(PEERS)/opendp/.installed: benchmarks/peers/opendp.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip --quiet --disable-pip-version-check install -r $<
	touch $@

$(PEERS)/diffprivlib/.installed: benchmarks/peers/diffprivlib.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip --quiet --disable-pip-version-check install -r $<
	touch $@

$(PEERS)/opacus/.installed: benchmarks/peers/opacus.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip --quiet --disable-pip-version-check install -r $<
	touch $@

$(PEERS)/smartnoise/.installed: benchmarks/peers/smartnoise.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip --quiet --disable-pip-version-check install -r $<
	touch $@

$(PEERS)/tumult/.installed: benchmarks/peers/tumult.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip --quiet --disable-pip-version-check install -r $<
	touch $@

# ---- documentation

docs: $(VENV)/.docs
	$(BIN)/python -m paper docs/figures > /dev/null
	$(BIN)/python docs/gallery.py docs/figures
	$(BIN)/python docs/what_fits.py docs/figures
	$(BIN)/sphinx-build -q -W -E -b html docs docs/_build/html
	$(BIN)/python docs/offline.py docs/_build/html
	$(BIN)/python -m pytest -q -p no:cacheprovider docs/check_mathml.py docs/check_search.py
	$(BIN)/python tests/looks.py docs/_build/html
	@echo "docs/_build/html/index.html"

# ---- proofs: no part of `make test`, for Coq and its libraries take 362 MB

proofs:
	$(PYTHON) proofs/check.py

# ---- releases

wheel: $(VENV)/bin/python
	$(BIN)/python tests/wheel.py

release: $(VENV)/.release
	$(BIN)/python .ci/release.py
	$(MAKE) test docs
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python tests/wheel.py dist

# ---- environments

# The groups of pyproject.toml need pip 25.1.
$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "expost needs Python 3.11 or newer: make PYTHON=python3.12 ..."'
	$(PYTHON) -m venv $(VENV)
	$(PIP) install -c constraints.txt --upgrade pip

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) install -c constraints.txt -e .
	touch $@

$(VENV)/.demo: $(VENV)/.installed
	$(PIP) install -c constraints.txt -e '.[cli,data]' --group demo
	touch $@

$(VENV)/.dev: $(VENV)/.installed
	$(PIP) install -c constraints.txt -e '.[accounting,cli,client,data,frames,learn,opendp,plots,postgres,service,spark]' --group lint --group test
	touch $@

# The report and the dashboard are looked at in a browser: Debian's is installed if there is none and the machine lets us; and
# axe-core, from npm, if that is there.
$(VENV)/.browser: tests/browser.py $(VENV)/.dev
	$(BIN)/python tests/browser.py
	touch $@

$(VENV)/.docs: $(VENV)/.dev
	$(PIP) install -c constraints.txt --group docs
	touch $@

$(VENV)/.release: $(VENV)/.docs
	$(PIP) install -c constraints.txt --group release
	touch $@

clean:
	rm -rf $(VENV) $(PEERS) build dist docs/_build .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache
