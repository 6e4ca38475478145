"""Callers of the routes for the whole installation: people with a session, and programs with a token."""

import json

from django.contrib.auth.models import Permission
from django.test import Client

from api import tokens
from tests.factories import MembershipFactory, UserFactory

V1 = "/api/v1"
JSON = "application/json"


class Program:
    """A client with a token of one user for one workspace."""

    def __init__(self, user, workspace, *scopes, name="program"):
        self.token, shown = tokens.issue(workspace, user, name, scopes, actor="root")
        self.client = Client(headers={"Authorization": f"Bearer {shown}"})

    def get(self, path, **parameters):
        return self.client.get(f"{V1}{path}", parameters)

    def post(self, path, body=None, **options):
        return self.ask("post", path, body, **options)

    def ask(self, method, path, body=None, **options):
        data = b"" if body is None else json.dumps(body).encode()
        return self.client.generic(method.upper(), f"{V1}{path}", data, JSON if data else "", **options)


class Person(Program):
    """A client with a signed-in session."""

    def __init__(self, user):
        self.client = Client()
        self.client.force_login(user)


def editor_of(workspace):
    """Return a user with the Django permissions to change jobs and to add, change and delete feeds."""
    user = UserFactory(username="edda")
    MembershipFactory(workspace=workspace, user=user, role="viewer")
    names = ["change_scheduledjob", "add_feedsource", "change_feedsource", "delete_feedsource"]
    user.user_permissions.set(Permission.objects.filter(codename__in=names))
    return user


def problem_of(answer):
    said = answer.json()
    assert set(said) == {"code", "message", "details"}
    return answer.status_code, said["code"]
