"""A timestamp has the same text in every response: programs compare them."""

import json

import pytest

from api.streams.sse import Item
from tests.factories import ArtifactFactory, RunFactory, events_of
from work import lifecycle
from work.tail import EventRow
from work.work_types import work_type_named

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


def of_list(viewer, path):
    return viewer.get(f"/api/v1/{path}").json()["items"][0]


def test_of_what_has_a_tag_it_is_that_of_the_list(viewer, workspace):
    run = RunFactory(configuration__workspace=workspace, input_document__workspace=workspace, status="running")
    ArtifactFactory(run=run)

    for listed, shown, name in [
        ("documents", f"documents/{run.input_document_id}", "created_at"),
        ("configurations", f"configurations/{run.configuration_id}", "created_at"),
        (f"runs/{run.pk}/artifacts", f"artifacts/{run.artifacts.get().pk}", "created_at"),
    ]:
        moment = of_list(viewer, listed)[name]
        assert len(moment) == len("2026-01-01T00:00:00.000000Z")
        assert viewer.get(f"/api/v1/{shown}").json()[name] == moment


def test_of_an_event_it_is_the_same_in_lists_logs_and_streams(viewer, workspace):
    run = RunFactory(configuration__workspace=workspace, input_document__workspace=workspace)
    lifecycle.record(work_type_named("run").states, run.pk, "LOG", message="hello")
    event = events_of(run).last()

    log = viewer.get(f"/api/v1/runs/{run.pk}/log?format=json").content
    streamed = Item(EventRow(*(getattr(event, name) for name in EventRow._fields)), "").data

    moment = of_list(viewer, f"runs/{run.pk}/events?order=-id")["at"]
    assert len(moment) == len("2026-01-01T00:00:00.000000Z")
    assert json.loads(log)["at"] == json.loads(streamed.removeprefix("data: "))["at"] == moment
