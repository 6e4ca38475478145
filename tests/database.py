"""Empty the database after a test that commits, without repeating the work of `migrate`.

Django's own way flushes every table and then emits `post_migrate`, which writes all content types and permissions
again: 40 to 70 ms for each test. They never change, so they stay.
"""

from functools import cache

from django.db import connections, transaction
from django.test import TransactionTestCase

from feeds.briefs import guards
from feeds.models import Brief
from work.sql import guards as event_guards

WRITTEN_BY_MIGRATE = {"django_migrations", "django_content_type", "auth_permission"}


def install():
    TransactionTestCase._fixture_teardown = _empty_all


def _empty_all(test):
    for alias in test._databases_names(include_mirrors=False):
        empty(connections[alias])


def empty(connection):
    """Delete every row that a test can have written. Foreign keys are checked at commit."""
    deletes = [f"DELETE FROM {connection.ops.quote_name(table)}" for table in _tables(connection.alias)]  # noqa: S608
    with transaction.atomic(connection.alias), connection.cursor() as cursor:
        has_briefs = Brief.objects.using(connection.alias).exists()
        if has_briefs:
            # The database refuses to delete published briefs.
            guards.drop()
        with event_guards.retention():
            # SQL Server checks foreign keys at each statement, unless told otherwise.
            if connection.vendor == "microsoft":
                connection.disable_constraint_checking()
            if connection.vendor == "postgresql":
                # One round trip for all of them.
                cursor.execute(";".join(deletes))
            else:
                for delete in deletes:
                    cursor.execute(delete)
            if connection.vendor == "microsoft":
                connection.enable_constraint_checking()
        if has_briefs:
            guards.make()


@cache
def _tables(alias):
    connection = connections[alias]
    tables = connection.introspection.django_table_names(only_existing=True, include_views=False)
    return [table for table in tables if table not in WRITTEN_BY_MIGRATE]
