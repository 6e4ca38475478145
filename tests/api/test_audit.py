import json

import pytest
from django.db import DatabaseError, InterfaceError, connection
from django.urls import reverse

from api import audit
from api.models import AuditEntry, KeptAnswer
from runs.models import Run
from tests.factories import AuditEntryFactory, ConfigurationFactory, MembershipFactory, RunFactory, UserFactory
from workspaces.models import Workspace

pytestmark = [pytest.mark.edge, pytest.mark.django_db]
AUDIT = "/api/v1/audit"


def entries(**wanted):
    wanted = {"operation__startswith": "", **wanted}
    return list(AuditEntry.objects.filter(**wanted).exclude(operation="sign_in").order_by("pk"))


def submit(ask, shown, configuration, document, **headers):
    return ask(shown, f"/configurations/{configuration.pk}/runs", {"document_id": document.pk}, **headers)


def test_a_change_is_written_down_with_who_and_how_it_was_answered(issue, ask, olga, configuration, document):
    shown = issue(olga, "operate")

    answer = submit(ask, shown, configuration, document, **{"X-Request-ID": "request-17"})

    (entry,) = entries()
    assert (entry.actor, entry.person, entry.token.name) == ("olga (token nightly)", olga, "nightly")
    assert (entry.method, entry.path) == ("POST", f"/configurations/{configuration.pk}/runs")
    assert (entry.operation, entry.answered) == ("runs.submit_run", answer.status_code)
    assert (entry.subject_kind, entry.subject_id) == ("configuration", configuration.pk)
    assert (entry.workspace, entry.address) == (configuration.workspace, "127.0.0.1")
    assert entry.request_id == answer["X-Request-ID"] == "request-17"


def test_nothing_is_written_of_what_only_reads(issue, ask, client, olga):
    shown = issue(olga, "operate")
    client.force_login(olga)

    for path in ("/api/v1/runs", "/admin/", "/documents/search/"):
        client.get(path)
        client.head(path)
        client.options(path)
    ask(shown, "/api/v1/runs")

    assert entries() == []


def test_what_is_refused_is_written_of_whoever_is_known(issue, ask, client, olga, configuration, document):
    reader, operator = issue(olga), issue(olga, "operate", name="more")
    elsewhere = ConfigurationFactory()

    submit(ask, reader, configuration, document)
    submit(ask, operator, elsewhere, document)
    ask(operator, f"/configurations/{configuration.pk}/runs", {"nonsense": 1})
    submit(ask, "ade_unknown", configuration, document)
    client.post(f"/configurations/{configuration.pk}/runs")

    assert [entry.answered for entry in entries()] == [403, 404, 400]
    # A refusal in one workspace is not written to the audit log of another.
    assert {entry.workspace for entry in entries()} == {configuration.workspace}


def test_it_is_written_before_the_change_and_stays_when_the_process_dies(
    issue, ask, olga, configuration, document, monkeypatch
):
    class Killed(BaseException):
        pass

    def die(*args, **options):
        assert [(entry.operation, entry.answered) for entry in entries()] == [("runs.submit_run", None)]
        raise Killed

    monkeypatch.setattr("runs.lifecycle.submit", die)

    with pytest.raises(Killed):
        submit(ask, issue(olga, "operate"), configuration, document)

    assert entries()[0].answered is None


def test_without_an_entry_nothing_is_changed(issue, ask, olga, configuration, document, monkeypatch):
    def fail(*args):
        raise DatabaseError("no place left")

    monkeypatch.setattr(audit, "_write", fail)

    assert submit(ask, issue(olga, "operate"), configuration, document).status_code >= 500
    assert not Run.objects.exists()


@pytest.mark.parametrize("error", [DatabaseError("no place left"), InterfaceError("the connection is closed")])
def test_an_answer_is_given_even_if_its_entry_cannot_be_completed(
    issue, ask, olga, configuration, document, monkeypatch, error
):
    def fail(*args):
        raise error

    monkeypatch.setattr(audit, "_changed_columns", fail)

    assert submit(ask, issue(olga, "operate"), configuration, document).status_code == 201
    assert entries()[0].answered is None


def test_no_body_and_no_secret_is_kept(issue, ask, client, olga, ada, workspace):
    shown = issue(olga, "operate")
    made = ask(shown, "/api/v1/tokens?key=canary", {"workspace_id": workspace.pk, "name": "canary"})
    client.post("/admin/login/?next=/canary", {"username": "canary-password", "password": "canary-password"})
    client.force_login(ada)
    client.post(reverse("admin:api_apitoken_add"), {"workspace": workspace.pk, "name": "canary"})

    said = json.dumps(list(AuditEntry.objects.values()), default=str)
    assert made.status_code == 400
    assert "canary" not in said
    assert shown[20:] not in said


def test_what_is_asked_with_strange_words_is_one_line(client, olga):
    client.force_login(olga)

    client.generic("POST", "/admin/%00%0a%1b[31m/" + "x" * 5000)

    (entry,) = entries()
    assert entry.path.startswith("/admin/\\x00\\n\\x1b[31m/xxx")
    assert (entry.answered, len(entry.path)) == (404, 500)


