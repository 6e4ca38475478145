import pytest
from django.db import DatabaseError, connection, transaction

from tests.stepping import terminate
from work.sql import statements

pytestmark = pytest.mark.django_db(transaction=True)

NUMBER = "SELECT 7"


def test_a_number_is_asked_for_again_and_again():
    assert [statements.peek(NUMBER) for _ in range(3)] == [7] * 3
    assert statements.peek("SELECT max(id) FROM events") is None
    with transaction.atomic():
        assert statements.peek(NUMBER) == 7


def test_what_is_wrong_is_told_as_always():
    for _ in range(2):
        with pytest.raises(DatabaseError):
            statements.peek("SELECT id FROM nowhere")

    assert statements.peek(NUMBER) == 7


@pytest.mark.only_on("postgresql")
def test_what_the_server_has_forgotten_is_prepared_again():
    statements.peek(NUMBER)
    with connection.cursor() as cursor:
        cursor.execute("DEALLOCATE ALL")

    assert [statements.peek(NUMBER) for _ in range(3)] == [7] * 3


@pytest.mark.only_on("postgresql")
def test_a_connection_that_was_ended_is_told_as_always(threads):
    statements.peek(NUMBER)
    backend = connection.connection.info.backend_pid
    threads.start(lambda: terminate(backend)).answer()

    with pytest.raises(DatabaseError):
        statements.peek(NUMBER)

    connection.close()
    assert statements.peek(NUMBER) == 7
