"""The words of pages with their places: stored by processing, replaced by it, and removed when nothing needs them."""

import os
import time

import pytest
from django.core.files.storage import default_storage
from django.db import IntegrityError, transaction

from documents import lifecycle, periodic, words
from documents.models import Document
from tests.documents.processing import add, pdf, process
from tests.factories import JobFactory, write

DAY = 24 * 3600
PAGES = [{"number": 1, "words": [["Rechnung", 0.1, 0.1, 0.2, 0.12], ["4711", 0.22, 0.1, 0.3, 0.12]]}]


def make_old(job_id):
    past = time.time() - DAY - 60
    os.utime(default_storage.path(words.key_of(job_id)), (past, past))


@pytest.mark.django_db
def test_what_is_stored_is_loaded_and_a_damaged_file_counts_as_missing(places):
    words.store(7, PAGES)
    words.store(7, PAGES)
    words.store(8, [])

    assert (words.load(7), words.load(8), words.load(None)) == (PAGES, [], [])

    with open(default_storage.path(words.key_of(7)), "r+b") as file:
        file.seek(80)
        file.write(b"?")
    assert words.load(7) == []
    words.discard(7)
    words.discard(7)
    assert not default_storage.exists(words.key_of(7))


def test_processing_stores_the_words_and_a_further_one_replaces_them(slot, monkeypatch):
    document = add(pdf("Invoice no. 4711", "Total 12.00 EUR"))
    process(slot)
    first = Document.objects.get().words_job

    pages = words.load(first)
    assert [page["number"] for page in pages] == [1, 2]
    assert [word[0] for page in pages for word in page["words"]] == ["Invoice", "no.", "4711", "Total", "12.00", "EUR"]

    lifecycle.reprocess(Document.objects.get(), actor="olga")
    process(slot)
    second = Document.objects.get().words_job
    assert second > first
    assert words.load(second) == pages
    for job_id in (first, second):
        make_old(job_id)
    monkeypatch.setattr(periodic, "_words", periodic.Sweeper(periodic._walk_words, words.kept))
    periodic.sweep_blobs()
    assert (words.load(first), words.load(second)) == ([], pages)
    assert document.pk == Document.objects.get().pk


@pytest.mark.django_db
def test_the_words_of_a_job_that_may_still_publish_stay_however_old(places, monkeypatch):
    monkeypatch.setattr(periodic, "_words", periodic.Sweeper(periodic._walk_words, words.kept))
    running, ended, gone = JobFactory(status="PROCESSING").pk, JobFactory(status="COMPLETED").pk, 10**6
    for job_id in (running, ended, gone):
        words.store(job_id, PAGES)
        make_old(job_id)

    periodic.sweep_blobs()

    assert [bool(words.load(job_id)) for job_id in (running, ended, gone)] == [True, False, False]


@pytest.mark.django_db
def test_documents_without_places_have_no_words(slot):
    add(b"Dear Ms Example", "text/plain", "letter.txt")
    process(slot)

    assert Document.objects.get().words_job is None


@pytest.mark.django_db
def test_a_purged_document_refers_to_no_words(document):
    write(document, words_job=1)
    with pytest.raises(IntegrityError), transaction.atomic():
        write(document, status="processed", file="", text="", purged_at=document.created_at)
