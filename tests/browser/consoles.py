"""Somebody in front of the console as it is served: gunicorn, streams and all."""

import json
from pathlib import Path

import axe_playwright_python
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore

from tests.browser.people import Person

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
ASK = f"() => axe.run(document, {{runOnly: {{type: 'tag', values: {json.dumps(LEVELS)}}}}})"
# A colour that fades into another one is neither of them.
FINISH = "document.getAnimations().filter(each => each instanceof CSSTransition).forEach(each => each.finish())"
# What a page that is wider than it should be has to show for it.
TOO_WIDE = """() => [...document.querySelectorAll("main *, header *")]
    .filter(each => each.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
    .filter(each => !each.closest(".scroll, .hidden, .act > form, pre, .log"))
    .slice(0, 5).map(each => `${each.tagName}.${each.getAttribute("class")}: ${each.textContent.slice(0, 40)}`)"""


def signed_in(user):
    """A session as the form makes it: the server of a test knows none of the hashers of tests."""
    session = SessionStore()
    session[SESSION_KEY], session[HASH_SESSION_KEY] = str(user.pk), user.get_session_auth_hash()
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[-1]
    session.save()
    return session.session_key


class Operator(Person):
    def __init__(self, browser, address, user, *, width=1440, scheme="light", scripts=True):
        super().__init__(browser, address, width=width, scheme=scheme, scripts=scripts)
        cookie = {"name": settings.SESSION_COOKIE_NAME, "value": signed_in(user), "url": address}
        self.context.add_cookies([cookie])

    def wrong_at(self, path, looks, allowed=range(500)):
        """What is wrong with a page: its complaints, and at each width and in each scheme what does not fit and what
        breaks a rule of accessibility. It is loaded once, for loading it again shows the same.
        """
        answer = self.go(path)
        self.page.wait_for_load_state()
        found = [f"answered {answer.status}"] if answer.status not in allowed else []
        # What nobody may do, such as adding what only a verb creates, has a page that says so; the browser complains.
        found += [] if answer.status == 403 else self.complaints
        # Through the protocol and not as an element of the page, which its policy forbids.
        self.page.evaluate(AXE)
        for width, scheme in looks:
            self.page.set_viewport_size({"width": width, "height": 900})
            self.page.emulate_media(color_scheme=scheme)
            self.page.evaluate(FINISH)
            found += [f"{width} {scheme}: {each}" for each in [*self.overflow(), *self.breaches()]]
        # What looks for breaches reads some styles by a style of its own, which the policy forbids it.
        self.complaints.clear()
        return found

    def breaches(self):
        """Of the rules of accessibility, in a line each."""
        found = self.page.evaluate(ASK)["violations"]
        return [f"{each['id']}: {node['target']} {node['failureSummary']}" for each in found for node in each["nodes"]]

    def overflow(self):
        wide = self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        return [f"too wide: {each}" for each in self.page.evaluate(TOO_WIDE)] if wide > 0 else []
