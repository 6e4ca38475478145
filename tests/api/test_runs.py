import pytest
from django.test import Client
from django.urls import resolve

from api import tokens
from builds.models import Build
from documents.purging import EMPTY
from runs.models import Run
from tests.factories import (
    ArtifactFactory,
    BuildFactory,
    ConfigurationFactory,
    DocumentFactory,
    JobFactory,
    MembershipFactory,
    RunFactory,
    RunFieldFactory,
    force_status,
    told,
    write,
)
from work import clock

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


def post(client, path, body=None, **headers):
    if body is None:
        return client.generic("POST", path, headers=headers)
    return client.post(path, body, content_type="application/json", headers=headers)


def code(answer):
    return answer.status_code, answer.json()["code"]


@pytest.mark.parametrize("path", ["/configurations/{}/runs", "/api/v1/configurations/{}/runs"])
@pytest.mark.parametrize("name", ["document_id", "input_document_id"])
def test_a_run_is_submitted(operator, configuration, build, document, path, name):
    answer = post(operator, path.format(configuration.pk), {name: document.pk})

    run = Run.objects.get()
    assert answer.status_code == 201
    assert answer.json()["id"] == run.pk
    assert (answer.json()["input_document_id"], answer.json()["status"]) == (document.pk, "queued")
    assert answer.json()["outcome"] == "queued"
    assert told(run) == ["RUN_QUEUED"]


@pytest.mark.parametrize("body", [{}, {"document_id": 1, "input_document_id": 1}, {"document_id": 0}, {"id": 1}])
def test_one_document_is_named_once(operator, configuration, body):
    assert code(post(operator, f"/configurations/{configuration.pk}/runs", body)) == (400, "invalid_request")


def test_a_run_waits_for_its_document_unless_the_request_says_otherwise(operator, configuration, build, workspace):
    document = DocumentFactory(workspace=workspace)
    path, body = f"/configurations/{configuration.pk}/runs", {"document_id": document.pk}

    answers = [post(operator, path, body), post(operator, path, body | {"wait_for_processing": False})]
    many = {"configuration_id": configuration.pk, "document_ids": [document.pk], "wait_for_processing": False}
    answers.append(post(operator, "/api/v1/runs", many))

    told = [*(answer.json() for answer in answers[:2]), *answers[2].json()["items"]]
    assert [run["waits_for_processing"] for run in told] == [True, False, False]
    assert list(Run.objects.order_by("pk").values_list("gate", flat=True)) == ["process", "", "document"]


def test_a_document_that_failed_is_refused_unless_the_run_does_not_wait(operator, configuration, build, workspace):
    failed = DocumentFactory(workspace=workspace, status="failed")
    path, body = f"/configurations/{configuration.pk}/runs", {"document_id": failed.pk}

    refused = post(operator, path, body)

    assert code(refused) == (409, "conflict")
    assert refused.json()["details"] == {"document_id": failed.pk, "status": "failed"}
    assert post(operator, path, body | {"wait_for_processing": False}).status_code == 201


def test_why_says_what_its_document_waits_for(operator, configuration, build, workspace):
    document = JobFactory(document=DocumentFactory(workspace=workspace)).document
    run = RunFactory(configuration=configuration, input_document=document)

    (gate,) = (
        each for each in operator.get(f"/api/v1/runs/{run.pk}/why").json()["gates"] if each["name"] == "processing"
    )

    assert (gate["holds"], gate["holder"]) == (True, f"document {document.pk}")
    assert gate["data"] == {"id": document.pk, "status": "processing", "held_by": ["worker"]}
    assert gate["message"].startswith(f"Its document {document.pk} is being processed: No worker is alive.")


def test_many_are_submitted_at_once(operator, configuration, build, workspace):
    documents = [DocumentFactory(workspace=workspace) for _ in range(3)]
    ids = [document.pk for document in documents]

    answer = post(operator, "/api/v1/runs", {"configuration_id": configuration.pk, "document_ids": ids})

    assert answer.status_code == 201
    assert [run["input_document_id"] for run in answer.json()["items"]] == ids


