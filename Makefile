# Each target sets up what it needs by itself: an interpreter is chosen (tools/pick_python.sh), its
# environment and the installed wheel are brought up to date (tools/setup_env.py), then the work runs.
#
#   PYTHON=...       another interpreter than the newest usable one on PATH
#   PYTEST_ARGS=...  more arguments for pytest in `test` and `sanitize`
#   BENCH_ARGS=...   more arguments for the benchmarks in `bench` and `demo`; SUITES: which of them
#   COMPAT_ARGS=...  packages and options for `compat`
#   CPYTHON_ARGS=... options for `cpython-tests`: '--whole --part 3/8'
#   SOAK_ARGS=...    options for `soak`
#   FUZZ_SECONDS=... how long `fuzz` goes on
#   FUZZ_CALLS=...   how many calls `fuzz-calls` makes
#   SECONDS=...      how long `signal-stress` goes on, and each kind of `search`; KIND=... one kind; SEED=...
#   LOCK_ARGS=...    options for `lock`
#   DIST_ARGS=...    options for `dist`: --only 3.13, --release

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
export PYTHON

PYTEST_ARGS ?=
BENCH_ARGS ?=
SUITES ?= giltest threads testserver tasklets tasklet-io memory
COMPAT_ARGS ?=
FUZZ_SECONDS ?= 60
FUZZ_CALLS ?= 10000000
SECONDS ?= 60
KIND ?=
SEED ?= 0
LOCK_ARGS ?=
DIST_ARGS ?=
CPYTHON_ARGS ?=
in_env := tools/in_env.sh

.PHONY: help
help: ## show this list
	@echo 'usage: make TARGET [PYTHON=python3.x] [PYTEST_ARGS=...] [BENCH_ARGS=...]'
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

.PHONY: demo
demo: ## in a minute: requests beside a job, four workers, a leak; stock, plus, gain and price
	@mkdir -p build/demo
	@$(in_env) --group demo -- python -m benchmarks demo --json build/demo/demo.json $(BENCH_ARGS)

# The tests are mostly child processes that wait for each other, so four workers keep two cores busy.
workers := -n 4 --dist worksteal

.PHONY: test
test: ## build, install and run the quick tests, in parallel
	@$(in_env) --group test -- python -m pytest $(workers) -m 'not builds and not slow' $(PYTEST_ARGS)

.PHONY: test-all
test-all: ## all tests but those that build a server first (PYTEST_ARGS="-m builds")
	@$(in_env) --group test -- python -m pytest $(workers) -m 'not builds' $(PYTEST_ARGS)

.PHONY: facts
facts: ## what is proven of the interpreter's private structures
	@$(in_env) -- cpythonplus facts

.PHONY: check
check: ## linters, types, formats, and the rooms' dependencies
	@$(in_env) --group dev -- tools/check.sh

.PHONY: workflows
workflows: ## the linters of .github/workflows
	@$(in_env) --group lint -- tools/workflows.sh

.PHONY: format
format: ## rewrite Python and C files in the project's format
	@$(in_env) --group dev -- tools/check.sh --fix

.PHONY: bench
bench: ## all benchmarks, stock and plus in one run; raw results in build/bench
	@mkdir -p build/bench
	@for suite in $(SUITES); do $(in_env) --group bench -- python -m benchmarks $$suite \
		--json build/bench/$$suite.json --html build/bench/$$suite.html $(BENCH_ARGS); done

.PHONY: sanitize
sanitize: ## the tests under the address and undefined sanitizers, C programs under the thread one
	@status=0; \
	$(in_env) --variant asan --group test -- tools/sanitize.sh address $(workers) $(PYTEST_ARGS) || status=1; \
	$(in_env) --group test -- tools/sanitize.sh thread || status=1; \
	exit $$status

.PHONY: sanitize-free-threaded
sanitize-free-threaded: ## tests of threads and gil with TSan in the interpreter, too: TSAN_PYTHON=... (tools/free_threaded.sh)
	@$(in_env) --variant tsan --group test -- tools/sanitize.sh free_threaded $(TSAN_PYTHON) $(workers) $(PYTEST_ARGS)

.PHONY: test-lies
test-lies: ## each fact about CPython's private structures made false: every feature must refuse
	@$(in_env) --variant lies --group test -- python -m pytest $(workers) tests/interp/test_lies.py tests/interp/test_losses.py $(PYTEST_ARGS)

.PHONY: fuzz
fuzz: ## the parser of the doctor's requests under clang's libFuzzer, for FUZZ_SECONDS (60)
	@tools/fuzz.sh $(FUZZ_SECONDS)

.PHONY: fuzz-calls
fuzz-calls: ## random calls of the whole API of tasklets, FUZZ_CALLS (10 million) of them
	@$(in_env) --group test -- python tools/fuzz_calls.py --calls $(FUZZ_CALLS)

.PHONY: pickle-damage
pickle-damage: ## pickles of tasklets damaged in every place: an error or a run, never a crash
	@$(in_env) --group test -- python -m tools.pickle_damage

.PHONY: pickle-property
pickle-property: ## PROGRAMS (10000) that hypothesis writes stop, are pickled, and go on in a fresh process
	@$(in_env) --group test -- python -m tools.pickle_property --programs $(or $(PROGRAMS),10000)

.PHONY: signal-stress
signal-stress: ## signal handlers beside waits for the same things, at 1 kHz, for SECONDS (60)
	@$(in_env) --group test -- python tools/signal_stress.py --seconds $(SECONDS)

