import re

import pytest
from axes.models import AccessAttempt
from django.apps import apps
from django.contrib import admin
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from api.models import ApiToken, AuditEntry, KeptAnswer
from builds.models import Build, Configuration
from documents.models import (
    CellCorrection,
    Document,
    DocumentField,
    DocumentProblem,
    DocumentProcessingJob,
    DocumentTable,
    DocumentType,
    FieldCorrection,
    OutsideService,
    Sender,
    SenderLesson,
    Stage,
)
from feeds.models import ClusterArticle, EventCluster, FeedSource, PurgedUrl, RawArticle
from runs.models import Artifact, Queue, Run
from schedules.models import JobRun
from tests.breaches import much_has_happened
from tests.factories import (
    ApiTokenFactory,
    ArticleFactory,
    ArtifactFactory,
    AuditEntryFactory,
    BuildFactory,
    CellCorrectionFactory,
    ClusterArticleFactory,
    ClusterFactory,
    ConfigurationFactory,
    DeliveryFactory,
    DocumentFactory,
    DocumentFieldFactory,
    DocumentProblemFactory,
    DocumentTableFactory,
    DocumentTypeFactory,
    FeedFactory,
    FieldCorrectionFactory,
    JobFactory,
    JobRunFactory,
    KeptAnswerFactory,
    PurgedUrlFactory,
    QueueFactory,
    RunFactory,
    SenderFactory,
    SenderLessonFactory,
    StageFactory,
    UserFactory,
    WebhookFactory,
    WorkspaceFactory,
    force_status,
)
from webhooks.models import Delivery, Webhook
from work import boots
from work.models import Event, Worker
from workspaces.models import Workspace

pytestmark = [pytest.mark.edge, pytest.mark.django_db]

FACTORIES = {
    Workspace: WorkspaceFactory,
    Document: DocumentFactory,
    DocumentField: DocumentFieldFactory,
    DocumentProblem: DocumentProblemFactory,
    DocumentType: DocumentTypeFactory,
    FieldCorrection: FieldCorrectionFactory,
    DocumentTable: DocumentTableFactory,
    CellCorrection: CellCorrectionFactory,
    Sender: SenderFactory,
    SenderLesson: SenderLessonFactory,
    DocumentProcessingJob: JobFactory,
    Stage: StageFactory,
    Configuration: ConfigurationFactory,
    Build: BuildFactory,
    Run: RunFactory,
    Artifact: ArtifactFactory,
    JobRun: JobRunFactory,
    Queue: QueueFactory,
    FeedSource: FeedFactory,
    RawArticle: ArticleFactory,
    EventCluster: ClusterFactory,
    ClusterArticle: ClusterArticleFactory,
    PurgedUrl: PurgedUrlFactory,
    ApiToken: ApiTokenFactory,
    KeptAnswer: KeptAnswerFactory,
    AuditEntry: AuditEntryFactory,
    AccessAttempt: lambda: AccessAttempt.objects.create(
        username=f"olga {AccessAttempt.objects.count()}", ip_address="192.0.2.7", failures_since_start=1
    ),
    OutsideService: lambda: OutsideService.objects.create(name=f"service {OutsideService.objects.count()}"),
    Webhook: WebhookFactory,
    Delivery: DeliveryFactory,
    Event: DocumentFactory,
    Worker: lambda: boots.register("w1", f"boot-{Worker.objects.count()}", {"run": 2}),
}
every_model = pytest.mark.parametrize("model", FACTORIES, ids=lambda model: model._meta.model_name)


@pytest.fixture
def root(client):
    client.force_login(UserFactory(username="root", is_staff=True, is_superuser=True))
    return client


def list_of(model):
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


def page_of(row):
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk])


def rows_in(page):
    return page.content.decode().count('class="action-select"') or page.content.decode().count("field-__str__")


