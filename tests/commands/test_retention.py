import pytest

from documents.models import Document
from feeds.models import RawArticle
from tests.factories import (
    ArticleFactory,
    BriefArticleFactory,
    DocumentFactory,
    RunFactory,
    WorkspaceFactory,
    age,
    events_of,
    told,
    write,
)

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


@pytest.fixture(autouse=True)
def storage(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"


@pytest.fixture
def workspace(workspace):
    return write(workspace, document_retention_days=30)


@pytest.fixture
def old(workspace):
    def old(days, name="letter.pdf"):
        return age(DocumentFactory(workspace=workspace, status="processed", name=name), days * 24 * 3600)

    return old


def purged():
    return set(Document.objects.filter(purged_at__isnull=False).values_list("pk", flat=True))


def test_a_rehearsal_tells_of_each_workspace_and_changes_nothing(manage, old, workspace, configuration):
    first, _, needed, _ = old(50), old(40), old(45), old(10)
    RunFactory(input_document=needed, configuration=configuration)
    keeps = WorkspaceFactory(name="Borage")

    ended = manage("retention", "--rehearse", "--json")

    ours, other = ended.json["workspaces"]
    assert (ended.code, ended.json["rehearsed"]) == (0, True)
    assert (ours["workspace"], ours["days"], ours["documents"], ours["size_bytes"], ours["kept"]) == (
        *("Aster", 30, 2, 2000, 1),
    )
    assert ours["oldest"].startswith(f"{first.created_at:%Y-%m-%dT%H:%M}")
    assert [row["id"] for row in ours["sample"]][:1] == [first.pk]
    assert (other["id"], other["days"], other["documents"], other["oldest"]) == (keeps.pk, None, 0, None)
    assert purged() == set()
    assert "Preview: would purge the contents of 2 documents: 2,000 bytes." in manage("retention", "--rehearse").out


def test_without_a_rehearsal_it_is_done_and_told(manage, old, workspace, configuration):
    first, needed = old(50), old(45)
    RunFactory(input_document=needed, configuration=configuration)

    ended = manage("retention", "--as", "olga", "--json")

    (ours,) = ended.json["workspaces"]
    assert (ended.json["rehearsed"], ours["documents"], ours["size_bytes"], ours["kept"]) == (False, 1, 1000, 1)
    assert purged() == {first.pk}
    assert events_of(first).last().actor == "olga (command)"
    assert "Purged the contents of 0 documents" in manage("retention").out


def test_one_workspace_alone(manage, old):
    ours = old(50)
    elsewhere = WorkspaceFactory(name="Borage", document_retention_days=30)
    theirs = age(DocumentFactory(workspace=elsewhere, status="processed"), 50 * 24 * 3600)

    assert manage("retention", "--workspace", "Borage").code == 0

    assert purged() == {theirs.pk} != {ours.pk}
    assert manage("retention", "--workspace", "nowhere").code == 6


# Rows outside workspaces


@pytest.fixture
def kept(settings, tmp_path):
    settings.VAR_DIR = tmp_path
    settings.ADE_KEEP_ARTICLES_DAYS, settings.ADE_KEEP_RUNS = 90, {"succeeded": 30}

    def kept(ended):
        return {policy["name"]: policy for policy in ended.json["policies"]}

    return kept


def much_is_due():
    named, gone = (age(ArticleFactory(), 100 * 24 * 3600) for _ in range(2))
    BriefArticleFactory(raw_article=named)
    run = age(RunFactory(status="succeeded"), 31 * 24 * 3600)
    return gone, run


def test_a_rehearsal_tells_of_each_policy_and_changes_nothing(manage, kept):
    gone, run = much_is_due()

    ended = manage("retention", "--rehearse", "--json")

    articles, runs = kept(ended)["articles"], kept(ended)["run history"]
    assert (articles["keeps"], articles["rows"], articles["kept"], articles["gone"]) == ("90 days", 1, 1, {})
    assert articles["oldest"].startswith(f"{gone.seen_at:%Y-%m-%dT%H:%M}")
    assert (runs["keeps"], runs["rows"], runs["gone"]) == ("succeeded 30 days", 1, {})
    assert (RawArticle.objects.count(), told(run)[-1]) == (2, "RUN_SUCCEEDED")
    assert "run history" in manage("retention", "--rehearse").out


def test_without_a_rehearsal_every_policy_is_followed_and_told(manage, kept):
    gone, run = much_is_due()

    ended = manage("retention", "--as", "olga", "--json")

    articles, runs = kept(ended)["articles"], kept(ended)["run history"]
    assert (articles["rows"], articles["kept"]) == (1, 1)
    assert articles["gone"] == {"raw_articles": 1, "cluster_articles": 0, "tombstones_set": 1}
    assert (runs["rows"], runs["gone"]) == (1, {"events": 3, "artifacts": 0})
    assert not RawArticle.objects.filter(pk=gone.pk).exists()
    assert events_of(run).get().actor == "olga (command)"


def test_who_names_a_workspace_means_its_documents_alone(manage, kept, workspace):
    much_is_due()

    ended = manage("retention", "--workspace", "Aster", "--json")

    assert (ended.code, ended.json["policies"]) == (0, [])
    assert RawArticle.objects.count() == 2


def test_what_was_pruned_is_told_where_it_is_looked_for(manage, kept):
    _, run = much_is_due()
    assert manage("run", "show", run.pk, "--json").json["pruned_at"] is None
    assert "pruned" not in manage("run", "logs", run.pk).out
    manage("retention")

    shown = manage("run", "show", run.pk, "--json").json

    assert shown["pruned_at"]
    assert [event["kind"] for event in shown["events"]] == ["RUN_PRUNED"]
    assert "The log was pruned on" in manage("run", "logs", run.pk).out
    assert manage("run", "logs", run.pk, "--json").json["pruned_at"] == shown["pruned_at"]


# The policy of a workspace


def days_of(workspace):
    workspace.refresh_from_db()
    return workspace.document_retention_days


@pytest.mark.parametrize(("text", "days"), [("7", 7), ("off", None), ("36500", 36500)])
def test_a_policy_is_set(manage, workspace, text, days):
    ended = manage("workspace", "retention", "Aster", text, "--json")

    assert (ended.code, ended.json["days"], ended.json["documents"]) == (0, days, 0)
    assert days_of(workspace) == days
    assert manage("workspace", "show", "Aster", "--json").json["document_retention_days"] == days


@pytest.mark.parametrize("text", ["0", "-1", "x", "1.5", "36501", "9" * 30, ""])
def test_what_is_no_policy_is_refused(manage, workspace, text):
    assert manage("workspace", "retention", "Aster", text).code == 2
    assert days_of(workspace) == 30


def test_a_rehearsal_of_a_policy_changes_nothing(manage, workspace, old):
    document = old(10)

    ended = manage("workspace", "retention", "Aster", "7", "--rehearse", "--json")

    assert (ended.code, ended.json["rehearsed"], ended.json["documents"]) == (0, True, 1)
    assert ended.json["sample"][0]["id"] == document.pk
    assert days_of(workspace) == 30


def test_a_shorter_policy_by_which_documents_are_due_has_to_be_confirmed(manage, workspace, old):
    old(10)

    refused = manage("workspace", "retention", "Aster", "7", "--json")
    assert (refused.code, refused.error["code"], refused.error["details"]["documents"]) == (1, "documents_due", 1)
    assert "confirm with --yes." in refused.error["message"]
    assert days_of(workspace) == 30

    assert manage("workspace", "retention", "Aster", "7", "--yes").code == 0
    assert days_of(workspace) == 7
    assert purged() == set()


def test_the_first_policy_has_to_be_confirmed_too_and_a_longer_one_need_not(manage, workspace, old):
    old(100)
    write(workspace, document_retention_days=None)
    assert manage("workspace", "retention", "Aster", "30").code == 1

    write(workspace, document_retention_days=10)
    assert manage("workspace", "retention", "Aster", "30").code == 0
    assert days_of(workspace) == 30


# Purged documents in other commands


def test_what_was_purged_is_shown_as_such_and_takes_no_run(manage, old, configuration):
    document = old(50)
    manage("retention")

    assert manage("document", "show", document.pk, "--json").json["purged_at"]
    refused = manage("run", "submit", configuration.pk, document.pk, "--json")
    assert (refused.code, refused.error["code"]) == (1, "purged")
    assert refused.error["details"]["document"] == document.pk
    assert f"Document {document.pk} was purged on" in refused.error["message"]


def test_a_run_again_of_what_was_purged(manage, old, configuration):
    run = RunFactory(input_document=old(50), configuration=configuration, status="succeeded")
    manage("retention")

    ended = manage("run", "again", run.pk, "--json")

    assert (ended.code, ended.json["runs"][0]["result"]) == (1, "was purged")


# Processing again


@pytest.fixture
def under_way(workspace):
    return DocumentFactory(workspace=workspace)


def test_documents_are_processed_again(manage, old, under_way):
    ended_, purged_ = old(10), old(50)
    manage("retention")

    ended = manage("document", "reprocess", ended_.pk, under_way.pk, purged_.pk, 999_999, "--as", "olga", "--json")

    assert ended.code == 6
    assert [(row["id"], row["result"]) for row in ended.json["documents"]] == [
        (ended_.pk, "queued again"),
        (under_way.pk, "is under way"),
        (purged_.pk, "was purged"),
        (999_999, "not found"),
    ]
    assert ended_.jobs.get().priority == 1
    assert events_of(ended_).last().actor == "olga (command)"


def test_one_alone_is_not_in_bulk(manage, old):
    document = old(10)

    assert manage("document", "reprocess", document.pk).code == 0

    assert document.jobs.get().priority == 0
    assert manage("document", "reprocess", document.pk).code == 1


def test_the_documents_of_a_workspace_are_processed_again(manage, old, under_way):
    documents = [old(10) for _ in range(3)]
    DocumentFactory(status="processed")

    rehearsed = manage("document", "reprocess", "--workspace", "Aster", "--rehearse")
    assert (rehearsed.code, rehearsed.out.strip()) == (*(0, "Preview, nothing was changed: Queued 3 documents again."),)
    some = manage("document", "reprocess", "--workspace", "Aster", "--limit", 2, "--json")
    assert [row["id"] for row in some.json["documents"]] == [document.pk for document in documents[:2]]
    rest = manage("document", "reprocess", "--workspace", "Aster", "--status", "processed")

    assert rest.out.strip() == "Queued 1 document again."
    assert [document.jobs.count() for document in documents] == [1, 1, 1]


def test_the_model_chooses(manage, old):
    old(10)
    ours = write(old(10), embedding_model="model-of-yesterday")

    ended = manage("document", "reprocess", "--workspace", "Aster", "--model-other-than-current", "--json")

    assert ours.pk in [row["id"] for row in ended.json["documents"]]


@pytest.mark.parametrize("arguments", [[], ["1", "--workspace", "Aster"]])
def test_either_documents_or_a_workspace(manage, workspace, arguments):
    assert manage("document", "reprocess", *arguments).code == 2
