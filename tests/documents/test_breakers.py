"""While an external service is away, only one stage at a time tries it, and no attempts are counted."""

from datetime import timedelta

import pytest

from config.remote_checks import services_answer
from documents import backoff, breakers, lifecycle, orchestrator, stages, why
from documents.extraction import ExtractionFailed
from documents.models import Document, DocumentProcessingJob, OutsideService, Stage
from tests.breaches import assert_all_hold
from tests.documents.processing import PDF, TXT, add, make_due, pdf, process
from tests.factories import (
    W1,
    W2,
    DocumentFactory,
    JobFactory,
    StageFactory,
    age,
    claim_of,
    events_of,
    expire_lease,
    told,
    write,
)
from tests.services import document_intelligence as di
from tests.services.serving import hangs_up, says
from tests.stepping import until
from work import clock, recovery
from work.work_types import work_type_named

AZURE, OPENAI = "Azure Document Intelligence", "OpenAI"
TEXT = "Invoice number: 42\nTotal amount: 7.00 EUR"


@pytest.fixture
def asked(settings):
    """Both services are configured, but no server answers."""
    settings.ADE_EXTRACTOR, settings.ADE_EMBEDDER = "azure", "openai"


def ready(content_type=PDF, name="extract", **options):
    job = JobFactory(status="PROCESSING", document=DocumentFactory(content_type=content_type))
    return StageFactory(job=job, name=name, status="READY", **options)


def trouble(**options):
    said = {"permanent": False, "of_service": True, "away": True} | options
    return ExtractionFailed("unavailable", "expected an answer, found 503", **said)


def service(name=AZURE):
    return OutsideService.objects.get(name=name)


def open_breaker(name=AZURE, retry_after=None):
    assert breakers.record_failure(name, "503", retry_after=retry_after, opens=True)


def claim(owner=W1):
    found = lifecycle.claim_stage(owner)
    return found and found.id


def settle_all():
    orchestrator.orchestrate(W1)


def attempts():
    return sorted(DocumentProcessingJob.objects.values_list("attempts", flat=True))


pytestmark = pytest.mark.django_db


# Pauses


def test_the_attempts_of_a_job_outlast_an_hour(settings, monkeypatch):
    # The shortest pauses that jitter can produce.
    monkeypatch.setattr(backoff.random, "uniform", lambda least, most: least)

    pauses = [backoff.job_seconds(attempt) for attempt in range(1, settings.ADE_DOCUMENT_ATTEMPTS)]

    assert sum(pauses) > 3600
    assert max(pauses) <= settings.ADE_DOCUMENT_RETRY_MAX_SECONDS


def test_the_number_of_attempts_and_the_pauses_are_settings(settings, workspace):
    settings.ADE_DOCUMENT_ATTEMPTS, settings.ADE_DOCUMENT_RETRY_SECONDS = 7, 100
    settings.ADE_DOCUMENT_RETRY_MAX_SECONDS = 150

    made = lifecycle.add_document(
        workspace, {"name": "a.pdf", "file": "documents/1", "content_type": PDF, "size_bytes": 1, "sha256": "0" * 64}
    )

    assert made.jobs.get().max_attempts == 7
    assert 50 <= backoff.job_seconds(1) <= 100
    assert 75 <= backoff.job_seconds(9) <= 150


def test_a_service_that_asks_for_a_short_pause_does_not_use_up_the_attempts(monkeypatch):
    assert backoff.job_seconds(9, retry_after=1) >= 300
    assert backoff.job_seconds(1, retry_after=77) == 77


# The circuit breaker


def test_the_failure_that_shows_it_is_an_attempt_and_those_after_it_are_none(asked):
    first, second = ready(), ready()
    claims = [lifecycle.claim_stage(W1), lifecycle.claim_stage(W2)]

    for each in claims:
        assert stages.fail(each, trouble())
    settle_all()

    first.refresh_from_db(), second.refresh_from_db()
    assert (first.status, second.status, second.postponements) == ("ERROR", "READY", 1)
    assert [told(first)[-1], told(second)[-1]] == ["STAGE_FAILED", "STAGE_POSTPONED"]
    assert attempts() == [0, 1]
    assert service().failures == 1
    assert_all_hold()


def test_nobody_asks_before_its_time_and_then_one_at_a_time(asked):
    first, second = ready(), ready()
    open_breaker()

    assert claim() is None
    make_due()
    assert claim() == first.pk
    assert [claim(W2), claim(W2)] == [None, None]

    stages.fail(claim_of(Stage.objects.get(pk=first.pk)), trouble())
    assert claim() is None
    make_due()
    # The document that failed comes last: it may itself be the cause.
    assert claim() == second.pk
    assert attempts() == [0, 0]


