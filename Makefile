# Everything here works on a machine with Python 3.11+, make and git; nothing else is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet -c constraints.txt

.PHONY: demo demo-transformer test slow fuzz kills bench studies calibration peers clean

demo: $(VENV)/.demo
	$(BIN)/heedful demo

# Fine-tunes a small pretrained transformer, MiniLM, before the audit
demo-transformer: $(VENV)/.transformer
	$(BIN)/heedful demo --transformer

test: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache --no-logo
	$(BIN)/pytest -n 2 --dist worksteal -m "not study and not slow"

# The tests that take longest: kills and resumption, training, whole grids of parts
slow: $(VENV)/.dev
	$(BIN)/pytest -n 2 --dist worksteal -m "slow and not study"

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.transformer
	$(BIN)/python -m benchmarks.influence
	$(BIN)/python -m benchmarks.methods
	$(BIN)/python -m benchmarks.faithfulness

# What takes longer than a test may: trained models, published studies
studies: $(VENV)/.dev
	$(BIN)/pytest -m study

# Hostile data, plans, model folders and run folders: an answer or one clear line, never more.
# An hour on two cores; what failed is run again by make fuzz SEED=… or as its last lines say
fuzz: $(VENV)/.dev
	PYTHONPATH=tests $(BIN)/python -m attacks --data 10000 --plans 1000 --models 300 --runs 200 --seed $(SEED)

# Commands killed at random moments and given again: the same rows and verdicts. Half an hour
kills: $(VENV)/.dev
	PYTHONPATH=tests $(BIN)/python -m attacks.kills --count 200 --seed $(SEED)

# Is the verdict right, and are its intervals honest? A quarter of an hour on two cores
SEED ?= 1
calibration: $(VENV)/.dev
	$(BIN)/python -m benchmarks.intervals
	$(BIN)/python -m benchmarks.calibration --seed $(SEED)

# Explanations by other libraries beside ours, on the planted kinds: make peers ARGS="--json"
PEERS := .venv-peers
peers: $(PEERS)/.installed
	@$(PEERS)/bin/python -m benchmarks.peers $(ARGS)

# In an environment of its own, so that no library holds back what the others are tested with
$(PEERS)/.installed: pyproject.toml constraints.txt | $(PEERS)/bin/python
	$(PEERS)/bin/python -m pip install --quiet -c constraints.txt -e '.[transformers]' captum shap lime
	$(PEERS)/bin/python -m pip install --quiet -c constraints.txt inseq \
		|| echo "inseq does not install here; the table says so and goes on without it"
	touch $@

$(PEERS)/bin/python:
	$(PYTHON) -m venv $(PEERS)

$(VENV)/.demo: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) -e '.[samples]'
	touch $@

$(VENV)/.transformer: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) -e '.[samples,minilm]'
	touch $@ $(VENV)/.demo

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) -e '.[dev]'
	touch $@ $(VENV)/.demo $(VENV)/.transformer

$(BIN)/python:
	$(PYTHON) -c "import sys; sys.exit('heedful needs Python 3.11 or newer' if sys.version_info < (3, 11) else 0)"
	$(PYTHON) -m venv $(VENV)

clean:
	rm -rf $(VENV) $(PEERS) runs .mypy_cache .ruff_cache .pytest_cache .hypothesis
