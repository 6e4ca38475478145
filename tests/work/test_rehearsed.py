from collections import Counter

import pytest

from runs.models import Run
from work.operations.outcomes import DONE, Outcome, forecast, preview_sentence, sentence


@pytest.mark.parametrize("outcome", [*Outcome])
@pytest.mark.parametrize("number", [1, 2])
def test_each_outcome_has_words_before_and_after(outcome, number):
    if outcome in DONE:
        assert forecast(outcome, number).startswith("will ")

    assert (
        preview_sentence(Counter({outcome: number})) == f"Of {number} selected, {number} {forecast(outcome, number)}."
    )
    assert str(number) in sentence(Run, Counter({outcome: number}), "running")


def test_a_rehearsal_says_what_is_done_first():
    outcomes = Counter({Outcome.NOT_YOURS: 8, Outcome.ENDED: 52, Outcome.CANCELLED: 1180})

    assert preview_sentence(outcomes) == (
        "Of 1,240 selected, 1,180 will be cancelled, 52 have already finished, 8 cannot be changed by you."
    )


def test_a_rehearsal_of_nothing():
    assert preview_sentence(Counter()) == "None selected."