def test_every_model_is_there():
    inlines = {inline.model for registered in admin.site._registry.values() for inline in registered.inlines}
    missing = {
        model._meta.label
        for app in apps.get_app_configs()
        if not app.name.startswith(("django.", "tests.")) and app.name not in {"axes", "console", "django_q"}
        for model in app.get_models()
        if not admin.site.is_registered(model) and model not in inlines
    }

    # Rows that exist only to be locked, or that only say how far a task has come, have no admin page. The page of a
    # table shows its rows.
    briefs = {"feeds.Brief", "feeds.BriefItem", "feeds.BriefArticle"}
    assert missing - briefs == {
        "documents.Retyping",
        "documents.TableRows",
        "documents.SenderUpdate",
        "runs.Admission",
        "schedules.SchedulerLease",
        "webhooks.WebhookTail",
    }


@every_model
def test_a_list_and_a_page_open_for_a_superuser(root, model):
    FACTORIES[model]()

    page = root.get(list_of(model))

    assert page.status_code == 200
    assert page.context["cl"].result_count > 0
    for row in model._base_manager.all()[:3]:
        assert root.get(page_of(row)).status_code == 200


def test_lists_and_pages_open_when_much_has_happened(root):
    much_has_happened()

    for model in FACTORIES:
        assert root.get(list_of(model)).status_code == 200
        if row := model._base_manager.first():
            assert root.get(page_of(row)).status_code == 200


@every_model
def test_a_list_asks_as_often_for_many_rows_as_for_one(root, model):
    FACTORIES[model]()
    root.get(list_of(model))
    with CaptureQueriesContext(
        connection,
    ) as few:
        root.get(list_of(model))
    for _ in range(4):
        FACTORIES[model]()

    with CaptureQueriesContext(connection) as many:
        root.get(list_of(model))

    assert len(many) == len(few)


@every_model
def test_no_list_is_counted_to_its_end(root, model):
    FACTORIES[model]()

    with CaptureQueriesContext(connection) as queries:
        root.get(list_of(model))

    counts = [query["sql"] for query in queries if "COUNT(" in query["sql"]]
    assert len(counts) == 1
    assert "LIMIT 10001" in counts[0]


@pytest.mark.parametrize(
    "model",
    [Run, Build, Document, DocumentProcessingJob, Stage, RawArticle, EventCluster, ClusterArticle],
    ids=lambda m: m._meta.model_name,
)
def test_no_list_reads_large_columns(root, model):
    FACTORIES[model]()

    with CaptureQueriesContext(connection) as queries:
        root.get(list_of(model))

    texts = ('"documents"."text"', '"configurations"."files"', '"builds"."snapshot"', '"builds"."lock"')
    of_articles = ('"raw_articles"."summary"', '"raw_articles"."embedding"', '"event_clusters"."centroid"')
    for large in (*texts, *of_articles):
        assert not [query for query in queries if large in query["sql"]]


def test_a_list_that_is_longer_than_it_is_counted_says_so(root, monkeypatch):
    monkeypatch.setattr("work.operations.admin.MOST_COUNTED", 2)
    monkeypatch.setattr("runs.admin.RunAdmin.list_per_page", 1)
    for _ in range(3):
        RunFactory()

    page = root.get(list_of(Run))

    assert "over 2 runs" in page.content.decode()
    assert len(page.context["cl"].result_list) == 1


