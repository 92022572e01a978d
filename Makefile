# The short way to everything: each target installs what it lacks, builds what it needs, and stops at the first failure.
# CMake presets do the work (see CMakePresets.json); this file only names the usual sequences.

.PHONY: build demo test bench lint sanitize coverage clean install install-lint configure

build: configure
	@cmake --build build

demo: build
	@build/stele demo

test: build
	@ctest --test-dir build --output-on-failure -j2

bench: build
	@build/stele bench all

# Structure and sizes, then format, then clang-tidy.
sources = $(shell find src include workloads explore sim bench cli tests examples \
            \( -name '*.h' -o -name '*.cc' \) 2>/dev/null)
lint: install-lint configure
	@tools/lint
	@clang-format-19 --dry-run --Werror $(sources)
	@printf '%s\n' $(filter %.cc,$(sources)) | xargs -P2 -n2 clang-tidy-19 -p build --quiet 2>/dev/null

sanitize: install
	@tools/sanitize

coverage: install
	@tools/coverage

clean:
	@rm -rf build build-debug build-clang build-asan build-tsan build-coverage

configure: install
	@cmake --preset release

install:
	@tools/install

install-lint:
	@tools/install --lint
