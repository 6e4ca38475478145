import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from runs import lifecycle as runs
from tests.factories import (
    W1,
    W2,
    BuildFactory,
    DocumentFactory,
    RunFactory,
    WebhookFactory,
    WorkspaceFactory,
    bring_to,
    claim_of,
    events_of,
    write,
)
from tests.webhooks.told import follow, newest
from webhooks import hooks
from webhooks.following import Follower
from webhooks.lifecycle import DELIVERY_STATES
from webhooks.models import Delivery, WebhookTail
from work import lifecycle, tail
from work.models import Event
from work.operations import encoding

pytestmark = [pytest.mark.edge, pytest.mark.django_db]
URL = "https://hooks.example.com/ade"
ALL = [
    "run.succeeded", "run.failed", "run.cancelled", "build.ready", "build.failed", "build.cancelled",
    "document.processed", "document.failed",
]  # fmt: skip


@pytest.fixture
def everything(workspace):
    webhook, _ = hooks.add(workspace, "everything", URL, ALL, actor="olga")
    return webhook


@pytest.mark.parametrize("status", ["succeeded", "failed", "cancelled"])
def test_the_end_of_a_run_is_delivered(everything, configuration, status):
    run = RunFactory(configuration=configuration)
    bring_to(run, status)

    assert follow() >= 1

    delivery = Delivery.objects.get(topic=f"run.{status}")
    assert delivery.webhook == everything
    assert delivery.event_id == events_of(run).last().pk
    told = delivery.payload
    assert (told["subject"], told["status"]) == ({"kind": "run", "id": run.pk}, status)
    assert told["workspace_id"] == run.workspace_id
    assert told["finished_at"] == encoding.moment(run.finished_at)
    assert told["links"] == {
        "self": f"/api/v1/runs/{run.pk}",
        "configuration": f"/api/v1/configurations/{run.configuration_id}",
        "document": f"/api/v1/documents/{run.input_document_id}",
    }


@pytest.mark.parametrize("status", ["ready", "failed", "cancelled"])
def test_the_end_of_a_build_is_delivered(everything, configuration, status):
    build = BuildFactory(configuration=configuration, status=status)

    follow()

    assert newest().topic == f"build.{status}"
    assert newest().payload["links"]["self"] == f"/api/v1/builds/{build.pk}"


@pytest.mark.parametrize("status", ["processed", "failed"])
def test_the_end_of_processing_is_delivered(everything, workspace, status):
    document = DocumentFactory(workspace=workspace, status=status)

    follow()

    assert newest().topic == f"document.{status}"
    assert newest().payload["subject"] == {"kind": "document", "id": document.pk}


def test_a_run_that_timed_out_says_so(everything, configuration):
    run = RunFactory(configuration=configuration, status="running")
    runs.fail(claim_of(run), "TIMED_OUT", "after 120 s")

    follow()

    assert newest().payload["outcome"] == "timed_out"
    assert newest().payload["failure_type"] == "TIMED_OUT"


def test_only_what_a_webhook_has_asked_for_is_delivered(workspace):
    hooks.add(workspace, "runs", URL, ["run.failed"], actor="olga")
    DocumentFactory(workspace=workspace, status="processed")

    assert follow() == 0


def test_nobody_is_told_of_another_workspace(everything):
    DocumentFactory(workspace=WorkspaceFactory(), status="processed")

    assert follow() == 0


def test_what_happened_before_a_webhook_was_made_is_not_delivered(workspace, everything):
    DocumentFactory(workspace=workspace, status="processed")
    hooks.add(workspace, "later", URL, ALL, actor="olga")

    assert follow() == 1


def test_the_first_webhook_begins_where_the_events_are_by_then(workspace, django_assert_num_queries):
    document = DocumentFactory(workspace=workspace, status="processed")
    with django_assert_num_queries(1):
        # Without any webhook, a follower only checks that there is none.
        Follower().follow(W1)

    hooks.add(workspace, "first", URL, ALL, actor="olga")

    assert WebhookTail.objects.get().position.split(":")[0] == str(Event.objects.latest("id").pk - 1)
    assert events_of(document).exists()
    assert follow() == 0


