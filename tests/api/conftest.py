import io
import json

import pytest
from django.test import Client

from api import limits, tokens
from api.limits import Buckets
from documents import intake
from tests.api.calling import program, told  # noqa: F401 - fixtures
from tests.documents.samples import PDF
from tests.factories import MembershipFactory, UserFactory


def client_with(workspace, user, *scopes):
    """Return a client with a token of this user."""
    _, shown = tokens.issue(workspace, user, f"of {user}", list(scopes), actor="test")
    return Client(headers={"Authorization": f"Bearer {shown}"})


@pytest.fixture
def operator(workspace, olga):
    return client_with(workspace, olga, "read", "operate")


@pytest.fixture
def viewer(workspace, ravi):
    return client_with(workspace, ravi, "read")


@pytest.fixture
def kept_apart(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    return settings.MEDIA_ROOT


@pytest.fixture
def stored(workspace, kept_apart):
    return intake.receive(workspace, io.BytesIO(PDF), "invoice.pdf", "", "olga")


@pytest.fixture
def ada(workspace):
    user = UserFactory(username="ada", is_staff=True)
    return MembershipFactory(workspace=workspace, user=user, role="admin").user


@pytest.fixture
def issue(workspace):
    """Return a function that issues a token for a user, in Aster by default, and returns its secret."""

    def issue(user, *scopes, name="nightly", **options):
        return tokens.issue(options.pop("workspace", workspace), user, name, scopes, actor=user.username, **options)[1]

    return issue


@pytest.fixture
def ask(client):
    """Return a function that sends a request with a token."""

    def ask(shown, path, body=None, method=None, **headers):
        given = {"content_type": "application/json", "data": json.dumps(body)} if body is not None else {}
        method = method or ("POST" if body is not None else "GET")
        return client.generic(method, path, **given, headers={"Authorization": f"Bearer {shown}", **headers})

    return ask


@pytest.fixture
def still(monkeypatch):
    """Stop the clock of the rate limits."""
    monkeypatch.setattr(limits, "BUCKETS", Buckets(lambda: 1000.0))
