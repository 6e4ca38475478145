from datetime import timedelta

import pytest

from api import limits, tokens
from api.models import ApiToken, AuditEntry, KeptAnswer, Scope
from tests.factories import MembershipFactory, RunFactory, UserFactory, WorkspaceFactory
from work import clock
from workspaces.models import Membership

pytestmark = [pytest.mark.edge, pytest.mark.django_db]

PATH = "/api/v1/tokens"


def later(days):
    return clock.now() + timedelta(days=days)


def made(ask, shown, workspace, **wish):
    return ask(shown, PATH, {"workspace_id": workspace.pk, "name": "made", **wish})


# Checks of each request


def test_only_its_hash_is_kept(issue, olga):
    shown = issue(olga)

    row = str(ApiToken.objects.values().get())
    assert shown not in row
    assert shown.split("_", 2)[2] not in row


def test_what_changes_about_a_token_or_its_person_counts_from_the_next_request_on(issue, ask, olga, workspace):
    def asked():
        return ask(issued, "/api/v1/runs").status_code

    def again():
        ApiToken.objects.update(revoked_at=None, revoked_by="", expires_at=None)
        assert asked() == 200

    issued = issue(olga)
    again()
    tokens.revoke(ApiToken.objects.get(), actor="ada")
    assert asked() == 401
    again()
    ApiToken.objects.update(expires_at=clock.now())
    assert asked() == 401
    again()
    type(olga).objects.update(is_active=False)
    assert asked() == 401
    type(olga).objects.update(is_active=True)
    again()
    Membership.objects.all().delete()
    assert asked() == 401


def test_a_token_of_somebody_who_is_no_operator_any_more_only_reads(issue, ask, olga, configuration, document):
    shown = issue(olga, "operate")
    Membership.objects.update(role="viewer")

    submitted = ask(shown, f"/configurations/{configuration.pk}/runs", {"document_id": document.pk})

    assert (submitted.status_code, submitted.json()["code"]) == (403, "forbidden")
    assert ask(shown, "/api/v1/runs").status_code == 200


def test_a_token_of_a_superuser_opens_its_workspace_only(issue, ask, workspace):
    root = UserFactory(username="root", is_superuser=True)
    shown, other = issue(root, *Scope.values), RunFactory()

    assert ask(shown, f"/api/v1/runs/{other.pk}").status_code == 404
    assert ask(shown, "/api/v1/runs").json()["items"] == []
    assert ask(shown, f"/configurations/{other.configuration_id}/runs", {"document_id": 1}).status_code == 404
    type(root).objects.update(is_superuser=False)
    assert ask(shown, "/api/v1/runs").status_code == 401


@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_a_superuser_has_what_the_scopes_of_the_token_have(issue, ask, configuration, document, role):
    root = UserFactory(username="root", is_superuser=True)
    shown = issue(root, *(["operate"] if role == "operator" else []))

    submitted = ask(shown, f"/configurations/{configuration.pk}/runs", {"document_id": document.pk})

    assert submitted.status_code == (403 if role == "viewer" else 201)


@pytest.mark.parametrize(
    "shown", ["", "ade_", "ade_000000000000_" + "x" * 43, "ade_\0", "x" * 100_000, "ade_00_%s", "ädé", "ade_0 ade_1"]
)
def test_what_is_no_token_is_refused_and_looked_up_only_if_it_looks_like_one(ask, shown, db):
    answer = ask(shown.encode().decode("latin-1"), "/api/v1/runs")

    assert (answer.status_code, answer.json()["code"]) == (401, "not_authenticated")


def test_a_token_in_the_address_is_none(client, issue, olga):
    for name in ("token", "access_token", "authorization", "key"):
        assert client.get("/api/v1/runs", {name: issue(olga, name=name)}).status_code == 401


def test_the_right_beginning_with_another_secret_is_refused(issue, ask, olga):
    shown = issue(olga)
    wrong = shown[:-1] + ("A" if shown[-1] != "A" else "B")

    assert ask(wrong, "/api/v1/runs").status_code == 401
    assert ApiToken.objects.get().last_used_at is None


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "Token", "Basic", ""])
def test_no_log_has_what_was_sent(client, issue, olga, caplog, capsys, scheme, settings):
    settings.DEBUG = True
    shown = issue(olga)

    client.get("/api/v1/runs", headers={"Authorization": f"{scheme} {shown}"})
    client.get("/api/v1/runs", headers={"Authorization": f"{scheme} {shown}x"})

    told = caplog.text + "".join(capsys.readouterr())
    assert shown.split("_", 2)[2] not in told


def test_guessing_is_slowed_down_and_who_has_a_token_comes_through(issue, ask, olga, still, monkeypatch):
    monkeypatch.setattr(limits, "UNKNOWN_TOKENS", 3)
    wrong = f"ade_{'0' * 12}_{'x' * 43}"
    codes = [ask(wrong, "/api/v1/runs").status_code for _ in range(5)]

    refused = ask(wrong, "/api/v1/runs")
    assert codes == [401, 401, 401, 429, 429]
    assert refused.json()["code"] == "rate_limited"
    assert int(refused["Retry-After"]) >= 1
    assert ask(issue(olga), "/api/v1/runs").status_code == 200


# The routes


def test_people_see_their_own_and_admins_all_of_the_workspace(issue, ask, olga, ravi, ada):
    of_ravi, of_ada = issue(ravi), issue(ada, "admin")
    issue(olga)
    issue(olga, name="elsewhere", workspace=MembershipFactory(user=olga).workspace)

    assert [row["user"] for row in ask(of_ravi, PATH).json()["items"]] == ["ravi"]
    assert [row["user"] for row in ask(of_ada, PATH).json()["items"]] == ["olga", "ada", "ravi"]
    # Without the scope, an admin sees only their own tokens.
    assert [row["user"] for row in ask(issue(ada, name="small"), PATH).json()["items"]] == ["ada", "ada"]
    other = ApiToken.objects.get(user=olga, name="nightly")
    assert ask(of_ravi, f"{PATH}/{other.pk}").status_code == 404


