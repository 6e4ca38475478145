"""Errors of SQL Server, raised by the driver's own code from the SQL state and the text that the server sends."""

from types import SimpleNamespace

import pytest
from django.db import DatabaseError, DataError, IntegrityError, OperationalError, ProgrammingError

from api.outages import problem_of
from tests.testwork import lifecycle as errands
from work import lifecycle
from work.sql import contention
from work.sqlserver.errors import CannotConnect, ErrorWrapper, sentence

pytestmark = pytest.mark.once

# Number -> SQL state, text, and the class that ADE expects.
DEADLOCK = (
    "Transaction (Process ID 58) was deadlocked on lock resources with another process and has been chosen as the"
    " deadlock victim. Rerun the transaction."
)
LOCKED = "Lock request time out period exceeded."
CONFLICT = (
    "Snapshot isolation transaction aborted due to update conflict. You cannot use snapshot isolation to access table"
    " 'dbo.runs' directly or indirectly in database 'ade' to update, delete, or insert the row that has been modified"
    " or deleted by another transaction."
)
ERRORS = [
    (1205, "40001", DEADLOCK, OperationalError),
    (1222, "HY000", LOCKED, OperationalError),
    (1222, "42000", LOCKED, OperationalError),
    (3960, "HY000", CONFLICT, OperationalError),
    (3960, "42000", CONFLICT, OperationalError),
    (4060, "42000", 'Cannot open database "ade" requested by the login. The login failed.', OperationalError),
    (18456, "28000", "Login failed for user 'ade'.", OperationalError),
    (2627, "23000", "Violation of UNIQUE KEY constraint 'feed_url'. Cannot insert duplicate key.", IntegrityError),
    (547, "23000", 'The INSERT statement conflicted with the CHECK constraint "run_status".', IntegrityError),
    (2628, "22001", "String or binary data would be truncated in table 'ade.dbo.runs'.", DataError),
    (102, "42000", "Incorrect syntax near 'LIMIT'.", ProgrammingError),
    (0, "08S01", "TCP Provider: Error code 0x68", OperationalError),
    (0, "HYT00", "Query timeout expired", OperationalError),
    (0, "ZZZZZ", "a state that the driver does not know", DatabaseError),
]
CONTENDED = [each for each in ERRORS if each[0] in (1205, 1222, 3960)]


@pytest.fixture
def mssql_python(mssql_django):
    return pytest.importorskip("mssql_python")


@pytest.fixture
def refused(mssql_python):
    """Return Django's error for an error of the server."""

    def refused(state, text):
        wrapper = SimpleNamespace(Database=mssql_python, errors_occurred=False)
        with pytest.raises(Exception) as raised, ErrorWrapper(wrapper):  # noqa: PT011  # the test looks at it
            mssql_python.exceptions.raise_exception(state, f"[Microsoft][SQL Server]{text}")
        return raised.value

    return refused


def ids(each):
    return f"{each[0]}-{each[1]}"


@pytest.mark.parametrize("error", ERRORS, ids=ids)
def test_each_error_has_the_class_that_ade_expects(error, refused):
    _, state, text, expected = error

    assert type(refused(state, text)) is expected


@pytest.mark.parametrize("error", ERRORS, ids=ids)
def test_deadlocks_locks_and_conflicts_are_contention_and_nothing_else_is(error, refused):
    number, state, text, _ = error

    assert contention.is_contention(refused(state, text)) is (number in (1205, 1222, 3960))


def test_a_value_that_quotes_an_error_is_none(refused):
    quoting = f"Cannot insert duplicate key row. The duplicate key value is ({DEADLOCK})."

    error = refused("23000", quoting)

    assert type(error) is IntegrityError
    assert not contention.is_contention(error)


@pytest.mark.parametrize("error", CONTENDED, ids=ids)
def test_what_was_given_up_for_another_is_written_again_and_a_locked_row_is_not(error, refused):
    number, state, text, _ = error
    tries = []

    def write():
        tries.append(None)
        if len(tries) == 1:
            raise refused(state, text)
        return "written"

    if number == 1222:
        with pytest.raises(OperationalError):
            contention.patiently(write)
    else:
        assert contention.patiently(write) == "written"
    assert len(tries) == (1 if number == 1222 else 2)


@pytest.mark.parametrize("error", CONTENDED, ids=ids)
def test_a_claim_that_loses_tries_again_at_the_next_tick(error, refused, monkeypatch):
    _, state, text, _ = error

    def claim_first(*arguments):
        raise refused(state, text)

    monkeypatch.setattr(lifecycle, "_writer", lambda: SimpleNamespace(claim_first=claim_first))

    with pytest.raises(contention.Contended):
        errands.claim_next("w1")


@pytest.mark.parametrize("error", CONTENDED, ids=ids)
def test_the_api_asks_to_try_again(error, refused):
    _, state, text, _ = error

    assert problem_of(refused(state, text)).code == "unavailable"


def test_a_query_that_took_too_long_is_called_so(refused):
    assert problem_of(refused("HYT00", "Query timeout expired")).code == "too_slow"


def test_a_failed_connection_is_an_outage_in_words_for_operators(mssql_python):
    refused = mssql_python.exceptions.sqlstate_to_exception(
        "28000", "[Microsoft][ODBC Driver 18 for SQL Server][SQL Server]Login failed for user 'ade'."
    )

    said = sentence(refused, "db:1433/ade")

    assert said == "cannot connect to db:1433/ade: Login failed for user 'ade'"
    assert issubclass(CannotConnect, OperationalError)
