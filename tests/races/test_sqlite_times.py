"""On SQLite all writers wait for one lock, so the timestamps of a row must be taken while holding that lock."""

import threading

import pytest
from django.db import transaction

from documents import lifecycle as documents
from tests.factories import W1, W2, JobFactory, StageFactory, claim_of, events_of
from tests.stepping import DEADLINE_SECONDS
from tests.writers import WRITERS
from work import lifecycle as kernel

pytestmark = pytest.mark.only_on("sqlite")


@pytest.mark.parametrize("writer", WRITERS)
def test_who_waited_for_the_lock_starts_after_who_had_it_has_finished(threads, monkeypatch, writer):
    monkeypatch.setattr(kernel, "_writer", lambda: writer)
    job = JobFactory(status="PROCESSING")
    first, second = StageFactory(job=job, status="RUNNING"), StageFactory(job=job, status="READY")
    is_locked, has_its_time = threading.Event(), threading.Event()
    claim_first = writer.claim_first

    def claim_when_it_has_its_time(change, *arguments):
        has_its_time.set()
        return claim_first(change, *arguments)

    monkeypatch.setattr(writer, "claim_first", claim_when_it_has_its_time)

    def finish_under_the_lock():
        with transaction.atomic():
            is_locked.set()
            assert has_its_time.wait(DEADLINE_SECONDS)
            return documents.finish_stage(claim_of(first, owner=W1))

    finishing = threads.start(finish_under_the_lock)
    assert is_locked.wait(DEADLINE_SECONDS)
    claiming = threads.start(lambda: documents.claim_stage(W2))

    assert finishing.answer()
    claim = claiming.answer()
    first.refresh_from_db(), second.refresh_from_db()
    assert claim.id == second.pk
    assert first.finished_at <= second.started_at
    assert events_of(second).last().at == second.started_at
    assert second.lease_expires_at > second.started_at
