import inspect
import io

import pytest

from ade_client import Client, File, Problem
from ade_client.operations import Operations
from api import tokens
from documents import intake
from runs.models import Run
from tests.api.described import OPERATIONS
from tests.api.serving import served
from tests.documents.samples import PDF
from tests.factories import RunFactory, bring_to
from tools.make_client import snake

pytestmark = [pytest.mark.long, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def client(programs, workspace, olga, tmp_path):
    address = served(programs, ADE_VAR_DIR=tmp_path / "var")
    return Client(address, tokens.issue(workspace, olga, "client", ["read", "operate"], actor="olga")[1])


def test_runs_are_submitted_listed_and_shown(client, configuration, document):
    RunFactory.create_batch(5, configuration=configuration, input_document=document)

    made = client.submit_run(configuration.pk, {"document_id": document.pk})
    again = [client.submit_run(configuration.pk, {"document_id": document.pk}, idempotency_key="k") for _ in range(2)]

    assert made["status"] == "queued"
    assert again[0] == again[1]
    assert client.show_run(made["id"])["id"] == made["id"]
    assert [run["id"] for run in client.list_runs(limit=2)] == sorted(Run.objects.values_list("pk", flat=True))[::-1]
    assert list(client.list_runs(status="failed")) == []


def test_a_refusal_is_raised_with_what_was_said(client):
    with pytest.raises(Problem) as raised:
        client.show_run(5)

    assert (raised.value.status, raised.value.code, raised.value.details) == (404, "not_found", {"run": 5})
    assert raised.value.request_id


def test_a_run_is_followed_to_its_end_and_no_further(client, configuration, document):
    run = RunFactory(configuration=configuration, input_document=document)
    events = client.follow_stream_run(run.pk)

    first = next(events)
    bring_to(run, "succeeded")
    rest = list(events)

    assert [event.data["kind"] for event in (first, *rest[:-1])] == ["RUN_QUEUED", "RUN_STARTED", "RUN_SUCCEEDED"]
    assert (rest[-1].kind, rest[-1].data) == ("end", {"reason": "finished"})
    assert [event.kind for event in client.follow_stream_run(run.pk, after=rest[-1].id)] == ["end"]


def test_a_file_is_uploaded_with_progress_and_downloaded_again(client, workspace, tmp_path):
    (path := tmp_path / "invoice.pdf").write_bytes(PDF + b"%" * 200_000)
    told, copy = [], io.BytesIO()

    made = client.upload_document(
        File(path), workspace.pk, progress=lambda sent, bytes_in_all: told.append((sent, bytes_in_all))
    )
    count = client.download_document(made["id"], copy)

    assert made["name"] == "invoice.pdf"
    assert copy.getvalue() == path.read_bytes()
    assert count == path.stat().st_size
    assert [sent for sent, _ in told] == sorted({sent for sent, _ in told})
    assert told[-1][0] == told[-1][1] > count


def test_a_file_is_downloaded_from_the_storage_that_sends_it_itself(
    blobs, azurite, programs, workspace, olga, tmp_path
):
    document = intake.receive(workspace, io.BytesIO(PDF), "invoice.pdf", "", "olga")
    address = served(
        programs,
        ADE_VAR_DIR=tmp_path / "var",
        ADE_STORAGE="azure",
        ADE_AZURE_STORAGE_CONNECTION=azurite.connection(),
        ADE_AZURE_CONTAINER=blobs.azure_container,
    )
    client = Client(address, tokens.issue(workspace, olga, "client", ["read"], actor="olga")[1])

    count = client.download_document(document.pk, copy := io.BytesIO())

    assert (count, copy.getvalue()) == (len(PDF), PDF)


def test_every_operation_is_a_method():
    methods = {name for name, _ in inspect.getmembers(Operations, inspect.isfunction)}

    assert {snake(told["operationId"]) for _, _, told in OPERATIONS} == methods - {"__init__"}
