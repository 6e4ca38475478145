"""Random histories of runs and builds, through the verbs and through some accidents."""

from contextlib import suppress

from builds import lifecycle as builds
from builds.models import Build
from documents import lifecycle as documents
from documents.models import Document
from runs import gates, processing_gates, queue
from runs import lifecycle as runs
from runs.models import Run
from runs.why import explain
from tests.factories import (
    ConfigurationFactory,
    DocumentFactory,
    age,
    claim_of,
    end_processing,
    expire_lease,
    write,
)
from tests.why import crew
from work import recovery
from work.models import Worker
from work.work_types import work_type_named

W9 = "w9@elsewhere:1:boot9"
KINDS = ("run", "build")


class Lives:
    """A life starts without workers: those of an earlier one would keep the gate `worker` open."""

    def __init__(self, chance, workspace):
        self.chance = chance
        for worker in Worker.objects.alive():
            crew.sign_off(worker)
        self.configurations = [ConfigurationFactory(workspace=workspace) for _ in range(3)]
        self.documents = [DocumentFactory(workspace=workspace, status="processed") for _ in range(6)]

    def go_on(self):
        acts = {
            self.submit: 8,
            self.end_a_run: 4,
            self.end_a_build: 4,
            self.cancel: 2,
            self.lose: 1,
            self.pause_or_resume: 1,
            self.crew_changes: 3,
            self.periodic_tasks: 3,
            self.forget: 2,
            self.build_again: 1,
            self.reprocess: 1,
            self.end_processing: 2,
        }
        (act,) = self.chance.choices(list(acts), list(acts.values()))
        act()

    def submit(self):
        configuration, document = self.chance.choice(self.configurations), self.chance.choice(self.documents)
        waits = self.chance.random() < 0.7
        with suppress(runs.DocumentFailed):
            runs.submit(configuration, document, actor="olga", wait_for_processing=waits)

    def end_a_run(self):
        if run := self._one(Run.objects.filter(status="running")):
            self.chance.choice(ENDS)(claim_of(run))

    def end_a_build(self):
        if build := self._one(Build.objects.filter(status="building")):
            claim = claim_of(build)
            if self.chance.random() < 0.75:
                builds.succeed(claim)
            else:
                builds.fail(claim, "BUILD_FAILED", "no such package")

    def cancel(self):
        if self.chance.random() < 0.7:
            if run := self._one(Run.objects.live()):
                runs.cancel(run, actor="olga")
        elif build := self._one(Build.objects.filter(status__in=["queued", "building"])):
            builds.cancel(build, actor="olga")

    def lose(self):
        """Lose a worker with everything that it holds."""
        if worker := self._one(Worker.objects.alive()):
            crew.fall_silent(worker)
            for model in (Run, Build):
                for row in model.objects.filter(lease_owner=worker.owner):
                    expire_lease(row)
            if self.chance.random() < 0.5:
                recovery.rescue_expired([work_type_named(kind) for kind in KINDS], W9)

    def pause_or_resume(self):
        (queue.pause if self.chance.random() < 0.5 else queue.resume)(actor="olga")

    def crew_changes(self):
        worker = self._one(Worker.objects.alive())
        if worker and self.chance.random() < 0.4:
            crew.sign_off(worker)
        else:
            crew.sign_on(run=self.chance.randrange(3), build=self.chance.randrange(3))

    def periodic_tasks(self):
        periodic_tasks()

    def forget(self):
        """Leave a gate wrong, as a process that was killed between two steps would."""
        if run := self._one(Run.objects.queued().exclude(gate__in=["build", "failed"])):
            shut = ["document", "process"] if run.waits_for_processing else ["document"]
            write(run, gate="" if run.gate else self.chance.choice(shut))

    def build_again(self):
        """Make the failure old enough for a new submission to build again."""
        if build := self._one(Build.objects.filter(status__in=["failed", "cancelled"])):
            age(build, 120)

    def reprocess(self):
        documents.reprocess(self.chance.choice(self.documents), actor="olga")

    def end_processing(self):
        if document := self._one(Document.objects.filter(status="processing", pk__in=[d.pk for d in self.documents])):
            end_processing(document, "processed" if self.chance.random() < 0.75 else "failed")

    def see_through(self):
        """Finish everything that waits; return whether the queue became empty."""
        queue.resume(actor="olga")
        crew.sign_on(run=2, build=1)
        for _ in range(200):
            if not Run.objects.queued().exists():
                return True
            self.end_processing()
            self.periodic_tasks()
            for kind in KINDS:
                crew.claims(kind, self.chance)
            for run in Run.objects.filter(status="running"):
                runs.succeed(claim_of(run))
            for build in Build.objects.filter(status="building"):
                builds.succeed(claim_of(build))
        return False

    def _one(self, rows):
        found = list(rows.order_by("pk"))
        return self.chance.choice(found) if found else None


def periodic_tasks():
    runs.apply_build_results(W9)
    processing_gates.mend()
    runs.apply_processing_failures(W9)
    gates.open_forgotten()


ENDS = (
    runs.succeed,
    lambda claim: runs.fail(claim, "ENGINE_FAILED", "exit code 1"),
)


def lift(gate, run):
    """Remove the reason that this gate of a run gives."""
    if gate.name == "paused":
        queue.resume(actor="olga")
    elif gate.name in ("worker", "capacity"):
        crew.sign_on(run=1000)
    elif gate.name == "build":
        _make(Build.objects.get(pk=gate.data["id"]))
        runs.apply_build_results(W9)
    elif gate.name == "processing":
        document = Document.objects.get(pk=gate.data["id"])
        assert gate.holder == f"document {document.pk}"
        if document.status == "processing":
            end_processing(document)
        periodic_tasks()
    else:
        _out_of_the_way(run)


def _make(build):
    if build.status in ("failed", "cancelled"):
        assert builds.again(build.pk, actor="olga")
    while (build := Build.objects.get(pk=build.pk)).status == "queued":
        crew.sign_on(build=1)
        assert work_type_named("build").handler.claim(W9)
    if build.status == "building":
        # Withdraw any cancel request first.
        write(build, cancel_requested_at=None, cancel_requested_by="")
        assert builds.succeed(claim_of(build))


def _out_of_the_way(run):
    """End the runs that the gate names, one after the other; if it names none, workers will open it."""
    for _ in range(100):
        (gate,) = (gate for gate in explain(run).gates if gate.name == "document")
        if not gate.holds:
            return
        if gate.data["id"] is None:
            gates.open_forgotten()
            continue
        other = Run.objects.get(pk=gate.data["id"])
        assert gate.holder == f"run {other.pk}"
        assert (other.input_document_id, other.status) == (run.input_document_id, gate.data["status"])
        if other.status == "running":
            runs.succeed(claim_of(other))
        else:
            runs.cancel(other, actor="olga")
    raise AssertionError(f"{run} is held for ever")
