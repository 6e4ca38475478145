"""Rate limits (S18)."""

import pytest
from django.test import Client

from api import limits
from api.limits import Buckets
from api.models import AuditEntry

pytestmark = [pytest.mark.edge, pytest.mark.django_db, pytest.mark.usefixtures("still")]

READS = "/api/v1/runs"


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


def test_a_bucket_fills_again():
    clock = Clock()
    buckets = Buckets(clock)

    assert [buckets.take("reads", "olga", 2) for _ in range(3)] == [0, 0, 30]
    assert buckets.take("reads", "ravi", 2) == 0
    clock.now += 29
    assert buckets.take("reads", "olga", 2) == pytest.approx(1)
    clock.now += 1
    assert buckets.take("reads", "olga", 2) == 0
    clock.now += 3600
    assert [buckets.take("reads", "olga", 2) for _ in range(3)] == [0, 0, 30]


def test_buckets_are_so_many_and_no_more():
    buckets = Buckets(most=100)
    for number in range(1000):
        buckets.take("reads", f"user {number}", 1)

    assert len(buckets) == 100
    assert buckets.take("reads", "user 999", 1) > 0


def test_a_share_of_less_than_one_is_still_one():
    clock = Clock()
    buckets = Buckets(clock)

    assert [buckets.take("writes", "olga", 0.5) for _ in range(2)] == [0, 120]


def test_who_asks_too_often_is_told_when_to_come_again(issue, ask, olga, ravi, settings):
    settings.ADE_RATE_READS = 3
    shown = issue(olga, "operate")

    codes = [ask(shown, READS).status_code for _ in range(5)]

    refused = ask(shown, READS)
    assert codes == [200, 200, 200, 429, 429]
    assert (refused.json()["code"], refused.json()["details"]["kind"]) == ("rate_limited", "reads")
    assert 1 <= int(refused["Retry-After"]) <= 20
    # Other tokens and other kinds of requests still have their full limit.
    assert ask(issue(ravi), READS).status_code == 200
    assert ask(issue(olga, name="other"), READS).status_code == 200
    assert ask(shown, "/configurations/7/runs", {"document_id": 1}).status_code == 404


def test_each_process_has_its_share(issue, ask, olga, settings):
    settings.ADE_RATE_READS, settings.WEB_CONCURRENCY = 6, 3
    shown = issue(olga)

    assert [ask(shown, READS).status_code for _ in range(3)] == [200, 200, 429]


def test_zero_is_no_limit(issue, ask, olga, settings):
    settings.ADE_RATE_READS = 0
    shown = issue(olga)

    assert {ask(shown, READS).status_code for _ in range(20)} == {200}
    assert len(limits.BUCKETS) == 0


def test_what_is_refused_changes_nothing_and_one_entry_tells_of_many(
    issue, ask, olga, configuration, document, settings
):
    settings.ADE_RATE_WRITES = 1
    shown, path = issue(olga, "operate"), f"/configurations/{configuration.pk}/runs"

    codes = [ask(shown, path, {"document_id": document.pk}).status_code for _ in range(5)]

    assert codes == [201, 429, 429, 429, 429]
    assert configuration.runs.count() == 1
    assert list(AuditEntry.objects.order_by("pk").values_list("answered", flat=True)) == [201, 429]


def test_who_may_not_do_it_is_refused_no_more_often_than_others(issue, ask, olga, configuration, document, settings):
    settings.ADE_RATE_WRITES = 1
    shown, path = issue(olga), f"/configurations/{configuration.pk}/runs"

    codes = [ask(shown, path, {"document_id": document.pk}).status_code for _ in range(5)]

    assert codes == [403, 429, 429, 429, 429]
    entries = AuditEntry.objects.order_by("pk").values_list("operation", "answered")
    assert list(entries) == [("runs.submit_run", 403), ("runs.submit_run", 429)]


def test_forged_requests_are_refused_no_more_often_than_others(olga, configuration, settings):
    settings.ADE_RATE_WRITES = 1
    client = Client(enforce_csrf_checks=True)
    client.force_login(olga)
    path = f"/configurations/{configuration.pk}/runs"

    codes = [client.post(path, {}, "application/json").status_code for _ in range(3)]

    assert codes == [403, 429, 429]
    assert AuditEntry.objects.filter(answered__gte=400).count() == 2


@pytest.mark.parametrize(
    ("method", "content_type", "kind"),
    [
        ("GET", "", "reads"),
        ("HEAD", "", "reads"),
        ("POST", "", "writes"),
        ("POST", "application/json", "writes"),
        ("DELETE", "", "writes"),
        ("POST", "multipart/form-data; boundary=x", "uploads"),
        ("PUT", "application/zip", "uploads"),
    ],
)
def test_reads_writes_and_uploads_are_told_apart(rf, method, content_type, kind):
    request = rf.generic(method, READS, b"x" if content_type else b"", content_type=content_type)

    assert limits.kind_of(request) == kind
