import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from documents.models import DocumentField, FieldCorrection
from tests.factories import DocumentFieldFactory, FieldCorrectionFactory, columns_of, events_of, force_status, write
from work import clock

pytestmark = [pytest.mark.edge, pytest.mark.django_db]

LIST = reverse("admin:documents_documentfield_changelist")
CORRECTIONS = reverse("admin:documents_fieldcorrection_changelist")


def page_of(row):
    return reverse(f"admin:documents_{row._meta.model_name}_change", args=[row.pk])


def verb(name, document):
    return reverse(f"admin:{name}_field", args=[document.pk])


@pytest.fixture
def field(document):
    force_status(document, "processed")
    return DocumentFieldFactory(document=document, name="total", value="12.00 EUR", confidence=0.7, page=2)


def names_in(page):
    return [each.name for each in page.context["cl"].result_list]


@pytest.mark.parametrize("who", ["olga", "ravi"])
def test_members_see_the_fields_of_their_documents_and_no_others(field, who, sign_in, request):
    other, others_correction = DocumentFieldFactory(), FieldCorrectionFactory()
    correction = FieldCorrectionFactory(document=field.document, name="total")
    site = sign_in(request.getfixturevalue(who))

    assert [each.pk for each in site.get(LIST).context["cl"].result_list] == [field.pk]
    assert [each.pk for each in site.get(CORRECTIONS).context["cl"].result_list] == [correction.pk]
    assert site.get(page_of(field)).status_code == site.get(page_of(correction)).status_code == 200
    # The same answer as for a row that does not exist.
    assert {site.get(page_of(row)).url for row in (other, others_correction)} == {"/admin/"}


def test_nothing_is_added_changed_or_deleted_by_hand(field, olga, sign_in):
    correction = FieldCorrectionFactory(document=field.document, name="total")
    site, before = sign_in(olga), (columns_of(field), columns_of(correction))

    answers = [
        site.get(f"{LIST}add/"),
        site.get(f"{CORRECTIONS}add/"),
        *(site.post(page_of(row), {"value": "changed"}) for row in (field, correction)),
        *(site.post(page_of(row).replace("/change/", "/delete/"), {"post": "yes"}) for row in (field, correction)),
    ]

    assert [answer.status_code for answer in answers] == [403] * 6
    assert (columns_of(field), columns_of(correction)) == before


def test_the_page_of_a_document_shows_its_fields(field, ravi, sign_in):
    FieldCorrectionFactory(document=field.document, name="total", value="13.00 EUR")
    by_hand = FieldCorrectionFactory(document=field.document, name="by hand", value="found")

    shown = sign_in(ravi).get(page_of(field.document)).content.decode()

    for part in ("12.00 EUR", "13.00 EUR", "0.7", "by hand", "found", "by olga", page_of(field), page_of(by_hand)):
        assert part in shown
    assert verb("correct", field.document) not in shown


def test_an_operator_corrects_and_is_told(field, olga, sign_in, said):
    site = sign_in(olga)
    assert verb("correct", field.document) in site.get(page_of(field)).content.decode()

    page = site.post(verb("correct", field.document), {"name": "total", "value": "13.00 EUR"}, follow=True)

    assert page.redirect_chain == [(page_of(field), 302)]
    assert said(page) == ["Corrected total from “12.00 EUR” to “13.00 EUR”."]
    assert events_of(field.document).last().actor == "olga"
    shown = page.content.decode()
    assert "13.00 EUR</textarea>" in shown
    assert verb("withdraw", field.document) in shown
    assert columns_of(field)["value"] == "12.00 EUR"


def test_an_operator_confirms_with_one_click(field, olga, sign_in, said):
    site = sign_in(olga)
    proposed = site.get(page_of(field)).context["proposed"]

    page = site.post(verb("correct", field.document), {"name": "total", "value": proposed}, follow=True)

    assert said(page) == ["Confirmed total: “12.00 EUR”."]
    assert names_in(site.get(LIST, {"state": "to_look_at"})) == []


def test_an_operator_withdraws(field, olga, sign_in, said):
    FieldCorrectionFactory(document=field.document, name="total")
    site = sign_in(olga)

    page = site.post(verb("withdraw", field.document), {"name": "total"}, follow=True)
    again = site.post(verb("withdraw", field.document), {"name": "total"}, follow=True)

    assert said(page) == ["Withdrew the correction of total."]
    assert said(again) == ["The field total has no correction to withdraw."]
    assert not FieldCorrection.objects.exists()


def test_a_page_that_is_older_than_the_rows_still_corrects(field, olga, sign_in, said):
    name = field.name
    DocumentField.objects.all().delete()
    new = DocumentFieldFactory(document=field.document, name=name, value="12.50 EUR")

    page = sign_in(olga).post(verb("correct", field.document), {"name": name, "value": "13"}, follow=True)

    assert page.redirect_chain == [(page_of(new), 302)]
    assert said(page) == ["Corrected total from “12.50 EUR” to “13”."]


