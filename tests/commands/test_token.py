from datetime import timedelta

import pytest

from api import tokens
from api.models import ApiToken
from config.token_checks import tokens_last
from tests.factories import ApiTokenFactory, AuditEntryFactory, UserFactory
from work import clock

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


def test_create_prints_the_token_and_nothing_else(manage, olga, workspace, caplog):
    ended = manage("token", "create", "Aster", "olga", "nightly", "--scope", "operate", "--as", "ada")

    token = tokens.find(ended.out.strip())
    assert (ended.code, ended.err) == (0, "")
    assert (token.user, token.workspace, token.scopes) == (olga, workspace, ["read", "operate"])
    assert token.created_by == "ada (command)"
    assert ended.out.strip() not in caplog.text
    assert ended.out.strip() not in manage("token", "list", "--json").out


def test_create_in_json(manage, olga):
    told = manage("token", "create", "Aster", "olga", "nightly", "--expires", "2090-01-31", "--json").json

    assert (told["scopes"], told["expires_at"]) == (["read"], "2090-01-31T00:00:00Z")
    assert tokens.find(told["token"]).name == "nightly"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["Aster", "ravi", "x", "--scope", "operate"], 1),
        (["Aster", "zed", "x"], 1),
        (["Aster", "olga", ""], 1),
        (["Aster", "olga", "x", "--expires", "2020-01-01"], 1),
        (["Aster", "olga", "taken"], 1),
        (["Aster", "nobody", "x"], 6),
        (["Nowhere", "olga", "x"], 6),
        (["Aster", "olga", "x", "--scope", "root"], 2),
        (["Aster", "olga", "x", "--expires", "soon"], 2),
    ],
    ids=str,
)
def test_what_is_refused(manage, workspace, olga, ravi, zed, arguments, code):
    ApiTokenFactory(workspace=workspace, user=olga, name="taken")

    assert manage("token", "create", *arguments).code == code
    assert ApiToken.objects.count() == 1


def test_list(manage, olga, ravi, workspace):
    mine, other = ApiTokenFactory(workspace=workspace, user=olga), ApiTokenFactory()
    tokens.revoke(mine, actor="olga")

    def listed(*arguments):
        return [row["id"] for row in manage("token", "list", "--json", *arguments).json["tokens"]]

    assert listed() == [other.pk, mine.pk]
    assert listed("--workspace", "Aster") == listed("--user", "olga") == [mine.pk]
    assert listed("--usable") == [other.pk]
    assert listed("--before", other.pk) == [mine.pk]


def test_revoke_tells_of_each(manage, olga, workspace):
    one, two = ApiTokenFactory(), ApiTokenFactory()
    tokens.revoke(two, actor="olga")

    ended = manage("token", "revoke", one.pk, two.pk, 10**9, "--as", "ada", "--json")

    assert [row["result"] for row in ended.json["tokens"]] == ["revoked", "was revoked already", "not found"]
    assert ended.code == 6
    one.refresh_from_db()
    assert one.revoked_by == "ada (command)"


def test_doctor_names_tokens_that_expire_soon():
    assert tokens_last().level == "ok"
    ApiTokenFactory(expires_at=clock.now() + timedelta(days=30))
    soon = ApiTokenFactory(expires_at=clock.now() + timedelta(days=3), name="nightly import")

    found = tokens_last()

    assert (found.level, found.offenders) == ("warn", (("token", soon.pk),))
    assert "nightly import" in found.message
    tokens.revoke(soon, actor="olga")
    assert tokens_last().level == "ok"


def test_the_audit_log_is_listed_and_filtered(manage, workspace):
    run = AuditEntryFactory(workspace=workspace, subject_kind="run", subject_id=17, request_id="r17")
    refused = AuditEntryFactory(actor="ravi", answered=403, operation="runs.cancel", address="198.51.100.1")
    died = AuditEntryFactory(answered=None)

    def listed(*arguments):
        return [row["id"] for row in manage("audit", "list", "--json", *arguments).json["entries"]]

    assert listed() == [died.pk, refused.pk, run.pk]
    assert listed("--workspace", "Aster") == listed("--about", "run/17") == listed("--request", "r17") == [run.pk]
    for wanted in (["--actor", "ravi"], ["--refused"], ["--operation", "runs.cancel"], ["--address", "198.51.100.1"]):
        assert listed(*wanted) == [refused.pk]
    assert listed("--until", "2020-01-01") == []
    assert listed("--since", "2020-01-01", "--limit", "1") == [died.pk]
    assert "run 17" in manage("audit", "list").out
    assert manage("audit", "list", "--about", "17").code == 2


def test_strange_names_do_not_reach_the_terminal(manage):
    UserFactory(username="zoe")
    AuditEntryFactory(actor="\x1b[31mzoe")

    assert "\x1b" not in manage("audit", "list").out