def test_of_many_all_or_none(settings, operator, configuration, build, document):
    settings.ADE_QUEUE_SIZE = 1
    body = {"configuration_id": configuration.pk, "document_ids": [document.pk, document.pk]}

    full = post(operator, "/api/v1/runs", body)
    body["document_ids"] = [document.pk, DocumentFactory().pk]
    foreign = post(operator, "/api/v1/runs", body)

    assert code(full) == (429, "run_queue_full")
    assert full.json()["details"] == {"limit": 1, "live": 0, "asked": 2}
    assert full["Retry-After"] == "5"
    assert code(foreign) == (404, "not_found")
    assert Run.objects.count() == 0


@pytest.mark.parametrize("number", [0, 1001])
def test_many_are_from_one_to_a_thousand(operator, configuration, document, number):
    body = {"configuration_id": configuration.pk, "document_ids": [document.pk] * number}

    assert code(post(operator, "/api/v1/runs", body)) == (400, "invalid_request")


def test_who_has_lost_the_answer_gets_it_again(operator, configuration, build, document):
    body = {"configuration_id": configuration.pk, "document_ids": [document.pk]}

    first, second = (post(operator, "/api/v1/runs", body, idempotency_key="k1") for _ in range(2))

    assert (first.status_code, second.status_code, first.json()) == (201, 201, second.json())
    assert Run.objects.count() == 1


def test_a_purged_document_is_gone(operator, configuration, build, document):
    write(document, status="processed")
    write(document, purged_at=clock.now(), **EMPTY)

    assert code(post(operator, f"/configurations/{configuration.pk}/runs", {"document_id": document.pk})) == (
        410,
        "gone",
    )


def test_a_viewer_only_looks(viewer, workspace, ravi, configuration, document):
    run = RunFactory(configuration=configuration)
    _, shown = tokens.issue(workspace, ravi, "wide", ["operate"], actor="test")
    wide = Client(headers={"Authorization": f"Bearer {shown}"})

    for client in (viewer, wide):
        assert client.get(f"/api/v1/runs/{run.pk}").status_code == 200
        for path, body in (
            (f"/configurations/{configuration.pk}/runs", {"document_id": document.pk}),
            (f"/api/v1/runs/{run.pk}/cancel", None),
            (f"/api/v1/runs/{run.pk}/again", None),
            (f"/api/v1/builds/{run.build_id}/cancel", None),
            (f"/api/v1/builds/{run.build_id}/again", None),
        ):
            assert code(post(client, path, body)) == (403, "forbidden"), path


def test_what_is_of_others_is_not_there(operator):
    run = RunFactory()
    artifact = ArtifactFactory(run=run)
    of_run = ["", "/events", "/log", "/artifacts", "/why", "/forecast"]
    paths = [f"/api/v1/runs/{run.pk}{end}" for end in of_run]
    paths += [f"/api/v1/artifacts/{artifact.pk}{end}" for end in ("", "/content", "/link")]
    paths += [f"/api/v1/builds/{run.build_id}{end}" for end in ("", "/events", "/log", "/why")]
    paths += [
        f"/api/v1/runs?{name}={id}"
        for name, id in (
            ("workspace_id", run.workspace_id),
            ("configuration_id", run.configuration_id),
            ("build_id", run.build_id),
            ("document_id", run.input_document_id),
        )
    ]
    paths += [
        f"/api/v1/builds?configuration_id={run.configuration_id}",
        f"/api/v1/builds?workspace_id={run.workspace_id}",
    ]

    for path in paths:
        assert code(operator.get(path)) == (404, "not_found"), path
    for path in (f"/api/v1/runs/{run.pk}", f"/api/v1/builds/{run.build_id}"):
        for verb in ("cancel", "again"):
            assert code(post(operator, f"{path}/{verb}")) == (404, "not_found"), path
    assert operator.get("/api/v1/runs").json()["items"] == []
    assert operator.get("/api/v1/builds").json()["items"] == []


