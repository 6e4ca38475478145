import pytest
from django.db import transaction

from builds import fingerprint, lifecycle
from builds.lifecycle import NEGATIVE_CACHE_SECONDS, get_or_create_build
from builds.models import Build, Configuration
from tests.factories import BuildFactory, ConfigurationFactory, age, columns_of, events_of, told

pytestmark = pytest.mark.django_db


def test_the_first_time_a_build_is_queued(configuration):
    chosen = get_or_create_build(configuration, actor="olga")

    build = Build.objects.get()
    assert (chosen.id, chosen.status) == (build.pk, "queued")
    assert (build.configuration, build.status, build.losses) == (configuration, "queued", 0)
    event = events_of(build).get()
    assert (event.kind, event.to_status, event.actor) == ("BUILD_QUEUED", "queued", "olga")


@pytest.mark.parametrize("status", Build.Status.values)
def test_the_same_configuration_has_one_build(configuration, status):
    build = BuildFactory(configuration=configuration, status=status)
    before = columns_of(build)

    chosen = get_or_create_build(configuration, actor="olga")

    assert (chosen.id, chosen.status) == (build.pk, status)
    assert columns_of(build) == before
    assert Build.objects.count() == 1


@pytest.mark.parametrize(
    "edit",
    [
        {"files": {"main.py": "def main(document):\n    return {'edited': True}\n"}},
        {"files": {"other.py": "def main(document):\n    return {}\n"}},
        {"requirements": "pypdf==5.0"},
        {"entry_point": "other"},
    ],
    ids=["text", "path", "requirements", "entry point"],
)
def test_an_edited_configuration_has_another_build_and_keeps_the_earlier_one(configuration, edit):
    first = get_or_create_build(configuration, actor="olga")
    kept = Build.objects.values().get(pk=first.id)

    for name, value in edit.items():
        setattr(configuration, name, value)
    configuration.save()
    second = get_or_create_build(configuration, actor="olga")

    assert second.id != first.id
    assert Build.objects.values().get(pk=first.id) == kept


def test_a_configuration_that_is_edited_back_has_its_earlier_build(configuration):
    files = configuration.files
    first = get_or_create_build(configuration, actor="olga")
    configuration.files = {"main.py": "edited"}
    configuration.save()
    get_or_create_build(configuration, actor="olga")

    configuration.files = files
    configuration.save()

    assert get_or_create_build(configuration, actor="olga").id == first.id


def test_a_new_name_is_no_new_build(configuration):
    first = get_or_create_build(configuration, actor="olga")
    configuration.name = "bills"
    configuration.save()

    assert get_or_create_build(configuration, actor="olga").id == first.id


def test_the_order_in_which_files_were_added_is_no_difference(workspace):
    files = {"a.py": "1", "b.py": "2"}
    one = ConfigurationFactory(workspace=workspace, files=files)
    other = ConfigurationFactory(workspace=workspace, files=dict(reversed(files.items())))

    assert one.contents_sha256 == other.contents_sha256


def test_builds_of_equal_configurations_are_two(configuration):
    twin = ConfigurationFactory(workspace=configuration.workspace, files=configuration.files)

    ids = {get_or_create_build(each, actor="olga").id for each in (configuration, twin)}

    assert len(ids) == 2


def test_the_snapshot_of_a_build_is_what_its_fingerprint_was_taken_from(configuration):
    chosen = get_or_create_build(configuration, actor="olga")
    configuration.files = {"main.py": "edited meanwhile"}
    configuration.save()

    build = Build.objects.get(pk=chosen.id)
    assert fingerprint.of_build(fingerprint.of_contents(build.snapshot)) == build.fingerprint


def test_an_edit_that_was_not_saved_does_not_get_into_the_build(configuration):
    saved = configuration.snapshot()
    configuration.files = {"main.py": "not saved"}

    chosen = get_or_create_build(configuration, actor="olga")

    build = Build.objects.get(pk=chosen.id)
    assert build.snapshot == saved
    assert fingerprint.of_build(fingerprint.of_contents(build.snapshot)) == build.fingerprint


def is_hashed_right():
    stored = Configuration.objects.get()
    return stored.contents_sha256 == fingerprint.of_contents(stored.snapshot())


@pytest.mark.parametrize("fields", [None, ["files"], ["files", "name"], ["requirements"], ["name"]], ids=str)
def test_two_who_edit_a_configuration_at_once_leave_a_right_hash(configuration, fields):
    other = Configuration.objects.get()
    other.files, other.entry_point = {"main.py": "edited by the other"}, "other"
    other.save()

    configuration.files, configuration.name = {"main.py": "edited"}, "bills"
    configuration.save(update_fields=fields)

    assert is_hashed_right()


def test_the_contents_of_a_configuration_are_not_updated_past_their_hash(configuration):
    with pytest.raises(TypeError):
        Configuration.objects.update(files={"main.py": "edited"})
    with pytest.raises(TypeError), transaction.atomic():
        Configuration.objects.bulk_update([configuration], ["requirements"])

    assert Configuration.objects.update(name="bills") == 1
    assert is_hashed_right()


@pytest.mark.parametrize("change", ["ENGINE_VERSION", "PYTHON_VERSION", "PLATFORM"])
def test_another_engine_python_or_platform_is_another_build(configuration, change, monkeypatch):
    first = get_or_create_build(configuration, actor="olga")

    monkeypatch.setattr(fingerprint, change, "another")

    assert get_or_create_build(configuration, actor="olga").id != first.id


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_a_failure_answers_for_its_fingerprint_for_a_while(configuration, status):
    build = age(BuildFactory(configuration=configuration, status=status), NEGATIVE_CACHE_SECONDS - 5)

    chosen = get_or_create_build(configuration, actor="olga")

    assert (chosen.id, chosen.status) == (build.pk, status)


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_a_failure_that_is_forgotten_is_tried_again(configuration, status):
    build = age(BuildFactory(configuration=configuration, status=status), NEGATIVE_CACHE_SECONDS + 1)

    chosen = get_or_create_build(configuration, actor="olga")

    assert (chosen.id, chosen.status) == (build.pk, "queued")
    build.refresh_from_db()
    assert (build.status, build.failure_type, build.finished_at) == ("queued", "", None)
    assert told(build)[-1] == "BUILD_QUEUED_AGAIN"
    assert events_of(build).last().actor == "olga"


def test_a_ready_build_is_never_forgotten(configuration):
    build = age(BuildFactory(configuration=configuration, status="ready"), 86400 * 365)

    assert get_or_create_build(configuration, actor="olga").status == "ready"
    assert told(build)[-1] == "BUILD_READY"


def test_whoever_comes_second_takes_the_build_of_the_first(configuration, monkeypatch):
    first = BuildFactory(configuration=configuration)
    find, looks = lifecycle._find, []

    def blind_at_first(*key):
        looks.append(key)
        return find(*key) if len(looks) > 1 else None

    monkeypatch.setattr(lifecycle, "_find", blind_at_first)

    assert get_or_create_build(configuration, actor="olga").id == first.pk
    assert len(looks) == 2
    assert Build.objects.count() == 1
