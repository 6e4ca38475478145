import os

import pytest
from django.conf import settings
from django.db import connection
from django.db.backends.base.operations import BaseDatabaseOperations
from django.db.backends.postgresql.operations import DatabaseOperations

from api import limits
from documents import children
from feeds.briefs import guards
from feeds.models import Brief
from tests.azurite import azurite, blobs, each_storage  # noqa: F401 - fixtures
from tests.factories import (
    W1,
    W2,
    BuildFactory,
    ConfigurationFactory,
    DocumentFactory,
    MembershipFactory,
    UserFactory,
    WorkspaceFactory,
)
from tests.processes import Programs
from tests.services.fixtures import azure, open_ai  # noqa: F401  # fixtures are found by their names here
from tests.stepping import Threads

FLUSH = BaseDatabaseOperations.execute_sql_flush


def pytest_configure():
    # The real one is slow on purpose.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    # TRUNCATE takes a quarter of a second for tables of a dozen rows. The foreign keys are looked at when it commits.
    DatabaseOperations.sql_flush = lambda self, style, tables, **options: [f"DELETE FROM {table}" for table in tables]  # noqa: S608
    BaseDatabaseOperations.execute_sql_flush = flush_with_briefs


def flush_with_briefs(operations, statements):
    """What was published is refused to go, also when a test is over."""
    are_there = Brief.objects.exists()
    if are_there:
        guards.drop()
    FLUSH(operations, statements)
    if are_there:
        guards.make()


def pytest_collection_modifyitems(config, items):
    """A test of one database is not there on another: skipped is what somebody has to look at."""
    others = [
        item for item in items if (only := item.get_closest_marker("only_on")) and connection.vendor not in only.args
    ]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if item not in others]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("ADE_REQUIRE_ALL") == "1":
        report.outcome = "failed"
        report.longrepr = f"ADE_REQUIRE_ALL=1, but this was skipped: {report.longrepr[2]}"
    return report


@pytest.fixture(autouse=True, scope="module")
def no_reader_is_kept():
    """What reads and embeds is kept warm for the next one; in the next file somebody may count processes."""
    yield
    children.POOL.close()


@pytest.fixture(autouse=True)
def nobody_has_asked_too_often():
    """Who asks in one test is somebody else than in the next, though they may have one id."""
    limits.BUCKETS.forget()


@pytest.fixture
def programs(transactional_db, tmp_path):
    """Other processes on the database of the test, which do not outlive it."""
    programs = Programs(tmp_path)
    yield programs
    programs.end()


@pytest.fixture
def threads(transactional_db):
    """Threads on connections of their own, which do not outlive the test."""
    threads = Threads()
    yield threads
    threads.end()


# The cast: Olga operates, Ravi reads, Zed has no access; w1 and w2 are workers.
@pytest.fixture
def workspace(db):
    return WorkspaceFactory(name="Aster")


@pytest.fixture
def olga(workspace):
    user = UserFactory(username="olga", is_staff=True)
    return MembershipFactory(workspace=workspace, user=user, role="operator").user


@pytest.fixture
def ravi(workspace):
    user = UserFactory(username="ravi", is_staff=True)
    return MembershipFactory(workspace=workspace, user=user, role="viewer").user


@pytest.fixture
def zed(db):
    return UserFactory(username="zed", is_staff=True)


@pytest.fixture
def w1():
    return W1


@pytest.fixture
def w2():
    return W2


@pytest.fixture
def document(workspace):
    return DocumentFactory(workspace=workspace, name="invoice.pdf")


@pytest.fixture
def configuration(workspace):
    return ConfigurationFactory(workspace=workspace, name="invoices")


@pytest.fixture
def build(configuration):
    return BuildFactory(configuration=configuration, status="ready")
