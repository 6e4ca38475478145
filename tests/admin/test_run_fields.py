import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.factories import RunFactory, RunFieldFactory, columns_of

pytestmark = [pytest.mark.edge, pytest.mark.django_db]

LIST = reverse("admin:runs_runfield_changelist")


def page_of(field):
    return reverse("admin:runs_runfield_change", args=[field.pk])


@pytest.fixture
def field(configuration, document):
    return RunFieldFactory(run=RunFactory(status="running", configuration=configuration, input_document=document))


@pytest.mark.parametrize("who", ["olga", "ravi"])
def test_members_see_what_their_runs_found_and_no_others(field, who, sign_in, request):
    other = RunFieldFactory()
    site = sign_in(request.getfixturevalue(who))

    assert [each.pk for each in site.get(LIST).context["cl"].result_list] == [field.pk]
    assert site.get(page_of(field)).status_code == 200
    # The same answer as for a row that does not exist.
    assert (site.get(page_of(other)).status_code, site.get(page_of(other)).url) == (302, "/admin/")


def test_a_stranger_sees_nothing(field, zed, sign_in):
    site = sign_in(zed)

    assert site.get(LIST).status_code == site.get(page_of(field)).status_code == 403


def test_nothing_is_added_changed_or_deleted_by_hand(field, olga, sign_in):
    site, before = sign_in(olga), columns_of(field)

    answers = [
        site.get(f"{LIST}add/"),
        site.post(page_of(field), {"value": "changed"}),
        site.post(page_of(field).replace("/change/", "/delete/"), {"post": "yes"}),
    ]

    assert [answer.status_code for answer in answers] == [403] * 3
    assert columns_of(field) == before


def test_fields_are_found_by_name(field, olga, sign_in):
    total = RunFieldFactory(run=field.run, name="total", value={"amount": 12})

    page = sign_in(olga).get(LIST, {"q": "TOTAL"})

    assert [each.pk for each in page.context["cl"].result_list] == [total.pk]
    assert "{&#x27;amount&#x27;: 12}" in page.content.decode()


def test_a_list_asks_as_often_for_many_rows_as_for_one(field, olga, sign_in):
    site = sign_in(olga)
    site.get(LIST)
    with CaptureQueriesContext(connection) as few:
        site.get(LIST)
    for _ in range(3):
        RunFieldFactory(run__configuration=field.run.configuration)

    with CaptureQueriesContext(connection) as many:
        page = site.get(LIST)

    assert len(page.context["cl"].result_list) == 4
    assert len(many) == len(few)
