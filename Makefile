PY ?= python3
BIN := .venv/bin
COMPILE = $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url
# Half of a test's time is waiting for processes: three at a time keep two cores busy.
PYTEST = $(BIN)/python -m pytest -n 3
# Most of these keep a core busy by themselves, and some have time to prove.
PYTEST_LONG = $(BIN)/python -m pytest -n 2
ON_POSTGRES = $(BIN)/python tools/with_postgres.py

.DEFAULT_GOAL := help
.PHONY: help setup up test test-sqlite test-postgres long check format lint types size requirements client fuzz screenshots bench

help:
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/\1|\2/p' Makefile | while IFS='|' read -r name text; do printf '  make %-14s %s\n' "$$name" "$$text"; done

setup: .venv/.synced ## install everything into .venv; starts nothing

up: setup ## start ADE on this machine and print address, user and password (ARGS="--pg" for PostgreSQL)
	@$(BIN)/python manage.py up $(ARGS)

# Tests and programs start often; what Python compiles is kept, whatever the shell around us says.
unexport PYTHONDONTWRITEBYTECODE

test: test-sqlite test-postgres ## run the test suite on SQLite, then on PostgreSQL, without what takes long

# Tests that start many programs.
PROGRAMS = tests/runs/engine $(foreach topic,build_failures building locking materializing offline pruning,tests/builds/test_$(topic).py) \
	$(foreach topic,processing scenarios,tests/documents/test_$(topic).py) $(foreach part,sweep workers,tests/$(part))
# What `make test` leaves to `make long`: together it takes longer than the rest, and seldom finds what the rest does not.
SELDOM_ON_SQLITE = $(PROGRAMS) $(foreach part,examples extractor races,tests/$(part)) tests/api/test_streams.py \
	tests/commands/test_configuration_check.py tests/config/test_processes.py tests/console/test_live.py
# There also what people and programs meet: how a page looks and who may call a route has little to do with the database.
SELDOM_ON_POSTGRES = $(PROGRAMS) $(foreach part,admin api commands config console why,tests/$(part))

# Whoever names tests gets those.
but_for = $(if $(ARGS),$(ARGS),$(foreach path,$(1),--ignore=$(path)))

# An empty DATABASE_URL means SQLite, whatever the shell around us says.
test-sqlite: setup ## run the test suite on SQLite
	DATABASE_URL= $(PYTEST) $(call but_for,$(SELDOM_ON_SQLITE))

# What asks no database is tested once, with SQLite.
NO_DATABASE = --ignore=tests/test_shape.py --ignore=tests/tools --ignore=tests/benchmarks --ignore=tests/client/test_transport.py --ignore=tests/mssql --ignore=tests/extractor --ignore=tests/examples \
	--ignore-glob='tests/work/test_supervise*' \
	--ignore=tests/feedreader --ignore-glob='tests/feeds/test_fetching*' --ignore-glob='tests/feeds/test_addresses*' \
	$(foreach topic,brief_ranking brief_words opml partition,--ignore=tests/feeds/test_$(topic).py) \
	--ignore=tests/runs/jobs/test_cron.py --ignore=tests/config/test_environment.py --ignore=tests/config/test_service_settings.py \
	$(foreach topic,azure blobs extraction names openai service_faults sniffing storage wanted,--ignore=tests/documents/test_$(topic).py)

test-postgres: setup ## run the test suite on a throw-away PostgreSQL
	$(ON_POSTGRES) $(PYTEST) $(NO_DATABASE) $(call but_for,$(SELDOM_ON_POSTGRES))

long: setup ## run on both databases what `make test` leaves out
	DATABASE_URL= $(PYTEST) $(SELDOM_ON_SQLITE)
	$(ON_POSTGRES) $(PYTEST) $(NO_DATABASE) $(SELDOM_ON_POSTGRES)
	DATABASE_URL= $(PYTEST_LONG) -m long $(ARGS)
	$(ON_POSTGRES) $(PYTEST_LONG) -m long $(NO_DATABASE) --ignore=tests/runs/engine $(ARGS)

check: lint types ## run what CI runs: lint, types, imports, migrations, all tests
	$(BIN)/lint-imports
	$(BIN)/python manage.py makemigrations --check --dry-run
	$(BIN)/python tools/make_client.py --check
	$(MAKE) test
	$(MAKE) long

format: setup ## format the code and mend what ruff can mend
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

lint: setup ## look for mistakes and formatting
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: setup ## check the types
	$(BIN)/mypy .

size: setup ## print the ten longest functions and files: a mirror, not a gate
	@$(BIN)/python tools/size.py

requirements: $(BIN)/uv ## compile requirements/*.in to pinned, hashed .txt (ARGS="--upgrade" for newer versions)
	$(COMPILE) $(ARGS) requirements/base.in -o requirements/base.txt
	$(COMPILE) $(ARGS) requirements/dev.in -o requirements/dev.txt
	$(COMPILE) $(ARGS) requirements/mssql.in -o requirements/mssql.txt
	$(COMPILE) $(ARGS) requirements/ocr.in -o requirements/ocr.txt

client: setup ## write ade_client/operations.py again, from the description of the API
	@$(BIN)/python tools/make_client.py

fuzz: setup ## let schemathesis try the whole API (ARGS="--minutes 10 --postgres")
	@$(BIN)/python tools/fuzz_api.py $(ARGS)

screenshots: setup ## take the pictures of the docs, of a demo that runs (ARGS="--password …")
	@$(BIN)/python tools/screenshots.py $(ARGS)

bench: setup ## measure; prints a table
	$(BIN)/python -m benchmarks $(ARGS)

# Only when missing: a newer pin of uv arrives with the sync below.
$(BIN)/uv:
	$(PY) tools/bootstrap.py .venv

# One set (dev) for every target: `uv pip sync` removes what its file does not list.
.venv/.synced: requirements/dev.txt | $(BIN)/uv
	$(BIN)/uv pip sync -q --python $(BIN)/python --require-hashes requirements/dev.txt
	@touch $@
