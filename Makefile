# SPDX-License-Identifier: Apache-2.0
# Every target is one call, after the set-up of what it uses, which takes no time once it is done. The lab needs root.
.DEFAULT_GOAL := help
.PHONY: help coverage experiment sweep report notebook scoreboard results docs dashboards doctor provision verify rollback lint test proof fuzz bench bare wheel archive rack-in-vms clean setup setup-notebook setup-docs setup-tests setup-proofs setup-dashboards setup-vms

# Some containers set it: each of the many programs here would then compile its Python anew, which takes half its start.
unexport PYTHONDONTWRITEBYTECODE

SUDO := $(if $(filter-out 0,$(shell id -u)),sudo)
PYTHON := .venv/bin/python
ROUNDABOUT := $(SUDO) .venv/bin/roundabout
# Where sudo does not work, an experiment is computed alone, and its last line says how to add the lab. Results are read
# without it, too; with it, so that runs of root are.
with_sudo_if_it_works = $(if $(SUDO),if command -v sudo > /dev/null && sudo true; then exec sudo $(1); else exec $(1); fi,$(1))
RUN ?= last
WHERE := $(INVENTORY:%=--inventory %) $(TESTBED:%=--testbed %) $(SCALE:%=--scale %) $(DILATION:%=--dilation %)

# A target that needs a word says so before anything is set up.
needs = $(if $(filter $(1),$(MAKECMDGOALS)),$(if $($(2)),,$(error say which: make $(firstword $(MAKECMDGOALS)) $(2)=$(3))))
$(call needs,experiment sweep,NAME,unfair-vgg19)
$(call needs,provision verify rollback,INVENTORY,inventory)
digits = $(filter-out 0,$(shell expr '$(1)' : '[1-9][0-9]\{0,5\}$$'))
$(if $(filter fuzz,$(MAKECMDGOALS)),$(if $(call digits,$(or $(SECONDS),5)),,$(error SECONDS is '$(SECONDS)', expected whole seconds from 1 to 999999: make fuzz SECONDS=60)))

help: ## this list
	@awk -F ':[^#]*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

experiment: setup ## NAME=unfair-vgg19: run an experiment of experiments/catalog packet by packet, then in the lab, up to one page (TESTBED=lab: that alone; INVENTORY=FILE: on a rack)
	@$(call with_sudo_if_it_works,.venv/bin/roundabout run $(NAME) $(WHERE))

sweep: setup ## NAME=websearch-bert: the same, for an experiment over loads (LENGTH=quick or full)
	@$(call with_sudo_if_it_works,.venv/bin/roundabout run $(NAME) $(LENGTH:%=--%) $(WHERE))

report: setup ## RUN=runs/...: make the report of a run again (the last one if RUN is not given)
	@$(call with_sudo_if_it_works,.venv/bin/roundabout report $(RUN))

notebook: setup-notebook ## RUN=last: JupyterLab on a run, for this machine alone
	@.venv/bin/roundabout notebook $(RUN)

scoreboard: setup ## every result of the papers beside each testbed's newest or published figures
	@$(call with_sudo_if_it_works,.venv/bin/roundabout scoreboard)

results: setup ## run everything that decides a row of the scoreboard (hours); again: it goes on where it was stopped
	@$(ROUNDABOUT) reproduce

docs: setup-notebook setup-docs ## the documentation as a site, with search, in build/site
	@$(PYTHON) -m docgen.site

dashboards: setup-dashboards ## Prometheus on the labs of this machine, with graphs of links, queues, hosts and the running experiment (INVENTORY=FILE: on a rack)
	@$(ROUNDABOUT) dashboards $(INVENTORY:%=--inventory %)

doctor: setup ## what this machine has and lacks, or INVENTORY=FILE: the machines of a rack; changes nothing
	@$(call with_sudo_if_it_works,.venv/bin/roundabout doctor $(INVENTORY))

provision: setup ## INVENTORY=FILE: make the hosts of an inventory ready (NO_PACKAGES=1: install no packages, and name the programs that servers lack)
	@$(ROUNDABOUT) provision $(INVENTORY) $(NO_PACKAGES:%=--no-packages)

verify: setup ## INVENTORY=FILE: read back what provision did; drift as a table
	@$(ROUNDABOUT) verify $(INVENTORY)

rollback: setup ## INVENTORY=FILE: every setting as it was found
	@$(ROUNDABOUT) rollback $(INVENTORY)

# Types and playbooks take three quarters of the time, so their checks begin first, and the others run beside them.
LINTS := lint-types lint-playbooks lint-words lint-oldest-python lint-imports lint-style lint-native lint-scripts
.PHONY: $(LINTS)
lint lint-%: export PATH := $(CURDIR)/.venv/bin:$(PATH)
lint: setup-tests ## check style, types, import rules, playbooks and scripts
	@$(MAKE) --no-print-directory --output-sync=target --keep-going --jobs=$$(nproc) $(LINTS)

