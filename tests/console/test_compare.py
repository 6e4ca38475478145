from datetime import timedelta

import pytest

from console import comparison
from runs.lifecycle import RUN_STATES
from tests.factories import BuildFactory, DocumentFactory, RunFactory, RunFieldFactory, write
from work import lifecycle

HOSTILE = "<script>alert(1)</script>"

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


@pytest.fixture
def run_of(configuration, build, document):
    def run_of(**values):
        chosen = {"configuration": configuration, "input_document": document, "status": "succeeded"} | values
        return RunFactory(**chosen)

    return run_of


def compare(left, right):
    return f"/runs/{left.pk}/compare/?with={right.pk}"


def field(run, name, value, **more):
    return RunFieldFactory(run=run, name=name, value=value, **more)


def pairs(found):
    return {pair.name: pair.state for pair in (*found.differing, *found.same)}


def test_the_other_runs_of_the_document_are_offered(seen_by, ravi, workspace, run_of):
    run, other = run_of(), run_of(status="failed")
    run_of(input_document=DocumentFactory(workspace=workspace))

    page = seen_by(ravi, f"/runs/{run.pk}/compare/")

    assert list(page.context["slice"].rows) == [other]
    assert f'<a href="?with={other.pk}">run {other.pk}</a>' in page.content.decode()


def test_a_document_with_one_run_says_what_to_do(seen_by, ravi, run_of):
    assert "Run it again" in seen_by(ravi, f"/runs/{run_of().pk}/compare/").content.decode()


def test_others_come_page_by_page(seen_by, ravi, run_of, monkeypatch):
    monkeypatch.setattr("console.lists.ROWS", 1)
    run, *others = (run_of() for _ in range(3))

    first = seen_by(ravi, f"/runs/{run.pk}/compare/")
    second = seen_by(ravi, f"/runs/{run.pk}/compare/{first.context['slice'].older}")

    assert [list(page.context["slice"].rows) for page in (first, second)] == [[others[1]], [others[0]]]
    assert second.context["slice"].older == ""


def test_what_they_found_is_compared_field_by_field(seen_by, ravi, run_of):
    left, right = run_of(), run_of()
    for run, total in ((left, "10.00"), (right, "11.00")):
        field(run, "total", total)
        field(run, "currency", "EUR", confidence=0.5)
        field(run, "line", {"b": 1, "a": [2]})
    field(left, "line", 2)
    field(left, "date", None)
    field(right, "iban", "DE00")

    page = seen_by(ravi, compare(right, left))

    assert pairs(page.context["comparison"].fields) == {
        "total": "different",
        "line (2)": "missing",
        "date": "missing",
        "iban": "missing",
        "currency": "same",
        "line": "same",
    }
    text = page.content.decode()
    assert "4 differ, 2 are the same." in text
    assert "{&quot;a&quot;: [2], &quot;b&quot;: 1}" in text
    # The older run is on the left, whatever the order in the URL.
    assert page.context["sides"] == (left, right)


def test_only_so_many_fields_are_compared(run_of, monkeypatch):
    monkeypatch.setattr(comparison, "MOST_FIELDS", 1)
    left, right = run_of(), run_of()
    field(left, "a", 1)
    field(left, "b", 1)

    found = comparison.compare(left, right).fields

    assert (pairs(found), found.is_cut) == ({"a": "missing"}, True)


def test_their_settings_and_packages_are_compared(seen_by, ravi, configuration, run_of):
    left = run_of()
    files = {"main.py": f"{HOSTILE}\n"}
    snapshot = configuration.snapshot() | {"files": files}
    build = BuildFactory(configuration=configuration, status="ready", fingerprint="f" * 64, snapshot=snapshot)
    right = run_of(build=build)

    page = seen_by(ravi, compare(left, right))

    found = page.context["comparison"]
    assert [setting.name for setting in found.settings if not setting.is_same] == ["Fingerprint"]
    assert [text.path for text in found.package.texts] == ["main.py"]
    assert "+&lt;script&gt;alert(1)&lt;/script&gt;" in page.content.decode()


