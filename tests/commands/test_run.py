from datetime import UTC, datetime

import pytest

from runs.models import Run
from tests.factories import DocumentFactory, RunFactory, force_status
from work.models import Event
from work.operations import encoding

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


def actors(run_id):
    return list(
        Event.objects.filter(subject_kind="run", subject_id=run_id).order_by("id").values_list("actor", flat=True)
    )


def test_submit_queues_one_run_for_each_document(manage, configuration, build, workspace):
    first, second = DocumentFactory(workspace=workspace), DocumentFactory(workspace=workspace)

    ended = manage("run", "submit", configuration.pk, second.pk, first.pk, "--as", "olga", "--json")

    assert ended.code == 0, ended.err
    assert [row["input_document_id"] for row in ended.json["runs"]] == [second.pk, first.pk]
    assert [row["status"] for row in ended.json["runs"]] == ["queued", "queued"]
    assert actors(ended.json["runs"][0]["id"]) == ["olga (command)"]


def test_a_run_can_be_submitted_without_waiting_for_its_document(manage, configuration, build, workspace):
    document = DocumentFactory(workspace=workspace)

    waiting, at_once = (
        manage("run", "submit", configuration.pk, document.pk, *options, "--json").json["runs"][0]
        for options in ([], ["--no-wait-for-processing"])
    )

    assert (waiting["gate"], waiting["waits_for_processing"]) == ("process", True)
    assert (at_once["gate"], at_once["waits_for_processing"]) == ("", False)


def test_a_document_that_failed_is_refused_unless_the_run_does_not_wait(manage, configuration, workspace):
    failed = DocumentFactory(workspace=workspace, status="failed")

    refused = manage("run", "submit", configuration.pk, failed.pk, "--json")

    assert (refused.code, refused.error["code"]) == (1, "document_failed")
    assert refused.error["details"]["document"] == failed.pk
    assert manage("run", "submit", configuration.pk, failed.pk, "--no-wait-for-processing").code == 0


def test_run_again_tells_that_the_document_failed(manage, configuration, workspace):
    failed = DocumentFactory(workspace=workspace, status="failed")
    run = RunFactory(configuration=configuration, input_document=failed, status="failed")

    ended = manage("run", "again", run.pk, "--json")

    assert ended.code == 1
    assert "document could not be processed" in ended.out
    assert Run.objects.count() == 1


def test_times_have_all_their_digits(manage):
    run = RunFactory(created_at=datetime(2026, 3, 1, 12, 0, 0, 120, UTC))

    assert manage("run", "show", run.pk, "--json").json["created_at"] == encoding.moment(run.created_at)


@pytest.mark.parametrize("named", ["invoices", "Aster/invoices"])
def test_a_configuration_can_be_named(manage, configuration, document, named):
    assert manage("run", "submit", named, document.pk).code == 0


def test_a_name_that_two_configurations_have_is_refused(manage, configuration, document, other_invoices):
    ended = manage("run", "submit", "invoices", document.pk, "--json")

    assert (ended.code, ended.error["code"]) == (2, "ambiguous")
    assert not Run.objects.exists()


def test_without_a_name_the_actor_is_the_user_of_the_system(manage, configuration, document, monkeypatch):
    monkeypatch.setattr("getpass.getuser", lambda: "zoe")

    ended = manage("run", "submit", configuration.pk, document.pk, "--json")

    assert actors(ended.json["runs"][0]["id"]) == ["zoe (command)"]


def test_a_user_without_a_name_has_a_number(manage, configuration, document, monkeypatch):
    def nobody():
        raise KeyError("uid not found")

    monkeypatch.setattr("getpass.getuser", nobody)

    ended = manage("run", "submit", configuration.pk, document.pk, "--json")

    assert actors(ended.json["runs"][0]["id"])[0].startswith("user ")


def test_an_actor_of_any_length_and_any_letters_fits(manage, configuration, document):
    ended = manage("run", "submit", configuration.pk, document.pk, "--as", "\x1b[31mö" * 200, "--json")

    (actor,) = actors(ended.json["runs"][0]["id"])
    assert actor.startswith("\\x1b[31mö")
    assert actor.endswith(" (command)")


def test_a_document_that_does_not_exist_refuses_all(manage, configuration, document):
    ended = manage("run", "submit", configuration.pk, document.pk, 999_999, "--json")

    assert ended.code == 6
    assert ended.error["code"] == "not_found"
    assert ended.error["details"] == {"kind": "document", "wanted": 999_999}
    assert ended.out == ""
    assert not Run.objects.exists()


def test_a_document_of_another_workspace_is_refused(manage, configuration):
    ended = manage("run", "submit", configuration.pk, DocumentFactory().pk, "--json")

    assert (ended.code, ended.error["code"]) == (1, "other_workspace")


def test_a_full_queue_has_its_own_exit_code(manage, configuration, document, settings):
    settings.ADE_QUEUE_SIZE = 1
    assert manage("run", "submit", configuration.pk, document.pk).code == 0

    ended = manage("run", "submit", configuration.pk, document.pk, "--json")

    assert ended.code == 4
    assert ended.error["code"] == "run_queue_full"
    assert ended.error["details"] == {"limit": 1, "live": 1, "asked": 1}
    assert Run.objects.count() == 1