def test_a_worker_that_dies_over_asking_again_is_followed_by_another(asked):
    stage = ready()
    open_breaker()
    make_due()
    assert claim() == stage.pk

    assert claim(W2) is None
    expire_lease(Stage.objects.get(pk=stage.pk))
    recovery.rescue_expired([work_type_named("stage")], W2)

    assert claim(W2) == stage.pk


def test_the_first_answer_lets_all_go_on(asked):
    ids = [ready().pk, ready().pk]
    open_breaker()

    breakers.record_answer(AZURE)

    assert [claim(), claim()] == ids
    assert (service().away_since, service().failures) == (None, 0)


def test_an_answer_to_somebody_else_does_not_shorten_a_pause_that_was_asked_for(asked):
    stage = ready()
    open_breaker(retry_after=60)

    breakers.record_answer(AZURE)
    assert claim() is None
    assert timedelta(seconds=50) < service().next_try_at - clock.now() <= timedelta(seconds=60)

    write(service(), asked_until=clock.now() - timedelta(seconds=1))
    breakers.record_answer(AZURE)
    assert claim() == stage.pk


def test_what_needs_no_service_goes_on(asked):
    ready()
    open_breaker()
    text, publish = ready(TXT), ready(name="publish", segment=0)

    assert [claim(), claim(), claim()] == [text.pk, publish.pk, None]


def test_each_service_has_its_own(asked):
    extract, embed = ready(), ready(name="embed", segment=0)
    open_breaker(OPENAI)

    assert [claim(), claim()] == [extract.pk, None]
    make_due()
    assert claim() == embed.pk


def test_a_service_that_is_not_used_any_more_holds_nobody_up(asked, settings):
    stage = ready()
    open_breaker()
    settings.ADE_EXTRACTOR = "local"

    assert claim() == stage.pk


def test_a_refusal_fails_the_document_and_shows_that_the_service_is_there(asked):
    stage, other = ready(), ready()
    open_breaker()
    make_due()

    stages.fail(lifecycle.claim_stage(W1), trouble(permanent=True, away=False))
    settle_all()

    assert Document.objects.get(jobs=stage.job_id).status == "failed"
    assert claim() == other.pk


def test_trouble_that_may_be_of_one_document_opens_nothing(asked):
    stage, other = ready(), ready()

    stages.fail(lifecycle.claim_stage(W1), trouble(away=False))
    settle_all()

    stage.job.refresh_from_db()
    assert stage.job.attempts == 1
    assert not OutsideService.objects.exists()
    assert claim() == other.pk


def test_pauses_grow_with_each_vain_try_and_not_with_those_who_had_asked_before(asked, settings):
    open_breaker()
    first = service().next_try_at
    for _ in range(5):
        assert not breakers.record_failure(AZURE, "503", retry_after=None, opens=True)
    assert (service().next_try_at, service().failures) == (first, 1)

    for _ in range(9):
        make_due()
        assert not breakers.record_failure(AZURE, "503", retry_after=None, opens=True)

    pause = (service().next_try_at - clock.now()).total_seconds()
    assert settings.ADE_SERVICE_PROBE_SECONDS / 2 - 5 < pause <= settings.ADE_SERVICE_PROBE_SECONDS


def test_why_says_who_is_away_and_when_it_is_asked_again(asked):
    stage = ready()
    open_breaker()

    explanation = why.explain(stage.job.document)

    (gate,) = [gate for gate in explanation.gates if gate.name == "service"]
    assert (gate.holds, gate.holder, gate.since) == (True, AZURE, service().away_since)
    assert f"{AZURE} does not answer. It is called again " in gate.message
    assert gate.message.endswith("503")
    assert gate.data["next_try_at"] == service().next_try_at
    breakers.record_answer(AZURE)
    assert "service" not in [gate.name for gate in why.explain(stage.job.document).gates]


def test_doctor_names_who_is_away(asked):
    assert services_answer().level == "ok"
    open_breaker()

    finding = services_answer()

    assert (finding.level, f"{AZURE} unavailable since" in finding.message, "503" in finding.message) == (
        "warn",
        True,
        True,
    )


def test_the_watchdog_leaves_those_who_wait_for_a_service(asked, settings):
    stage = ready()
    age(stage.job, settings.ADE_ZOMBIE_SECONDS + 1)
    age(stage, settings.ADE_ZOMBIE_SECONDS + 1)
    open_breaker()

    assert lifecycle.reset_zombies(W1) == 0

    breakers.record_answer(AZURE)
    assert lifecycle.reset_zombies(W1) == 1


def test_so_many_wait_for_a_service_and_the_others_are_not_begun(asked, monkeypatch):
    monkeypatch.setattr(orchestrator, "MOST_BLOCKED", 3)
    open_breaker()
    documents = [JobFactory().document for _ in range(5)]

    orchestrator.orchestrate(W1)

    jobs = DocumentProcessingJob.objects.order_by("id")
    assert [job.status for job in jobs] == ["PROCESSING"] * 3 + ["PENDING"] * 2
    message = next(gate for gate in why.explain(documents[-1]).gates if gate.name == "turn").message
    assert f"3 stages wait for {AZURE} to answer" in message


