import shutil

import pytest
from playwright.sync_api import sync_playwright

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
TIMEOUT_MS = 15_000


@pytest.fixture(scope="module")
def chromium(django_db_setup):
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("chromium is not installed")
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        # Playwright keeps an event loop in this thread, and Django takes all that it does there for asynchronous.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


class Person:
    """Somebody in front of a browser of their own; `complaints` is what it has to say of the pages."""

    def __init__(self, browser, address):
        self.address = address
        self.context = browser.new_context(viewport={"width": 1400, "height": 900})
        self.context.set_default_timeout(TIMEOUT_MS)
        self.page = self.context.new_page()
        self.complaints = []
        # Violations of the content security policy come as console errors too.
        self.page.on("console", lambda said: said.type in ("error", "warning") and self.complaints.append(said.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("response", lambda answer: answer.status >= 500 and self.complaints.append(answer.url))

    def sign_in(self, username):
        self.go("/admin/")
        self.page.get_by_label("Username").fill(username)
        self.page.get_by_label("Password").fill("secret")
        self.press(self.page.get_by_role("button", name="Log in"))
        return self

    def press(self, there):
        with self.page.expect_navigation():
            there.click()

    def go(self, path):
        return self.page.goto(f"{self.address}{path}")

    def messages(self):
        return self.page.locator("ul.messagelist li").all_inner_texts()


@pytest.fixture
def sign_in(chromium, live_server):
    people = []

    def sign_in(user):
        people.append(Person(chromium, live_server.url))
        return people[-1].sign_in(user.username)

    yield sign_in
    for person in people:
        person.context.close()
