"""The lives of a process with an armed failpoint: each takes some work from beginning to end.

It prints every answer that it gets, so that the test knows what was promised before the process died.
"""

import io
import json
import os
import sys
from threading import Event as Flag

from django.conf import settings

from builds import lifecycle as builds
from builds import work_types as build_kinds
from builds.models import Configuration
from documents import intake, learning, orchestrator, retention, retyping, sender_updates
from documents import lifecycle as documents
from documents import work_types as document_kinds
from documents.models import Document, DocumentProcessingJob, FieldCorrection, Retyping, SenderUpdate
from feeds.briefs.job import DAILY_BRIEF
from feeds.briefs.publishing import publish
from feeds.clustering.job import EVENT_CLUSTERING
from feeds.ingestion import INGESTION, ingest
from feeds.retention.cleanup import all_policies
from runs import lifecycle as runs
from runs import work_types as run_kinds
from runs.models import Run
from schedules import firing, job_runs, requests
from schedules import handler as job_lane
from schedules import work_types as job_kinds
from schedules.jobs import JobContext
from tests.schedules.declared import EACH, each
from webhooks import lifecycle as deliveries
from webhooks import sending
from webhooks.following import Follower
from work import clock, failpoints, lifecycle, recovery
from work.claims import Holdings, Interrupted
from work.work_types import all_work_types
from work.worker_thread import Bell, WorkerThread
from workspaces.models import Workspace

OWNER = f"w1@here:{os.getpid()}:bootsweep"
ARTIFACT = {"name": "result.json", "file": "a", "size_bytes": 2, "sha256": "0" * 64, "content_type": "application/json"}
UPLOADED = b"Dear Olga,\n"


def main(life):
    failpoints.arm_from_settings()
    live = globals().get(f"live_a_{life}") or globals()[f"live_an_{life}"]
    live()
    say("lived", life)


def say(what, answer):
    sys.stdout.write(json.dumps([what, answer]) + "\n")
    sys.stdout.flush()
    return answer


def live_a_run():
    configuration = Configuration.objects.get(name="ready")
    say("submitted", runs.submit(configuration, Document.objects.get(name="contract.pdf"), actor="olga").pk)
    claim = runs.claim_next_run(OWNER)
    say("renewed", not lifecycle.renew(OWNER, [claim]))
    say("published", runs.publish_artifact(claim, ARTIFACT) and claim.id)
    say("succeeded", runs.succeed(claim) and claim.id)


def live_a_cancel():
    waiting = Run.objects.filter(status="queued").last()
    claim = runs.claim_next_run(OWNER)
    for run in (Run.objects.get(pk=claim.id), waiting):
        say("cancelled", [run.pk, runs.cancel(run, actor="olga")])
    say("stopped", runs.stop(claim))


def live_a_build():
    claim = builds.claim_next_build(OWNER)
    say("renewed", not lifecycle.renew(OWNER, [claim]))
    say("built", builds.succeed(claim) and claim.id)
    say("heeded", runs.apply_build_results(OWNER))


def live_an_upload():
    file = io.BytesIO(UPLOADED)
    say("uploaded", intake.receive(Workspace.objects.get(), file, "letter.txt", "", "olga").pk)


def live_a_document():
    job = documents.begin_next_job(OWNER)
    documents.plan(job.id, 2, actor=OWNER)
    while documents.advance(job.id, actor=OWNER):
        while claim := documents.claim_stage(OWNER):
            say("done", documents.finish_stage(claim) and claim.id)
    say("settled", documents.settle(DocumentProcessingJob.objects.get(pk=job.id), actor=OWNER))


def live_a_failure():
    """Fail the processing of a document, and so the run that waits for it."""
    job = documents.begin_next_job(OWNER)
    documents.plan(job.id, 1, actor=OWNER)
    documents.advance(job.id, actor=OWNER)
    claim = documents.claim_stage(OWNER)
    say("failed", documents.fail_stage(claim, documents.REFUSED, "This document is encrypted."))
    say("settled", documents.settle(DocumentProcessingJob.objects.get(pk=job.id), actor=OWNER))
    say("refused", runs.apply_processing_failures(OWNER))


