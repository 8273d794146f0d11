# `make demo` and `make test` do all their own set-up: they need Python 3.11+, make and PyPI, nothing else.
# Each has a virtual environment of its own, so both may run at once, and the demo runs without PyTorch.
PYTHON ?= python3

DEMO := .venv/bin
TEST := .venv-test/bin
LIBRARIES := .venv-libraries/bin
EXAMPLES := tensor_tour photo_to_grey heat_equation monte_carlo_pi game_of_life least_squares train_regression train_digits karate_club int8_sounds ragged_sentences named_images benchmark_broadcasting
# What `make test` runs once more under the fence (docs/reliability.md), with optimized kernels.
FENCED := tests/families \
	$(patsubst %,tests/engine/test_%.py,gemm reduce map_rows radix ranks bisection packed counting) \
	$(patsubst %,tests/ops/%.py,indexing/test_gather indexing/test_put indexing/test_scatter views/test_view_scatter \
	linalg/test_lapack linalg/test_lane_plans linalg/test_stacks nn/test_conv_products nn/test_conv_products_depthwise) \
	$(patsubst %,tests/layouts/%.py,sparse/test_bad_input sparse/test_products quantized/test_products quantized/test_convolution)

# What `make test` runs once more with every call in Python and every result computed at once: a minute on two cores. In some files the tests
# make no calls of operations.
CALLS_NOTHING := $(patsubst %,tests/core/test_%.py,locks names settings)
IN_PYTHON := tests/families tests/autograd tests/engine/test_defer.py $(filter-out $(CALLS_NOTHING),$(wildcard tests/core/test_*.py))

# What `make test` runs once more with the optimized kernels of each level of x86-64 (WEFT_CPU) that this processor has.
LEVELS := x86-64-v2 x86-64-v3 x86-64-v4
ON_LEVELS := $(patsubst %,tests/engine/test_%.py,byte_gemm complexes convert gemm llvm map_rows packed product_blocks radix ranks reduce special streaming) \
	tests/families/test_map.py tests/families/test_scan.py \
	$(patsubst %,tests/ops/%.py,nn/test_linear nn/test_conv_products reductions/test_softmax)

.DELETE_ON_ERROR:
.PHONY: demo test dist docs stubs test-gpu performance libraries test-fence mutants hunt-numbers hunt-arguments hunt-interruptions hunt-chains clean

demo: .venv/installed
	@mkdir -p pictures
	@set -e; for example in $(EXAMPLES); do \
		printf '\n--- weft run examples/%s.py\n' $$example; \
		$(DEMO)/weft run examples/$$example.py; \
	done

test: .venv-test/installed
	$(TEST)/ruff check
	$(TEST)/ruff format --check
	$(TEST)/mypy
	$(TEST)/pytest -n auto -q
	TESTED_CODE=optimized WEFT_FENCE=either $(TEST)/pytest -n auto -q $(FENCED)
	WEFT_CALLS=python WEFT_EAGER=1 $(TEST)/pytest -n auto -q $(IN_PYTHON)
	@for level in $(LEVELS); do \
		if WEFT_CPU=$$level $(TEST)/python -c "from weft.engine.host import cpu; cpu()"; then \
			echo WEFT_CPU=$$level; \
			TESTED_CODE=optimized WEFT_CPU=$$level $(TEST)/pytest -n auto -q $(ON_LEVELS) || exit 1; \
		else \
			echo "no tests at $$level"; \
		fi; \
	done

