from datetime import timedelta

import pytest
from django.urls import reverse

from builds.lifecycle import BUILD_STATES
from builds.models import Build
from console import build_details
from runs.models import Run
from tests.factories import (
    BuildFactory,
    ConfigurationFactory,
    DocumentFactory,
    RunFactory,
    bring_to,
    force_status,
    told,
    write,
)
from work import boots, clock, journal, lifecycle

pytestmark = [pytest.mark.edge, pytest.mark.django_db]

HOSTILE = "<script>alert(1)</script>"


def at(build):
    return reverse("console:build", args=[build.pk])


@pytest.fixture
def build_of(configuration):
    """Return a function that creates a build with a new fingerprint."""

    def build_of(**values):
        number = Build.objects.count()
        return BuildFactory(configuration=configuration, fingerprint=f"{number:064x}", **values)

    return build_of


def snapshot_of(configuration, **changed):
    return configuration.snapshot() | changed


def runs_of(build, number, **values):
    workspace = build.configuration.workspace
    return [
        RunFactory(configuration=build.configuration, build=build, input_document__workspace=workspace, **values)
        for _ in range(number)
    ]


def test_builds_are_listed_the_newest_first_and_by_status(seen_by, ravi, build_of):
    ready, failed = build_of(status="ready"), build_of(status="failed")
    BuildFactory()

    everything, narrowed = (seen_by(ravi, f"/builds/{query}") for query in ("", "?status=failed"))

    assert [row.pk for row in everything.context["slice"].rows] == [failed.pk, ready.pk]
    assert [row.pk for row in narrowed.context["slice"].rows] == [failed.pk]
    assert "no such package" in narrowed.content.decode()


def test_builds_are_listed_of_one_configuration(seen_by, ravi, workspace, build_of):
    mine = build_of()
    BuildFactory(configuration__workspace=workspace)
    others = ConfigurationFactory(name="secret")

    page = seen_by(ravi, f"/builds/?configuration={mine.configuration_id}")
    of_others = seen_by(ravi, f"/builds/?configuration={others.pk}")

    assert [row.pk for row in page.context["slice"].rows] == [mine.pk]
    assert not of_others.context["slice"].rows
    assert "secret" not in of_others.content.decode()


def test_a_list_without_builds_says_what_to_do(seen_by, ravi):
    assert "run a configuration over it" in seen_by(ravi, "/builds/").content.decode()
    assert "No builds match this filter." in seen_by(ravi, "/builds/?status=ready").content.decode()


@pytest.mark.parametrize("status", Build.Status.values)
def test_the_page_of_a_build_says_what_has_become_of_it(seen_by, ravi, build_of, status):
    page = seen_by(ravi, at(build_of(status=status))).content.decode()

    assert {"queued": "waiting for ", "building": "for ", "cancelled": "before it started"}.get(
        status, "just now, after"
    ) in page
    assert ("Why it is waiting" in page) == (status == "queued")


def test_somebody_who_asked_a_build_to_stop_is_named(build_of):
    build = build_of(status="building")
    write(build, cancel_requested_at=clock.now(), cancel_requested_by="olga")

    assert "Cancel requested by olga." in build_details.in_words(build)


def test_the_queued_runs_that_wait_for_it_are_linked(seen_by, ravi, build_of):
    build = build_of(status="building")
    first, second = runs_of(build, 2)

    page = seen_by(ravi, at(build))

    assert list(page.context["waiting"].runs) == [first, second]
    assert f'href="/runs/{first.pk}/"' in page.content.decode()


def test_of_many_that_wait_some_are_named(seen_by, ravi, build_of, monkeypatch):
    monkeypatch.setattr("console.build_details.MOST_WAITING", 1)
    build = build_of()
    runs_of(build, 2)

    assert "Over 1 run," in seen_by(ravi, at(build)).content.decode()


def test_what_a_build_saved_is_counted_by_the_runs_that_used_it(ravi, build_of):
    build = build_of(status="ready")
    write(build, finished_at=build.started_at + timedelta(seconds=60))
    runs_of(build, 2, status="succeeded")
    runs_of(build, 1, status="failed")
    runs_of(build, 1, status="cancelled")
    (without,) = runs_of(build, 1, status="failed")
    write(without, failure_type=Run.Failure.BUILD_FAILED)

    served = build_details.served_by(build)

    assert (str(served), served.saved_seconds) == ("1 build served 3 runs", 120)


def test_what_it_saved_is_counted_to_a_bound(seen_by, ravi, build_of, monkeypatch):
    monkeypatch.setattr("console.build_details.MOST_SERVED", 2)
    build = build_of(status="ready")
    runs_of(build, 3, status="succeeded")

    assert "1 build served over 2 runs" in seen_by(ravi, at(build)).content.decode()


def test_what_differs_from_the_last_ready_build_is_shown(seen_by, ravi, configuration, build_of):
    build_of(status="ready", snapshot=snapshot_of(configuration, files={"main.py": "first\n"}))
    before = build_of(status="ready")
    build_of(status="failed")
    files = {"main.py": f"def main(document):\n    {HOSTILE}\n", "more.py": "1\n"}
    build = build_of(snapshot=snapshot_of(configuration, files=files, requirements="requests==2\n", entry_point="go"))
    build_of(status="ready")

    page = seen_by(ravi, at(build))
    text = page.content.decode()

    assert page.context["changes"].since == before
    found = page.context["changes"].difference
    assert [(each.path, each.change) for each in found.texts] == [
        ("requirements.txt", "added"),
        ("main.py", "changed"),
        ("more.py", "added"),
    ]
    assert [(each.name, each.after) for each in found.settings] == [("entry point", "go")]
    assert "+    &lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert HOSTILE not in text


