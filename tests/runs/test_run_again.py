import pytest

from runs import lifecycle
from runs.lifecycle import QueueFull
from runs.models import Run
from tests.factories import RunFactory, columns_of, events_of, told

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("status", Run.Status.values)
def test_again_is_a_new_run_and_leaves_the_old_one_as_it_was(status):
    old = RunFactory(status=status)
    before, history = columns_of(old), list(events_of(old).values())

    new = lifecycle.run_again(old, actor="olga")

    assert new.pk != old.pk
    assert (new.status, new.input_document_id, new.configuration_id) == (
        "queued",
        old.input_document_id,
        old.configuration_id,
    )
    assert told(new) == ["RUN_QUEUED"]
    assert events_of(new).get().actor == "olga"
    assert columns_of(old) == before
    assert list(events_of(old).values()) == history


def test_again_takes_the_configuration_as_it_is_now():
    old = RunFactory(status="succeeded")
    old.configuration.files = {"main.py": "def main(document):\n    return {'new': True}\n"}
    old.configuration.save()

    new = lifecycle.run_again(old, actor="olga")

    assert new.build_id != old.build_id
    assert new.build.snapshot["files"] == old.configuration.files


def test_again_on_a_full_queue_is_refused(settings):
    settings.ADE_QUEUE_SIZE = 1
    old = RunFactory(status="failed")
    RunFactory()

    with pytest.raises(QueueFull):
        lifecycle.run_again(old, actor="olga")

    assert Run.objects.count() == 2
