import shutil

import pytest
from playwright.sync_api import sync_playwright

from tests.api.serving import served
from tests.browser.consoles import Operator
from tests.browser.people import Person
from tests.factories import DocumentFactory, RunFactory

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def chromium(django_db_setup):
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("chromium is not installed")
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        # Playwright keeps an event loop running in this thread, so Django takes all database calls for asynchronous.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def sign_in(chromium, live_server):
    people = []

    def sign_in(user):
        people.append(Person(chromium, live_server.url))
        return people[-1].sign_in(user.username)

    yield sign_in
    for person in people:
        person.context.close()


@pytest.fixture
def look(chromium, programs):
    """Return a function that opens a browser session for a user; all sessions of a test use one server."""
    address, people = served(programs), []

    def look(user, *, as_a=Operator, **options):
        people.append(as_a(chromium, address, user, **options))
        return people[-1]

    yield look
    for person in people:
        person.context.close()


@pytest.fixture
def run_of(configuration, build, workspace):
    def run_of(name="invoice.pdf", **values):
        document = DocumentFactory(workspace=workspace, name=name)
        return RunFactory(configuration=configuration, build=build, input_document=document, **values)

    return run_of
