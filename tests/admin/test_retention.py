import pytest

from documents import retention
from documents.models import Document
from tests.admin.test_workspaces import ada as ada
from tests.admin.test_workspaces import change_of, form
from tests.factories import W1, DocumentFactory, age, events_of, write

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


@pytest.fixture(autouse=True)
def storage(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"


@pytest.fixture
def old(workspace):
    write(workspace, document_retention_days=30)
    return lambda days: age(DocumentFactory(workspace=workspace, status="processed"), days * 24 * 3600)


@pytest.fixture
def purged(old):
    document = old(50)
    retention.purge_due(W1)
    document.refresh_from_db()
    assert document.purged_at
    return document


def policy(days, **more):
    return form([]) | {"document_retention_days": days} | more


def days_of(workspace):
    workspace.refresh_from_db()
    return workspace.document_retention_days


# The policy


def test_an_admin_sets_the_policy_and_it_is_told(sign_in, ada, workspace, caplog):
    assert sign_in(ada).post(change_of(workspace), policy("7")).status_code == 302

    assert days_of(workspace) == 7
    assert any("retention.policy" in line and "'ada'" in line for line in map(str, caplog.messages))


def test_the_page_says_how_many_documents_are_due(sign_in, ada, workspace, old):
    old(50)
    old(10)

    page = sign_in(ada).get(change_of(workspace)).content.decode()

    assert "1 documents are older than this" in page
    assert "Counted from the upload." in page


def test_a_shorter_policy_by_which_documents_are_due_has_to_be_confirmed(sign_in, ada, workspace, old):
    old(10)

    page = sign_in(ada).post(change_of(workspace), policy("7"))
    assert "1 documents are older and would be purged at once" in page.content.decode()
    assert days_of(workspace) == 30
    assert sign_in(ada).post(change_of(workspace), policy("7", purge="on")).status_code == 302

    assert days_of(workspace) == 7


@pytest.mark.parametrize("days", ["0", "-1", "x", "36501", "9" * 30])
def test_what_is_no_policy_is_refused(sign_in, ada, workspace, days):
    assert sign_in(ada).post(change_of(workspace), policy(days)).status_code == 200

    assert days_of(workspace) is None


@pytest.mark.parametrize("who", ["olga", "ravi"])
def test_others_read_the_policy_and_do_not_write_it(sign_in, workspace, old, request, who):
    site = sign_in(request.getfixturevalue(who))

    page = site.get(change_of(workspace)).content.decode()
    assert "30" in page
    assert "documents are older than this" in page
    assert 'name="document_retention_days"' not in page
    assert 'name="purge"' not in page

    assert site.post(change_of(workspace), policy("7")).status_code == 403
    assert days_of(workspace) == 30


# Processing again


@pytest.fixture
def under_way(workspace):
    return DocumentFactory(workspace=workspace)


def test_documents_are_processed_again_under_the_name_of_the_person(act, olga, old, purged, under_way):
    documents = [old(10), old(10)]

    assert act(olga, "reprocess", *documents, purged, under_way) == [
        "Queued 2 documents again. Skipped 1 that is in progress, 1 whose document was purged."
    ]

    assert [events_of(each).last().actor for each in documents] == ["olga"] * 2
    assert [each.jobs.get().priority for each in documents] == [1, 1]


def test_the_button_does_it_for_one(press, olga, old):
    document = old(10)

    assert press(olga, "reprocess", document).status_code == 302

    assert document.jobs.get().priority == 0


@pytest.mark.parametrize(("who", "code"), [("ravi", 403), ("zed", 404)])
def test_others_do_not_process_again(press, old, request, who, code):
    document = old(10)

    assert press(request.getfixturevalue(who), "reprocess", document).status_code == code

    assert not document.jobs.exists()


def buttons(client, document):
    page = client.get(f"/admin/documents/document/{document.pk}/change/")
    return [label for _, label in page.context.get("buttons", [])]


def test_the_button_is_there_when_there_is_something_to_process(sign_in, olga, old, purged, under_way):
    site = sign_in(olga)

    assert buttons(site, old(10)) == ["Process again"]
    assert buttons(site, under_way) == []
    assert buttons(site, purged) == []


# Purged documents


def test_the_page_of_a_purged_document_says_so(sign_in, ravi, purged):
    page = sign_in(ravi).get(f"/admin/documents/document/{purged.pk}/change/").content.decode()

    assert f"purged on {purged.purged_at:%Y-%m-%d %H:%M} UTC" in page
    assert "DOCUMENT_PURGED" in page


def test_its_download_is_gone_and_says_so_to_members_only(sign_in, ravi, zed, purged):
    url = f"/documents/{purged.pk}/download/"

    answer = sign_in(ravi).get(url)
    assert (answer.status_code, answer["Content-Type"]) == (410, "text/plain")
    assert f"purged on {purged.purged_at:%Y-%m-%d}" in answer.content.decode()
    assert sign_in(zed).get(url).status_code == 404


def test_it_cannot_be_stored_again(sign_in, olga, purged):
    answer = sign_in(olga).post("/admin/documents/document/add/", {"again": purged.pk, "name": "letter.pdf"})

    assert answer.status_code == 200
    assert Document.objects.count() == 1
