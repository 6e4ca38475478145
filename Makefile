PY ?= python3
BIN := .venv/bin
COMPILE = $(BIN)/uv pip compile -q --universal --generate-hashes --no-header --no-emit-index-url --python-version
# Tests spend half of their time waiting for processes, so three workers keep two cores busy.
PYTEST = $(BIN)/python -m pytest -n 3
# Long tests wait even more. They are handed out one by one, so that no worker is left with several of them at the end.
PYTEST_LONG = $(BIN)/python -m pytest -n 4 --maxschedchunk 1 --durations=40 --durations-min=5
ON_POSTGRES = $(BIN)/python tools/with_postgres.py

# Trust the certificates of the system, which may include a company's own authority; 0 means uv's own certificates.
export UV_SYSTEM_CERTS ?= 1
NOT_INSTALLED = \
  "The packages of requirements/dev.txt could not be installed; the lines above say why." \
  "No network: connect, or name a proxy in HTTPS_PROXY or a package index in UV_DEFAULT_INDEX." \
  "UnknownIssuer: add the certificate of your company's authority to those of the system, or name its file in SSL_CERT_FILE." \
  "No space left: make room. Then run make again; what is there already is kept."

.DEFAULT_GOAL := help
.PHONY: help setup up test test-sqlite test-postgres test-newest test-sqlserver long soak check format lint types size requirements client docs fuzz screenshots counts samples bench

help:
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/\1|\2/p' Makefile | while IFS='|' read -r name text; do printf '  make %-14s %s\n' "$$name" "$$text"; done

setup: .venv/.synced ## install everything into .venv; starts nothing

up: setup ## start ADE on this machine and print address, user and password (ARGS="--pg" for PostgreSQL)
	@$(BIN)/python manage.py up $(ARGS)

# Tests and programs start often, so keep compiled Python files even if the calling shell disables them.
unexport PYTHONDONTWRITEBYTECODE

test: test-sqlite test-postgres ## run the quick tests on SQLite, then on PostgreSQL

# An empty DATABASE_URL means SQLite, even if the calling shell sets another one.
test-sqlite: setup ## run the quick tests on SQLite (ARGS="tests/runs -k cancel" runs some of them)
	DATABASE_URL= $(PYTEST) $(ARGS)

test-postgres: setup ## run the quick tests on a PostgreSQL of their own
	$(ON_POSTGRES) $(PYTEST) $(ARGS)

test-sqlserver: setup ## run the quick tests on a server that you have (URL="mssql://USER:PASSWORD@HOST:PORT/NAME")
	@test -n "$(URL)" || { echo 'test-sqlserver: name a server, as in URL="mssql://USER:PASSWORD@HOST:PORT/NAME"' >&2; exit 2; }
	$(BIN)/uv pip install -q --python $(BIN)/python --require-hashes -r requirements/mssql.txt
	DATABASE_URL="$(URL)" $(PYTEST) $(ARGS)

# Django 6 needs Python 3.12. NEWEST_PYTHON names the interpreter; otherwise PATH and the versions of pyenv are searched.
NEWEST_PYTHON ?= $(lastword $(sort $(wildcard $(HOME)/.pyenv/versions/3.1[2-9].*/bin/python)) \
  $(shell for minor in 12 13 14 15; do python3.$$minor -c 'import sys; print(sys.executable)' 2> /dev/null; done))

test-newest: setup ## run the quick tests with Python 3.12 or newer and the newest Django, if there is such a Python
ifeq ($(NEWEST_PYTHON),)
	@echo "test-newest: no Python 3.12 or newer was found, so nothing is tested. Name one in NEWEST_PYTHON."
else
	$(BIN)/uv venv -q --allow-existing --python $(NEWEST_PYTHON) .venv/newest
	$(BIN)/uv pip sync -q --python .venv/newest/bin/python --require-hashes requirements/newest.txt
	DATABASE_URL= ADE_REQUIRE_ALL= .venv/newest/bin/python -m pytest -n 3 $(ARGS)
