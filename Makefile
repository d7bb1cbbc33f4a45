# Every target sets up what it needs: an environment of its own in .venv, anew when a dependency changes.
#
#   make verify                          the laws, on the bundled kernels
#   make verify IMPL=my_kernels.py:impl  the laws, on another implementation
#   make verify PROFILE=nightly N=8      for longer, in 8 processes
#   make verify ARGS='--law 5'           anything else that pytest takes
#   make test                            everything: the laws, the tests of the suite itself, the README's examples
#   make mutants                         which law kills which wrong implementation
#   make nightly MINUTES=60              what failed before, then rounds of the laws until the time is up
#   make sweep MODE=gaps                 millions of rows a second held to the bound (gaps, pairs, random, climb)
#   make bench                           how fast, on a CUDA device; writes docs/performance.{json,md,png}
#
# To use an environment that is there already, with a torch of your own (a CUDA build, say), name its Python and no
# environment; nothing is then installed:
#
#   make verify VENV= PYTHON=python3

PYTHON  ?= python3
VENV    ?= .venv
N       ?= $(shell nproc)
IMPL    ?= ours
PROFILE ?= quick
MINUTES ?= 60
MODE    ?= gaps
ARGS    ?=

ifeq ($(strip $(VENV)),)
RUN   := $(PYTHON)
READY :=
export PYTHONPATH := src:$(PYTHONPATH)
else
RUN   := $(VENV)/bin/python
READY := $(VENV)/.ready
endif

PYTEST = $(RUN) -m pytest -n $(N)

.DEFAULT_GOAL := verify
.PHONY: verify test mutants nightly sweep bench lint types wheel clean

verify: $(READY)
	$(PYTEST) properties --impl '$(IMPL)' --hypothesis-profile '$(PROFILE)' $(ARGS)

test: $(READY)
	$(PYTEST) $(ARGS)

mutants: $(READY)
	$(RUN) -m selftest.killing

sweep: $(READY)
	$(RUN) -m mergelaws.cli sweep $(MODE) '$(IMPL)' $(ARGS)

nightly: $(READY)
	$(RUN) -m mergelaws.cli nightly '$(IMPL)' --minutes $(MINUTES) --processes $(N) $(ARGS)

bench: $(READY)
	$(RUN) -m benchmarks.merge $(ARGS)

lint: $(READY)
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .

types: $(READY)
	$(RUN) -m mypy

wheel: $(READY)
	$(RUN) -m pip wheel --no-deps --wheel-dir dist .

clean:
	rm -rf .mypy_cache .pytest_cache .ruff_cache build dist .venv

$(VENV)/.ready: pyproject.toml constraints.txt
	@echo "Setting up $(VENV) with $$($(PYTHON) --version), as constraints.txt pins it. Minutes, where torch must be fetched."
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --constraint constraints.txt --editable '.[dev,fast,nightly]'
	@touch $@
