import pytest
from django.test import Client

from api import tokens


class Program:
    """A client of the API that sends a token."""

    def __init__(self, shown):
        self.shown = shown

    def __getattr__(self, method):
        def call(path, body=None, *, headers=None, **others):
            sent = {"Authorization": f"Bearer {self.shown}"} | (headers or {})
            if body is not None:
                others = {"data": body, "content_type": "application/json"} | others
            return getattr(Client(), method)(path, headers=sent, **others)

        return call


@pytest.fixture
def program(workspace, olga):
    """A client with a token of Olga that has all her scopes."""
    return Program(tokens.issue(workspace, olga, "program", ["read", "operate"], actor="olga")[1])


@pytest.fixture
def told():
    """Return the status and the error code of an answer, and check that an error has the common shape."""

    def told(answer):
        if answer.status_code < 400:
            return answer.status_code, None
        problem = answer.json()
        assert set(problem) == {"code", "message", "details"}
        assert answer["Content-Type"] == "application/json"
        assert answer["X-Request-ID"]
        return answer.status_code, problem["code"]

    return told
