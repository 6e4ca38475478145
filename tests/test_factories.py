import pytest

from tests import factories
from tests.factories import MOVES, force_status
from work.models import Event

FACTORIES = {f._meta.model: f for f in factories.SubjectFactory.__subclasses__()}
EVERY_STATUS = [
    (model, status)
    for model, states in MOVES.items()
    for status in sorted({states.initial} | {states[verb].target for verb in states})
]


@pytest.mark.django_db
@pytest.mark.parametrize(("model", "status"), EVERY_STATUS, ids=lambda v: getattr(v, "__name__", v))
def test_a_row_in_any_status_has_a_history_without_gaps(model, status):
    row = FACTORIES[model](status=status)

    events = Event.objects.filter(subject_kind=MOVES[model].kind, subject_id=row.pk).order_by("sequence")
    assert row.status == status
    assert [e.sequence for e in events] == list(range(1, row.last_sequence + 1))
    assert events.last().to_status == status


@pytest.mark.django_db
@pytest.mark.parametrize(("model", "status"), EVERY_STATUS, ids=lambda v: getattr(v, "__name__", v))
def test_a_row_can_be_forced_into_any_status(model, status):
    row = FACTORIES[model]()

    assert force_status(row, status).status == status
