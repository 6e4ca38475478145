import gc
import os
import re
from pathlib import Path

import hypothesis
import pytest
from django.conf import settings
from django.db import connection

import api.signins  # noqa: F401  # connects its receivers, as the web does when it starts
from api import limits
from documents import children
from tests import database, reporting
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
from tests.mssql import elsewhere
from tests.processes import Programs
from tests.services.fixtures import azure, open_ai  # noqa: F401  # pytest finds fixtures by their names here
from tests.stepping import Threads
from work.sql import guards

TESTS = Path(__file__).parent
MARKS_OF_FILE = re.compile(r"^pytestmark = .*?(?=^\S|\Z)", re.DOTALL | re.MULTILINE)
MARK = re.compile(r"pytest\.mark\.(\w+)")


def pytest_configure():
    # The time that generating examples takes depends on other load on the machine.
    hypothesis.settings.register_profile("ade", suppress_health_check=[hypothesis.HealthCheck.too_slow], deadline=None)
    hypothesis.settings.load_profile("ade")
    # The real hasher is slow on purpose.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    database.install()


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Freeze the collected objects: they stay until the end, so the garbage collector can skip them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_report_header(config):
    return elsewhere.report() if connection.vendor == "microsoft" else []


def pytest_ignore_collect(collection_path, config):
    """Skip the import of files without a test to run: it takes a third of the time before the first test."""
    if connection.vendor == "microsoft" and elsewhere.reason(collection_path.relative_to(TESTS).as_posix()):
        return True
    is_named = any(Path(name.partition("::")[0]).absolute() == collection_path for name in config.args)
    if is_named or collection_path.suffix != ".py" or not (found := MARKS_OF_FILE.search(collection_path.read_text())):
        return None
    marks = set(MARK.findall(found[0]))
    is_long = "long" in marks or ("edge" in marks and connection.vendor != "sqlite")
    is_elsewhere = "once" in marks and connection.vendor != "sqlite"
    return is_elsewhere or (is_long and "not long" in config.option.markexpr) or None


def pytest_itemcollected(item):
    if item.get_closest_marker("edge") and connection.vendor != "sqlite":
        item.add_marker("long")


# Runs after `-m` has selected.
@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Deselect the tests for other databases, because a skip should stand out. Start the longest tests first, so that
    no process works alone at the end.
    """
    elsewhere = [item for item in items if not runs_here(item)]
    config.hook.pytest_deselected(items=elsewhere)
    items[:] = sorted((item for item in items if runs_here(item)), key=seconds_of, reverse=True)


def runs_here(item):
    if item.get_closest_marker("once"):
        return connection.vendor == "sqlite"
    # A file and a parameter may each name databases.
    return all(connection.vendor in only.args for only in item.iter_markers("only_on"))


def seconds_of(item):
    return max((mark.kwargs["seconds"] for mark in item.iter_markers("long") if "seconds" in mark.kwargs), default=0)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("ADE_REQUIRE_ALL") == "1":
        report.outcome = "failed"
        report.longrepr = f"ADE_REQUIRE_ALL=1, but this was skipped: {report.longrepr[2]}"
    if report.failed:
        report.sections += reporting.sections(item, call.when)
    return report


@pytest.fixture(autouse=True, scope="module")
def no_reader_is_kept():
    """Close the warm readers and embedders: tests in the next file may count processes."""
    yield
    children.POOL.close()


@pytest.fixture(autouse=True)
def nobody_has_asked_too_often():
    """Reset the rate limits: users of different tests may have the same ID."""
    limits.BUCKETS.forget()


@pytest.fixture
def programs(transactional_db, tmp_path):
    """Start other processes on the database of the test; they end with the test."""
    programs = Programs(tmp_path)
    yield programs
    programs.end()


@pytest.fixture
def history_is_open(db):
    """Drop the triggers that guard events, for tests of the checks that detect changed events."""
    guards.drop()
    yield
    guards.make()


@pytest.fixture
def threads(transactional_db):
    """Start threads with their own connections; they end with the test."""
    threads = Threads()
    yield threads
    threads.end()


# The cast: Olga is an operator, Ravi is a viewer, Zed has no access; w1 and w2 are workers.
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
    return DocumentFactory(workspace=workspace, name="invoice.pdf", status="processed")


@pytest.fixture
def configuration(workspace):
    return ConfigurationFactory(workspace=workspace, name="invoices")


@pytest.fixture
def build(configuration):
    return BuildFactory(configuration=configuration, status="ready")