def test_what_no_machine_has_found_is_said_on_the_page_of_the_document(field, olga, sign_in, said):
    site = sign_in(olga)

    page = site.post(verb("correct", field.document), {"name": "colour", "value": "green"}, follow=True)

    assert page.redirect_chain == [(page_of(field.document), 302)]
    assert said(page) == ["Corrected colour from nothing to “green”."]
    assert "colour" in page.content.decode()


def test_what_only_people_have_found_has_a_page_to_correct_it_on(field, olga, sign_in, said):
    by_hand = FieldCorrectionFactory(document=field.document, name="colour", value="green")
    site = sign_in(olga)
    page = site.get(page_of(by_hand))
    assert (page.context["name"], page.context["proposed"]) == ("colour", "green")

    corrected = site.post(verb("correct", field.document), {"name": "colour", "value": "red"}, follow=True)
    withdrawn = site.post(verb("withdraw", field.document), {"name": "colour"}, follow=True)

    assert said(corrected) == ["Corrected colour from “green” to “red”."]
    assert said(withdrawn) == ["Withdrew the correction of colour."]


@pytest.mark.parametrize(("name", "value"), [("", "x"), ("n" * 101, "x"), ("total", "x" * 5001)])
def test_what_cannot_be_kept_is_told(field, olga, sign_in, said, name, value):
    page = sign_in(olga).post(verb("correct", field.document), {"name": name, "value": value}, follow=True)

    (message,) = said(page)
    assert message.startswith("The correction was not saved. The ")
    assert not FieldCorrection.objects.exists()


def test_who_may_not_operate_corrects_nothing(field, ravi, zed, sign_in):
    FieldCorrectionFactory(document=field.document, name="total", value="stays")
    answers = []
    for who, word in ((ravi, "correct"), (ravi, "withdraw"), (zed, "correct"), (zed, "withdraw")):
        answers.append(sign_in(who).post(verb(word, field.document), {"name": "total", "value": "x"}).status_code)

    assert answers == [403, 403, 404, 404]
    assert FieldCorrection.objects.get().value == "stays"
    assert "<textarea" not in sign_in(ravi).get(page_of(field)).content.decode()


def test_it_takes_a_post_and_a_token(field, olga, client):
    client.force_login(olga)
    client.handler.enforce_csrf_checks = True

    assert client.get(verb("correct", field.document)).status_code == 405
    assert client.post(verb("correct", field.document), {"name": "total", "value": "x"}).status_code == 403
    assert not FieldCorrection.objects.exists()


def test_a_purged_document_offers_nothing(field, olga, sign_in, said):
    write(field.document, file="", purged_at=clock.now())
    site = sign_in(olga)

    assert "<textarea" not in site.get(page_of(field)).content.decode()
    page = site.post(verb("correct", field.document), {"name": "total", "value": "x"}, follow=True)
    assert "has been purged" in said(page)[0]


def test_the_list_chooses_what_is_to_be_looked_at(field, olga, sign_in):
    DocumentFieldFactory(document=field.document, name="sure", confidence=0.95)
    DocumentFieldFactory(document=field.document, name="seen", confidence=0.5)
    FieldCorrectionFactory(document=field.document, name="seen")
    site = sign_in(olga)

    assert names_in(site.get(LIST, {"state": "to_look_at"})) == ["total"]
    assert names_in(site.get(LIST, {"state": "corrected"})) == ["seen"]
    assert names_in(site.get(LIST)) == ["seen", "sure", "total"]
    assert names_in(site.get(LIST, {"document": field.document_id + 1})) == []
    assert names_in(site.get(LIST, {"q": "12.00"})) == ["total"]
    assert names_in(site.get(LIST, {"q": "SEE"})) == ["seen"]


def test_text_of_documents_is_text_in_the_page(field, olga, sign_in):
    hostile = "<script>alert(1)</script>"
    bad = DocumentFieldFactory(document=field.document, name=hostile, value=hostile, source=hostile)
    FieldCorrectionFactory(document=field.document, name=hostile, value=f"</textarea>{hostile}")
    site = sign_in(olga)

    for url in (LIST, CORRECTIONS, page_of(bad), page_of(field.document)):
        assert hostile not in site.get(url).content.decode()


def test_a_list_asks_as_often_for_many_rows_as_for_one(field, olga, sign_in):
    site = sign_in(olga)
    site.get(LIST)
    with CaptureQueriesContext(connection) as few:
        site.get(LIST, {"state": "to_look_at"})
    for _ in range(4):
        DocumentFieldFactory(document=field.document, confidence=0.1)

    with CaptureQueriesContext(connection) as many:
        page = site.get(LIST, {"state": "to_look_at"})

    assert len(page.context["cl"].result_list) == 5
    assert len(many) == len(few)
    assert not [query for query in many if '"documents"."text"' in query["sql"]]
