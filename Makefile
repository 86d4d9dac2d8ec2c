PYTHON ?= python3
BIN := .venv/bin
REPORT ?= reports/h200/pairs/transpose_conflicts/before.ncu-repz

.PHONY: demo test test-quick test-nightly fuzz lint bench docs site golden record clean
.DEFAULT_GOAL := help

help:  ## list the make targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

.venv/profkit: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo 'profkit needs Python 3.11 or newer: make PYTHON=python3.12 ...' >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

.venv/profkit-all: .venv/profkit
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[all]'
	@touch $@

.venv/profkit-docs: .venv/profkit
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	@touch $@

.venv/profkit-test: .venv/profkit
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test]'
	@touch $@

demo: .venv/profkit  ## analyze a recorded H200 profile, no GPU needed
	$(BIN)/profkit analyze $(REPORT)
	@echo; $(BIN)/profkit checklist $(REPORT) --top 1
	@echo; echo 'Next: . $(BIN)/activate, and the tutorial, docs/tutorial/why-is-my-kernel-slow.md'

test: .venv/profkit-test  ## run all tests
	$(BIN)/python -m tests.run

test-quick: .venv/profkit-test  ## run what changed since HEAD concerns, in 90 s at most
	$(BIN)/python -m tests.run --changed --budget 80

READING := $(addprefix tests/,analysis comparison experiment page report roofline rules timeline)
test-nightly: .venv/profkit-test  ## run all tests with every moment and size, more examples, new processes
	PROFKIT_NIGHTLY=1 PROFKIT_TESTS_EXEC=1 PROFKIT_FUZZ_SECONDS=600 $(BIN)/python -m tests.run
	PROFKIT_TESTS_WITHOUT_VENDOR=1 $(BIN)/python -m tests.run $(READING)

FUZZ_MINUTES ?= 10
fuzz: .venv/profkit-test  ## damaged files and values through every verb, for FUZZ_MINUTES (10)
	PROFKIT_FUZZ_SECONDS=$$(($(FUZZ_MINUTES) * 60)) PROFKIT_FUZZ_SEED=$$(date +%s) \
	  $(BIN)/python -m pytest -s tests/fuzz

lint: .venv/profkit-test  ## ruff, mypy --strict, imports between rooms, names, budgets of lines and words
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.names
	$(BIN)/python -m tests.budgets

bench: .venv/profkit-test  ## time profkit against the script one would write instead
	$(BIN)/python -m pytest benchmarks --benchmark-disable-gc -q -s

docs: .venv/profkit-all  ## write the generated pages, and the output in README and pages
	$(BIN)/python -m kernels.schemas
	$(BIN)/python -m kernels.quantities_page
	$(BIN)/profkit rules list --format markdown --force -o docs/reference/rules.md
	$(BIN)/python -m kernels.gains
	$(BIN)/python -m kernels.fixes
	$(BIN)/python -m kernels.document
	$(BIN)/python -m kernels.run_files

site: .venv/profkit-docs  ## build the documentation as a static site, in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

golden: .venv/profkit-test  ## write the expected output of all verbs again, then read the diff
	$(BIN)/python -m pytest tests/commands/test_golden.py --regenerate

record: .venv/profkit-all  ## record the pairs and the attention ladder on this machine's GPU
	$(BIN)/python -m kernels.record

clean:
	rm -rf .venv
