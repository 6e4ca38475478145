import random
from collections import Counter

import pytest

from runs import lifecycle as runs
from runs.models import Run
from tests.factories import BuildFactory, ConfigurationFactory, DocumentFactory
from tests.races.invariants import assert_all_hold
from tests.stepping import until
from work.models import Event

SCALES = [
    pytest.param(3, 10, 150, id="small", marks=pytest.mark.long),
    pytest.param(8, 50, 1000, id="large", marks=pytest.mark.long(seconds=10)),
    pytest.param(16, 50, 5000, id="huge", marks=pytest.mark.soak),
]


@pytest.mark.parametrize(("workers", "papers", "runs_of_them"), SCALES)
def test_processes_work_off_a_queue_from_which_some_is_cancelled_and_some_is_lost(
    programs, settings, workers, papers, runs_of_them
):
    configuration = ConfigurationFactory()
    build = BuildFactory(configuration=configuration, status="ready")
    documents = [DocumentFactory(workspace=configuration.workspace, status="processed") for _ in range(papers)]
    ids = runs.submit_many(configuration, documents * (runs_of_them // papers), actor="olga")
    chance = random.Random(1)
    to_cancel = chance.sample(list(Run.objects.filter(pk__in=ids)), len(ids) // 10)
    answers, running_at_once = Counter(), Counter()

    claimers = [
        programs.main("tests.races.claimer", f"w{n}@here:{n}:boot{n}", n, ADE_LEASE_SECONDS=1) for n in range(workers)
    ]
    until(lambda: not Run.objects.filter(status="queued", pk=ids[0]).exists())

    def look():
        if to_cancel:
            run = to_cancel.pop()
            answers[runs.cancel(run, actor="olga"), run.pk] += 1
        held = Run.objects.filter(status="running").values_list("input_document_id", flat=True)
        running_at_once.update([max(Counter(held).values(), default=0)])
        return not Run.objects.live().exists() and not to_cancel

    until(look, seconds=500)
    ended = [claimer.code() for claimer in claimers]

    assert ended == [0] * workers, [claimer.logged() for claimer in claimers]
    did = sum((Counter(claimer.said[-1]) for claimer in claimers), Counter())
    of_status = Counter(Run.objects.values_list("status", flat=True))
    assert sum(of_status.values()) == len(ids)
    assert of_status["succeeded"] == did["succeed"]
    assert set(running_at_once) <= {0, 1}
    for (answer, run), _ in answers.items():
        assert Run.objects.get(pk=run).status == ("cancelled" if answer in ("cancelled", "running") else answer)
    assert Event.objects.filter(kind="RECOVERED").count() == did["recovered"]
    assert_all_hold(quiet=True)
    assert build.runs.count() == len(ids)
