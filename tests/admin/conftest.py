import pytest
from django.urls import reverse


@pytest.fixture
def sign_in(client):
    def sign_in(user):
        client.force_login(user)
        return client

    return sign_in


@pytest.fixture
def said():
    """Return the messages of a page."""

    def said(page):
        return [str(message) for message in page.context["messages"]]

    return said


@pytest.fixture
def rehearse(client):
    """Select rows and an action in the list; return the preview page of the action."""

    def rehearse(user, verb, *rows, query="", **more):
        client.force_login(user)
        url = reverse(f"admin:{rows[0]._meta.app_label}_{rows[0]._meta.model_name}_changelist")
        chosen = {"action": verb, "_selected_action": [row.pk for row in rows], **more}
        return client.post(url + query, chosen, follow=True)

    return rehearse


@pytest.fixture
def confirm(client):
    """Submit the form of a preview page, or of a page that offers to continue."""

    def confirm(page, **more):
        hidden = {
            name: page.context["form"][name]
            for name in ("until", "once", "after", "so_far", "rehearsed")
            if name in page.context["form"]
        }
        form = page.context["form"]
        chosen = {"action": page.context["verb"], "_selected_action": form["chosen"], "select_across": form["across"]}
        return client.post(form["url"], {**chosen, **hidden, **more}, follow=True)

    return confirm


@pytest.fixture
def act(rehearse, confirm, said):
    """Select rows and an action in the list and confirm it; return the messages of the resulting page."""

    def act(user, verb, *rows):
        page = rehearse(user, verb, *rows)
        return said(confirm(page) if "once" in page.context.get("form", {}) else page)

    return act


@pytest.fixture
def press(client):
    def press(user, verb, row, **options):
        client.force_login(user)
        name = f"{row._meta.app_label}/{row._meta.model_name}"
        return client.post(f"/admin/{name}/{row.pk}/{verb}/", **options)

    return press
