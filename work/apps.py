from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.db.models.signals import pre_migrate

from work.processes import supervise
from work.sqlserver import needs


class WorkConfig(AppConfig):
    name = "work"

    def ready(self) -> None:
        connection_created.connect(read_committed)
        pre_migrate.connect(needs.refuse_without, sender=self)
        supervise.policy = settings.ADE_SANDBOX  # type: ignore[assignment]  # the settings allow only these values


def read_committed(connection: BaseDatabaseWrapper, **_: Any) -> None:
    """Let a transaction that has waited for a lock see what the lock's previous holder wrote.

    With a stricter default isolation level, transactions would count the places in the queue in an old snapshot.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET default_transaction_isolation = 'read committed'")
