# make lab     set up, look at the machine, open the first lesson    ARGS=--no-browser on a remote machine
# make test    set up, then everything that is checked
# make test-latest             the tests with the newest versions of everything, in build/versions; says what changed
# make test-torch TORCH=2.9.1  the tests with that torch and the other pins; ARGS=tests/test_tiling.py for some of them
# make site    set up what it takes, then the course as HTML in build/site
# make slides  set up what it takes, then slides of each lesson in build/slides
# make nbgrader CLASS=dir  nbgrader in build/nbgrader, and the exercises as its assignments in dir
# make wheels  all that make lab installs, to build/wheels or WHEELS=dir; then make lab WHEELS=dir needs no network
# PYTHON=python3 in front or behind skips the set-up and uses that interpreter as it is.

SHELL := bash
.PHONY: lab lab-lite test test-latest test-torch verify notebooks exercises bench model site slides nbgrader \
  wheels wheels-lite student-release whole

ifdef PYTHON
VENV :=
FULL :=
LITE :=
SITE :=
SLIDES :=
BARE :=
else
PYTHON := .venv/bin/python
VENV := .venv/bin/python
FULL := .venv/full
LITE := .venv/lite
SITE := .venv/site
SLIDES := .venv/slides
BARE := .venv/bin/python
endif

# The package works without being installed.
export PYTHONPATH := $(CURDIR)$(if $(PYTHONPATH),:$(PYTHONPATH))

lab: $(FULL)
	@$(PYTHON) -m quack_lite doctor || true
	@$(PYTHON) -m quack_lite.desk $(ARGS)

lab-lite: $(LITE)
	@$(PYTHON) -m quack_lite doctor || true
	@$(PYTHON) -m quack_lite.desk $(ARGS)

test: whole $(FULL)
	@bash tests/run_parts.sh $(PYTHON)

# Environments of their own: neither .venv nor a pin is touched.
test-latest: | $(BARE)
	$(PYTHON) tests/other_versions.py latest $(ARGS)

# The oldest torch that pyproject.toml allows, unless TORCH=... names another.
TORCH ?= 2.9.0
test-torch: | $(BARE)
	$(PYTHON) tests/other_versions.py torch==$(TORCH) $(ARGS)

# The next five write what others read: receipts, outputs, exercises, records. All but exercises need a Hopper GPU.
verify: whole $(FULL)
	$(PYTHON) -m quack_lite verify $(ARGS)

NOTEBOOKS ?= $(wildcard notebooks/*.ipynb solutions/*.ipynb)
notebooks: $(FULL)
	$(PYTHON) -m quack_lite.publish $(NOTEBOOKS)

exercises: whole $(FULL)
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

# The lessons as slides in build/slides, as they are saved.
slides: $(SLIDES)
	$(PYTHON) -m quack_lite.slides $(ARGS)

# nbgrader has an environment of its own: no version of ours changes for it.
nbgrader: build/nbgrader/ready
	@$(PYTHON) -m quack_lite.classroom "$(CLASS)"

build/nbgrader/ready: requirements-nbgrader.txt requirements-lite.txt | $(BARE)
	$(PYTHON) -m venv --clear build/nbgrader
	build/nbgrader/bin/python -m pip install --disable-pip-version-check -q -r requirements-nbgrader.txt
	@touch $@

# For teachers: what students get, and a set-up without a network. Wheels are for this system and this Python's version.
# What is left out shows solutions, or serves those who change the course: tests/ plants mistakes in solutions.
RELEASE ?= build/quack_lite-students.zip
LEFT_OUT := solutions tests conftest.py .ci
student-release:
	@mkdir -p build
	git archive --format=zip --prefix=quack_lite/ -o "$(RELEASE)" HEAD -- . $(LEFT_OUT:%=':!%')
	@echo "$(RELEASE): the last commit without $(LEFT_OUT)."

whole:
	@[ -d tests ] || { echo "make $(MAKECMDGOALS) needs tests/ and solutions/, and this copy for students has none." >&2; exit 1; }

wheels: $(VENV)
	$(PYTHON) -m pip wheel --disable-pip-version-check -w "$(or $(WHEELS),build/wheels)" -r requirements.txt

wheels-lite: $(VENV)
	$(PYTHON) -m pip wheel --disable-pip-version-check -w "$(or $(WHEELS),build/wheels)" -r requirements-lite.txt

INSTALL := -m pip install --disable-pip-version-check $(if $(WHEELS),--no-index --find-links "$(WHEELS)")
LOOK := @[ -z "$(WHEELS)" ] || ls "$(WHEELS)"/*.whl >/dev/null 2>&1 || \
  { echo "WHEELS=$(WHEELS): no wheel is there. Where there is a network, make wheels WHEELS=dir fills it." >&2; exit 1; }

.venv/full: requirements.txt requirements-lite.txt pyproject.toml | .venv/bin/python
	$(LOOK)
	$(PYTHON) $(INSTALL) -r requirements.txt
	$(PYTHON) $(INSTALL) -q --no-deps -e .
	@touch $@

.venv/lite: requirements-lite.txt pyproject.toml | .venv/bin/python
	$(LOOK)
	$(PYTHON) $(INSTALL) -r requirements-lite.txt
	$(PYTHON) $(INSTALL) -q --no-deps -e .
	@touch $@

.venv/site: requirements-site.txt | .venv/bin/python
	$(LOOK)
	$(PYTHON) $(INSTALL) -r requirements-site.txt
	@touch $@

.venv/slides: requirements-slides.txt $(LITE)
	$(LOOK)
	$(PYTHON) $(INSTALL) --no-deps -r requirements-slides.txt
	@touch $@

.venv/bin/python:
	@for p in python3 python3.12 python3.11 python3.13; do \
	  if $$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then \
	    $$p -m venv --clear .venv || { rm -rf .venv; exit 1; }; exit 0; \
	  fi; \
	done; \
	echo "Python 3.11, 3.12 or 3.13 is needed and none was found: install one and run make again." >&2; exit 1
