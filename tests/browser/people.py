"""The person who uses the pages in a browser test."""

# Generous, because the machine is shared.
TIMEOUT_MS = 300_000


class Person:
    """A user with a browser context of their own; `complaints` collects console errors and server errors."""

    def __init__(self, browser, address, *, width=1400, scheme="light", scripts=True):
        self.address = address
        self.context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=scripts
        )
        self.context.set_default_timeout(TIMEOUT_MS)
        self.page = self.context.new_page()
        self.complaints = []
        # Violations of the content security policy appear as console errors too.
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
