"""Workers that are killed, stopped and asked to end at random while runs are submitted and cancelled."""

import random
import signal
import time
from collections import Counter
from datetime import datetime

import pytest

from builds import environments
from runs import lifecycle as runs
from runs import scratch
from runs.models import Run
from tests.engines import kinds_of
from tests.processes import START_SECONDS
from tests.races.invariants import assert_all_hold
from tests.stepping import until
from work.models import Event
from work.processes.scratch import sweep

WORKERS, DOCUMENTS = 3, 20
LEASE = 3
# How far the clocks of the database and of this process may differ.
APART_SECONDS = 0.05

SHORT = pytest.mark.long(seconds=25)
LIVES = [
    pytest.param("warm", 1, 20, marks=SHORT),
    # The way engines start does not depend on the database.
    pytest.param("cold", 3, 20, marks=[SHORT, pytest.mark.once]),
    # Thousands of runs.
    pytest.param("warm", 2, 1800, marks=[pytest.mark.soak, pytest.mark.timeout(7200)]),
]


class Chaos:
    def __init__(self, site, chance, engines):
        self.site, self.chance, self.engines = site, chance, engines
        self.documents = [site.document(seconds=chance.choice([0, 0.1, 0.5, 2])) for _ in range(DOCUMENTS)]
        self.workers = [self.start(number) for number in range(WORKERS)]
        self.frozen = {}
        self.killed_at, self.cancelled, self.did = {}, {}, Counter()

    def start(self, number):
        values = {"ADE_LEASE_SECONDS": LEASE, "ADE_DRAIN_SECONDS": 1, **self.engines}
        return self.site.worker(f"w{number}", "run=2", **values)

    def act(self):
        """Do one random thing; some are more frequent than others."""
        often = {self.submit: 12, self.cancel: 3, self.kill: 1, self.freeze: 1, self.thaw: 1, self.tell_to_end: 1}
        (act,) = self.chance.choices(list(often), often.values())
        self.did[act.__name__] += bool(act())

    @property
    def has_done_all(self):
        return all(self.did[name] for name in ("submit", "cancel", "kill", "freeze", "tell_to_end"))

    def submit(self):
        return self.site.submit(self.chance.choice(self.documents))

    def cancel(self):
        if live := list(Run.objects.live()):
            run = self.chance.choice(live)
            self.cancelled[run.pk] = runs.cancel(run, actor="olga")
        return live

    def kill(self):
        number = self.chance.randrange(WORKERS)
        self.frozen.pop(number, None)
        self.killed_at[self.workers[number].pid] = time.monotonic()
        self.workers[number].kill()
        self.workers[number] = self.start(number)
        return True

    def freeze(self):
        number = self.chance.randrange(WORKERS)
        if number in self.frozen or "worker.recovered" not in self.workers[number].logged():
            return False
        self.workers[number].freeze()
        self.frozen[number] = time.monotonic()
        return True

    def thaw(self):
        """Continue a frozen worker, sometimes before its lease expires and sometimes after."""
        for number in list(self.frozen):
            self.workers[number].send(signal.SIGCONT)
            del self.frozen[number]
            return True
        return False

    def tell_to_end(self):
        number = self.chance.randrange(WORKERS)
        if number in self.frozen or "worker.recovered" not in self.workers[number].logged():
            return False
        self.workers[number].send(signal.SIGTERM)
        self.workers[number].code()
        self.workers[number] = self.start(number)
        return True

    def calm_down(self):
        while self.thaw():
            pass
        until(lambda: not Run.objects.live().exists(), every=0.2)
        for worker in self.workers:
            worker.until_logged("worker.recovered")
            worker.send(signal.SIGTERM)
        return [worker.code(START_SECONDS) for worker in self.workers]


@pytest.mark.parametrize(("engines", "seed", "seconds"), LIVES, indirect=["engines"])
def test_whatever_happens_to_workers_no_engines_overlap_and_everything_ends(site, engines, seed, seconds):
    chaos = Chaos(site, random.Random(seed), engines)
    off = time.time() - time.monotonic()
    until_calm = time.monotonic() + seconds

    # On a busy machine less happens in that time, but every kind of event must happen.
    while time.monotonic() < until_calm or not chaos.has_done_all:
        chaos.act()
        time.sleep(chaos.chance.random() / 8)
    codes = chaos.calm_down()

    seen = site.witness.running()
    started = dict(Event.objects.filter(kind="RUN_STARTED").values_list("subject_id", "actor"))
    ended = dict(Run.objects.values_list("pk", "finished_at"))
    assert codes == [0] * WORKERS
    assert site.witness.overlaps() == []
    assert Counter(each.run for each in seen).most_common(1)[0][1] == 1
    assert {each.run for each in seen} <= set(started)
    late = [(each.run, by) for each in seen if (by := each.last + off - stamp(ended[each.run])) > APART_SECONDS]
    assert late == []
    survivors = [(each.run, by) for each in seen if (by := outlived(each, started, chaos.killed_at)) > LEASE]
    assert survivors == []
    assert_that_cancels_bind(chaos.cancelled)
    succeeded = Run.objects.filter(status="succeeded").values_list("pk", flat=True)
    assert set(succeeded) == {each.run for each in seen if each.finished and each.run in set(succeeded)}
    assert site.engines() == []
    sweep(scratch.root())
    environments.sweep()
    assert site.left_behind() == []
    assert [path.name for path in (site.directory / "environments").iterdir() if path.name[:2] in (".b", ".r")] == []
    assert_all_hold(quiet=True)


def stamp(moment: datetime) -> float:
    return moment.timestamp()


def outlived(seen, started, killed_at):
    """Return how long this engine worked after its worker had been killed."""
    pid = int(started[seen.run].split(":")[1])
    return seen.last - killed_at[pid] if pid in killed_at else 0.0


def assert_that_cancels_bind(answers):
    for id, answer in answers.items():
        run = Run.objects.get(pk=id)
        assert run.status == ("cancelled" if answer in ("cancelled", "running") else answer), kinds_of(run)
