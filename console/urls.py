from django.urls import path, register_converter
from django.urls.converters import StringConverter

from console import live, signing_in
from console.pages import (
    builds,
    clusters,
    compare,
    dashboard,
    documents,
    failures,
    feeds,
    invariants,
    jobs,
    late_writes,
    news,
    runs,
    workers,
)


class LiveKind(StringConverter):
    """A path converter for the kinds of rows that have streams."""

    regex = "|".join(live.ROWS)


register_converter(LiveKind, "live_kind")

app_name = "console"
urlpatterns = [
    path("", dashboard.dashboard, name="dashboard"),
    path("sign-in/", signing_in.sign_in, name="sign_in"),
    path("sign-out/", signing_in.sign_out, name="sign_out"),
    path("password/", signing_in.change_password, name="change_password"),
    path("password/changed/", signing_in.password_changed, name="password_changed"),
    path("live/", live.everything, name="live"),
    path("live/<live_kind:kind>/<int:id>/", live.one, name="live_one"),
    path("news/", news.news, name="news"),
    path("news/seen/", news.mark_as_seen, name="seen"),
    path("queue/pause/", dashboard.pause_queue, name="pause_queue"),
    path("queue/resume/", dashboard.resume_queue, name="resume_queue"),
    path("runs/", runs.runs, name="runs"),
    path("runs/<int:id>/", runs.run, name="run"),
    path("runs/<int:id>/log/", runs.log, name="run_log"),
    path("runs/<int:id>/compare/", compare.compare, name="run_compare"),
    path("runs/<int:id>/cancel/", runs.cancel, name="cancel_run"),
    path("runs/<int:id>/again/", runs.again, name="run_again"),
    path("artifacts/<int:id>/", runs.artifact, name="artifact"),
    path("artifacts/<int:id>/pages/<int:number>.png", runs.artifact_page, name="artifact_page"),
    path("builds/", builds.builds, name="builds"),
    path("builds/<int:id>/", builds.build, name="build"),
    path("builds/<int:id>/log/", builds.log, name="build_log"),
    path("builds/<int:id>/cancel/", builds.cancel, name="cancel_build"),
    path("builds/<int:id>/again/", builds.again, name="build_again"),
    path("documents/", documents.documents, name="documents"),
    path("documents/add/", documents.add, name="document_add"),
    path("documents/<int:id>/", documents.document, name="document"),
    path("documents/<int:id>/pages/<int:number>.png", documents.page_image, name="document_page"),
    path("documents/<int:id>/correct/", documents.correct, name="correct_field"),
    path("documents/<int:id>/withdraw/", documents.withdraw, name="withdraw_field"),
    path("documents/<int:id>/reprocess/", documents.reprocess, name="reprocess_document"),
    path("failures/", failures.failures, name="failures"),
    path("failures/<slug:cause>/", failures.failure, name="failure"),
    path("failures/<slug:cause>/note/", failures.note, name="note_failure"),
    path("failures/<slug:cause>/rehearse/", failures.rehearse, name="rehearse_failure"),
    path("failures/<slug:cause>/again/", failures.again, name="failure_again"),
    path("failures/<slug:cause>/again/<slug:key>/", failures.outcome, name="failure_outcome"),
    path("jobs/", jobs.jobs, name="jobs"),
    path("jobs/<str:name>/", jobs.job, name="job"),
    path("jobs/<str:name>/why/", jobs.show_why, name="job_why"),
    path("jobs/<str:name>/runs/<int:id>/", jobs.job_run, name="job_run"),
    path("jobs/<str:name>/trigger/", jobs.trigger, name="trigger_job"),
    path("jobs/<str:name>/pause/", jobs.pause, name="pause_job"),
    path("jobs/<str:name>/resume/", jobs.resume, name="resume_job"),
    path("jobs/<str:name>/backfill/rehearse/", jobs.rehearse_backfill, name="rehearse_backfill"),
    path("jobs/<str:name>/backfill/", jobs.backfill, name="backfill_job"),
    path("feeds/", feeds.feeds, name="feeds"),
    path("feeds/add/", feeds.add, name="add_feed"),
    path("feeds/import/", feeds.import_feeds, name="import_feeds"),
    path("feeds/export/", feeds.export, name="export_feeds"),
    path("feeds/<int:id>/", feeds.feed, name="feed"),
    path("feeds/<int:id>/check/", feeds.check, name="check_feed"),
    path("feeds/<int:id>/pause/", feeds.pause, name="pause_feed"),
    path("feeds/<int:id>/resume/", feeds.resume, name="resume_feed"),
    path("clusters/", clusters.clusters, name="clusters"),
    path("clusters/<int:id>/", clusters.cluster, name="cluster"),
    path("workers/", workers.workers, name="workers"),
    path("workers/<int:id>/", workers.worker, name="worker"),
    path("workers/<int:id>/drain/", workers.drain, name="drain_worker"),
    path("promises/", invariants.invariants, name="promises"),
    path("promises/check/", invariants.check, name="check_promises"),
    path("late-writes/", late_writes.late_writes, name="late_writes"),
]
