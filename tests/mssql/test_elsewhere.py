"""`make test-sqlserver` without a server: what it would run, and what it leaves out."""

import subprocess
import sys

import pytest
from django.conf import settings

from tests.mssql.conftest import environment_without_pytest
from tests.mssql.elsewhere import LEFT_OUT

pytestmark = pytest.mark.once
TESTS = settings.BASE_DIR / "tests"


@pytest.mark.parametrize("pattern", LEFT_OUT)
def test_what_is_left_out_is_there(pattern):
    assert list(TESTS.glob(pattern))


def test_the_tests_can_be_collected_and_say_what_is_left_out(mssql_django):
    url = {"DATABASE_URL": "mssql://ade:p@127.0.0.1:1/ade"}
    listed = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "tests/work", "tests/races"],
        cwd=settings.BASE_DIR,
        env=environment_without_pytest() | url,
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert "tests/work/test_guards.py: needs triggers" in listed
    assert "<Module test_guards.py>" not in listed
    assert "<Module test_sqlite.py>" not in listed
    assert "<Module test_create.py>" in listed
    assert "[portable" in listed
    assert "[fast" not in listed
