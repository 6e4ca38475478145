import pytest

from documents import lifecycle
from documents.models import DocumentProcessingJob
from tests.factories import JobFactory, StageFactory, age, columns_of, events_of, expire_lease, told, write
from work import clock, recovery

pytestmark = pytest.mark.django_db


@pytest.fixture
def zombie(settings):
    """A job of which a lost worker had claimed a stage."""
    job = age(JobFactory(status="PROCESSING"), settings.ADE_ZOMBIE_SECONDS + 1)
    write(StageFactory(job=job, status="READY"), losses=1, error_message=recovery.EXPIRED)
    return job


@pytest.fixture
def untouched(settings):
    """A job that has begun and then had no workers."""
    job = age(JobFactory(status="PROCESSING"), settings.ADE_ZOMBIE_SECONDS + 1)
    StageFactory(job=job, status="READY")
    return job


def long_ago(stage, settings):
    return age(stage, settings.ADE_ZOMBIE_SECONDS + 1)


def test_a_job_that_nobody_works_at_goes_back(zombie, w1, settings):
    assert lifecycle.reset_zombies(w1) == 1

    zombie.refresh_from_db()
    assert (zombie.status, zombie.attempts, zombie.started_at) == ("PENDING", 1, None)
    assert zombie.error_message == (
        f"In processing for longer than {settings.ADE_ZOMBIE_SECONDS} s while no worker was working on it."
    )
    assert "attempt 1: " in zombie.error_log
    event = events_of(zombie).last()
    assert (event.kind, event.from_status, event.to_status) == ("JOB_RESET", "PROCESSING", "PENDING")
    assert event.actor == w1


def test_absences_of_workers_are_no_attempts(untouched, w1, settings):
    for _ in range(5):
        assert lifecycle.reset_zombies(w1) == 1
        untouched.refresh_from_db()
        write(untouched, next_attempt_at=clock.now())
        assert lifecycle.begin_next_job(w1).id == untouched.pk
        lifecycle.advance(untouched.pk, actor=w1)
        untouched.refresh_from_db()
        age(untouched, settings.ADE_ZOMBIE_SECONDS + 1)

    untouched.refresh_from_db()
    assert (untouched.status, untouched.attempts, untouched.error_log) == ("PROCESSING", 0, "")
    resets = events_of(untouched).filter(kind="JOB_RESET")
    assert resets.count() == 5
    assert "no stage was claimed" in resets[0].message


def test_a_stage_that_was_done_before_the_absence_is_no_failure(untouched, w1, settings):
    long_ago(StageFactory(job=untouched, status="DONE"), settings)

    assert lifecycle.reset_zombies(w1) == 1

    untouched.refresh_from_db()
    assert (untouched.status, untouched.attempts) == ("PENDING", 0)


def test_a_loss_counts_once_and_the_absences_after_it_do_not(zombie, w1, settings):
    for _ in range(3):
        assert lifecycle.reset_zombies(w1) == 1
        write(zombie, next_attempt_at=clock.now())
        assert lifecycle.begin_next_job(w1).id == zombie.pk
        lifecycle.advance(zombie.pk, actor=w1)
        zombie.refresh_from_db()
        age(zombie, settings.ADE_ZOMBIE_SECONDS + 1)

    zombie.refresh_from_db()
    assert zombie.attempts == 1


def test_a_job_at_its_last_attempt_stays_when_nothing_was_tried(untouched, w1):
    write(untouched, attempts=2)

    assert lifecycle.reset_zombies(w1) == 1

    untouched.refresh_from_db()
    assert (untouched.status, untouched.attempts, untouched.document.status) == ("PENDING", 2, "processing")


def test_a_job_at_its_last_attempt_is_given_up_with_its_document(zombie, w1):
    write(zombie, attempts=2)

    assert lifecycle.reset_zombies(w1) == 1

    zombie.refresh_from_db()
    assert (zombie.status, zombie.attempts, zombie.document.status) == ("FAILED", 3, "failed")
    assert zombie.failure_type == "ATTEMPTS_EXHAUSTED"
    assert (told(zombie)[-1], told(zombie.document)[-1]) == ("JOB_GIVEN_UP", "DOCUMENT_FAILED")


def test_a_job_within_its_time_goes_on(w1, settings):
    job = age(JobFactory(status="PROCESSING"), settings.ADE_ZOMBIE_SECONDS - 10)
    before = columns_of(job)

    assert lifecycle.reset_zombies(w1) == 0

    assert columns_of(job) == before


@pytest.mark.parametrize("status", ["PENDING", "COMPLETED", "FAILED"])
def test_only_a_job_under_way_is_watched(status, w1):
    job = age(JobFactory(status=status), 10**6)
    before = columns_of(job)

    assert lifecycle.reset_zombies(w1) == 0

    assert columns_of(job) == before


def test_a_live_lease_under_a_job_keeps_it(zombie, w1, settings):
    stage = long_ago(StageFactory(job=zombie, status="RUNNING"), settings)
    write(stage, lease_expires_at=clock.now().replace(year=2100))

    assert lifecycle.reset_zombies(w1) == 0


def test_an_expired_lease_does_not_keep_it(zombie, w1, settings):
    long_ago(expire_lease(StageFactory(job=zombie, status="RUNNING")), settings)

    assert lifecycle.reset_zombies(w1) == 1


@pytest.mark.parametrize("status", ["DONE", "ERROR", "RUNNING"])
def test_a_long_job_whose_stages_were_at_work_lately_goes_on(zombie, w1, status):
    stage = StageFactory(job=zombie, status=status)
    if status == "RUNNING":
        expire_lease(stage)
    StageFactory(job=zombie, status="READY")

    assert lifecycle.reset_zombies(w1) == 0


def test_stages_that_were_at_work_long_ago_do_not_keep_a_job(zombie, w1, settings):
    long_ago(StageFactory(job=zombie, status="DONE"), settings)
    StageFactory(job=zombie, status="READY")

    assert lifecycle.reset_zombies(w1) == 1


def test_a_lease_that_is_taken_after_the_look_keeps_the_job(zombie, w1, monkeypatch):
    give_back = lifecycle._give_back

    def claimed_meanwhile(job, *args, **options):
        StageFactory(job=job, status="RUNNING")
        return give_back(job, *args, **options)

    monkeypatch.setattr(lifecycle, "_give_back", claimed_meanwhile)

    assert lifecycle.reset_zombies(w1) == 0

    zombie.refresh_from_db()
    assert (zombie.status, zombie.attempts) == ("PROCESSING", 0)


def test_two_watchdogs_count_an_attempt_once(zombie, w1, w2):
    assert lifecycle.reset_zombies(w1) == 1
    assert lifecycle.reset_zombies(w2) == 0

    assert DocumentProcessingJob.objects.get().attempts == 1


def test_a_job_that_goes_back_and_forth_counts_from_its_last_beginning(zombie, w1, settings):
    lifecycle.reset_zombies(w1)
    write(zombie, next_attempt_at=clock.now())

    assert lifecycle.begin_next_job(w1).id == zombie.pk

    assert lifecycle.reset_zombies(w1) == 0