def test_without_services_a_claim_asks_for_none(django_assert_max_num_queries):
    ready()
    claim()

    with django_assert_max_num_queries(10) as asked_for:
        claim()

    assert not [each for each in asked_for.captured_queries if "outside_services" in each["sql"]]


# With real services


@pytest.mark.long
def test_an_outage_costs_one_attempt_of_one_document_however_long_it_is(slot, azure):
    documents = [add(pdf(f"{TEXT} {n}"), name=f"{n}.pdf") for n in range(6)]
    azure.always("analyze", says(500, b"<html>"))

    for _ in range(8):
        process(slot)
        make_due()

    assert attempts() == [0, 0, 0, 0, 0, 1]
    assert not Document.objects.exclude(status="processing").exists()
    assert azure.count("analyze") == 8
    assert any(gate.name == "service" for each in documents for gate in why.explain(each).gates)
    azure.behave()
    make_due()
    process(slot)
    assert set(Document.objects.values_list("status", flat=True)) == {"processed"}
    assert attempts() == [0, 0, 0, 0, 0, 1]
    assert service().away_since is None
    assert_all_hold()


@pytest.mark.long
def test_a_pause_that_was_asked_for_is_kept_by_all_and_counts_once(slot, azure):
    for n in range(3):
        add(pdf(f"{TEXT} {n}"), name=f"{n}.pdf")
    azure.always("analyze", says(429, di.failed("429", "Too many requests."), Retry_After=70))

    process(slot)
    assert azure.count("analyze") == 1
    assert timedelta(seconds=60) < service().next_try_at - clock.now() <= timedelta(seconds=70)
    for _ in range(3):
        make_due()
        process(slot)

    assert azure.count("analyze") == 4
    assert attempts() == [0, 0, 1]


@pytest.mark.long
def test_a_document_that_a_service_cannot_bear_fails_and_holds_up_nobody(slot, azure, settings):
    settings.ADE_DOCUMENT_ATTEMPTS = 2
    poison = pdf("Poison.")
    bad = add(poison, name="poison.pdf")

    def refuses_poison(handler, answer):
        is_poison = azure.asked[-1].body == poison
        handler.answer(*((500, {}, b"<html>") if is_poison else answer()))

    azure.always("analyze", refuses_poison)
    for n in range(8):
        add(pdf(f"{TEXT} {n}"), name=f"{n}.pdf")
        process(slot)
        make_due()

    bad.refresh_from_db()
    process(slot)
    assert bad.status == "failed"
    assert set(Document.objects.exclude(pk=bad.pk).values_list("status", flat=True)) == {"processed"}


@pytest.mark.long
def test_vectors_wait_while_texts_are_read(slot, azure, open_ai):
    for n in range(3):
        add(pdf(f"{TEXT} {n}"), name=f"{n}.pdf")
    open_ai.always("embed", hangs_up)

    process(slot)
    make_due()
    process(slot)

    assert azure.count("analyze") == 3
    assert attempts() == [0, 0, 1]
    open_ai.behave()
    make_due()
    process(slot)
    assert azure.count("analyze") == 3
    assert set(Document.objects.values_list("status", flat=True)) == {"processed"}


@pytest.mark.long
def test_workers_go_on_by_themselves_when_the_service_answers(programs, places, transactional_db, azure):
    """Pauses run at their real length here. One of two workers is killed, and the service comes back."""
    documents = [add(pdf(f"{TEXT} {n}"), name=f"{n}.pdf") for n in range(4)]
    azure.always("analyze", says(503, b""))

    def worker(name):
        return programs.worker(
            name, "stage=2", ADE_VAR_DIR=places, ADE_EXTRACTOR="azure", ADE_AZURE_DI_ENDPOINT=azure.url,
            ADE_AZURE_DI_KEY=di.KEY, ADE_SERVICE_PROBE_SECONDS="1", ADE_DOCUMENT_RETRY_SECONDS="1",
        )  # fmt: skip

    first = worker("w1")
    worker("w2")
    until(lambda: azure.count("analyze") >= 6)
    first.kill()
    worker("w1")
    seen = azure.count("analyze")
    until(lambda: azure.count("analyze") >= seen + 3)
    assert sum(attempts()) == 1
    azure.behave()

    until(lambda: not Document.objects.filter(status="processing").exists())

    assert {each.status for each in Document.objects.all()} == {"processed"}
    assert sum(attempts()) == 1
    for each in documents:
        assert events_of(each).filter(kind="DOCUMENT_FAILED").count() == 0
    assert_all_hold()
