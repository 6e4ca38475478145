from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.test import Client

from api import retention
from api.models import AuditEntry, KeptAnswer
from tests.factories import AuditEntryFactory, KeptAnswerFactory, age
from work import clock

pytestmark = [pytest.mark.edge, pytest.mark.django_db]
HOUR = 3600


def test_answers_are_kept_for_a_day(issue, ask, olga, workspace):
    old, new = age(KeptAnswerFactory(), 24 * HOUR + 5), age(KeptAnswerFactory(), 23 * HOUR)

    assert retention.ANSWERS.due().rows == 1
    assert [dict(batch.gone) for batch in retention.ANSWERS.purge("olga")] == [{"api_kept_answers": 1}]

    assert list(KeptAnswer.objects.all()) == [new]
    assert old not in KeptAnswer.objects.all()


def test_the_audit_log_is_kept_for_as_long_as_is_said(settings):
    settings.ADE_KEEP_AUDIT_DAYS = 10
    old, new = age(AuditEntryFactory(), 11 * 24 * HOUR), age(AuditEntryFactory(), 9 * 24 * HOUR)

    assert retention.AUDIT.due().oldest == old.at
    list(retention.AUDIT.purge("olga"))

    assert list(AuditEntry.objects.all()) == [new]


def test_it_is_kept_for_ever_if_that_is_wanted(settings):
    settings.ADE_KEEP_AUDIT_DAYS = None
    age(AuditEntryFactory(), 10_000 * 24 * HOUR)

    assert list(retention.AUDIT.purge("olga")) == []
    assert retention.AUDIT.keeps() == "off"


def test_sessions_go_when_they_have_expired(client, olga, zed):
    client.force_login(zed)
    Session.objects.update(expire_date=clock.now() - timedelta(seconds=1))
    Client().force_login(olga)

    assert retention.SESSIONS.due().rows == 1
    list(retention.SESSIONS.purge("olga"))

    assert [session.get_decoded()["_auth_user_id"] for session in Session.objects.all()] == [str(olga.pk)]


def test_many_go_in_batches():
    KeptAnswer.objects.bulk_create(KeptAnswerFactory.build_batch(250))
    KeptAnswer.objects.update(created_at=KeptAnswer.objects.first().created_at - timedelta(days=2))

    sizes = [batch.gone["api_kept_answers"] for batch in retention.ANSWERS.purge("olga")]

    assert sum(sizes) == 250
    assert len(sizes) >= 2
