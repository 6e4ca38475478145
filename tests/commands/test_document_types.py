import pytest

from tests.factories import DocumentProblemFactory, DocumentTypeFieldFactory, FieldCorrectionFactory

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


def test_the_types_of_a_workspace_are_listed(manage, workspace):
    DocumentTypeFieldFactory(type__workspace=workspace, type__name="move", name="since", required=True)

    ended = manage("document", "types", "--workspace", workspace.name, "--json")

    move = ended.json["types"][0]
    assert (move["name"], move["required"], move["built_in"]) == ("move", ["since"], False)
    assert "receipt" in manage("document", "types", "--workspace", workspace.pk).out


def test_the_type_of_a_document_is_chosen_and_withdrawn(manage, document):
    chosen = manage("document", "type", document.pk, "receipt", "--as", "olga", "--json")
    again = manage("document", "type", document.pk, "receipt", "--json")
    withdrawn = manage("document", "type", document.pk, "--let-ade-decide")

    assert (chosen.json["type"], chosen.json["type_chosen_by"], chosen.json["is_changed"]) == (
        "receipt",
        "olga (command)",
        True,
    )
    assert again.json["is_changed"] is False
    assert withdrawn.out.strip() == f"Document {document.pk} has the type unknown."


def test_what_cannot_be_chosen_ends_with_its_own_code(manage, document):
    assert manage("document", "type", document.pk).code == 2
    assert manage("document", "type", document.pk, "letter", "--let-ade-decide").code == 2
    assert manage("document", "type", 999_999, "letter").code == 6
    refused = manage("document", "type", document.pk, "bill", "--json")
    assert (refused.code, "Known types: invoice," in refused.err) == (1, True)


def test_problems_are_listed_and_dismissed(manage, document):
    first, second, other = (
        DocumentProblemFactory(document=document),
        DocumentProblemFactory(document=document, field="date"),
        DocumentProblemFactory(),
    )
    FieldCorrectionFactory(document=document, name="date")

    def ids(*arguments):
        return [row["id"] for row in manage("document", "problems", *arguments, "--json").json["problems"]]

    assert ids() == [other.pk, first.pk]
    assert ids(document.pk) == [second.pk, first.pk]
    assert ids("--workspace", document.workspace.name) == [first.pk]
    dismissed = manage("document", "dismiss", first.pk, 999_999, "--as", "olga", "--json")
    assert [row["result"] for row in dismissed.json["problems"]] == ["dismissed", "not found"]
    assert ids() == [other.pk]
