import pytest

from work.processes import hardening


@pytest.fixture(autouse=True)
def well_kept(monkeypatch):
    """Let workers of these tests see a well-configured machine, whatever this one is like."""
    monkeypatch.setattr(hardening, "weaknesses", lambda: [])


@pytest.fixture
def seen_by(client):
    """Return a function that requests a page as a user."""

    def seen_by(user, path, **options):
        client.force_login(user)
        return client.get(path, **options)

    return seen_by


@pytest.fixture
def pressed_by(client):
    """Return a function that presses a button as a user; `said` of the page has its messages."""

    def pressed_by(user, path, follow=True, **sent):
        client.force_login(user)
        page = client.post(path, sent, follow=follow)
        page.said = [str(message) for message in (page.context or {}).get("messages", [])]
        return page

    return pressed_by


@pytest.fixture
def asks_at_most(client, django_assert_max_num_queries):
    """Return a function that requests a page as a user with at most this many database queries."""

    def asks_at_most(number, user, path):
        client.force_login(user)
        with django_assert_max_num_queries(number):
            page = client.get(path)
        assert page.status_code == 200
        return page

    return asks_at_most