def test_list_shows_the_newest_first_and_no_more_than_asked_for(manage):
    runs = [RunFactory() for _ in range(3)]

    ended = manage("run", "list", "--limit", 2, "--json")

    assert [row["id"] for row in ended.json["runs"]] == [runs[2].pk, runs[1].pk]


def test_list_goes_on_before_an_id(manage):
    runs = [RunFactory() for _ in range(3)]

    ended = manage("run", "list", "--before", runs[1].pk, "--json")

    assert [row["id"] for row in ended.json["runs"]] == [runs[0].pk]


def test_list_chooses(manage, workspace):
    timed_out = force_status(RunFactory(), "failed", failure_type="TIMED_OUT")
    failed = RunFactory(status="failed", workspace=workspace, configuration__workspace=workspace)

    def ids(*arguments):
        return {row["id"] for row in manage("run", "list", *arguments, "--json").json["runs"]}

    assert ids("--status", "failed") == {timed_out.pk, failed.pk}
    assert ids("--outcome", "failed") == {failed.pk}
    assert ids("--outcome", "timed_out") == {timed_out.pk}
    assert ids("--workspace", "Aster") == {failed.pk}
    assert ids("--configuration", failed.configuration_id) == {failed.pk}
    assert ids("--status", "queued") == set()


def test_the_outcome_of_a_run_that_timed_out_says_so(manage):
    run = force_status(RunFactory(), "failed", failure_type="TIMED_OUT")

    shown = manage("run", "show", run.pk, "--json").json

    assert (shown["status"], shown["outcome"]) == ("failed", "timed_out")


def test_show_tells_the_history(manage):
    run = RunFactory(status="succeeded")

    ended = manage("run", "show", run.pk, "--json")

    assert [event["kind"] for event in ended.json["events"]] == ["RUN_QUEUED", "RUN_STARTED", "RUN_SUCCEEDED"]
    assert [event["sequence"] for event in ended.json["events"]] == [1, 2, 3]


def test_show_without_json_is_for_people(manage):
    run = force_status(RunFactory(), "failed", error_message="first line\nsecond \x1b[31mred")

    ended = manage("run", "show", run.pk)

    assert "first line\n" in ended.out
    assert "second \\x1b[31mred" in ended.out
    assert "\x1b" not in ended.out


@pytest.mark.parametrize("verb", ["show", "cancel", "again"])
def test_a_run_that_does_not_exist(manage, verb):
    assert manage("run", verb, 999_999).code == 6


@pytest.mark.parametrize("id", ["-1", "0x1", "1.0", "١", "1_0", "9" * 19, "9" * 5000, "", "one"])
def test_what_is_no_id_is_a_mistake_of_the_command_line(manage, id):
    ended = manage("run", "show", "--json", "--", id)

    assert (ended.code, ended.error["code"]) == (2, "usage")


def test_cancel_tells_of_each_run(manage):
    queued, running, ended_before = RunFactory(), RunFactory(status="running"), RunFactory(status="succeeded")

    ended = manage("run", "cancel", queued.pk, running.pk, ended_before.pk, "--as", "olga", "--json")

    assert ended.code == 1
    assert ended.json["runs"] == [
        {"id": queued.pk, "result": "cancelled", "status": "cancelled"},
        {"id": running.pk, "result": "asked to stop", "status": "running"},
        {"id": ended_before.pk, "result": "had finished already", "status": "succeeded"},
    ]
    running.refresh_from_db()
    assert running.cancel_requested_by == "olga (command)"
    assert actors(queued.pk)[-1] == "olga (command)"


def test_cancelling_twice_is_too_late(manage):
    run = RunFactory()

    assert manage("run", "cancel", run.pk).code == 0
    assert manage("run", "cancel", run.pk).code == 1


def test_one_that_does_not_exist_keeps_no_other_from_being_cancelled(manage):
    run = RunFactory()

    ended = manage("run", "cancel", 999_999, run.pk, "--json")

    assert ended.code == 6
    assert ended.json["runs"][0] == {"id": 999_999, "result": "not found", "status": None}
    run.refresh_from_db()
    assert run.status == "cancelled"


def test_again_makes_new_runs(manage):
    run = RunFactory(status="failed")

    ended = manage("run", "again", run.pk, run.pk, "--as", "olga", "--json")

    assert ended.code == 0
    (row,) = ended.json["runs"]
    new = Run.objects.exclude(pk=run.pk).get()
    assert row == {"id": run.pk, "result": "queued again", "new_run": new.pk}
    assert actors(new.pk) == ["olga (command)"]


def test_again_tells_what_found_no_place(manage, settings):
    settings.ADE_QUEUE_SIZE = 1
    first, second = RunFactory(status="failed"), RunFactory(status="failed")

    ended = manage("run", "again", first.pk, second.pk, "--json")

    assert ended.code == 4
    assert [row["result"] for row in ended.json["runs"]] == ["queued again", "no place in the queue"]
    assert ended.json["runs"][1]["new_run"] is None


def test_every_row_has_what_is_documented(manage):
    assert manage("run", "again", 999_999, "--json").json["runs"] == [
        {"id": 999_999, "result": "not found", "new_run": None}
    ]


def test_a_list_asks_the_database_once(manage, django_assert_num_queries):
    for _ in range(3):
        RunFactory()

    with django_assert_num_queries(1):
        manage("run", "list", "--json")