def test_runs_of_one_build_have_one_package(seen_by, ravi, run_of):
    page = seen_by(ravi, compare(run_of(), run_of()))

    assert page.context["comparison"].package is None
    assert "both runs used" in page.content.decode()


def test_their_durations_are_compared_step_by_step(run_of):
    left, right = run_of(status="running"), run_of(status="succeeded", input_document=DocumentFactory())
    began, ended = (right.created_at + timedelta(seconds=seconds) for seconds in (3, 5))
    write(right, started_at=began, finished_at=ended)
    lifecycle.record(RUN_STATES, left.pk, "STEP_STARTED", data={"step": "read"})
    lifecycle.record(RUN_STATES, left.pk, "STEP_SUCCEEDED", data={"step": "read"})

    found = {(each.part, each.name): each for each in comparison.compare(left, right).durations}

    assert list(found) == [("Waiting", "wait"), ("Running", "total"), ("Running", "read")]
    assert found["Waiting", "wait"].right == 3
    assert found["Waiting", "wait"].right_width == 1000
    assert found["Running", "total"].right == 2
    assert (found["Running", "read"].right, found["Running", "read"].change) == (None, "")


def test_the_difference_of_two_durations_is_said_in_words():
    def change(left, right):
        return comparison.Duration("Running", "read", left, right, 0, 0).change

    assert [change(1, 3), change(3, 1.5), change(1, 1)] == ["2.0 s longer", "1.5 s less", "the same"]


def test_a_run_that_has_not_ended_is_followed(seen_by, ravi, run_of):
    first, second, running = run_of(), run_of(), run_of(status="running")

    assert 'sse:connect="/live/"' in seen_by(ravi, compare(first, running)).content.decode()
    assert "sse:connect" not in seen_by(ravi, compare(first, second)).content.decode()


def test_a_run_of_another_document_is_not_compared(seen_by, ravi, workspace, run_of):
    left, right = run_of(), run_of(input_document=DocumentFactory(workspace=workspace))

    assert "is for a different document" in seen_by(ravi, compare(left, right)).content.decode()


@pytest.mark.parametrize("wanted", ["", "0x1", "-1", "99999999999999999999999", "self"])
def test_whatever_is_no_other_run_leads_to_the_choice(seen_by, ravi, run_of, wanted):
    run = run_of()
    wanted = run.pk if wanted == "self" else wanted

    page = seen_by(ravi, f"/runs/{run.pk}/compare/?with={wanted}")

    assert "slice" in page.context


def test_both_must_be_ones_own(seen_by, ravi, zed, run_of):
    mine, others = run_of(), RunFactory(status="succeeded")

    asked = [(ravi, compare(mine, others)), (ravi, compare(others, mine)), (zed, f"/runs/{mine.pk}/compare/")]
    assert [seen_by(who, path).status_code for who, path in asked] == [404, 404, 404]


def test_names_and_values_stay_text(seen_by, ravi, document, configuration, run_of):
    write(document, name=HOSTILE)
    write(configuration, name=HOSTILE)
    left, right = run_of(), run_of(status="failed")
    field(left, HOSTILE, HOSTILE)
    write(right, error_message=HOSTILE)
    lifecycle.record(RUN_STATES, left.pk, "STEP_STARTED", data={"step": HOSTILE})
    lifecycle.record(RUN_STATES, left.pk, "STEP_FAILED", data={"step": HOSTILE})

    for path in (compare(left, right), f"/runs/{left.pk}/compare/"):
        text = seen_by(ravi, path).content.decode()
        assert HOSTILE not in text
        assert "&lt;script&gt;" in text


def test_comparing_costs_few_queries(asks_at_most, ravi, run_of):
    left, right = run_of(), run_of(status="failed")
    field(left, "a", 1)

    asks_at_most(15, ravi, compare(left, right))
    asks_at_most(15, ravi, f"/runs/{left.pk}/compare/")
