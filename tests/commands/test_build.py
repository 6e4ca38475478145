import pytest

from builds.models import Build
from tests.factories import BuildFactory, force_status
from work.models import Event

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


def test_list_chooses(manage, configuration):
    ours, other = BuildFactory(configuration=configuration), BuildFactory(status="failed")

    def ids(*arguments):
        return {row["id"] for row in manage("build", "list", *arguments, "--json").json["builds"]}

    assert ids() == {ours.pk, other.pk}
    assert ids("--status", "failed") == {other.pk}
    assert ids("--configuration", "invoices") == {ours.pk}
    assert ids("--workspace", "Aster") == {ours.pk}
    assert ids("--before", other.pk) == {ours.pk}


def test_list_is_a_table_for_people(manage, build):
    lines = manage("build", "list").out.splitlines()

    assert " ".join(lines[0].split()) == "ID STATUS WORKSPACE CONFIGURATION FINGERPRINT CREATED AT ERROR MESSAGE"
    assert lines[1].split()[:5] == [str(build.pk), "ready", "Aster", "invoices", build.fingerprint[:12]]


def test_show_tells_the_history(manage, build):
    shown = manage("build", "show", build.pk, "--json").json

    assert (shown["workspace"], shown["configuration"], shown["status"]) == ("Aster", "invoices", "ready")
    assert [event["kind"] for event in shown["events"]] == ["BUILD_QUEUED", "BUILD_STARTED", "BUILD_READY"]


def test_again_queues_what_has_failed(manage):
    failed, cancelled, ready = (BuildFactory(status=status) for status in ("failed", "cancelled", "ready"))

    ended = manage("build", "again", failed.pk, cancelled.pk, ready.pk, "--as", "olga", "--json")

    assert ended.code == 1
    assert [row["result"] for row in ended.json["builds"]] == ["queued again", "queued again", "has not failed"]
    assert Build.objects.get(pk=failed.pk).status == "queued"
    assert Event.objects.filter(subject_kind="build", actor="olga (command)").count() == 2


def test_cancel_tells_of_each_build(manage):
    queued, building, ready = BuildFactory(), BuildFactory(status="building"), BuildFactory(status="ready")

    ended = manage("build", "cancel", queued.pk, building.pk, ready.pk, "--json")

    assert ended.code == 1
    assert [row["result"] for row in ended.json["builds"]] == ["cancelled", "asked to stop", "had finished already"]


@pytest.mark.parametrize("verb", ["show", "cancel", "again"])
def test_a_build_that_does_not_exist(manage, verb):
    assert manage("build", verb, 999_999).code == 6


def test_text_from_elsewhere_cannot_drive_the_terminal(manage):
    build = force_status(BuildFactory(), "failed", error_message="\x1b]0;owned\x07\u202eevil")

    for verb in (("list",), ("show", build.pk)):
        out = manage("build", *verb).out
        assert "\x1b" not in out
        assert "\u202e" not in out
        assert "\\x1b]0;owned\\x07\\u202eevil" in out


def test_every_row_has_what_is_documented(manage):
    assert manage("build", "cancel", 999_999, "--json").json["builds"] == [
        {"id": 999_999, "result": "not found", "status": None}
    ]