lint-types:
	mypy

lint-playbooks:
	cd ansible && ansible-lint --offline --profile production

lint-words:
	python -m tests.language

lint-oldest-python:
	vermin --quiet --no-tips --violations --eval-annotations --target=3.8- \
	  roundabout/settings roundabout/testbeds/rack/programs collectors crossgen trainers ansible/library

lint-imports:
	lint-imports

lint-style:
	ruff check
	ruff check --preview --select PLC2701,SLF001 --exclude tests/quiet.py tests benchmarks  # private names
	ruff format --check

lint-native:
	git ls-files '*.c' '*.h' '*.cc' '*.cpp' '*.hpp' | xargs clang-format --dry-run -Werror

lint-scripts:
	shellcheck bootstrap rb .ci/run .githooks/commit-msg $$(git ls-files '*.sh')

test: setup-tests ## run all tests but the long proofs, native ones first, or TESTS='tests/lab tests/spec' only
ifdef TESTS
	$(SUDO) $(PYTHON) -m pytest $(TESTS)
else
	$(SUDO) ctest --test-dir build --output-on-failure
	$(SUDO) $(PYTHON) -m pytest -m 'unit and not proof' --numprocesses $$(($$(nproc) + 2)) --dist loadfile --reruns 1 -rfER
	$(SUDO) $(PYTHON) -m pytest -m 'lab and not proof' --reruns 1 -rfEsR
endif

coverage: setup-tests ## which share of lines the unit tests (Python) and the native tests (C and C++) execute
	$(SUDO) $(PYTHON) -m pytest -m 'unit and not proof' --numprocesses $$(($$(nproc) + 2)) --dist loadfile --reruns 1 -rfER --cov --cov-report=term
	cmake -S . -B build/coverage -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS=--coverage -DCMAKE_CXX_FLAGS=--coverage
	ninja -C build/coverage
	$(SUDO) ctest --test-dir build/coverage --output-on-failure
	$(SUDO) .venv/bin/gcovr --root . --exclude tests --txt build/coverage/coverage.txt --txt-summary build/coverage

proof: setup-proofs ## run the long proofs: before a change to what they prove (MLNX_TOOLS=DIR: also with NVIDIA's mlnx_qos)
	$(SUDO) env $(MLNX_TOOLS:%=MLNX_TOOLS=%) $(PYTHON) -m pytest -m 'unit and proof' --numprocesses auto
	$(SUDO) $(PYTHON) -m pytest -m 'lab and proof'

fuzz: setup-tests ## give every parser of what comes from outside anything, for SECONDS=5 each
	$(SUDO) env FUZZ_SECONDS=$(or $(SECONDS),5) $(PYTHON) -m pytest -m proof tests/fuzz tests/damage/test_readers.py -rP

bench: setup-tests ## run the benchmarks
	@for benchmark in benchmarks/*.py; do echo "== $$benchmark"; $(SUDO) $(PYTHON) $$benchmark || exit 1; done

bare: ## README's commands on a bare Debian 12 and a bare Ubuntu 24.04, and how long they take (one: SYSTEM=debian12 WHO=stranger COMMAND='make doctor')
	@$(SUDO) python3 -m tests.bare $(SYSTEM:%=--system %) $(WHO:%=--user %) $(if $(COMMAND),'$(COMMAND)')

wheel: setup ## a wheel in dist/, for machines like this one: it runs outside the checkout, without it
	@$(PYTHON) -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	@ls dist/*.whl

archive: version = $(shell git show HEAD:pyproject.toml | sed -n 's/^version = "\(.*\)"/\1/p')
archive: ## the sources of the last commit in dist/, as an archive that is set up like a checkout, without git
	@mkdir -p dist
	@git archive --prefix=roundabout-$(version)/ \
	    --add-virtual-file='roundabout-$(version)/revision.json:{"revision": "'"$$(git rev-parse HEAD)"'", "dirty": null}' \
	    --output=dist/roundabout-$(version).tar.gz HEAD
	@ls dist/*.tar.gz

rack-in-vms: setup-vms ## docs/how-to/rack.md's whole way on Debian machines that are emulated here (ACCELERATOR=kvm where it runs); again: it goes on where it was stopped
	@$(SUDO) $(PYTHON) -m tests.vms $(ACCELERATOR:%=--accelerator %)

clean: setup ## undo what a killed run left on this machine
	@$(ROUNDABOUT) clean

setup:
	@./bootstrap

setup-notebook:
	@./bootstrap notebook

setup-docs:
	@./bootstrap docs

setup-tests:
	@./bootstrap tests

setup-proofs:
	@./bootstrap proofs

setup-dashboards:
	@./bootstrap dashboards

setup-vms:
	@./bootstrap vms
