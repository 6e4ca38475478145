import os
from threading import Barrier

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage, storages

from documents import outputs
from tests.azurite import local_only
from tests.documents.processing import store_output

pytestmark = pytest.mark.usefixtures("each_storage")

PATH = outputs.path_of(7, "extract", 3)
VALUE = {"pages": [{"number": 1, "text": "Grüße\u2028 und\nZeilen"}], "n": 1.5}


def spoil(path, change):
    with default_storage.open(path) as file:
        data = file.read()
    default_storage.delete(path)
    default_storage.save(path, ContentFile(change(data)))


def test_the_place_follows_from_the_job_the_stage_and_the_segment():
    assert outputs.path_of(7, "extract", 3) == "processing/7/extract-v3-00003.json"
    assert outputs.path_of(7, "embed") == "processing/7/embed-v3-00000.json"


def test_what_was_stored_is_loaded():
    store_output(PATH, VALUE)

    assert outputs.load(PATH) == VALUE


def test_what_is_not_there_is_none():
    assert outputs.load(PATH) is None


@pytest.mark.parametrize(
    "change",
    [lambda data: data[:-1], lambda data: data + b" ", lambda data: b"", lambda data: data.replace(b"1.5", b"2.5")],
    ids=["truncated", "longer", "empty", "changed"],
)
def test_what_is_damaged_is_as_if_it_were_not_there(change):
    store_output(PATH, VALUE)
    spoil(PATH, change)

    assert outputs.load(PATH) is None
    store_output(PATH, VALUE)
    assert outputs.load(PATH) == VALUE


def test_what_is_whole_stays_for_somebody_may_have_gone_on_from_it():
    store_output(PATH, VALUE)
    store_output(PATH, {"n": 2})

    assert outputs.load(PATH) == VALUE
    assert default_storage.listdir("processing/7")[1] == ["extract-v3-00003.json"]


@pytest.mark.parametrize("moment", ["delete", "get_available_name"])
def test_who_comes_second_while_another_writes_leaves_nothing_of_its_own(monkeypatch, moment):
    kind = type(storages["default"])
    usual = getattr(kind, moment)

    def and_written_by_another(storage, path, *args, **options):
        found = usual(storage, path, *args, **options)
        if path == PATH:
            monkeypatch.setattr(kind, moment, usual)
            store_output(PATH, VALUE)
        return found

    monkeypatch.setattr(kind, moment, and_written_by_another)

    store_output(PATH, VALUE)

    assert outputs.load(PATH) == VALUE
    assert default_storage.listdir("processing/7")[1] == ["extract-v3-00003.json"]


@local_only
def test_what_another_takes_away_half_written_is_written_again(monkeypatch):
    """A second writer finds an incomplete file and removes it to write it again."""
    change_mode = os.chmod

    def taken_away(path, *rest):
        monkeypatch.setattr(os, "chmod", change_mode)
        os.unlink(path)
        change_mode(path, *rest)

    monkeypatch.setattr(os, "chmod", taken_away)

    store_output(PATH, VALUE)

    assert outputs.load(PATH) == VALUE


def test_two_who_write_the_same_at_once_leave_one(threads):
    barrier = Barrier(2)

    def write():
        for _ in range(10):
            barrier.wait(300)
            store_output(PATH, VALUE)

    for each in [threads.start(write) for _ in range(2)]:
        each.answer()

    assert default_storage.listdir("processing/7")[1] == ["extract-v3-00003.json"]
    assert outputs.load(PATH) == VALUE


def test_those_of_a_job_are_discarded_together():
    for segment in range(3):
        store_output(outputs.path_of(7, "extract", segment), VALUE)
    store_output(outputs.path_of(8, "extract"), VALUE)

    outputs.discard(7)
    outputs.discard(9)

    assert outputs.load(PATH.replace("3", "0")) is None
    assert outputs.load(outputs.path_of(8, "extract")) == VALUE
