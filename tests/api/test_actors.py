import pytest
from django.contrib.auth import get_user_model

from api.models import ApiToken
from feeds.models import FeedSource
from runs.models import Queue
from schedules.models import DueSlot, ScheduledJob
from tests.factories import FeedFactory, MembershipFactory, UserFactory
from tests.schedules.declared import EACH
from webhooks.models import Webhook
from work.lifecycle import ACTOR_CHARACTERS
from work.operations.commands import actor_of

pytestmark = [pytest.mark.edge, pytest.mark.django_db]

PERSON, PROGRAM = "o" * 150, "n" * 100
ACTOR = f"{PERSON} (token {PROGRAM})"[:ACTOR_CHARACTERS]
WEBHOOK = {"name": "all", "url": "https://hooks.example.com/ade", "topics": ["run.failed"]}


@pytest.fixture
def shown(issue, workspace):
    user = UserFactory(username=PERSON, is_superuser=True)
    MembershipFactory(workspace=workspace, user=user, role="admin")
    return issue(user, "operate", "admin", "installation", name=PROGRAM)


def test_tokens_are_made_and_revoked_by_whoever_has_the_longest_names(ask, shown, workspace):
    made = ask(shown, "/api/v1/tokens", {"workspace_id": workspace.pk, "name": "made"})
    revoked = ask(shown, f"/api/v1/tokens/{made.json()['id']}/revoke", method="POST")

    assert (made.status_code, revoked.status_code) == (201, 200)
    token = ApiToken.objects.get(name="made")
    assert (token.created_by, token.revoked_by) == (ACTOR, ACTOR)


def test_webhooks_are_added_and_paused_by_whoever_has_the_longest_names(ask, shown, workspace):
    made = ask(shown, f"/api/v1/workspaces/{workspace.pk}/webhooks", WEBHOOK)
    paused = ask(shown, f"/api/v1/webhooks/{made.json()['id']}/pause", method="POST")

    assert (made.status_code, paused.status_code) == (201, 200)
    webhook = Webhook.objects.get()
    assert (webhook.created_by, webhook.paused_by) == (ACTOR, ACTOR)


def test_feeds_and_the_queue_are_paused_by_whoever_has_the_longest_names(ask, shown):
    feed = FeedFactory()

    assert ask(shown, f"/api/v1/feeds/{feed.pk}/pause", method="POST").status_code == 200
    assert ask(shown, "/api/v1/queue/pause", method="POST").status_code == 200

    assert FeedSource.objects.get().paused_by == ACTOR
    assert Queue.objects.get().paused_by == ACTOR


def test_jobs_are_paused_and_triggered_by_whoever_has_the_longest_names(ask, shown, settings):
    settings.JOBS = [EACH]
    a_range = {"from": "2026-03-01T10:00:00Z", "to": "2026-03-01T11:00:00Z"}

    assert ask(shown, "/api/v1/jobs/each/runs", method="POST").status_code == 201
    assert ask(shown, "/api/v1/jobs/each/backfill", a_range).status_code == 201
    assert ask(shown, "/api/v1/jobs/each/pause", method="POST").status_code == 200

    assert ScheduledJob.objects.get().paused_by == ACTOR
    assert {*DueSlot.objects.values_list("asked_by", flat=True)} == {ACTOR}


def test_the_longest_name_of_a_person_and_of_whoever_gives_a_command_have_room():
    assert get_user_model()._meta.get_field("username").max_length <= ACTOR_CHARACTERS
    assert len(actor_of("n" * 1000)) <= ACTOR_CHARACTERS
