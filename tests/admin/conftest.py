import pytest


@pytest.fixture
def sign_in(client):
    def sign_in(user):
        client.force_login(user)
        return client

    return sign_in


@pytest.fixture
def said():
    """What a page that was answered with tells the person."""

    def said(page):
        return [str(message) for message in page.context["messages"]]

    return said
