# The short way to everything: each target installs the packages it lacks, builds what it needs, and stops at the first failure.
# CMake presets do the work (see CMakePresets.json); this file only names the usual sequences.

PREFIX ?= /usr/local

.NOTPARALLEL:  # packages first
.PHONY: build demo redis-demo test test-deep bench lint format sanitize coverage clean install deb wheel deps deps-test deps-deep deps-lint configure

build: configure
	@cmake --build build

demo: configure
	@cmake --build build --target stele_command
	@build/stele demo

redis-demo: deps-test configure
	@cmake --build build --target stele_redis_module
	@tools/redis-demo build/libstele_redis.so

# The quick tests: some ten minutes on two cores, from nothing. Three at a time, because tests with servers mostly wait.
test: deps-test configure
	@cmake --build build --target stele_quick_tests
	@ctest --test-dir build --label-regex '^quick$$' --output-on-failure -j3

# All others: every mechanism, mutants, SQLite's and Redis' own tests, figures, the simulator, outside projects. Half an hour.
test-deep: deps-deep configure
	@cmake --build build
	@ctest --test-dir build --label-exclude '^quick$$' --output-on-failure -j3

bench: build
	@build/stele bench all

# Headers, both libraries, the command, its manual: docs/guide/install.md. The packages that building needs are `make deps`.
install: configure
	@mkdir -p "$(PREFIX)" 2>/dev/null && [ -w "$(PREFIX)" ] || { echo "make install: $(PREFIX) cannot be written; choose another folder by PREFIX=..., or run as root" >&2; exit 1; }
	@cmake --build build --target stele stele_c stele_published stele_testing stele_command stele_manual stele_front_ends
	@cmake --install build --prefix $(PREFIX)

# What others install: Debian packages in build/deb, a Python wheel in build/wheel. A Conan recipe is in tools/packaging.
deb: deps-deep
	@tools/packaging/make-deb build/deb

wheel: deps-test
	@tools/packaging/make-wheel build/wheel

# Structure, sizes and words; then the layout; then clang-tidy over what has changed.
lint: deps-lint configure
	@tools/lint
	@tools/format --check
	@tools/tidy

format: deps-lint
	@tools/format

sanitize: deps-deep
	@tools/sanitize

coverage: deps-deep
	@tools/coverage

clean:
	@rm -rf build build-debug build-clang build-asan build-tsan build-coverage

configure: deps
	@cmake --version | awk 'NR == 1 { split($$3, v, "."); if (v[1] * 100 + v[2] < 325) { print "make: Stele needs CMake 3.25 or later; this is " $$3 > "/dev/stderr"; exit 1 } }'
	@cmake --preset release

deps:
	@tools/deps

deps-test deps-deep deps-lint: deps-%:
	@tools/deps --$*
