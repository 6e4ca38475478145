from datetime import timedelta

import pytest
from django.conf import settings

from builds import lifecycle
from builds.models import Build
from tests.factories import BuildFactory, age, events_of, write
from tests.writers import WRITERS
from work import clock
from work import lifecycle as kernel

pytestmark = pytest.mark.django_db


@pytest.fixture(params=WRITERS, autouse=True)
def writer(request, monkeypatch):
    monkeypatch.setattr(kernel, "_writer", lambda: request.param)


def test_a_claim_starts_the_build_and_holds_it(w1):
    build = BuildFactory()
    before = clock.now()

    claim = lifecycle.claim_next_build(w1)

    build.refresh_from_db()
    assert (claim.id, claim.holder.owner, claim.holder.token) == (build.pk, w1, 1)
    assert claim.values == {"configuration_id": build.configuration_id, "fingerprint": build.fingerprint}
    assert (build.status, build.lease_owner, build.claim_token) == ("building", w1, 1)
    assert build.lease_expires_at >= before + timedelta(seconds=settings.ADE_LEASE_SECONDS)
    event = events_of(build).last()
    assert (event.kind, event.from_status, event.to_status) == ("BUILD_STARTED", "queued", "building")
    assert (event.actor, event.claim_token) == (w1, 1)


@pytest.mark.parametrize("status", ["building", "ready", "failed", "cancelled"])
def test_only_a_queued_build_is_claimed(status, w1):
    BuildFactory(status=status)

    assert lifecycle.claim_next_build(w1) is None


def test_the_build_that_was_queued_first_is_claimed_first(w1, w2):
    younger, older = BuildFactory.create_batch(2)
    write(older, queued_at=younger.queued_at - timedelta(seconds=1))

    assert [lifecycle.claim_next_build(w).id for w in (w1, w2)] == [older.pk, younger.pk]


def test_a_build_that_is_queued_again_stands_at_the_end(w1):
    again = age(BuildFactory(status="failed"), 3600)
    waiting = BuildFactory()
    lifecycle.again(again.pk, actor="olga")

    assert lifecycle.claim_next_build(w1).id == waiting.pk


def test_every_claim_has_a_token_of_its_own(w1):
    build = BuildFactory()
    first = lifecycle.claim_next_build(w1)
    lifecycle.fail(first, "BUILD_FAILED", "no such package")
    lifecycle.again(build.pk, actor="olga")

    second = lifecycle.claim_next_build(w1)

    assert (first.holder.token, second.holder.token) == (1, 2)
    assert not lifecycle.succeed(first)
    assert Build.objects.get().status == "building"
    assert lifecycle.succeed(second)
