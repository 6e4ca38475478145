import pytest


@pytest.fixture
def seen_by(client):
    """What somebody gets who asks for a page."""

    def seen_by(user, path, **options):
        client.force_login(user)
        return client.get(path, **options)

    return seen_by


@pytest.fixture
def pressed_by(client):
    """What somebody gets who presses a button; `said` has what the page then tells them."""

    def pressed_by(user, path, follow=True, **sent):
        client.force_login(user)
        page = client.post(path, sent, follow=follow)
        page.said = [str(message) for message in (page.context or {}).get("messages", [])]
        return page

    return pressed_by


@pytest.fixture
def asks_at_most(client, django_assert_max_num_queries):
    """Somebody gets a page, and so many questions at most are asked of the database."""

    def asks_at_most(number, user, path):
        client.force_login(user)
        with django_assert_max_num_queries(number):
            page = client.get(path)
        assert page.status_code == 200
        return page

    return asks_at_most
