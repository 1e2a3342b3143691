# Each target does its own set-up; the first call takes a minute or two, later ones none.

.PHONY: help run test agents quick check format bench bench-smoke soak soak-short fuzz screenshots snapshots clean

DIR ?= .
ARGS ?=
export DIR

SET_UP := sh tests/house/set_up.sh
BIN := $(CURDIR)/.venv/bin
TEST_ENV := PATH="$(BIN):$$PATH" SUBDECK_TEST_PI="$(CURDIR)/.cache/pi-0.73.1/node_modules/.bin/pi"
NEWEST := $(CURDIR)/.cache/newest-venv
SYSTEM := $(CURDIR)/.cache/system-venv
STREAMS := $(foreach name,*stream* *recordings updates lines replay codex_fuzz hostile_ssh,$(wildcard tests/core/*/test_$(name).py tests/core/*/*/test_$(name).py))
QUICK := -m pytest -n 2 -m "quick or not (tmux or pi or agents or npm or cluster or processes or app or fuzz or slow)" $(ARGS)
PYRIGHT_ENV := PATH="$(BIN):$$PATH" PYRIGHT_PYTHON_IGNORE_WARNINGS=1
# What make tells its children is not for the app, whose runs may call make themselves.
UNSET_MAKE := -u MAKEFLAGS -u MFLAGS -u MAKEOVERRIDES -u MAKELEVEL -u MAKE_TERMOUT -u MAKE_TERMERR -u DIR

help:
	@echo "make run [DIR=directory]   open the app on a directory (default: here)"
	@echo "make test [ARGS=…]         run the tests; ARGS go to pytest"
	@echo "make agents [ARGS=…]       run the tests with real agents; write the results to docs/agents"
	@echo "make quick [ARGS=…]        run the tests that start nothing and take no time, and a few that do: less than a minute"
	@echo "make check                 format, lint, types, import contracts, sizes, tests, a short sweep, the benchmarks in small; some on an older and a newer Python"
	@echo "make format                rewrite the code in the one format, and the generated documents"
	@echo "make bench [ARGS=…]        measure a non-editable install"
	@echo "make bench-smoke           run each benchmark with small numbers, to see that it works; no target is judged"
	@echo "make soak [ARGS=…]         kill and fault every process of real runs at random; check what is left of them"
	@echo "make soak-short            the same for a minute, from a fixed seed"
	@echo "make fuzz                  give every decoder 5,000 damaged inputs, and every recorded stream 1,000"
	@echo "make screenshots           make the pictures of the documents from real runs"
	@echo "make snapshots             write anew the screens that tests compare with"
	@echo "make clean                 remove what the targets above made"

run:
	@test -d "$$DIR" || { echo "DIR=$$DIR is no directory" >&2; exit 1; }
	@$(SET_UP) app
	@cd -- "$$DIR" && exec env $(UNSET_MAKE) "$(BIN)/subdeck"

test:
	@$(SET_UP) test
	@$(TEST_ENV) "$(BIN)/python" -m pytest -n 5 --dist worksteal -m "not lane" $(ARGS)

agents:
	@$(SET_UP) test
	@$(TEST_ENV) SUBDECK_TEST_FILES=/tmp "$(BIN)/python" -m pytest -n 2 -p tests.house.support_lane -m "agents or pi" $(ARGS); status=$$?; "$(BIN)/python" -m tests.house.support; exit $$status

quick:
	@$(SET_UP) quick
	@$(TEST_ENV) "$(BIN)/python" $(QUICK)

check:
	@$(SET_UP) test
	"$(BIN)/ruff" format --check .
	"$(BIN)/ruff" check .
	@echo pyright
	@$(PYRIGHT_ENV) "$(BIN)/pyright" --pythonpath "$(BIN)/python"
	@$(PYRIGHT_ENV) "$(BIN)/pyright" --pythonpath "$(BIN)/python" --project tests/pyrightconfig.json
	"$(BIN)/lint-imports" --no-logo --cache-dir .cache/import-linter
	@"$(BIN)/python" -m tests.house.sizes
	@$(MAKE) --no-print-directory test
	@$(MAKE) --no-print-directory soak-short
	@$(MAKE) --no-print-directory bench-smoke
	@$(SET_UP) system
	@test ! -d "$(SYSTEM)" || { echo "streams on $$("$(SYSTEM)/bin/python" --version)"; $(TEST_ENV) "$(SYSTEM)/bin/python" -m pytest -n 2 $(STREAMS); }
	@$(SET_UP) newest
	@test ! -d "$(NEWEST)" || { echo "on $$("$(NEWEST)/bin/python" --version)"; $(TEST_ENV) "$(NEWEST)/bin/python" $(QUICK); }

format:
	@$(SET_UP) test
	@"$(BIN)/python" -m tests.house.strings
	@"$(BIN)/python" -m tests.house.reference
	"$(BIN)/ruff" format .
	"$(BIN)/ruff" check --fix .

bench:
	@$(SET_UP) bench
	@"$(CURDIR)/.cache/bench-venv/bin/python" -m tests.bench $(ARGS)

# In the environment of the tests, which is there already: nothing is judged, so it need not be a wheel.
bench-smoke:
	@$(SET_UP) test
	@$(TEST_ENV) "$(BIN)/python" -m tests.bench --smoke

soak:
	@$(SET_UP) soak
	@$(TEST_ENV) SUBDECK_EVERY_STEP=1 "$(BIN)/python" -m pytest -n 2 --timeout 1800 tests/core/work/test_work_kills.py tests/core/work/test_taking_kills.py tests/core/notify/test_kills.py tests/core/git/test_git_faults.py tests/core/git/test_git_cuts.py tests/core/project/test_planted.py tests/core/permissions/test_shell_rules.py tests/core/web/test_web_race.py
	@$(TEST_ENV) SUBDECK_EVERY_STEP=1 "$(BIN)/python" -m pytest -n 2 tests/tui
	@SUBDECK_EVERY_STEP=1 $(MAKE) --no-print-directory agents ARGS="--timeout 1800"
	@$(TEST_ENV) SUBDECK_EVERY_STEP=1 "$(BIN)/python" -m pytest --timeout 1800 tests/cluster
	@"$(BIN)/python" -m tests.soak.deck --seconds 600
	@$(TEST_ENV) "$(BIN)/python" -m tests.soak.page
	@"$(BIN)/python" -m tests.soak $(ARGS)

soak-short:
	@$(SET_UP) soak
	@"$(BIN)/python" -m tests.soak --seconds 40 --again 3

fuzz:
	@$(SET_UP) test
	@$(TEST_ENV) SUBDECK_FUZZ_EXAMPLES=5000 SUBDECK_EVERY_STEP=1 "$(BIN)/python" -m pytest --timeout 1800 tests/core/run/test_decoding_fuzz.py tests/core/agents/test_mutated_recordings.py $(ARGS)

screenshots:
	@$(SET_UP) screenshots
	@$(TEST_ENV) "$(BIN)/python" -m screenshots.make $(ARGS)

snapshots:
	@$(SET_UP) test
	@$(TEST_ENV) "$(BIN)/python" -m pytest tests/tui/test_snapshots.py --write-snapshots
	@git diff --stat -- tests/tui/snapshots

clean:
	rm -rf .venv .cache build dist *.egg-info .pytest_cache .ruff_cache .import_linter_cache
	find core tui tests screenshots -name __pycache__ -prune -exec rm -rf {} +
