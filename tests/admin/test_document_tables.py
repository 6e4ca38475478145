import pytest
from django.urls import reverse

from documents import cell_corrections
from documents.cell_corrections import Place
from documents.models import CellCorrection
from tests.factories import CellCorrectionFactory, DocumentTableFactory, columns_of, table_of

pytestmark = [pytest.mark.edge, pytest.mark.django_db]

LIST = reverse("admin:documents_documenttable_changelist")
CORRECTIONS = reverse("admin:documents_cellcorrection_changelist")


def page_of(row):
    return reverse(f"admin:documents_{row._meta.model_name}_change", args=[row.pk])


@pytest.fixture
def table(document):
    return table_of(document, ["Article", "Price"], ["<b>Apples</b>", "1.50"], ["Pears", "2.00"])


@pytest.mark.parametrize("who", ["olga", "ravi"])
def test_members_see_the_tables_of_their_documents_and_no_others(table, who, sign_in, request):
    others = DocumentTableFactory(), CellCorrectionFactory()
    correction = CellCorrectionFactory(document=table.document, row=1)
    site = sign_in(request.getfixturevalue(who))

    assert [each.pk for each in site.get(LIST).context["cl"].result_list] == [table.pk]
    assert [each.pk for each in site.get(CORRECTIONS).context["cl"].result_list] == [correction.pk]
    assert site.get(page_of(correction)).status_code == 200
    assert {site.get(page_of(row)).url for row in others} == {"/admin/"}


def test_the_page_of_a_table_has_its_first_rows_with_corrections(table, olga, sign_in, monkeypatch):
    monkeypatch.setattr("documents.table_admin.MOST_SHOWN", 1)
    cell_corrections.correct(table.document_id, Place("table_1", 1, "price"), "1.75", actor="olga")

    page = sign_in(olga).get(page_of(table)).content.decode()

    assert "&lt;b&gt;Apples&lt;/b&gt;" in page
    assert "1.75 (read as “1.50”)" in page
    assert "Pears" not in page


def test_nothing_is_added_changed_or_deleted_by_hand(table, olga, sign_in):
    correction = CellCorrectionFactory(document=table.document, row=1)
    site, before = sign_in(olga), (columns_of(table), columns_of(correction))

    answers = [
        site.get(f"{LIST}add/"),
        site.get(f"{CORRECTIONS}add/"),
        *(site.post(page_of(row), {"name": "changed"}) for row in (table, correction)),
        *(site.post(page_of(row).replace("/change/", "/delete/"), {"post": "yes"}) for row in (table, correction)),
    ]

    assert [answer.status_code for answer in answers] == [403] * 6
    assert (columns_of(table), columns_of(CellCorrection.objects.get())) == before
