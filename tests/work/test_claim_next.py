import time

import pytest
from django.db import IntegrityError, OperationalError, transaction

from tests.factories import ErrandFactory, columns_of, told
from tests.testwork import lifecycle as errands
from tests.testwork.models import Errand
from tests.writers import WRITERS
from work import lifecycle
from work.sql.contention import Contended

pytestmark = pytest.mark.django_db


@pytest.fixture(params=WRITERS)
def writer(request, monkeypatch):
    monkeypatch.setattr(lifecycle, "_writer", lambda: request.param)
    return request.param


def test_a_claim_brings_the_columns_that_were_asked_for(writer, w1):
    ErrandFactory(script="sleep:1")

    claim = lifecycle.claim_next(errands.ERRAND, "start", w1, Errand.objects.claimable, "script", "result")

    assert claim.values == {"script": "sleep:1", "result": ""}


def test_every_claim_of_a_row_has_a_higher_token(writer, w1):
    errand = ErrandFactory()
    tokens = []

    for _ in range(3):
        claim = errands.claim_next(w1)
        tokens.append(claim.holder.token)
        lifecycle.move(errands.ERRAND, errand.pk, "release")

    assert tokens == [1, 2, 3]


def test_a_claim_is_trusted_for_less_than_its_lease_from_before_it_was_asked_for(writer, w1, settings):
    ErrandFactory()
    before = time.monotonic()

    claim = errands.claim_next(w1)

    assert before < claim.trusted_until < before + settings.ADE_LEASE_SECONDS
    assert claim.is_trusted()


@pytest.mark.parametrize("met", [IntegrityError("one running"), OperationalError("database is locked")], ids=repr)
def test_a_claim_that_meets_others_asks_for_patience(met, monkeypatch, w1):
    errand = ErrandFactory()
    before = columns_of(errand)
    monkeypatch.setattr(lifecycle, "_writer", lambda: Meeting(met))

    with pytest.raises(Contended):
        errands.claim_next(w1)

    assert columns_of(errand) == before


def test_any_other_error_is_not_taken_for_contention(monkeypatch, w1):
    monkeypatch.setattr(lifecycle, "_writer", lambda: Meeting(OperationalError("disk I/O error")))

    with pytest.raises(OperationalError):
        errands.claim_next(w1)


class Meeting:
    def __init__(self, error):
        self.error = error

    def claim_first(self, *arguments):
        raise self.error


def test_what_was_chosen_and_then_taken_by_another_is_not_claimed(writer, w1, w2):
    """The conditional update decides, even if the queryset returns a row that is taken."""
    errand = ErrandFactory(status="doing", owner=w2)
    before = columns_of(errand)

    anything = lambda now: Errand.objects.order_by("id")  # noqa: E731  # a queryset

    assert lifecycle.claim_next(errands.ERRAND, "start", w1, anything) is None
    assert columns_of(errand) == before


def test_one_claim_moves_one_row(writer, w1):
    ErrandFactory.create_batch(5)

    errands.claim_next(w1)

    assert Errand.objects.filter(status="doing").count() == 1
    assert sorted(len(told(errand)) for errand in Errand.objects.all()) == [1, 1, 1, 1, 2]


def test_a_claim_that_is_rolled_back_leaves_the_row_to_be_claimed(writer, w1, w2):
    errand = ErrandFactory()

    with transaction.atomic():
        errands.claim_next(w1)
        transaction.set_rollback(True)

    assert errands.claim_next(w2).id == errand.pk
    assert told(errand) == ["ERRAND_QUEUED", "ERRAND_STARTED"]
