import pytest
from django.db import IntegrityError, transaction

from runs import lifecycle
from runs.models import Artifact
from tests.factories import RunFactory, and_told, claim_of, columns_of, events_of, told

pytestmark = pytest.mark.django_db


@pytest.fixture
def run():
    return RunFactory(status="running")


@pytest.fixture
def values():
    return {
        "name": "result.json",
        "file": "artifacts/1/1/result.json",
        "size_bytes": 2,
        "sha256": "0" * 64,
        "content_type": "application/json",
    }


def test_an_artifact_is_published_with_its_event(run, values):
    assert lifecycle.publish_artifact(claim_of(run), values)

    artifact = Artifact.objects.get()
    assert (artifact.run, artifact.name, artifact.file) == (run, "result.json", "artifacts/1/1/result.json")
    event = events_of(run).last()
    assert (event.kind, event.message, event.claim_token) == ("ARTIFACT_PUBLISHED", "result.json", 1)


def test_publishing_is_no_move(run, values):
    before = columns_of(run)

    lifecycle.publish_artifact(claim_of(run), values)

    assert columns_of(run) == and_told(before, run)


@pytest.mark.parametrize("stale", [{"owner": "w2@here:102:boot2"}, {"token": 2}])
def test_a_claim_that_is_gone_publishes_nothing(run, values, stale):
    assert not lifecycle.publish_artifact(claim_of(run, **stale), values)

    assert not Artifact.objects.exists()
    assert told(run)[-1] == "LATE_WRITE_REFUSED"


@pytest.mark.parametrize("status", ["succeeded", "failed", "cancelled"])
def test_a_run_that_has_ended_takes_no_more_artifacts(status, values):
    run = RunFactory(status=status)

    assert not lifecycle.publish_artifact(claim_of(run, owner="w1@here:101:boot1"), values)

    assert not Artifact.objects.exists()


def test_the_second_artifact_of_a_name_leaves_no_event(run, values):
    claim = claim_of(run)
    lifecycle.publish_artifact(claim, values)
    before = columns_of(run)

    with pytest.raises(IntegrityError), transaction.atomic():
        lifecycle.publish_artifact(claim, values)

    assert columns_of(run) == before
    assert told(run).count("ARTIFACT_PUBLISHED") == 1