def test_changes_in_the_admin_name_their_row_and_its_workspace(client, olga, workspace, configuration):
    run = RunFactory(configuration=configuration)
    client.force_login(olga)

    client.post(f"/admin/runs/run/{run.pk}/cancel/")
    client.post("/admin/runs/run/", {"action": "cancel", "_selected_action": [run.pk, RunFactory().pk]})
    client.post(f"/admin/builds/build/{run.build_id}/cancel/")
    client.post(f"/admin/runs/run/{run.pk}/delete/", {"post": "yes"})

    one, many, build, refused = entries()
    assert (one.subject_kind, one.subject_id, one.workspace) == ("run", run.pk, workspace)
    assert (one.operation, one.answered, one.person) == ("admin/runs/run/<int:id>/cancel/", 302, olga)
    assert (many.operation, many.subject_id) == ("admin:runs_run_changelist", None)
    assert (build.subject_kind, build.workspace) == ("build", workspace)
    assert refused.answered == 403


def test_a_workspace_that_is_deleted_leaves_its_entries(client, sign_in_root):
    workspace = Workspace.objects.create(name="Gone")

    client.post(f"/admin/workspaces/workspace/{workspace.pk}/delete/", {"post": "yes"})

    assert not Workspace.objects.filter(pk=workspace.pk).exists()
    (entry,) = entries()
    assert (entry.subject_id, entry.workspace_id, entry.answered) == (workspace.pk, None, 302)
    connection.check_constraints()


@pytest.fixture
def sign_in_root(client):
    client.force_login(UserFactory(username="root", is_staff=True, is_superuser=True))


def test_who_was_deleted_is_still_named(olga, issue, ask, configuration, document):
    submit(ask, issue(olga, "operate"), configuration, document)

    olga.delete()

    (entry,) = entries()
    assert (entry.actor, entry.person, entry.token) == ("olga (token nightly)", None, None)


# Reading the audit log


def test_admins_read_it_over_the_api_and_only_of_their_workspaces(issue, ask, ada, olga, workspace):
    shown = issue(ada, "admin")
    mine, _ = AuditEntryFactory(workspace=workspace, subject_kind="run", subject_id=3), AuditEntryFactory()
    MembershipFactory(user=ada, role="viewer", workspace=AuditEntryFactory().workspace)

    page = ask(shown, AUDIT).json()

    assert [row["id"] for row in page["items"]] == [mine.pk]
    assert (page["items"][0]["operation"], page["items"][0]["subject_id"]) == ("runs.submit", 3)
    assert ask(issue(ada, name="small"), AUDIT).status_code == 403
    assert ask(issue(olga, "admin"), AUDIT).status_code == 403


def test_superusers_read_it_before_there_is_a_workspace(client, sign_in_root):
    assert not Workspace.objects.exists()
    entry = AuditEntryFactory(workspace=None)

    answer = client.get(AUDIT)

    assert answer.status_code == 200
    assert entry.pk in [row["id"] for row in answer.json()["items"]]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"actor": "ravi"}, ["ravi"]),
        ({"operation": "runs.cancel"}, ["ravi"]),
        ({"since": "2020-01-01T00:00:00Z"}, ["olga", "ravi"]),
        ({"until": "2020-01-01T00:00:00Z"}, []),
        ({"order": "id", "limit": "1"}, ["ravi"]),
        ({"actor": "\0"}, 400),
        ({"person__password": "x"}, 400),
        ({"since": "yesterday"}, 400),
    ],
    ids=str,
)
def test_it_is_filtered_by_what_is_offered(client, ada, workspace, query, found):
    AuditEntryFactory(workspace=workspace, actor="ravi", operation="runs.cancel")
    AuditEntryFactory(workspace=workspace)
    client.force_login(ada)

    answer = client.get(AUDIT, query)

    if found == 400:
        assert answer.status_code == 400
    else:
        assert [row["actor"] for row in answer.json()["items"]] == found


def test_a_workspace_of_which_one_is_no_admin_is_refused_and_not_empty(client, ada):
    elsewhere = MembershipFactory(user=ada, role="viewer").workspace
    client.force_login(ada)

    assert client.get(AUDIT, {"workspace_id": elsewhere.pk}).status_code == 403
    assert client.get(AUDIT, {"workspace_id": elsewhere.pk + 1}).status_code == 404


@pytest.mark.parametrize("who", ["ada", "olga", "root"])
def test_in_the_admin_admins_see_theirs_and_nobody_changes_one(client, ada, olga, workspace, who):
    people = {"ada": ada, "olga": olga, "root": UserFactory(is_staff=True, is_superuser=True)}
    mine, other = AuditEntryFactory(workspace=workspace), AuditEntryFactory()
    client.force_login(people[who])

    page = client.get(reverse("admin:api_auditentry_changelist"))

    if who == "olga":
        assert page.status_code == 403
    else:
        seen = set(page.context["cl"].result_list.exclude(operation="sign_in"))
        assert seen == ({mine} if who == "ada" else {mine, other})
    for verb in ("change", "delete"):
        path = reverse(f"admin:api_auditentry_{verb}", args=[mine.pk])
        assert client.post(path, {"post": "yes", "actor": "nobody"}).status_code == 403
    mine.refresh_from_db()
    assert mine.actor == "olga"


def test_answers_that_are_kept_show_no_body_and_are_for_superusers(client, ada, sign_in_root):
    kept = KeptAnswer.objects.create(caller="user 1", key="k", fingerprint="", answered=201, body="canary")
    path = reverse("admin:api_keptanswer_change", args=[kept.pk])

    assert "canary" not in client.get(path).content.decode()
    client.force_login(ada)
    assert client.get(path).status_code == 403
