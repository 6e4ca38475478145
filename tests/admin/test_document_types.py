"""Operators define types in the admin, and choose the type of a document there."""

import pytest

from documents.models import DocumentType, Retyping
from tests.factories import DocumentTypeFactory, DocumentTypeFieldFactory, WorkspaceFactory, force_status

pytestmark = [pytest.mark.edge, pytest.mark.django_db]

LIST = "/admin/documents/documenttype/"


def form(*fields, **values):
    rows = {"fields-TOTAL_FORMS": len(fields), "fields-INITIAL_FORMS": 0}
    for number, field in enumerate(fields):
        rows |= {f"fields-{number}-{name}": value for name, value in ({"position": 0, "kind": "text"} | field).items()}
    return {"label": "Moving notice", "name": "move", "words": "", "threshold": "0.8"} | values | rows


def test_a_type_is_added_with_its_fields_and_its_documents_are_judged_again(olga, sign_in, workspace):
    fields = {"name": "since", "kind": "date", "required": "on", "threshold": "0.9"}, {"name": "to"}

    response = sign_in(olga).post(f"{LIST}add/", form(*fields, workspace=workspace.pk))

    assert response.status_code == 302
    made = DocumentType.objects.get()
    assert (made.workspace, made.name, made.label) == (workspace, "move", "Moving notice")
    assert list(made.fields.values_list("name", "kind", "required", "threshold")) == [
        ("since", "date", True, 0.9),
        ("to", "text", False, None),
    ]
    assert Retyping.objects.get().name == "move"


@pytest.mark.parametrize(
    "wrong",
    [{"threshold": "1.5"}, {"name": "two words"}, {"name": "taken"}, {"label": ""}],
    ids=lambda wrong: str(wrong),
)
def test_a_type_that_cannot_be_is_refused_with_a_sentence(olga, sign_in, workspace, wrong):
    DocumentTypeFactory(workspace=workspace, name="taken")

    page = sign_in(olga).post(f"{LIST}add/", form(workspace=workspace.pk, **wrong))

    assert page.status_code == 200
    assert page.context["errors"]
    assert DocumentType.objects.count() == 1


def test_types_of_other_workspaces_cannot_be_seen_or_made(olga, sign_in):
    foreign = DocumentTypeFactory()
    site = sign_in(olga)

    assert site.get(f"{LIST}{foreign.pk}/change/").status_code == 302
    assert foreign.label not in site.get(LIST).content.decode()
    assert site.post(f"{LIST}add/", form(workspace=WorkspaceFactory().pk)).status_code == 200
    assert DocumentType.objects.count() == 1


def test_a_viewer_sees_types_and_changes_none(ravi, sign_in, workspace):
    own = DocumentTypeFieldFactory(type__workspace=workspace).type
    site = sign_in(ravi)

    assert own.label in site.get(LIST).content.decode()
    assert site.get(f"{LIST}{own.pk}/change/").status_code == 200
    assert site.post(f"{LIST}{own.pk}/change/", form(label="Mine")).status_code == 403
    assert site.post(f"{LIST}{own.pk}/delete/", {"post": "yes"}).status_code == 403
    assert site.get(f"{LIST}add/").status_code == 403


def test_a_type_is_removed_and_its_documents_are_judged_again(olga, sign_in, workspace):
    own = DocumentTypeFactory(workspace=workspace)

    assert sign_in(olga).post(f"{LIST}{own.pk}/delete/", {"post": "yes"}).status_code == 302

    assert not DocumentType.objects.exists()
    assert Retyping.objects.get().name == own.name


@pytest.mark.parametrize(("who", "code"), [("olga", 302), ("ravi", 403), ("zed", 404)])
def test_the_type_of_a_document_is_chosen_by_operators(request, sign_in, document, who, code):
    force_status(document, "processed")
    site = sign_in(request.getfixturevalue(who))

    response = site.post(f"/admin/documents/document/{document.pk}/type/", {"type": "receipt"})

    assert response.status_code == code
    document.refresh_from_db()
    assert document.type == ("receipt" if code == 302 else "")
