# The short way to everything: each target installs the packages it lacks, builds what it needs, and stops at the first failure.
# CMake presets do the work (see CMakePresets.json); this file only names the usual sequences.

PREFIX ?= /usr/local

.PHONY: build demo test bench lint sanitize coverage clean install deb wheel deps deps-lint configure

build: configure
	@cmake --build build

demo: configure
	@cmake --build build --target stele_command
	@build/stele demo

test: build
	@ctest --test-dir build --output-on-failure -j2

bench: build
	@build/stele bench all

# Headers, both libraries, the command, its manual: docs/guide/install.md. The packages that building needs are `make deps`.
install: configure
	@cmake --build build --target stele stele_c stele_command stele_manual
	@cmake --install build --prefix $(PREFIX)

# What others install: Debian packages in build/deb, a Python wheel in build/wheel. A Conan recipe is in tools/packaging.
deb: deps
	@tools/packaging/make-deb build/deb

wheel: deps
	@tools/packaging/make-wheel build/wheel

# Structure and sizes, then format, then clang-tidy.
sources = $(shell find src include lab cli tests examples \
            \( -name '*.h' -o -name '*.cc' \) 2>/dev/null)
lint: deps-lint configure
	@tools/lint
	@clang-format-19 --dry-run --Werror $(sources)
	@printf '%s\n' $(filter %.cc,$(sources)) | xargs -P2 -n2 clang-tidy-19 -p build --quiet 2>/dev/null

sanitize: deps
	@tools/sanitize

coverage: deps
	@tools/coverage

clean:
	@rm -rf build build-debug build-clang build-asan build-tsan build-coverage

configure: deps
	@cmake --preset release

deps:
	@tools/deps

deps-lint:
	@tools/deps --lint
