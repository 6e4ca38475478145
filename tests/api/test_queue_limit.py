import json

import pytest
from django.test import Client

from runs.models import Run
from tests.api.conftest import client_with
from tests.factories import BuildFactory, ConfigurationFactory, DocumentFactory, MembershipFactory

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]
CLIENTS, PLACES = 40, 7


def test_forty_clients_at_the_limit_get_exactly_the_free_places(threads, settings):
    settings.ADE_QUEUE_SIZE = PLACES
    configuration = ConfigurationFactory()
    BuildFactory(configuration=configuration, status="ready")
    documents = [DocumentFactory(workspace=configuration.workspace, status="processed") for _ in range(CLIENTS)]
    user = MembershipFactory(workspace=configuration.workspace, role="operator").user
    header = client_with(configuration.workspace, user, "operate").defaults["HTTP_AUTHORIZATION"]
    path = f"/configurations/{configuration.pk}/runs"

    def submit(document):
        client = Client(headers={"Authorization": header, "Idempotency-Key": f"of {document.pk}"})
        body = json.dumps({"document_id": document.pk})
        return client.post(path, body, content_type="application/json")

    answers = threads.together([lambda document=document: submit(document) for document in documents])
    again = threads.together([lambda document=document: submit(document) for document in documents])

    taken = [answer.status_code for answer in answers]
    assert (taken.count(201), taken.count(429)) == (PLACES, CLIENTS - PLACES), taken
    assert Run.objects.filter(status="queued").count() == PLACES
    assert all(a.json() == b.json() for a, b in zip(answers, again, strict=True) if a.status_code == 201)
    assert {b.status_code for a, b in zip(answers, again, strict=True) if a.status_code == 429} == {429}
