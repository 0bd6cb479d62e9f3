# make lab     set up, look at the machine, open the first lesson    ARGS=--no-browser on a remote machine
# make test    set up, then everything that is checked
# make site    set up what it takes, then the course as HTML in build/site
# PYTHON=python3 in front or behind skips the set-up and uses that interpreter as it is.

SHELL := bash
.PHONY: lab lab-lite test verify notebooks exercises bench model site

ifdef PYTHON
FULL :=
LITE :=
SITE :=
else
PYTHON := .venv/bin/python
FULL := .venv/full
LITE := .venv/lite
SITE := .venv/site
endif

# The package works without being installed.
export PYTHONPATH := $(CURDIR)$(if $(PYTHONPATH),:$(PYTHONPATH))

lab: $(FULL)
	@$(PYTHON) -m quack_lite doctor || true
	@$(PYTHON) -m quack_lite.desk $(ARGS)

lab-lite: $(LITE)
	@$(PYTHON) -m quack_lite doctor || true
	@$(PYTHON) -m quack_lite.desk $(ARGS)

test: $(FULL)
	@bash tests/run_parts.sh $(PYTHON)

# The next five write what others read: receipts, outputs, exercises, records. All but exercises need a Hopper GPU.
verify: $(FULL)
	$(PYTHON) -m quack_lite verify $(ARGS)

NOTEBOOKS ?= $(wildcard notebooks/*.ipynb solutions/*.ipynb)
notebooks: $(FULL)
	$(PYTHON) -m quack_lite.publish $(NOTEBOOKS)

exercises: $(FULL)
	$(PYTHON) -m quack_lite.grading.derive

# All operators, what has no record that holds; or OPERATOR=softmax, ARGS='--backward --dtype fp32' for one.
OPERATOR ?= --all
bench: $(FULL)
	$(PYTHON) -m quack_lite bench $(OPERATOR) $(ARGS)
	$(PYTHON) -m quack_lite.draw.records
	$(PYTHON) -m quack_lite bench --summary

model: $(FULL)
	$(PYTHON) -m quack_lite.bench.training
	$(PYTHON) -m quack_lite.draw.training

# The course as static HTML in build/site, as it is saved: nothing is executed.
site: $(SITE)
	$(PYTHON) -m quack_lite.site

INSTALL := -m pip install --disable-pip-version-check

.venv/full: requirements.txt requirements-lite.txt pyproject.toml | .venv/bin/python
	$(PYTHON) $(INSTALL) -r requirements.txt
	$(PYTHON) $(INSTALL) -q --no-deps -e .
	@touch $@

.venv/lite: requirements-lite.txt pyproject.toml | .venv/bin/python
	$(PYTHON) $(INSTALL) -r requirements-lite.txt
	$(PYTHON) $(INSTALL) -q --no-deps -e .
	@touch $@

.venv/site: requirements-site.txt | .venv/bin/python
	$(PYTHON) $(INSTALL) -r requirements-site.txt
	@touch $@

.venv/bin/python:
	@for p in python3 python3.12 python3.11 python3.13; do \
	  if $$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then \
	    $$p -m venv --clear .venv || { rm -rf .venv; exit 1; }; exit 0; \
	  fi; \
	done; \
	echo "Python 3.11, 3.12 or 3.13 is needed and none was found: install one and run make again." >&2; exit 1
