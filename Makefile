# The front door. ./run and ./test wrap it for a fresh machine; `make help` lists the rest.
.DEFAULT_GOAL := build
.PHONY: help build check test test-clang random portable tidy format format-check includes wasm fuzz fuzz-count test-frameworks accuracy peers page wheel dist bench install clean

PREFIX ?= /usr/local
FUZZ_SECONDS ?= 20
FUZZ_GOAL ?= 100000000
SEED ?= 1
SOURCES = $(shell git ls-files --cached --others --exclude-standard '*.c' '*.h')

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## the release program, at build/release/fathom
	@scripts/build release fathom libfathom

check: includes format-check portable test test-clang random wasm tidy fuzz torture ## everything ./test runs
	@echo "every check passed"

test: ## unit, golden and documentation tests: gcc, sanitizers; TESTS='^cli' only those
	@scripts/build dev
	@cd build/dev && ctest -j 2 --output-on-failure -R '$(or $(TESTS),.)' --no-tests=error

test-clang: ## the same, built by clang, but for measured runs, documents and plans by brute force: the same arithmetic
	@scripts/build dev-clang
	@cd build/dev-clang && ctest -j 2 --output-on-failure -R '^(unit|cli|doctor|emit|replay|random)' \
		-E '^(unit[.]plan|cli[.]documents)$$'

random: ## random jobs: emit and read back, max, guide and remedies against predict, plans with settings added; SEED=1
	@scripts/build release random_jobs plan_settings
	@build/release/plan_settings few
	@build/release/random_jobs trips 10000 $(SEED)
	@build/release/random_jobs limits 500 $(SEED) 6144

.PHONY: torture
SECONDS ?= 60
torture: ## random command lines, deaths and hostile names under sanitizers; SECONDS=60 (an hour: 3600), SEED=
	@scripts/build dev
	@python3 tests/hostile/torture.py build/dev $(SECONDS) $(SEED)

portable: build ## the program needs nothing but the C library
	@needed=$$(readelf -d build/release/fathom | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -v -x -e libc.so.6 -e libm.so.6); \
	if [ -n "$$needed" ]; then echo "build/release/fathom must not need $$needed"; exit 1; fi

tidy: ## clang-tidy, warnings are errors
	@scripts/build tidy
	@printf '%s\n' $(filter %.c,$(filter-out web/%,$(SOURCES))) | xargs -P 2 -n 8 scripts/tidy

format: ## clang-format in place
	@clang-format-19 -i $(SOURCES)

format-check: ## fails where clang-format would change something
	@clang-format-19 --dry-run --Werror $(SOURCES)

includes: ## each stage includes only what comes before it
	@scripts/check_includes
	@scripts/check_bits

wasm: build ## core as WebAssembly: pure, and the same replies as the program
	@scripts/build wasm
	@node tests/wasm/parity.mjs build/wasm/fathom.wasm build/release/fathom
	@node tests/wasm/examples.mjs build/wasm/fathom.wasm build/release/fathom

fuzz: ## libFuzzer on every parser of outside bytes, FUZZ_SECONDS each
	@scripts/build fuzz
	@ls tests/fuzz/corpus | xargs -P 2 -I{} scripts/fuzz {} $(FUZZ_SECONDS)

fuzz-count: ## the same until FUZZ_GOAL executions are counted over all calls; tells the count by target
	@scripts/build fuzz
	@scripts/fuzz_count $(FUZZ_GOAL)

test-frameworks: page ## the real loaders read what emit writes, a real browser the page; makes a Python environment under build/
	@scripts/setup frameworks
	@python3 tests/frameworks/make_environment.py build/frameworks
	@PATH=$(CURDIR)/build/frameworks/bin:$$PATH:/usr/sbin python -W ignore tests/frameworks/all.py

accuracy: build ## predicts every measured run and writes docs/accuracy.md; STORE=logs/probe.db: prints your own trials
ifdef STORE
	@python3 tests/measured/accuracy.py build/release "$(STORE)"
else
	@python3 tests/measured/accuracy.py build/release tests/runs/h200_*.jsonl --write docs
	@python3 tests/measured/real_trainers.py build/release
	@python3 tests/measured/public_jobs.py build/release
	@python3 tests/measured/public_reports.py build/release
	@python3 tests/measured/alst.py build/release
	@python3 tests/measured/published.py build/release
	@python3 tests/measured/trinity.py build/release
endif

peers: build ## the estimators that PyPI has, on the same measured jobs as ours: docs/peers.md (minutes)
	@scripts/setup frameworks
	@python3 tests/frameworks/make_environment.py build/frameworks
	@build/frameworks/bin/python -m pip install -q --no-deps --upgrade --target build/peers -r tests/peers/requirements.txt
	@PYTHONPATH=build/peers build/frameworks/bin/python -W ignore tests/peers/peers.py build/release/fathom docs/peers.md

page: ## the page for browsers, in one file: build/page/fathom.html; the program carries it from then on
	@scripts/setup page
	@[ -f build/release/build.ninja ] || scripts/build release fathom
	@cmake -DFATHOM_PAGE=ON build/release >build/page.log || { cat build/page.log; exit 1; }
	@scripts/build release fathom libfathom
	@mkdir -p build/page
	@build/release/fathom page -o build/page/fathom.html

wheel: build ## the Python package, for every Python 3 on this kind of Linux: build/wheel/*.whl
	@python3 python/build_wheel.py build/release build/wheel

dist: ## the version as it is handed out, in dist/: source, program, wheel, page, checksums; the same from two builds
	@scripts/dist dist

bench: ## speed, from the release build: predictions beside torch's own trace, searches, logs, the allocator
	@scripts/build release bench_allocator bench_predict bench_search bench_plan bench_split bench_doctor
	@build/release/bench_predict | tee build/bench_predict.txt
	@scripts/bench_torch build/bench_predict.txt
	@build/release/bench_search check
	@build/release/bench_plan
	@build/release/bench_split
	@build/release/bench_doctor
	@build/release/bench_allocator tests/data/traces/t12.trace.z tests/data/traces/v2.trace.z

install: build ## program, library, header, man page and completions under PREFIX
	@scripts/install "$(DESTDIR)$(PREFIX)"

clean: ## removes build/
	@rm -rf build
