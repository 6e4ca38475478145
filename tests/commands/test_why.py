import pytest

from tests.factories import BuildFactory, JobFactory, RunFactory, force_status
from work import boots

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


def test_a_run_says_what_holds_it(manage):
    running = RunFactory(status="running")
    run = RunFactory(configuration=running.configuration, input_document=running.input_document)

    ended = manage("run", "why", run.pk)

    lines = ended.out.splitlines()
    assert ended.code == 0
    assert lines[0] == f"run {run.pk} is queued; blocked by: worker, document."
    assert [line.split()[:2] for line in lines[2:]] == [
        ["paused", "passed"],
        ["worker", "BLOCKING"],
        ["capacity", "passed"],
        ["build", "passed"],
        ["processing", "passed"],
        ["document", "BLOCKING"],
    ]
    assert f"Run {running.pk} of the same document is running, claimed by {running.lease_owner}" in lines[7]


def test_as_json_every_gate_has_what_is_documented(manage):
    run = RunFactory(build=BuildFactory())

    ended = manage("run", "why", run.pk, "--json")

    assert ended.code == 0
    assert {key: ended.json[key] for key in ("kind", "id", "status", "outcome", "held_by")} == {
        "kind": "run",
        "id": run.pk,
        "status": "queued",
        "outcome": "queued",
        "held_by": ["worker", "build"],
    }
    assert [list(gate) for gate in ended.json["gates"]] == [["name", "holds", "message", "holder", "since", "data"]] * 6
    build = ended.json["gates"][3]
    assert (build["holder"], build["since"][:19]) == (f"build {run.build_id}", run.build.queued_at.isoformat()[:19])


def test_a_build_says_what_holds_it(manage):
    boots.register("w1", "boot1", {"build": 1})
    first, second = BuildFactory(), BuildFactory()

    assert manage("build", "why", first.pk, "--json").json["held_by"] == []
    assert (
        manage("build", "why", second.pk).out.splitlines()[0] == f"build {second.pk} is queued; blocked by: capacity."
    )


@pytest.mark.parametrize(("noun", "factory"), [("run", RunFactory), ("build", BuildFactory)])
def test_what_is_not_queued_says_so(manage, noun, factory):
    row = factory(status="failed")

    ended = manage(noun, "why", row.pk)

    assert (ended.code, ended.out.count("\n")) == (0, 1)
    assert ended.out.startswith(f"{noun} {row.pk} ended at ")
    assert manage(noun, "why", row.pk, "--json").json["gates"] == []


def test_a_document_says_what_it_waits_for(manage):
    job = JobFactory()

    ended = manage("document", "why", job.document_id)

    assert ended.out.splitlines()[0] == f"Document {job.document_id} is being processed; blocked by: worker."
    assert manage("document", "why", job.document_id, "--json").json["held_by"] == ["worker"]


@pytest.mark.parametrize("noun", ["run", "build", "document"])
def test_one_that_does_not_exist(manage, noun):
    ended = manage(noun, "why", 999_999, "--json")

    assert (ended.code, ended.error["code"]) == (6, "not_found")


def test_names_from_elsewhere_cannot_drive_the_terminal(manage):
    running = force_status(RunFactory(), "running", owner="w1\x1b[31m")
    run = RunFactory(configuration=running.configuration, input_document=running.input_document)

    out = manage("run", "why", run.pk).out

    assert "\x1b" not in out
    assert "w1\\x1b[31m" in out
