"""The contract of the storage, for a directory and for a container."""

from datetime import UTC, datetime, timedelta

import pytest
from django.core.exceptions import SuspiciousOperation
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from documents import storage
from tests.azurite import local_only, stored_files

pytestmark = [pytest.mark.once, pytest.mark.usefixtures("each_storage")]
KEY = "documents/2026/11/" + "0" * 32


def save(key=KEY, content=b"content"):
    return default_storage.save(key, ContentFile(content))


def test_a_file_lies_under_the_key_that_it_was_given():
    assert save() == KEY

    assert stored_files() == [KEY]
    assert default_storage.exists(KEY)
    assert default_storage.size(KEY) == 7


def test_a_file_is_never_written_over():
    save()

    other = save(content=b"other")

    assert other != KEY
    with default_storage.open(KEY) as file:
        assert file.read() == b"content"


@pytest.mark.parametrize("content", [b"", b"x", bytes(range(256)) * 40_000], ids=["empty", "short", "long"])
def test_what_was_stored_is_read(content):
    save(content=content)

    with default_storage.open(KEY) as file:
        assert b"".join(file.chunks()) == content
        assert file.size == len(content)
        file.seek(-1 if content else 0, 2)
        assert file.read() == content[-1:]


def test_a_file_can_be_opened_again():
    save()
    file = default_storage.open(KEY)
    assert file.read(3) == b"con"

    file.open()
    assert file.read() == b"content"
    file.close()
    with file.open() as again:
        assert again.read() == b"content"


@pytest.mark.parametrize(
    "ask", [default_storage.open, default_storage.size, default_storage.get_modified_time], ids=["open", "size", "time"]
)
def test_what_is_not_there_is_missing(ask):
    with pytest.raises(FileNotFoundError) as missing:
        ask(KEY)

    assert missing.value.strerror
    assert not default_storage.exists(KEY)


def test_what_is_not_there_can_be_deleted():
    save()
    default_storage.delete(KEY)

    default_storage.delete(KEY)

    assert stored_files() == []


def test_times_are_of_now_and_aware():
    save()

    # A container rounds to whole seconds.
    age = datetime.now(UTC) - default_storage.get_modified_time(KEY)
    assert timedelta(seconds=-1) < age < timedelta(seconds=300)


def test_folders_and_files_of_a_folder():
    for key in ("a/1", "a/2", "a/b/3", "a/c/d/4", "ab/5"):
        save(key)

    folders, names = default_storage.listdir("a")

    assert (sorted(folders), sorted(names)) == (["b", "c"], ["1", "2"])


def test_all_below_a_folder():
    keys = [save(key) for key in ("a/1", "a/b/3", "a/c/d/4")]
    save("ab/5")

    assert [key for key in storage.files.walk("a") if key] == keys
    assert list(storage.files.walk("none")) == []


@local_only
def test_a_link_that_leads_back_is_not_followed_for_ever(settings):
    save("a/b/1")
    (settings.MEDIA_ROOT / "a/b/back").symlink_to(settings.MEDIA_ROOT / "a")

    assert [key for key in storage.files.walk("a") if key] == ["a/b/1"]


def test_an_empty_folder_can_be_deleted():
    default_storage.delete(save("a/b/1"))

    default_storage.delete("a/b")

    assert default_storage.listdir("a") == ([], [])


@pytest.mark.parametrize("key", ["../outside", "documents/../../outside"])
def test_nothing_lies_outside(key):
    with pytest.raises(SuspiciousOperation):
        save(key)
    with pytest.raises(SuspiciousOperation):
        default_storage.open(key)


def test_a_rehearsal_leaves_nothing_behind():
    storage.files.prepare()
    storage.files.prepare()

    storage.check()

    assert stored_files() == []
    assert not storage.files.is_public()
