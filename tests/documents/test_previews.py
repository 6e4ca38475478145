"""Page images: rendered in a child process within limits, and cached for a while."""

import os
import threading
import time
from contextlib import suppress

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from documents import periodic, previews, retention
from documents.models import Document
from documents.previews import NoSuchPage, PreviewFailed
from tests.extractor.pdfs import bomb, by_hand, long_pdf, says, stream, with_content
from tests.factories import DocumentFactory, age, write
from work.processes.supervise import CannotStart

pytestmark = pytest.mark.django_db
PICTURE = b"\x89PNG"
# For a slow or busy machine: ten seconds for the child, and time to start and end it.
SECONDS = 20


@pytest.fixture(autouse=True)
def folder(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    settings.VAR_DIR = tmp_path / "var"
    settings.VAR_DIR.mkdir()
    return settings.VAR_DIR / "previews"


@pytest.fixture
def stored(workspace):
    def stored(data=b"%PDF", **columns):
        key = default_storage.save("documents/2026/01/" + "0" * 32, ContentFile(data))
        return DocumentFactory(workspace=workspace, file=key, **columns)

    return stored


@pytest.fixture
def drawn(monkeypatch):
    pages = []
    monkeypatch.setattr(previews, "_draw", lambda document, number: pages.append(number) or PICTURE)
    return pages


def files_in(folder):
    return sorted(each.name for each in folder.iterdir())


def test_a_page_is_drawn_once(stored, drawn, folder):
    document = stored()

    assert [previews.picture(document, 1) for _ in range(3)] == [PICTURE] * 3

    assert drawn == [1]
    assert files_in(folder) == [f"{document.sha256}-1.png"]
    assert folder.stat().st_mode & 0o077 == 0


def test_many_who_want_the_same_have_it_drawn_by_as_many_as_may(stored, monkeypatch):
    document, drawing, pages = stored(), threading.Event(), []

    def draw(document, number):
        pages.append(number)
        drawing.wait(300)
        return PICTURE

    monkeypatch.setattr(previews, "_draw", draw)
    threads = [threading.Thread(target=previews.picture, args=[document, 1]) for _ in range(8)]
    for thread in threads:
        thread.start()
    drawing.set()
    for thread in threads:
        thread.join()

    assert len(pages) <= previews.AT_ONCE


def test_what_is_too_much_goes_the_oldest_first(stored, drawn, folder, monkeypatch):
    monkeypatch.setattr(previews, "MOST_FILES", 10)
    document = stored()
    for number in range(1, 11):
        previews.picture(document, number)
        os.utime(folder / f"{document.sha256}-{number}.png", (time.time() - 100 + number,) * 2)

    previews.picture(document, 11)

    assert files_in(folder) == sorted(f"{document.sha256}-{number}.png" for number in range(3, 12))


def test_what_is_too_large_goes_too(stored, drawn, folder, monkeypatch):
    monkeypatch.setattr(previews, "MOST_BYTES", 3 * len(PICTURE))
    document = stored()

    for number in range(1, 8):
        previews.picture(document, number)

    assert len(files_in(folder)) <= 3


def test_what_is_old_goes_and_what_was_left_half_written(stored, drawn, folder):
    document = stored()
    previews.picture(document, 1)
    previews.picture(document, 2)
    for name in ("x.part", f"{document.sha256}-1.png"):
        (folder / name).touch()
        os.utime(folder / name, (time.time() - previews.KEPT_SECONDS - 1,) * 2)

    periodic.tidy()

    assert files_in(folder) == [f"{document.sha256}-2.png"]


def test_of_a_document_that_is_purged_nothing_is_kept(stored, drawn, folder, workspace):
    write(workspace, document_retention_days=1)
    document, other = stored(sha256="a" * 64, status="processed"), stored(sha256="b" * 64)
    for each in (document, other):
        previews.picture(each, 1)
    age(document, 2 * 24 * 3600)

    assert list(retention.purge(workspace, actor="test"))

    assert files_in(folder) == [f"{'b' * 64}-1.png"]
    assert not previews.can_draw(Document.objects.get(pk=document.pk))


def test_a_picture_that_cannot_be_kept_is_shown_all_the_same(stored, drawn, folder, monkeypatch):
    def refuse(*paths):
        raise OSError("no space left")

    document = stored()
    monkeypatch.setattr(previews.os, "replace", refuse)

    assert previews.picture(document, 1) == PICTURE

    assert files_in(folder) == []


def test_what_cannot_be_started_is_told_and_tried_again(stored, monkeypatch):
    def refuse(document, number):
        raise CannotStart("no memory")

    monkeypatch.setattr(previews, "_draw", refuse)
    document = stored()

    with pytest.raises(PreviewFailed, match="cannot be fetched or drawn at the moment"):
        previews.picture(document, 1)

    assert previews.failure_reason(document, 1) == ""


def test_what_lies_elsewhere_is_fetched(stored, tmp_path, monkeypatch):
    monkeypatch.setattr(default_storage.__class__, "path", _no_path)
    document = DocumentFactory(file="documents/2026/01/" + "1" * 32)
    monkeypatch.setattr(default_storage.__class__, "open", lambda self, name: ContentFile(b"%PDF elsewhere"))

    assert previews._local_file(document, tmp_path).read_bytes() == b"%PDF elsewhere"


def _no_path(self, name):
    raise NotImplementedError


# With the real renderer


def test_each_page_of_a_document_is_drawn_for_a_screen(stored, tmp_path):
    document = stored(long_pdf(tmp_path / "three.pdf", 3).read_bytes())

    first, third = previews.picture(document, 1), previews.picture(document, 3)

    assert first != third
    assert size_of(first) == (1000, 1415)
    with pytest.raises(NoSuchPage):
        previews.picture(document, 4)
    # A request for a page that does not exist leaves nothing in the cache.
    assert previews.failure_reason(document, 4) == ""


# A form that draws itself.
FORM = stream("/X Do", "/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X 6 0 R>>>>")
FORMS = "/MediaBox[0 0 595 842]/Resources<</XObject<</X 6 0 R>>>>"
HOSTILE = {
    "nothing": b"",
    "no pdf": b"<html>%PDF-1.7</html>",
    "no pages": by_hand(["<</Type/Catalog>>"]),
    "bomb": with_content(bomb(b"0 0 1 1 re f\n", 3 << 30)),
    "nested": with_content("[" * 200_000 + "]" * 200_000),
    "draws itself": with_content(stream("/X Do"), page=FORMS, more=[FORM]),
    "an endless page": with_content(stream("0 0 1 1 re f\n" * 2_000_000)),
    "as large as a country": with_content(says("Hello"), page="/MediaBox[0 0 1e9 1e9]"),
    "as thin as nothing": with_content(says("Hello"), page="/MediaBox[0 0 .001 1e6]"),
    "without size": with_content(says("Hello"), page="/MediaBox[0 0 0 0]"),
}
QUICK = ["nothing", "no pdf", "as large as a country", "as thin as nothing", "without size"]


def ends_well(document):
    began = time.monotonic()
    with suppress(PreviewFailed):
        width, height = size_of(previews.picture(document, 1))
        assert width * height <= 2_100_000
    assert time.monotonic() - began < SECONDS


@pytest.mark.parametrize("kind", QUICK)
def test_a_hostile_page_is_drawn_or_refused_in_time(stored, kind):
    ends_well(stored(HOSTILE[kind]))


@pytest.mark.long
@pytest.mark.parametrize("kind", sorted(HOSTILE.keys() - QUICK))
def test_a_page_that_would_take_all_there_is_ends_in_time(stored, kind):
    ends_well(stored(HOSTILE[kind]))


def test_what_cannot_be_drawn_is_not_tried_again(stored, monkeypatch):
    document = stored(b"no PDF at all")
    with pytest.raises(PreviewFailed):
        previews.picture(document, 1)
    monkeypatch.setattr(previews, "_draw", None)

    with pytest.raises(PreviewFailed, match="its header is missing"):
        previews.picture(document, 1)

    assert "its header is missing" in previews.failure_reason(document, 1)


def size_of(picture):
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    return int.from_bytes(picture[16:20]), int.from_bytes(picture[20:24])