def test_a_token_is_made_and_shown_once(ask, issue, olga, workspace):
    shown = issue(olga, "operate", expires_at=later(9))

    answer = made(ask, shown, workspace, scopes=["operate"], expires_at=later(8).isoformat())

    assert answer.status_code == 201
    row = answer.json()
    assert (row["scopes"], row["created_by"], row["state"]) == (["read", "operate"], "olga (token nightly)", "usable")
    assert ask(row["token"], "/api/v1/runs").status_code == 200
    assert "token" not in ask(shown, f"{PATH}/{row['id']}").json()


def test_no_secret_is_kept_for_whoever_asks_again(ask, issue, olga, workspace):
    shown = issue(olga, "operate")
    wish = {"workspace_id": workspace.pk, "name": "made"}

    first, again = (ask(shown, PATH, wish, **{"Idempotency-Key": "once"}) for _ in range(2))

    assert again.json() == first.json() | {"token": None}
    assert first.json()["token"] not in KeptAnswer.objects.get().body
    assert ApiToken.objects.count() == 2


@pytest.mark.parametrize(
    ("wish", "status"),
    [
        ({"scopes": ["admin"]}, 403),
        ({"scopes": ["installation"]}, 403),
        ({"scopes": ["root"]}, 400),
        ({"scopes": "operate"}, 400),
        ({"expires_at": "2020-01-01T00:00:00Z"}, 400),
        ({"expires_at": "2090-01-01T00:00:00Z"}, 400),
        ({"expires_at": "2090-01-01T00:00:00"}, 400),
        ({"expires_at": None}, 400),
        ({"name": "nightly"}, 409),
        ({"name": " "}, 400),
        ({"name": "a\nb"}, 400),
        ({"user": "ada"}, 400),
    ],
    ids=str,
)
def test_a_token_makes_none_that_has_more_or_lasts_longer(ask, issue, olga, workspace, wish, status):
    shown = issue(olga, "operate", expires_at=later(9))

    answer = made(ask, shown, workspace, **{"expires_at": later(1).isoformat(), **wish})

    assert answer.status_code == status, answer.content
    assert ApiToken.objects.count() == 1


def test_an_admin_with_a_small_token_makes_no_larger_one(ask, issue, ada, workspace):
    answer = made(ask, issue(ada, "operate"), workspace, scopes=["admin"])

    assert (answer.status_code, answer.json()["details"]["found"]) == (403, ["admin"])


def test_a_token_that_only_reads_makes_none_and_revokes_none(ask, issue, olga, workspace):
    shown = issue(olga)

    assert made(ask, shown, workspace).status_code == 403
    assert ask(shown, f"{PATH}/{ApiToken.objects.get().pk}/revoke", method="POST").status_code == 403


def test_a_token_makes_none_for_another_workspace(ask, issue, olga):
    there = MembershipFactory(user=olga, role="admin").workspace

    for workspace in (there, WorkspaceFactory()):
        assert made(ask, issue(olga, "operate", name=str(workspace)), workspace).status_code == 404


def test_whoever_is_signed_in_makes_one_with_what_their_role_has(client, ravi, workspace):
    client.force_login(ravi)

    def make(**wish):
        body = {"workspace_id": workspace.pk, "name": "made", **wish}
        return client.post(PATH, body, content_type="application/json")

    assert make(scopes=["operate"]).status_code == 403
    assert make().status_code == 201
    assert ApiToken.objects.get().user == ravi


def test_with_a_token_those_go_that_were_made_with_it(ask, issue, olga, ravi, workspace):
    first, other = issue(olga, "operate"), issue(ravi)
    child = made(ask, first, workspace, scopes=["operate"]).json()["token"]
    grandchild = made(ask, child, workspace, name="third").json()["token"]

    revoked = ask(first, f"{PATH}/{ApiToken.objects.get(user=olga, name='nightly').pk}/revoke", method="POST")

    assert revoked.json()["state"] == "revoked"
    assert [ask(shown, PATH).status_code for shown in (first, child, grandchild, other)] == [401, 401, 401, 200]


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "once"}], ids=["once", "with a key"])
def test_a_token_that_is_revoked_while_it_asks_makes_none(ask, issue, olga, workspace, monkeypatch, headers):
    shown = issue(olga, "operate")
    # The last step before the view runs.
    monkeypatch.setattr(tokens, "record_use", lambda token, address: tokens.revoke(token, actor="ada"))

    answer = ask(shown, PATH, {"workspace_id": workspace.pk, "name": "made"}, **headers)

    assert (answer.status_code, answer.json()["code"]) == (401, "not_authenticated")
    assert "invalid_token" in answer["WWW-Authenticate"]
    assert ApiToken.objects.count() == 1


def test_admins_revoke_what_others_have_and_once_is_enough(ask, issue, olga, ravi, ada):
    of_olga, of_ada = issue(olga, "operate"), issue(ada, "operate", "admin")
    path = f"{PATH}/{ApiToken.objects.get(user=olga).pk}/revoke"

    assert ask(issue(ravi, "operate"), path, method="POST").status_code == 404
    assert ask(of_ada, path, method="POST").status_code == 200
    assert ask(of_ada, path, method="POST").status_code == 409
    assert ask(of_olga, PATH).status_code == 401
    entry = AuditEntry.objects.filter(operation="tokens.revoke_token", answered=200).get()
    assert (entry.actor, entry.subject_kind) == ("ada (token nightly)", "token")
