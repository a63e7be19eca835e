# The two commands: `make demo` and `make test`. Everything happens in a virtual environment in $(VENV).

VENV ?= .venv
PYTHON ?= python3
DEMO ?= runs/demo

BIN = $(VENV)/bin
INSTALLED = $(VENV)/.installed
INSTALLED_DEV = $(VENV)/.installed-dev

.PHONY: demo test lint clean

# What exists so far: a simulated cook, coached by a timer that sees nothing; then a small untrained LiveMamba.
demo: $(INSTALLED)
	$(BIN)/livemamba simulate --out $(DEMO)/kitchen --episodes 1 --split test --seed 7 --size 224 --overwrite
	$(BIN)/livemamba coach --watcher timer --set default_s=14 --recipe $(DEMO)/kitchen/task_graphs/sweetbatter.json \
		--source $(DEMO)/kitchen/videos/1_1.mp4 --out $(DEMO)/timer --overwrite
	$(BIN)/livemamba init --config configs/model/tiny.yaml --train-tokenizer README.md configs/recipes/pancake.yaml \
		--out $(DEMO)/checkpoint --overwrite
	$(BIN)/livemamba coach --checkpoint $(DEMO)/checkpoint --recipe configs/recipes/pancake.yaml \
		--source testcard:18 --out $(DEMO)/untrained --overwrite
	@echo "Look at $(DEMO)/timer/annotated.mp4: the messages stand on the frames at their times."

test: $(INSTALLED_DEV) lint
	$(BIN)/python -m pytest

lint: $(INSTALLED_DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "livemamba needs Python 3.11 or newer; set PYTHON=python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(INSTALLED): pyproject.toml $(wildcard livemamba/ops/csrc/*) | $(VENV)/bin/python
	@echo "Installing into $(VENV): about 3 GB to download with PyTorch's CUDA build, 6 GB on disk."
	@echo "For the CPU build (200 MB to download) stop here and first install torch and torchvision with $(BIN)/pip"
	@echo "as https://pytorch.org/get-started/locally says for CPU."
	$(BIN)/python -m pip install -e .
	@touch $@

$(INSTALLED_DEV): $(INSTALLED)
	$(BIN)/python -m pip install -e '.[dev]'
	@touch $@

clean:
	rm -rf runs .pytest_cache .mypy_cache .ruff_cache build *.egg-info