def test_a_build_of_the_same_files_says_what_else_may_differ(seen_by, ravi, build_of):
    build_of(status="ready")

    assert "the Python version" in seen_by(ravi, at(build_of())).content.decode()


def test_its_earlier_failures_are_told(seen_by, olga, pressed_by, build_of):
    build = build_of(status="failed")
    pressed_by(olga, f"{at(build)}again/")
    build.refresh_from_db()
    bring_to(build, "failed")

    page = seen_by(olga, at(build))

    assert [event.kind for event in page.context["failures"]] == ["BUILD_FAILED"]
    assert "Earlier failures" in page.content.decode()


def test_the_log_the_lock_and_the_messages_stay_text(seen_by, ravi, workspace, configuration, build_of):
    write(configuration, name=HOSTILE)
    build = build_of(status="building")
    lifecycle.record(BUILD_STATES, build.pk, journal.LOG, message=HOSTILE, data={"stream": "stderr"})
    RunFactory(
        configuration=configuration, build=build, input_document=DocumentFactory(name=HOSTILE, workspace=workspace)
    )
    build = force_status(build, "failed", error_message=HOSTILE, lock=f"{HOSTILE}==1")

    for path in (at(build), f"{at(build)}log/", "/builds/"):
        text = seen_by(ravi, path).content.decode()
        assert HOSTILE not in text
        assert "&lt;script&gt;" in text


def test_an_operator_cancels_a_queued_build_with_a_reason(pressed_by, olga, build_of):
    build = build_of()

    page = pressed_by(olga, f"{at(build)}cancel/", reason="not needed")

    assert page.said == ["Cancelled 1 build."]
    assert told(build)[-1] == "BUILD_CANCELLED"
    assert "not needed" in page.content.decode()


def test_an_operator_asks_what_is_being_made_to_stop(pressed_by, olga, build_of):
    build = build_of(status="building")

    assert pressed_by(olga, f"{at(build)}cancel/").said == ["Asked 1 that is building to stop."]

    assert Build.objects.get(pk=build.pk).cancel_requested_by == "olga"


def test_cancelling_what_has_ended_says_so(pressed_by, olga, build_of):
    assert pressed_by(olga, f"{at(build_of(status='ready'))}cancel/").said == ["Skipped 1 that had already finished."]


def test_an_operator_builds_again(pressed_by, olga, build_of):
    failed, ready = build_of(status="failed"), build_of(status="ready")

    said = [pressed_by(olga, f"{at(build)}again/").said for build in (failed, ready)]

    assert said == [["Queued 1 build again."], ["Skipped 1 that has neither failed nor been cancelled."]]
    assert Build.objects.get(pk=failed.pk).status == "queued"


@pytest.mark.parametrize(("status", "buttons"), [("queued", "Cancel"), ("failed", "Build again"), ("ready", "")])
def test_buttons_are_for_operators_and_for_what_they_can_do(seen_by, olga, ravi, build_of, status, buttons):
    build = build_of(status=status)

    shown = seen_by(olga, at(build)).content.decode()

    assert [each for each in ("Cancel", "Build again") if f"{each}…</summary>" in shown] == [buttons] * bool(buttons)
    assert "…</summary>" not in seen_by(ravi, at(build)).content.decode()


@pytest.mark.parametrize("verb", ["cancel", "again"])
@pytest.mark.parametrize(("who", "status"), [("ravi", 403), ("zed", 404)])
def test_buttons_are_not_for_everybody(pressed_by, build_of, request, verb, who, status):
    build = build_of(status="failed")
    before = told(build)

    assert pressed_by(request.getfixturevalue(who), f"{at(build)}{verb}/").status_code == status

    assert told(build) == before


@pytest.mark.parametrize("verb", ["cancel", "again"])
def test_looking_at_a_button_does_nothing(seen_by, olga, build_of, verb):
    assert seen_by(olga, f"{at(build_of())}{verb}/").status_code == 405


def test_builds_of_others_are_not_there(seen_by, zed, build_of):
    build = build_of()

    assert [seen_by(zed, path).status_code for path in (at(build), f"{at(build)}log/")] == [404, 404]


@pytest.mark.parametrize("status", ["queued", "building", "ready", "failed"])
def test_a_build_costs_few_queries(asks_at_most, olga, configuration, build_of, status):
    boots.register("w1", "boot1", {"build": 1})
    build_of(status="ready")
    BuildFactory(status="building")
    build = build_of(status="failed")
    if status != "failed":
        lifecycle.move(BUILD_STATES, build.pk, "again", failure_type="", error_message="")
        build.refresh_from_db()
        bring_to(build, status)
    runs_of(build, 3)

    asks_at_most(15, olga, at(build))


def test_the_list_costs_few_queries(asks_at_most, olga, build_of):
    for _ in range(3):
        build_of()

    asks_at_most(15, olga, "/builds/")
