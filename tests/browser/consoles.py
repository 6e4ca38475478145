"""A person who uses the console as it is deployed: with gunicorn and streams."""

import json
from pathlib import Path

import axe_playwright_python
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore

from tests.browser.people import Person

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
# Report details of violations only: describing the passed rules takes longer than the check.
OPTIONS = {"runOnly": {"type": "tag", "values": LEVELS}, "resultTypes": ["violations"]}
ASK = f"() => axe.run(document, {json.dumps(OPTIONS)})"
# Finish transitions: a colour in the middle of one has neither the old nor the new contrast.
FINISH = "document.getAnimations().filter(each => each instanceof CSSTransition).forEach(each => each.finish())"
# The elements that make a page too wide.
TOO_WIDE = """() => [...document.querySelectorAll("main *, header *")]
    .filter(each => each.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
    .filter(each => !each.closest(".scroll, .hidden, .act > form, pre, .log"))
    .slice(0, 5).map(each => `${each.tagName}.${each.getAttribute("class")}: ${each.textContent.slice(0, 40)}`)"""

# IDs, numbers and times that break across two lines. Longer strings come from users and may break.
TORN = """() => {
    const found = [], texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let text; (text = texts.nextNode());) {
        if (text.parentElement.closest("pre, .log, .hidden, textarea")) continue;
        for (const match of text.data.matchAll(/(?<![\\w.-])\\d[\\d,.:]{0,18}\\d(?![\\w-])/g)) {
            const range = document.createRange();
            range.setStart(text, match.index);
            range.setEnd(text, match.index + match[0].length);
            const lines = new Set([...range.getClientRects()].map(each => Math.round(each.top)));
            if (lines.size > 1) found.push(`${text.parentElement.outerHTML.slice(0, 80)}: ${match[0]}`);
        }
    }
    return found.slice(0, 5);
}"""


def signed_in(user):
    """Create a session as the sign-in form does: the server does not know the password hashers of the tests."""
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
        """Return the problems of a page: console messages, and for each width and colour scheme what overflows and
        which accessibility rules it breaks. The page is loaded only once.
        """
        answer = self.go(path)
        self.page.wait_for_load_state()
        found = [f"answered {answer.status}"] if answer.status not in allowed else []
        # A forbidden page, such as adding rows that only a verb creates, answers with an explanation; the browser logs
        # an error.
        found += [] if answer.status == 403 else self.complaints
        # Through the DevTools protocol: the content security policy forbids an inline script.
        self.page.evaluate(AXE)
        for width, scheme in looks:
            self.page.set_viewport_size({"width": width, "height": 900})
            self.page.emulate_media(color_scheme=scheme)
            self.page.evaluate(FINISH)
            found += [f"{width} {scheme}: {each}" for each in [*self.overflow(), *self.torn(), *self.breaches()]]
        # axe reads some styles with a style element of its own, which the policy blocks.
        self.complaints.clear()
        return found

    def breaches(self):
        """Return the accessibility violations, one line each."""
        found = self.page.evaluate(ASK)["violations"]
        return [f"{each['id']}: {node['target']} {node['failureSummary']}" for each in found for node in each["nodes"]]

    def overflow(self):
        wide = self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        return [f"too wide: {each}" for each in self.page.evaluate(TOO_WIDE)] if wide > 0 else []

    def torn(self):
        """Return the numbers that break across lines."""
        return [f"torn: {each}" for each in self.page.evaluate(TORN)]
