import pytest
from django.db import connection

from console.pages import late_writes
from tests.factories import JobRunFactory, MembershipFactory, RunFactory, UserFactory, claim_of
from work import lifecycle
from work.models import Event

HOSTILE = "<script>alert(1)</script>"

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


def refuse(row, verb="succeed", owner="w9@there:1:boot9"):
    lifecycle.refuse_late(claim_of(row, owner=owner), verb)
    return Event.objects.filter(kind=lifecycle.LATE_WRITE_REFUSED).latest("pk")


@pytest.fixture
def mine(workspace):
    return RunFactory(configuration__workspace=workspace, input_document__workspace=workspace, status="running")


def shown(page):
    return [case.event.pk for case in page.context["slice"].rows]


def test_each_case_says_who_was_refused_what_and_why(seen_by, ravi, mine):
    event = refuse(mine)

    page = seen_by(ravi, "/late-writes/")
    text = page.content.decode()

    assert shown(page) == [event.pk]
    assert f'<a href="/runs/{mine.pk}/">run {mine.pk}</a>' in text
    assert "w9@there:1:boot9" in text
    assert f"running, claim 1, held by {mine.lease_owner}" in text
    assert "1 in total" in text


def test_those_of_others_are_not_shown(seen_by, ravi, mine):
    event = refuse(mine)
    of_others = refuse(RunFactory(status="running"))
    root = UserFactory(is_superuser=True)

    assert shown(seen_by(ravi, "/late-writes/")) == [event.pk]
    assert shown(seen_by(root, "/late-writes/")) == [of_others.pk, event.pk]


def test_those_of_the_installation_are_for_members(seen_by, ravi, zed):
    event = refuse(JobRunFactory(job_name="rss_ingestion"))

    assert shown(seen_by(ravi, "/late-writes/")) == [event.pk]
    assert shown(seen_by(zed, "/late-writes/")) == []


def test_without_any_the_page_says_so(seen_by, ravi):
    assert "No worker has written after losing its claim." in seen_by(ravi, "/late-writes/").content.decode()


def test_they_come_page_by_page(seen_by, ravi, mine, monkeypatch):
    monkeypatch.setattr("console.lists.ROWS", 2)
    events = [refuse(mine, owner=f"w{n}@there:1:boot").pk for n in range(5)]

    first = seen_by(ravi, "/late-writes/")
    second = seen_by(ravi, f"/late-writes/{first.context['slice'].older}")
    third = seen_by(ravi, f"/late-writes/{second.context['slice'].older}")

    assert [*shown(first), *shown(second), *shown(third)] == events[::-1]
    assert third.context["slice"].older == ""


def test_so_many_are_looked_at_for_a_page(seen_by, ravi, mine, monkeypatch):
    monkeypatch.setattr(late_writes, "MOST_READ", 2)
    event = refuse(mine)
    for _ in range(2):
        refuse(RunFactory(status="running"))

    first = seen_by(ravi, "/late-writes/")
    second = seen_by(ravi, f"/late-writes/{first.context['slice'].older}")

    assert shown(first) == []
    assert "You can see none of the last" in first.content.decode()
    assert shown(second) == [event.pk]


def test_what_a_worker_calls_itself_stays_text(seen_by, ravi, mine):
    refuse(mine, verb=HOSTILE, owner=HOSTILE)

    text = seen_by(ravi, "/late-writes/").content.decode()

    assert HOSTILE not in text
    assert text.count("&lt;script&gt;") == 2


def test_they_cost_few_queries(asks_at_most, ravi, workspace, mine):
    MembershipFactory(user=ravi)
    refuse(mine)
    refuse(JobRunFactory())
    refuse(RunFactory(status="running"))

    asks_at_most(15, ravi, "/late-writes/")


def test_an_index_has_just_them(db):
    with connection.cursor() as cursor:
        found = connection.introspection.get_constraints(cursor, "events")

    assert found["events_late_writes"]["index"]
    assert found["events_late_writes"]["columns"] == ["id"]