def test_a_list_goes_page_by_page(operator, configuration):
    ids = [RunFactory(configuration=configuration).pk for _ in range(5)][::-1]
    RunFactory()

    first = operator.get("/api/v1/runs?limit=2").json()
    second = operator.get(f"/api/v1/runs?limit=2&cursor={first['next']}").json()
    last = operator.get(f"/api/v1/runs?limit=2&cursor={second['next']}").json()

    assert [run["id"] for page in (first, second, last) for run in page["items"]] == ids
    assert last["next"] is None


def test_a_list_is_filtered(operator, configuration):
    late = force_status(RunFactory(configuration=configuration), "failed", failure_type="TIMED_OUT")
    failed = force_status(RunFactory(configuration=configuration), "failed")
    queued = RunFactory(configuration=configuration)

    def ids(query):
        return [run["id"] for run in operator.get(f"/api/v1/runs?{query}").json()["items"]]

    assert ids("status=failed") == [failed.pk, late.pk]
    assert ids("outcome=timed_out") == [late.pk]
    assert ids("status=failed&outcome=failed") == [failed.pk]
    assert ids("status=queued&outcome=failed") == []
    assert ids(f"document_id={queued.input_document_id}") == [queued.pk]
    assert ids(f"build_id={queued.build_id}&order=id") == [late.pk, failed.pk, queued.pk]
    assert ids("created_after=2199-01-01T00:00:00Z") == []
    assert ids("created_before=2199-01-01T00:00:00Z&status=queued") == [queued.pk]
    assert code(operator.get("/api/v1/runs?status=odd")) == (400, "invalid_request")
    assert code(operator.get("/api/v1/runs?created_after=2199-01-01T00:00:00")) == (400, "invalid_request")


def test_a_run_tells_what_it_found_and_made(operator, configuration):
    run = RunFactory(configuration=configuration, status="running")
    RunFieldFactory(run=run, name="total", value=0, confidence=0.0, box=[0, 0, 1, 0.5])
    artifact = ArtifactFactory(run=run, name="total.json")

    found = operator.get(f"/api/v1/runs/{run.pk}").json()

    assert found["fields"] == [
        {
            "position": 0,
            "name": "total",
            "value": 0,
            "confidence": 0.0,
            "page": None,
            "box": [0, 0, 1, 0.5],
            "step": None,
        }
    ]
    assert [(each["id"], each["name"]) for each in found["artifacts"]] == [(artifact.pk, "total.json")]
    assert operator.get(f"/api/v1/runs/{run.pk}/artifacts").json()["items"] == found["artifacts"]


def test_what_is_queued_is_cancelled_with_a_reason(operator, configuration):
    run = RunFactory(configuration=configuration)

    answer = post(operator, f"/api/v1/runs/{run.pk}/cancel", {"reason": "the wrong one"})

    assert answer.json()["result"] == "cancelled"
    assert answer.json()["run"]["status"] == "cancelled"
    event = operator.get(f"/api/v1/runs/{run.pk}/events?kind=RUN_CANCELLED").json()["items"][0]
    assert (event["actor"], event["message"]) == ("olga (token of olga)", "the wrong one")


def test_what_is_running_is_asked_and_stays_asked(operator, configuration):
    run = RunFactory(configuration=configuration, status="running")

    answers = [post(operator, f"/api/v1/runs/{run.pk}/cancel") for _ in range(2)]

    assert [answer.json()["result"] for answer in answers] == ["asked", "asked"]
    assert answers[0].json()["run"]["cancel_requested_by"] == "olga (token of olga)"