endif

long: setup ## run the tests that take long, on both databases
	DATABASE_URL= $(PYTEST_LONG) -m long $(ARGS)
	$(ON_POSTGRES) $(PYTEST_LONG) -m long $(ARGS)

soak: setup ## run the tests that take hours, on both databases
	DATABASE_URL= $(PYTEST_LONG) -m soak $(ARGS)
	$(ON_POSTGRES) $(PYTEST_LONG) -m soak $(ARGS)

check: lint types ## run what CI runs: lint, types, imports, migrations, all tests
	PYTHONPATH=programs:clients/python $(BIN)/lint-imports
	$(BIN)/python manage.py makemigrations --check --dry-run
	$(BIN)/python tools/make_client.py --check
	$(BIN)/python tools/make_docs.py --check
	$(MAKE) test
	$(MAKE) long

format: setup ## format the code and mend what ruff can mend
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

lint: setup ## look for mistakes, formatting and odd sentences
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/python tools/prose.py

types: setup ## check the types
	$(BIN)/mypy .

size: setup ## print the ten longest functions and files: a mirror, not a gate
	@$(BIN)/python tools/size.py

requirements: $(BIN)/uv ## compile requirements/*.in to pinned, hashed .txt (ARGS="--upgrade" for newer versions)
	$(COMPILE) 3.11 $(ARGS) requirements/base.in -o requirements/base.txt
	$(COMPILE) 3.11 $(ARGS) requirements/dev.in -o requirements/dev.txt
	echo "django>=6" | $(COMPILE) 3.12 --overrides - $(ARGS) requirements/newest.in -o requirements/newest.txt
	$(COMPILE) 3.11 $(ARGS) requirements/mssql.in -o requirements/mssql.txt
	$(COMPILE) 3.11 $(ARGS) requirements/ocr.in -o requirements/ocr.txt

client: setup ## write clients/python/ade_client/operations.py again, from the description of the API
	@$(BIN)/python tools/make_client.py

docs: setup ## write docs/reference/ again, from the code
	@$(BIN)/python tools/make_docs.py

fuzz: setup ## let schemathesis try the whole API (ARGS="--minutes 10 --postgres")
	@$(BIN)/python tools/fuzz_api.py $(ARGS)

screenshots: setup ## take the pictures of the docs, of a demo that runs (ARGS="--password …")
	@$(BIN)/python tools/screenshots.py $(ARGS)

counts: setup ## write tests/benchmarks/counts.json again: statements, commits and memory of what people do most
	ADE_WRITE_COUNTS=1 DATABASE_URL= $(BIN)/python -m pytest -q -m long tests/benchmarks/test_counts.py
	ADE_WRITE_COUNTS=1 $(ON_POSTGRES) $(BIN)/python -m pytest -q -m long tests/benchmarks/test_counts.py

samples: setup ## write docs/kernel-sql.txt again: the finished statements of the kernel
	ADE_WRITE_SAMPLES=1 DATABASE_URL= $(BIN)/python -m pytest -q tests/work/test_kernel_sql.py
	ADE_WRITE_SAMPLES=1 $(ON_POSTGRES) $(BIN)/python -m pytest -q tests/work/test_kernel_sql.py

bench: setup ## measure; prints a table
	$(BIN)/python -m benchmarks $(ARGS)

# Only if it is missing: `uv pip sync` below installs a newer pin of uv.
$(BIN)/uv:
	$(PY) tools/bootstrap.py .venv

# One set of packages (dev) for all targets, because `uv pip sync` removes packages that its file does not list.
.venv/.synced: requirements/dev.txt | $(BIN)/uv
	@$(BIN)/uv pip sync -q --python $(BIN)/python --require-hashes requirements/dev.txt || { printf '%s\n' $(NOT_INSTALLED) >&2; exit 1; }
	@touch $@