def test_an_event_is_delivered_once_whoever_reads_it_again(workspace, everything):
    DocumentFactory(workspace=workspace, status="processed")
    before = WebhookTail.objects.get().position
    assert follow() == 1

    write(WebhookTail.objects.get(), position=before)

    assert follow() == 0
    assert Delivery.objects.count() == 1


def test_while_one_worker_follows_no_other_does(workspace, everything):
    assert follow(W1) == 0
    DocumentFactory(workspace=workspace, status="processed")

    assert follow(W2) == 0
    assert follow(W1) == 1


def test_who_was_replaced_writes_nothing(workspace, everything):
    stale = Follower()
    stale.follow(W1)
    DocumentFactory(workspace=workspace, status="processed")
    write(WebhookTail.objects.get(), expires_at=WebhookTail.objects.get().expires_at.replace(year=2020))
    assert follow(W2) == 1
    # It had read that it holds the lease, and was then paused.
    write(WebhookTail.objects.get(), owner=W1)

    assert stale.follow(W1) == 0
    assert Delivery.objects.count() == 1


def test_a_paused_webhook_misses_nothing(workspace, everything):
    hooks.pause(everything, actor="olga")
    DocumentFactory(workspace=workspace, status="processed")

    assert follow() == 1


def test_a_removed_webhook_is_told_nothing(workspace, everything):
    WebhookFactory(workspace=workspace)
    hooks.remove(everything, actor="olga")
    DocumentFactory(workspace=workspace, status="processed")

    assert follow() == 0


def test_what_was_delivered_before_is_looked_up_in_an_index(workspace, everything):
    for webhook in (everything, WebhookFactory(workspace=workspace)):
        values = {"webhook_id": webhook.pk, "topic": "run.failed", "payload": {}}
        lifecycle.create(DELIVERY_STATES, values, varying={"event_id": list(range(10**6, 10**6 + 2000))})
    DocumentFactory(workspace=workspace, status="processed")
    with CaptureQueriesContext(connection) as asked:
        assert follow() == 1
    (sql,) = {query["sql"] for query in asked if "resend_of" in query["sql"] and query["sql"].startswith("SELECT")}

    explain = "EXPLAIN" if connection.vendor == "postgresql" else "EXPLAIN QUERY PLAN"
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE webhook_deliveries")
        cursor.execute(f"{explain} {sql}")
        plan = str(cursor.fetchall())

    assert "delivery_one_per_webhook_and_event" in plan
    # Without the first column of the index, the whole index would be scanned.
    assert "webhook_id=" in plan.replace(" ", "")


@pytest.mark.only_on("postgresql")
@pytest.mark.django_db(transaction=True)
def test_what_commits_late_is_delivered_all_the_same(workspace, everything, threads):
    follower = Follower()
    follower.follow(W1)
    late = threads.hold(lambda: DocumentFactory(workspace=workspace, status="processed"))
    DocumentFactory(workspace=workspace, status="processed")

    assert follower.follow(W1) == 1
    late.commit()
    assert follower.follow(W1) == 1
    assert Delivery.objects.count() == 2


@pytest.mark.only_on("postgresql")
@pytest.mark.django_db(transaction=True)
def test_what_comes_behind_more_gaps_than_a_position_has_room_for_is_delivered(
    workspace, everything, threads, monkeypatch
):
    monkeypatch.setattr(tail, "GAPS_IN_TEXT", 0)
    follower = Follower()
    follower.follow(W1)
    late = threads.hold(lambda: DocumentFactory(workspace=workspace, status="processed"))
    made = []
    for _ in range(3):
        DocumentFactory(workspace=workspace, status="processed")
        made.append(follower.follow(W1))

    late.commit()

    assert made == [1, 1, 1]
    assert follower.follow(W1) == 1
    assert Follower().follow(W1) == 0
    assert Delivery.objects.count() == 4