# The wheel and the source distribution, in dist/: checked, and each installed into an empty environment, outside of this folder.
dist:
	rm -rf dist .venv-dist .venv-wheel
	$(PYTHON) -m venv .venv-dist
	.venv-dist/bin/pip install --quiet build twine
	.venv-dist/bin/python -m build --outdir dist .
	.venv-dist/bin/twine check --strict dist/*
	@set -e; for package in dist/*; do \
		$(PYTHON) -m venv --clear .venv-wheel; \
		.venv-wheel/bin/pip install --quiet $$package; \
		(cd /; $(CURDIR)/.venv-wheel/bin/python -c "import weft; print(weft.version.weft, weft.ones(2, 2) @ weft.ones(2, 2))"); \
		(cd /; $(CURDIR)/.venv-wheel/bin/weft --version); \
	done
	rm -rf .venv-wheel

# The documentation site, in build/site; a broken link or a page that no menu has is an error.
docs: .venv-docs/installed
	.venv-docs/bin/mkdocs build --quiet --strict --config-file website/mkdocs.yml

# The types that checkers and editors read (.pyi), from the tables and signatures of the run time: a few seconds.
stubs: .venv-test/installed
	PYTHONPATH=tests $(TEST)/python -m stubs

# The tests of devices on an NVIDIA GPU, then weft beside PyTorch there: docs/gpu-performance.md. PyTorch must be one for CUDA. Ten minutes.
test-gpu: .venv-test/installed
	TESTED_DEVICE=cuda:0 CUDA_LAUNCH_BLOCKING=1 $(TEST)/pytest -n auto -q tests/devices/test_attention.py tests/devices/test_calls.py tests/devices/test_convolutions.py tests/devices/test_counting.py tests/devices/test_factorizations.py tests/devices/test_fourier.py tests/devices/test_fragments.py tests/devices/test_narrow_products.py tests/devices/test_large.py tests/devices/test_op_table.py tests/devices/test_order.py tests/devices/test_properties.py tests/devices/test_sizes.py tests/devices/test_sparse.py tests/devices/test_special.py tests/devices/test_spectra.py tests/devices/test_triangles.py
	$(TEST)/pytest -n auto -q tests/cuda
	$(TEST)/python -m bench.gpu docs/gpu-performance.md

# weft beside PyTorch on this machine, twenty minutes: bench/results, docs/performance.md, the README's table (bench/README.md).
performance: .venv-test/installed
	$(TEST)/python -m bench --json bench/results
	$(TEST)/python -m bench.pages

# Libraries that use PyTorch, without PyTorch, and with its numbers (docs/libraries.md). SCRIPTS="timm peft" runs these only.
libraries: .venv-libraries/installed
	$(LIBRARIES)/python tests/libraries/run.py $(SCRIPTS)

# The whole suite with every block of memory fenced (weft/engine/fence.py), first behind, then in front.
test-fence: .venv-test/installed
	TESTED_CODE=optimized WEFT_FENCE=after $(TEST)/pytest -n auto -q
	TESTED_CODE=optimized WEFT_FENCE=before $(TEST)/pytest -n auto -q

# Random programs on weft and PyTorch (tests/hunts/chains.py): a million of them, or PROGRAMS=20000.
hunt-chains: .venv-test/installed
	$(TEST)/python tests/hunts/chains.py --programs $(or $(PROGRAMS),1000000) --workers 2

# Changes the code in one place at a time and looks whether the tests notice (tests/mutants.py).
mutants: .venv-test/installed
	nice -n 10 $(TEST)/python tests/mutants.py

# Hostile numbers in linear algebra and transforms, next to PyTorch (tests/hunts/hostile_numbers.py); about 40 calls a second.
hunt-numbers: .venv-test/installed
	PYTHONPATH=. nice -n 10 $(TEST)/python tests/hunts/hostile_numbers.py --calls 100000

# Every operation with wrong arguments, beside PyTorch, on both sides of the fence (tests/hunts/arguments.py).
hunt-arguments: .venv-test/installed
	nice -n 10 $(TEST)/python tests/hunts/arguments.py --fence after --mutants 20000 --samples 2 --changes 4
	nice -n 10 $(TEST)/python tests/hunts/arguments.py --fence before --mutants 20000 --samples 2 --changes 4 --seed 1000

# An exception at each place where Ctrl-C may arrive, then real signals (tests/hunts/interruptions.py); some hours.
hunt-interruptions: .venv-test/installed
	PYTHONPATH=. nice -n 10 $(TEST)/python tests/hunts/interruptions.py
	PYTHONPATH=. nice -n 10 $(TEST)/python tests/hunts/interruptions.py --storm 600

.venv/installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(DEMO)/pip install --quiet --editable '.[demo]'
	@touch $@

.venv-test/installed: pyproject.toml
	$(PYTHON) -m venv .venv-test
	$(TEST)/pip install --quiet --editable '.[dev]'
	@touch $@

# The placeholder comes before the libraries, so that pip takes torch for installed.
.venv-libraries/installed: pyproject.toml tests/libraries/requirements.txt
	$(PYTHON) -m venv .venv-libraries
	$(LIBRARIES)/pip install --quiet --editable .
	$(LIBRARIES)/weft placeholder add
	$(LIBRARIES)/pip install --quiet --requirement tests/libraries/requirements.txt
	@touch $@

.venv-docs/installed: pyproject.toml
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/pip install --quiet --editable '.[docs]'
	@touch $@

clean:
	rm -rf .venv .venv-test .venv-libraries .venv-dist .venv-wheel .venv-docs build dist pictures
