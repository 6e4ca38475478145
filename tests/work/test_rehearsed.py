from collections import Counter

import pytest

from runs.models import Run
from work.operations.outcomes import DONE, Outcome, ahead, rehearsed, sentence


@pytest.mark.parametrize("outcome", [*Outcome])
@pytest.mark.parametrize("number", [1, 2])
def test_each_outcome_has_words_before_and_after(outcome, number):
    if outcome in DONE:
        assert ahead(outcome, number).startswith("will ")

    assert rehearsed(Counter({outcome: number})) == f"Of {number} selected, {number} {ahead(outcome, number)}."
    assert str(number) in sentence(Run, Counter({outcome: number}), "running")


def test_a_rehearsal_says_what_is_done_first():
    outcomes = Counter({Outcome.NOT_YOURS: 8, Outcome.ENDED: 52, Outcome.CANCELLED: 1180})

    assert rehearsed(outcomes) == (
        "Of 1,240 selected, 1,180 will be cancelled, 52 have already finished, 8 cannot be changed by you."
    )


def test_a_rehearsal_of_nothing():
    assert rehearsed(Counter()) == "None selected."