@pytest.mark.parametrize("status", ["succeeded", "failed", "cancelled"])
def test_what_has_finished_cannot_be_cancelled(operator, configuration, status):
    run = RunFactory(configuration=configuration, status=status)

    answer = post(operator, f"/api/v1/runs/{run.pk}/cancel")

    assert code(answer) == (409, "conflict")
    assert answer.json()["details"] == {"id": run.pk, "status": status}


def test_again_is_a_new_run_and_one_for_each_key(operator, configuration):
    run = RunFactory(configuration=configuration, status="failed")

    first, second = (post(operator, f"/api/v1/runs/{run.pk}/again", idempotency_key="k") for _ in range(2))

    assert (first.status_code, first.json()) == (201, second.json())
    assert first.json()["id"] != run.pk
    assert Run.objects.count() == 2


def test_why_does_not_name_runs_of_others(operator, configuration):
    run = RunFactory(configuration=configuration)

    found = operator.get(f"/api/v1/runs/{run.pk}/why").json()

    assert (found["status"], found["held_by"]) == ("queued", ["worker"])
    assert [gate["name"] for gate in found["gates"]] == [
        *("paused", "worker", "capacity", "build", "processing", "document")
    ]


def test_a_forecast_says_what_it_is_based_on(operator, configuration):
    run = RunFactory(configuration=configuration)

    assert operator.get(f"/api/v1/runs/{run.pk}/forecast").json() == {
        "status": "queued",
        "position": 1,
        "position_in_words": "1",
        "estimated_start": None,
        "based_on": "No estimate: no live worker takes runs.",
    }


def test_a_build_tells_what_it_has_and_who_waits(operator, configuration):
    build = BuildFactory(configuration=configuration)
    runs = [RunFactory(configuration=configuration, build=build) for _ in range(2)]

    found = operator.get(f"/api/v1/builds/{build.pk}").json()

    assert found["waiting"] == {"count": 2, "run_ids": [run.pk for run in runs]}
    assert (found["status"], found["lock"], found["losses"]) == ("queued", None, 0)
    assert "snapshot" not in found
    assert operator.get("/api/v1/builds?status=queued").json()["items"][0]["id"] == build.pk
    assert operator.get(f"/api/v1/builds/{build.pk}/why").json()["held_by"] == ["worker"]


def test_a_build_is_cancelled_and_made_again(operator, configuration):
    build = BuildFactory(configuration=configuration)
    path = f"/api/v1/builds/{build.pk}"

    assert code(post(operator, f"{path}/again")) == (409, "conflict")
    assert post(operator, f"{path}/cancel").json()["result"] == "cancelled"
    assert code(post(operator, f"{path}/cancel")) == (409, "conflict")
    assert post(operator, f"{path}/again").json()["status"] == "queued"
    assert Build.objects.get().status == "queued"


def test_a_session_works_too(configuration, olga, document, build):
    other = MembershipFactory(user=olga, role="viewer").workspace
    RunFactory(configuration=ConfigurationFactory(workspace=other))
    mine = RunFactory(configuration=configuration)
    client = Client()
    client.force_login(olga)

    assert len(client.get("/api/v1/runs").json()["items"]) == 2
    assert [run["id"] for run in client.get(f"/api/v1/runs?workspace_id={mine.workspace_id}").json()["items"]] == [
        mine.pk
    ]


def test_a_run_has_the_addresses_of_its_stream_log_and_files(operator, configuration, build, document):
    made = post(operator, f"/configurations/{configuration.pk}/runs", {"document_id": document.pk}).json()
    shown = operator.get(f"/api/v1/runs/{made['id']}").json()

    assert made["addresses"] == shown["addresses"]
    assert set(made["addresses"]) == {"stream", "log", "files"}
    assert operator.get(made["addresses"]["log"]).status_code == 200
    assert operator.get(made["addresses"]["files"]).json()["items"] == []
    assert resolve(made["addresses"]["stream"]).route.endswith("/stream")