def live_a_processing():
    """Take an uploaded document through its stages, in a slot as a worker has it."""
    live_an_upload()
    while orchestrator.orchestrate(OWNER):
        work_off(document_kinds.STAGE)


def live_a_lesson():
    """Learn from a correction, and bring the other documents of its sender and of its type up to date."""
    sender_updates.BATCH = retyping.BATCH = 2
    while FieldCorrection.objects.filter(learned_at=None).exists():
        learning.learn_due(OWNER)
    while SenderUpdate.objects.exists():
        sender_updates.advance(OWNER)
    while Retyping.objects.exists():
        retyping.advance(OWNER)


def live_a_stage():
    say("done", documents.finish_stage(documents.claim_stage(OWNER)))


def live_a_slot():
    settings.JOBS = [EACH]
    firing.fire(each, actor=OWNER)
    claim = job_lane.claim(OWNER)
    say("renewed", not lifecycle.renew(OWNER, [claim]))
    say("success", job_lane.succeed(claim, 3) and claim.id)


def live_a_brief():
    # Outside the schedule: a scheduled slot might wait for feeds.
    slot = clock.now().replace(microsecond=1)
    claim = job_runs.claim_slot(DAILY_BRIEF.name, slot, OWNER)
    say("renewed", not lifecycle.renew(OWNER, [claim]))
    rows = publish(JobContext(DAILY_BRIEF, slot, claim))
    say("briefed", rows and slot.isoformat())
    say("success", job_runs.succeed(claim, rows) and claim.id)


def live_a_clustering():
    """Run a slot of the job through its handler, as a worker does."""
    requests.run_now(EVENT_CLUSTERING, actor=OWNER)
    work_off(job_kinds.JOB_RUN)


def live_an_engine():
    """Execute a run with an engine, in a slot as a worker has it, and all runs that wait for it."""
    work_off(run_kinds.RUN)


def live_an_environment():
    """Do a build with its real programs, and then the runs that wait for it."""
    work_off(build_kinds.BUILD)
    say("heeded", runs.apply_build_results(OWNER))
    work_off(run_kinds.RUN)


def work_off(kind):
    about = {"owner": OWNER, "bell": Bell(), "holdings": Holdings(), "stopping": Flag(), "on_end": lambda kind: None}
    slot = WorkerThread(kind, 0, **about, on_contention=lambda kind, met: None)
    while slot.run_once():
        say("worked", kind.name)


def live_a_retention():
    for workspace in Workspace.objects.all():
        for there in retention.purge(workspace, actor=OWNER):
            say("purged", there and there["file"])


def live_an_ingestion():
    """Run one slot of the job as a worker does."""
    claim = job_runs.claim_slot(INGESTION.name, clock.now().replace(microsecond=0), OWNER)
    try:
        rows = ingest(JobContext(INGESTION, clock.now(), claim))
    except Interrupted as interrupted:
        say("interrupted", job_lane.fail(claim, interrupted))
    else:
        say("success", job_lane.succeed(claim, rows) and claim.id)


def live_a_cleanup():
    for policy in all_policies():
        for batch in policy.purge(OWNER):
            say("gone", dict(batch.gone))


def live_a_webhook():
    say("followed", Follower().follow(OWNER))
    claim = deliveries.claim_next_delivery(OWNER)
    say("renewed", not lifecycle.renew(OWNER, [claim]))
    try:
        sent = sending.do(claim)
    except Interrupted as interrupted:
        say("interrupted", interrupted.reason)
    else:
        say("delivered", sending.succeed(claim, sent) and claim.id)


def live_a_recovery():
    say("recovered", recovery.rescue_expired(all_work_types(), OWNER))
