"""The migration fills `failing_since` for feeds that failed before the column existed."""

from datetime import timedelta

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from feeds.models import FeedSource
from work import clock

DAY = timedelta(days=1)


def migrated(name):
    executor = MigrationExecutor(connection)
    executor.migrate([("feeds", name)])
    return executor.loader.project_state([("feeds", name)]).apps.get_model("feeds", "FeedSource")


@pytest.fixture
def there_again(transactional_db):
    yield
    call_command("migrate", verbosity=0)


def test_they_fail_since_they_last_answered_or_were_added(there_again):
    before = migrated("0004_briefs_remain")
    now = clock.now()
    rows = [
        before.objects.create(url=f"https://{n}.example.org/", created_at=now - 9 * DAY, last_error="404", **said)
        for n, said in enumerate(({"failures": 2, "succeeded_at": now - DAY}, {"failures": 1}, {"succeeded_at": now}))
    ]

    migrated("0005_failing_since")

    since = dict(FeedSource.objects.values_list("pk", "failing_since"))
    assert [since[row.pk] for row in rows] == [now - DAY, now - 9 * DAY, None]
