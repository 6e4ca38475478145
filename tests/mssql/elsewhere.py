"""Test files that `make test-sqlserver` leaves out, and why."""

from fnmatch import fnmatch

# Files below tests/ -> what SQL Server has not, or what the tests write themselves.
LEFT_OUT = {
    "work/test_guards.py": "triggers, which ADE has on PostgreSQL and SQLite",
    "work/test_statements.py": "statements that PostgreSQL prepares",
    "documents/test_fulltext.py": "the index of words, which PostgreSQL and SQLite have",
    "documents/test_vectors.py": "pgvector",
    "api/test_outages.py": "sessions that PostgreSQL ends and files of SQLite",
    "work/test_worker_process_outages.py": "sessions that PostgreSQL ends and files of SQLite",
    "races/test_connections.py": "sessions of PostgreSQL",
    "races/test_claim_plans.py": "query plans of PostgreSQL and SQLite",
    "races/test_field_plans.py": "query plans of PostgreSQL and SQLite",
    "runs/test_listing.py": "query plans of PostgreSQL and SQLite",
    "runs/test_counting.py": "query plans of PostgreSQL and SQLite",
    "feeds/retention/test_a_million.py": "rows that are inserted by SQL for PostgreSQL and SQLite",
    "benchmarks/*": "rows that are inserted by SQL for PostgreSQL and SQLite",
    "browser/*": "pages, which are the same on every database",
}


def reason(path):
    """Return why a file below tests/ is left out, or None."""
    return next((why for pattern, why in LEFT_OUT.items() if fnmatch(path, pattern)), None)


def report():
    return ["left out on SQL Server:", *(f"  tests/{pattern}: needs {why}" for pattern, why in LEFT_OUT.items())]
