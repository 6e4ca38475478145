import pytest
from django.contrib.auth.models import Permission

from tests.factories import UserFactory, events_of
from work import boots, draining

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


@pytest.fixture
def worker(db):
    return boots.register("w1", "boot1", {"run": 2})


def holding(*codenames):
    user = UserFactory(is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    return user


@pytest.fixture
def in_charge(db):
    return holding("view_worker", "change_queue")


def test_the_page_of_a_worker_has_a_button(sign_in, in_charge, worker, said):
    client, page = sign_in(in_charge), f"/admin/work/worker/{worker.pk}/"
    offered = client.get(f"{page}change/").context["buttons"]

    answer = client.post(f"{page}drain/", follow=True)

    worker.refresh_from_db()
    assert offered == [("drain", "Drain")]
    assert said(answer) == ["Asked 1 worker to drain."]
    assert worker.drain_requested_by == in_charge.username
    assert answer.context["buttons"] == []


def test_of_several_each_is_rehearsed_and_told(rehearse, confirm, in_charge, worker):
    gone, leaving = boots.register("w2", "boot2", {}), boots.register("w3", "boot3", {})
    boots.sign_off(gone)
    draining.drain(leaving, actor="ada")

    page = rehearse(in_charge, "drain", worker, gone, leaving)
    ended = confirm(page, reason="a new version")

    assert page.context["said"] == "Of 3 selected, 1 will be asked to drain, 1 is already draining, 1 is not alive."
    found = {outcome: number for outcome, number, _ in ended.context["outcomes"]}
    assert found == {"asked to drain": 1, "was draining already": 1, "is not alive": 1}
    assert events_of(worker).last().message == "a new version"


def test_it_takes_the_permission_of_the_queue(sign_in, worker):
    page = f"/admin/work/worker/{worker.pk}/"
    client = sign_in(holding("view_worker"))

    assert "buttons" not in client.get(f"{page}change/").context
    assert client.post(f"{page}drain/").status_code == 403
    worker.refresh_from_db()
    assert worker.drain_requested_at is None
