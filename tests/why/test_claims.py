"""Explanations agree with claims, in whatever state the rows are."""

import random
from collections import Counter

import pytest
from django.db import transaction

from builds import why as of_builds
from builds.models import Build
from runs import why as of_runs
from runs.models import Run
from tests.seeds import many_seeds
from tests.why import crew
from tests.why.lives import Lives, lift

pytestmark = [pytest.mark.edge, pytest.mark.django_db]

EXPLAIN = {"run": (Run, of_runs.explain), "build": (Build, of_builds.explain)}
GATES = ["paused", "worker", "capacity", "build", "processing", "document"]
STEPS = 15


@pytest.fixture(autouse=True)
def workers_that_stay_alive(settings):
    """On a busy machine, a worker must not fall silent between an explanation and its claim."""
    settings.ADE_LEASE_SECONDS = 3600


def explained(kind):
    model, explain = EXPLAIN[kind]
    return {row.pk: explain(row) for row in crew.waiting(model)}


def held_by(explanation):
    return [gate.name for gate in explanation.holding]


def claim_and_compare(kind, chance):
    """Claim with all free slots, and check that exactly the rows without a blocking gate are taken; return what blocks
    the others.
    """
    told = explained(kind)
    taken = [claim.id for claim in crew.claims(kind, chance)]

    assert sorted(taken) == sorted(id for id, explanation in told.items() if not explanation.holding), (
        taken,
        [(explanation.message, held_by(explanation)) for explanation in told.values()],
    )
    return [held_by(explanation) for explanation in told.values() if explanation.holding]


def look_behind_a_gate(chance, seen):
    """Lift the only gate that blocks a run: the gate must open, and the run must be taken unless another gate blocks it
    now.
    """
    held = [explanation for explanation in explained("run").values() if len(explanation.holding) == 1]
    if not held:
        return
    # Prefer the gates that have not been looked behind: some are seldom the only one.
    held = [explanation for explanation in held if explanation.holding[0].name not in seen] or held
    with transaction.atomic():
        explanation = chance.choice(held)
        (gate,), run = explanation.holding, Run.objects.get(pk=explanation.id)
        lift(gate, run)
        seen[gate.name] += 1

        told = of_runs.explain(run)
        assert gate.name not in held_by(told), (explanation.message, gate.message, told.message)
        taken = [claim.id for claim in crew.claims("run", chance)]
        # A run whose document has failed ends instead.
        assert (run.pk in taken) == (told.status == "queued" and not told.holding), told.message
        transaction.set_rollback(True)


def live(seed, workspace):
    """Return which gates blocked something, and which single blocking gates were lifted."""
    chance, held, lifted = random.Random(seed), Counter(), Counter()
    lives = Lives(chance, workspace)
    for _ in range(STEPS):
        for _ in range(chance.randrange(1, 7)):
            lives.go_on()
        look_behind_a_gate(chance, lifted)
        for kind in ("run", "build"):
            for names in claim_and_compare(kind, chance):
                held.update(names)
    assert lives.see_through(), [explanation.message for explanation in explained("run").values()]
    return held, lifted


@pytest.mark.long
def test_exactly_what_nothing_holds_is_claimed(workspace):
    held, lifted = Counter(), Counter()
    for seed in range(60):
        found = live(seed, workspace)
        held.update(found[0])
        lifted.update(found[1])
        if len(lifted) == len(GATES):
            break

    assert {*held} == {*lifted} == {*GATES}


@pytest.mark.parametrize("seed", many_seeds(12, of=60))
def test_exactly_what_nothing_holds_is_claimed_in_many_states(workspace, seed):
    live(seed, workspace)
