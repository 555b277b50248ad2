# What people and .ci/run do with this repository. `make setup` once, then `make check test`.
# Run inside a virtual environment; PYTHON names another interpreter.
PYTHON ?= python
INSTALLED = cd .ci &&  # away from the sources: catalogs/ and benchmarks/ lie inside of what is installed

.PHONY: setup check style types layers test test-all attack locks golden pages picture

setup:  ## install the clone in place, with what the checks need
	$(PYTHON) -m pip install -e '.[test]' --config-settings editable_mode=strict

check: style types layers  ## all that needs no test run

style:  ## format and lint
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .

types:  ## mypy --strict over the installed package
	$(INSTALLED) $(PYTHON) -m mypy --config-file ../pyproject.toml

layers:  ## imports run one way (import-linter)
	$(INSTALLED) lint-imports --config ../pyproject.toml --no-cache

test:  ## everything but what is marked slow, on all cores
	pytest

test-all:  ## the slow ones as well: tens of minutes
	pytest -m "slow or not slow"

attack:  ## 30,900 hostile files, flags, archives, addresses and outputs, 16,000 files by command; by hand
	pytest -m attack
	python -P tests/run.py tests.attack.whole_commands

locks:  ## pin what deploy/ and development install, with hashes; what is pinned stays if it still fits
	uv pip compile -q pyproject.toml deploy/requirements.in --universal --python-version 3.11 \
	  --generate-hashes --custom-compile-command 'make locks' -o deploy/requirements.txt
	uv pip compile -q pyproject.toml deploy/requirements.in --extra serve --universal \
	  --python-version 3.11 --generate-hashes --custom-compile-command 'make locks' \
	  -c deploy/requirements.txt -o deploy/container/serve-requirements.txt
	uv pip compile -q pyproject.toml deploy/requirements.in --extra test --extra history --extra release \
	  --universal --python-version 3.11 --generate-hashes --custom-compile-command 'make locks' \
	  -o .ci/requirements.txt

golden:  ## rewrite expected output, after an agreed change of words
	RECOMMEND_UPDATE_GOLDEN=1 pytest tests/test_golden_answers.py tests/recommender/report \
	  tests/recommender/export/test_targets.py

pages:  ## rewrite the output that README.md and docs/ quote
	$(PYTHON) -P tests/regenerate.py

picture:  ## redraw docs/architecture.svg from the imports
	$(PYTHON) -P tests/draw_architecture.py
