from typing import Any

from django.apps import AppConfig
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created


class WorkConfig(AppConfig):
    name = "work"

    def ready(self) -> None:
        connection_created.connect(read_committed)


def read_committed(connection: BaseDatabaseWrapper, **_: Any) -> None:
    """Whoever waited for a lock must see what its holder wrote, also where the server's default is stricter: the places
    of the queue would be counted in an old snapshot.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET default_transaction_isolation = 'read committed'")