def test_the_newest_come_first(root):
    first, second = RunFactory(), RunFactory()

    assert [run.pk for run in root.get(list_of(Run)).context["cl"].result_list] == [second.pk, first.pk]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"outcome": "timed_out"}, ["late"]),
        ({"outcome": "failed"}, ["bad"]),
        ({"outcome": "nonsense"}, []),
        ({"outcome": ""}, ["bad", "late", "new"]),
        ({"q": "{late}"}, ["late"]),
        ({"q": "run {late}"}, ["late"]),
        ({"q": "#{late}"}, ["late"]),
        ({"q": "SLOW.pdf"}, ["late"]),
        ({"q": "engine fell"}, ["bad"]),
        ({"q": "987654"}, ["new"]),
        ({"q": "9" * 19}, []),
        ({"q": "9" * 5000}, []),
        ({"q": "\0"}, ["bad", "late", "new"]),
        ({"q": "%"}, []),
        ({"workspace": "{workspace}"}, ["bad"]),
        ({"configuration": "{configuration}"}, ["bad"]),
        # An object of another workspace.
        ({"workspace": "{elsewhere}", "configuration": "{configuration}"}, []),
        ({"workspace": "0"}, []),
        ({"workspace": "9" * 30}, []),
        ({"workspace": "x\0"}, []),
        ({"workspace": ""}, ["bad", "late", "new"]),
        ({"p": "7"}, ["bad", "late", "new"]),
        ({"o": "3.-1"}, ["bad", "late", "new"]),
    ],
    ids=lambda value: re.sub(r"9{19,}", "nines", str(value)) if isinstance(value, dict) else None,
)
def test_runs_are_found(root, query, found):
    runs = {
        "late": force_status(RunFactory(input_document__name="slow.pdf"), "failed", failure_type="TIMED_OUT"),
        "bad": force_status(RunFactory(), "failed", error_message="the engine fell over"),
        "new": RunFactory(input_document__name="987654.pdf"),
    }
    words = {
        "late": runs["late"].pk,
        "workspace": runs["bad"].workspace_id,
        "elsewhere": runs["new"].workspace_id,
        "configuration": runs["bad"].configuration_id,
    }
    query = {name: value.format(**words) for name, value in query.items()}

    page = root.get(list_of(Run), query, follow=True)

    assert page.status_code == 200
    assert sorted(name for name in runs if runs[name] in page.context["cl"].result_list) == found


@every_model
@pytest.mark.parametrize(
    "lookup", ["id__regex", "workspace__memberships__user__password__startswith", "error_message", "_connector"]
)
def test_nothing_can_be_looked_up_that_is_not_offered(root, model, lookup):
    assert root.get(list_of(model), {lookup: "a"}).status_code in (302, 400)


def test_a_filter_works_for_what_is_not_among_the_first(root, monkeypatch):
    monkeypatch.setattr("workspaces.permissions.MOST_CHOICES", 1)
    _, second = RunFactory(), RunFactory()

    for name, row in (("workspace", second.workspace), ("configuration", second.configuration)):
        page = root.get(list_of(Run), {name: row.pk})
        assert list(page.context["cl"].result_list) == [second]
        chosen = next(each for each in page.context["cl"].filter_specs if each.title == name)
        assert (str(row.pk), row.name) in chosen.lookup_choices


@pytest.mark.parametrize("asked", ["x", "9" * 30, "²"])
def test_what_is_no_number_has_no_artifacts(root, asked):
    artifact = ArtifactFactory()

    def listed(run):
        return list(root.get(list_of(Artifact), {"run": run}).context["cl"].result_list)

    assert (listed(asked), listed(artifact.run_id), listed("")) == ([], [artifact], [artifact])


def test_events_are_found_by_what_they_are_about(root):
    run, other = RunFactory(), RunFactory()

    def about(query):
        found = root.get(list_of(Event), query).context["cl"].result_list
        return {(event.subject_kind, event.subject_id) for event in found}

    assert about({"q": f"run {run.pk}"}) == {("run", run.pk)}
    assert ("run", run.pk) in about({"q": str(run.pk)})
    assert ("run", other.pk) not in about({"q": str(run.pk)})
    assert about({"q": "drop table"}) == set()
    assert {kind for kind, _ in about({"subject_kind": "build"})} == {"build"}


def test_workers_that_are_alive(root):
    alive, dead = FACTORIES[Worker](), FACTORIES[Worker]()
    Worker.objects.filter(pk=dead.pk).update(stopped_at=dead.started_at)

    assert list(root.get(list_of(Worker), {"state": "alive"}).context["cl"].result_list) == [alive]
