import pytest
from django.contrib.auth.models import Group, Permission

from console import situation
from runs import queue
from runs.models import Run
from tests.factories import QueueFactory, RunFactory, UserFactory, events_of

pytestmark = [pytest.mark.edge, pytest.mark.django_db]

HOSTILE = "<script>alert(1)</script>{{7*7}}$(id)%s"


@pytest.fixture
def in_charge(olga):
    """Olga with the permission for the shared queue."""
    olga.user_permissions.add(Permission.objects.get(codename="change_queue"))
    return olga


def test_it_is_paused_with_a_reason_and_goes_on(pressed_by, in_charge):
    paused = pressed_by(in_charge, "/queue/pause/", reason=" a  disk\nis full ")
    row = queue.current_row()
    resumed = pressed_by(in_charge, "/queue/resume/")

    assert paused.said[0].startswith("Paused the run queue.")
    assert (row.paused_by, row.pause_reason) == ("olga", "a disk is full")
    assert resumed.said == ["Resumed the run queue. Queued runs start in their order."]
    assert queue.current_row().paused_at is None
    assert list(events_of(queue.current_row()).values_list("kind", "actor"))[1:] == [
        ("QUEUE_PAUSED", "olga"),
        ("QUEUE_RESUMED", "olga"),
    ]


def test_who_comes_second_is_told_so(pressed_by, in_charge):
    queue.pause(actor="ada", reason="first")

    paused = pressed_by(in_charge, "/queue/pause/", reason="second")
    row = queue.current_row()
    queue.resume(actor="ada")
    resumed = pressed_by(in_charge, "/queue/resume/")

    assert paused.said == ["The run queue is already paused, by ada. Nothing was changed."]
    assert row.pause_reason == "first"
    assert resumed.said == ["The run queue is not paused. Nothing was changed."]


@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_it_takes_the_permission_and_a_post(client, seen_by, pressed_by, olga, ravi, zed, in_charge, verb):
    Permission.objects.get(codename="change_queue").user_set.clear()

    for person in (olga, ravi, zed):
        assert pressed_by(person, f"/queue/{verb}/").status_code == 403
    assert seen_by(in_charge, f"/queue/{verb}/").status_code == 405
    client.logout()
    assert client.post(f"/queue/{verb}/").url.startswith("/sign-in/")
    assert queue.current_row() is None


def test_only_who_may_is_offered_the_buttons(seen_by, in_charge, ravi):
    QueueFactory()

    mine, others = seen_by(in_charge, "/"), seen_by(ravi, "/")
    queue.pause(actor="olga")
    paused = seen_by(in_charge, "/")

    assert "/queue/pause/" in mine.content.decode()
    assert "/queue/" not in others.content.decode()
    assert "/queue/resume/" in paused.content.decode()
    assert "/queue/pause/" not in paused.content.decode()


def test_a_hostile_reason_stays_text(pressed_by, in_charge):
    page = pressed_by(in_charge, "/queue/pause/", reason=HOSTILE, back="/")

    assert "<script>alert" not in page.content.decode()
    assert page.content.decode().count("&lt;script&gt;alert(1)&lt;/script&gt;{{7*7}}$(id)%s") == 2


def test_a_paused_queue_holds_no_submission(pressed_by, in_charge, workspace):
    pressed_by(in_charge, "/queue/pause/")

    RunFactory(configuration__workspace=workspace)

    assert Run.objects.queued().count() == 1


def test_the_page_asks_for_the_permission_as_the_action_does(olga, ravi, workspace):
    group = Group.objects.create(name="night")
    group.permissions.add(Permission.objects.get(codename="change_queue"))
    ravi.groups.add(group)
    root = UserFactory(is_superuser=True)

    for person in (olga, ravi, root):
        fresh = type(person).objects.get(pk=person.pk)
        assert situation.person_of(person).may_change_queue == fresh.has_perm("runs.change_queue")
    assert situation.person_of(ravi).may_change_queue
