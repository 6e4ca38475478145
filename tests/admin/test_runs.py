"""Operators run a configuration over a document in the admin."""

import pytest
from django.urls import reverse

from runs.models import Run
from tests.factories import ConfigurationFactory, DocumentFactory, events_of
from workspaces.models import Membership

pytestmark = [pytest.mark.edge, pytest.mark.django_db]

ADD = "/admin/runs/run/add/"


@pytest.fixture
def document(workspace):
    return DocumentFactory(workspace=workspace, status="processed")


@pytest.fixture
def operator(client, olga):
    olga.is_staff = True
    olga.save()
    client.force_login(olga)
    return client


def errors_of(page):
    return [str(error) for errors in page.context["form"].errors.values() for error in errors]


def test_an_operator_starts_a_run_and_sees_it(operator, configuration, document):
    page = operator.post(ADD, {"configuration": configuration.pk, "document": document.pk}, follow=True)

    run = Run.objects.get()
    assert page.redirect_chain[-1][0] == reverse("admin:runs_run_change", args=[run.pk])
    assert f"Started run {run.pk} of {configuration.name}." in page.content.decode()
    assert (run.configuration, run.input_document, run.waits_for_processing) == (configuration, document, True)
    assert events_of(run).get().actor == "olga"


def test_the_page_of_a_document_leads_to_the_form_with_its_id(operator, document):
    page = operator.get(reverse("admin:documents_document_change", args=[document.pk]))
    assert f'href="{ADD}?document={document.pk}"' in page.content.decode()

    form = operator.get(f"{ADD}?document={document.pk}").context["form"]

    assert form["document"].value() == str(document.pk)


def test_a_run_can_start_before_its_document_is_processed(operator, configuration, workspace):
    document = DocumentFactory(workspace=workspace, status="processing")

    operator.post(ADD, {"configuration": configuration.pk, "document": document.pk, "at_once": "on"})

    assert Run.objects.get().waits_for_processing is False


@pytest.mark.parametrize("id", ["", "x", "0", "9" * 30])
def test_what_is_no_document_is_said_at_the_field(operator, configuration, id):
    page = operator.post(ADD, {"configuration": configuration.pk, "document": id})

    assert page.status_code == 200
    assert "No run was started." in page.content.decode()
    assert len(errors_of(page)) == 1
    assert not Run.objects.exists()


def test_a_refused_run_says_why(operator, configuration, workspace):
    failed = DocumentFactory(workspace=workspace, status="failed")

    page = operator.post(ADD, {"configuration": configuration.pk, "document": failed.pk})

    assert "could not be processed" in errors_of(page)[0]
    assert not Run.objects.exists()


def test_rows_of_workspaces_that_one_does_not_operate_are_neither_offered_nor_accepted(
    operator, olga, configuration, document
):
    watched = ConfigurationFactory(name="only watched")
    Membership.objects.create(user=olga, workspace=watched.workspace, role=Membership.Role.VIEWER)
    strange = DocumentFactory(workspace=watched.workspace, status="processed")

    assert "only watched" not in operator.get(ADD).content.decode()
    for values in ({"configuration": watched.pk, "document": document.pk}, {"document": strange.pk}):
        page = operator.post(ADD, {"configuration": configuration.pk, **values})
        assert len(errors_of(page)) == 1
    assert not Run.objects.exists()


def test_a_document_of_another_workspace_is_refused(operator, olga, configuration):
    other = DocumentFactory(status="processed")
    Membership.objects.create(user=olga, workspace=other.workspace, role=Membership.Role.OPERATOR)

    page = operator.post(ADD, {"configuration": configuration.pk, "document": other.pk})

    assert "workspace" in errors_of(page)[0]
    assert not Run.objects.exists()


def test_a_viewer_may_not_start_a_run(client, ravi, configuration, document):
    ravi.is_staff = True
    ravi.save()
    client.force_login(ravi)

    assert client.get(ADD).status_code == 403
    assert client.post(ADD, {"configuration": configuration.pk, "document": document.pk}).status_code == 403
    assert not Run.objects.exists()
