"""The request ID in an error response leads to its log line."""

import io
import logging

import pytest
from django.db import OperationalError
from django.test import Client
from structlog.stdlib import ProcessorFormatter

from runs.models import Run

pytestmark = [pytest.mark.edge, pytest.mark.django_db]

ID = "request-17"


@pytest.fixture
def logged():
    """Collect the log lines of the test."""
    root, stream = logging.getLogger(), io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        next(each.formatter for each in root.handlers if isinstance(each.formatter, ProcessorFormatter))
    )
    root.addHandler(handler)
    yield lambda: stream.getvalue().splitlines()
    root.removeHandler(handler)


def all_have_it(lines):
    return all(f"request_id='{ID}'" in line for line in lines)


def test_what_goes_wrong_in_a_view_is_logged_with_the_id_of_its_request(program, logged, monkeypatch):
    def fail(*_):
        raise OperationalError("the connection is lost")

    monkeypatch.setattr(type(Run.objects), "for_user", fail)

    answer = program.get("/api/v1/runs/77", headers={"X-Request-ID": ID})

    lines = logged()
    assert (answer.status_code, answer["X-Request-ID"]) == (503, ID)
    assert any("api.unavailable" in line for line in lines)
    assert all_have_it(lines)


@pytest.mark.parametrize("path", ["/api/v1/runs/77", "/api/v1/nothing", "/nothing/"])
def test_what_is_refused_is_logged_once_with_the_id_of_its_request(program, logged, path):
    program.get(path, headers={"X-Request-ID": ID})

    lines = logged()
    assert [line for line in lines if f"Not Found: {path}" in line] == lines
    assert len(lines) == 1
    assert all_have_it(lines)


def test_a_forged_request_is_logged_with_its_id(olga, logged):
    client = Client(enforce_csrf_checks=True, headers={"X-Request-ID": ID})
    client.force_login(olga)

    client.post("/configurations/1/runs")

    lines = logged()
    assert any("CSRF" in line for line in lines)
    assert all_have_it(lines)


def test_the_id_of_one_request_is_not_that_of_the_next(program, logged):
    program.get("/api/v1/runs/77", headers={"X-Request-ID": ID})
    answer = program.get("/api/v1/runs/77")

    (_, line) = logged()
    assert f"request_id='{answer['X-Request-ID']}'" in line