.PHONY: search
search: ## crashes, hangs, leaks and skipped `finally`, for SECONDS (60); KIND=collect|memory|signals|tracing
	@$(in_env) --group test -- python -m tools.search $(addprefix --kind ,$(KIND)) --seconds $(SECONDS) --seed $(SEED)

.PHONY: musl
musl: ## the extension compiled and linked against musl, and the C test programs there
	@$(in_env) --group test -- tools/musl.sh $(PYTEST_ARGS)

.PHONY: cpython-tests
cpython-tests: ## CPython's own tests of threads under `run`; CPYTHON_TESTS=quick; CPYTHON_ARGS=--whole
	@$(in_env) --group test -- python tools/cpython_tests.py $(CPYTHON_ARGS)

.PHONY: cpython-tests-tasklets
cpython-tests-tasklets: ## CPython's own tests with tasklets' patches; CPYTHON_TESTS=quick likewise
	@$(in_env) --group test -- python tools/cpython_tests.py --tasklets

.PHONY: compat
compat: ## other people's tests under `run`, stock beside plus; COMPAT=quick, COMPAT_ARGS='--tasklets' or '--no-cycles'
	@$(in_env) --group test -- python tools/compat/farm.py $(COMPAT_ARGS)

.PHONY: compat-serve
compat-serve: ## applications of real life under gunicorn, stock beside serve; COMPAT_ARGS='NAME...'
	@$(in_env) --group test -- python -m tools.compat_serve $(COMPAT_ARGS)

.PHONY: soak
soak: ## an hour of everything at once in tasklets; SOAK_ARGS='--side gevent --seconds 600'
	@$(in_env) --group test -- python tools/soak.py $(SOAK_ARGS)

.PHONY: try-docs
try-docs: ## the examples of the pages as they stand, where only the package is and what each page installs
	@$(in_env) --group test -- python -m pytest $(workers) --as-typed tests/docs/test_examples.py $(PYTEST_ARGS)

.PHONY: docs
docs: ## rewrite the generated parts of docs/reference, the tables of docs/benchmarks, drawn pictures
	@$(in_env) --group test -- python -m tools.reference
	@$(in_env) --group test -- python -m tools.benchmark_pages
	@$(in_env) --group test -- python -m tools.stack_pictures
	@$(in_env) --group test -- python -m tools.cpython_tests_page
	@$(in_env) --group test -- python -m tools.lies_page
	@$(in_env) --group test -- python -m tools.builds_page
	@$(in_env) --group test -- python -m tools.compat_serve.page
	@$(in_env) --group test -- python -m tools.compat.page

.PHONY: site
site: ## the documentation as a site in build/site; warnings are errors, links are checked
	@$(in_env) --group docs -- python -m tools.docs_site

.PHONY: site-links
site-links: ## the site's links into the web, which are asked
	@$(in_env) --group docs -- python -m tools.docs_site --web

.PHONY: pictures
pictures: ## the screenshots of docs/pictures, of the doctor at a service that runs; needs Chromium
	@$(in_env) --group test -- python -m tools.pictures

.PHONY: cycle-survey
cycle-survey: ## drive popular packages, and list the lines of theirs that leave cyclic garbage
	@$(in_env) --group survey -- python -m survey.cycles --write

.PHONY: lint-survey
lint-survey: ## our linter over 47 packages from PyPI, and the leaks that it knows; writes both pages
	@$(in_env) --group test -- python -m survey.lint --write
	@$(in_env) --group test -- python -m survey.lint_recall --write

.PHONY: lock
lock: ## the environments' packages anew, with hashes (requirements/); LOCK_ARGS=--keep: no newer ones
	@$(in_env) --group lock -- python -m tools.lock $(LOCK_ARGS)
	@$(MAKE) sbom

.PHONY: sbom
sbom: ## sbom.cdx.json, here, in lint/ and in sites/: what is needed at run time, in CycloneDX
	@$(in_env) --group release -- python -m tools.sbom

.PHONY: changelog
changelog: ## the fragments of changes/ into CHANGELOG.md, below the version of meson.build
	@$(in_env) --group release -- python -m tools.changelog

.PHONY: dist
dist: ## the archives of a release in dist/, checked where no compiler is; DIST_ARGS='--only 3.13'
	@$(in_env) --group dist -- python -m tools.dist $(DIST_ARGS)

.PHONY: sites-zipapp
sites-zipapp: ## cpythonplus-sites as one file for a gateway, dist/cpythonplus-sites.pyz
	@$(in_env) -- python -m tools.sites_zipapp

.PHONY: old-pythons
old-pythons: ## the tests of lint/ on Python 3.10, of sites/ on 3.9 and 3.10, where they are installed
	@$(in_env) -- python -m tools.old_pythons

.PHONY: sites-on-debian
sites-on-debian: ## cpythonplus-sites with real daemons in folders of Debian, each of which is booted; DEBIAN='bullseye trixie'
	@$(in_env) -- python -m tools.sites_on_debian $(DEBIAN) $(if $(PYTEST_ARGS),-- $(PYTEST_ARGS))

.PHONY: nightly
nightly: ## everything that .ci/run takes in turns, one after another: hours
	@.ci/run --all

.PHONY: clean
clean: ## remove everything that was built, and the environments
	rm -rf build dist .venv-* .mypy_cache .ruff_cache .pytest_cache .hypothesis .mesonpy-*
	find src benchmarks survey tests tools -name __pycache__ -type d -prune -exec rm -rf {} +
