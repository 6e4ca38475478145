import pytest

from documents import fields
from documents.models import DocumentField
from runs import handler, lifecycle, publishing
from runs.engine_session import Results
from runs.models import Run
from tests.factories import ConfigurationFactory, DocumentFieldFactory, RunFactory, claim_of, events_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def configuration(workspace):
    return ConfigurationFactory(workspace=workspace, name="invoices", publish=True)


@pytest.fixture
def ends(configuration, build, document):
    """Return a function that lets a run succeed with these fields, and returns the run."""

    def ends(*fields, of=configuration):
        run = RunFactory(configuration=of, input_document=document, publishes=of.publish, status="running")
        rows = [field | {"position": number} for number, field in enumerate(fields, 1)]
        assert handler.succeed(claim_of(run), Results(rows, [], {"fields": len(rows)}))
        return run

    return ends


def reported(name, value, **more):
    return {"name": name, "value": value, "confidence": 0.9, "page": 1, "box": None, "step": "read"} | more


def published(document):
    rows = DocumentField.objects.filter(document=document).order_by("name", "source")
    return list(rows.values_list("name", "source", "value"))


def test_what_a_run_found_is_a_field_of_its_document(ends, document):
    box = [0.1, 0.2, 0.3, 0.4]
    run = ends(reported("gross_total", "119.00 EUR", box=box, confidence=0.95), reported("sheets", 7, confidence=None))

    total, sheets = fields.of_document(document.pk)

    assert (total.value, total.kind, total.confidence, total.page, total.box) == ("119.00 EUR", "amount", 0.95, 1, box)
    assert (total.source, total.reason) == (f"run {run.pk}", "Step read of the configuration.")
    assert (sheets.name, sheets.value, sheets.kind, sheets.confidence) == ("sheets", "7", "text", None)
    assert events_of(run).last().data == {"fields": 2, "published": 2}


def test_a_run_of_another_configuration_publishes_nothing(ends, document, workspace):
    run = ends(reported("gross_total", "119.00 EUR"), of=ConfigurationFactory(workspace=workspace))

    assert published(document) == []
    assert events_of(run).last().data == {"fields": 1}


def test_a_later_run_replaces_what_an_earlier_one_has_published(ends, document):
    ends(reported("gross_total", "119.00 EUR"), reported("note", "old"))

    later = ends(reported("gross_total", "120.00 EUR"))

    assert published(document) == [("gross_total", f"run {later.pk}", "120.00 EUR")]


def test_a_later_run_that_finds_nothing_leaves_nothing_published(ends, document):
    ends(reported("gross_total", "119.00 EUR"))

    run = ends()

    assert published(document) == []
    assert events_of(run).last().data == {"fields": 0, "published": 0}


def test_other_sources_and_other_configurations_keep_their_values(ends, document, workspace):
    DocumentFieldFactory(document=document, name="gross_total", value="118.00 EUR", source="page", confidence=0.7)
    other = ends(reported("gross_total", "119.00 EUR"), of=ConfigurationFactory(workspace=workspace, publish=True))

    run = ends(reported("gross_total", "120.00 EUR"))

    assert {source for _, source, _ in published(document)} == {"page", f"run {other.pk}", f"run {run.pk}"}
    (total,) = fields.of_document(document.pk)
    assert (total.source, total.value) == (f"run {run.pk}", "120.00 EUR")


def test_a_person_knows_better(ends, document):
    ends(reported("gross_total", "119.00 EUR"))
    document.corrections.create(name="gross_total", value="121.00 EUR", corrected_by="olga")

    ends(reported("gross_total", "120.00 EUR"))

    (total,) = fields.of_document(document.pk)
    assert (total.value, total.machine_value) == ("121.00 EUR", "120.00 EUR")


@pytest.mark.parametrize("value", [None, True, ["a"], {"a": 1}, "", " \n", "\x00", float("inf"), float("nan")])
def test_only_texts_and_numbers_are_published(value):
    assert publishing.findings([reported("a", value)]) == []


@pytest.mark.parametrize("name", [" ", "\x00", "\ud800"])
def test_a_name_that_nobody_can_see_is_not_published(name):
    assert publishing.findings([reported(name, "x")]) == []


@pytest.mark.parametrize("box", [[0, 0, 1], [0, 0, 1, 1.1], [-1, 0, 1, 1], [float("nan"), 0, 1, 1]])
def test_a_place_outside_of_the_page_is_left_out(box):
    (found,) = publishing.findings([reported("a", "x", box=box)])

    assert (found["value"], found["box"]) == ("x", None)


def test_names_and_values_of_any_length_are_cut(ends, document):
    ends(reported("n" * 100, "v" * 100_000), reported("n" * 100, "w", confidence=0.1))

    ((name, _, value),) = published(document)
    assert (len(name), value) == (100, "v" * 5000)


def test_a_run_that_was_cancelled_publishes_nothing(configuration, document):
    run = RunFactory(configuration=configuration, input_document=document, publishes=True, status="running")
    lifecycle.cancel(run, actor="olga")

    assert not handler.succeed(claim_of(run), Results([reported("a", "x", position=1)], [], {}))

    assert (Run.objects.get(pk=run.pk).status, published(document)) == ("cancelled", [])


def test_a_run_publishes_if_its_configuration_did_so_at_the_submission(configuration, build, document):
    runs = [lifecycle.submit(configuration, document, actor="olga")]
    configuration.publish = False
    configuration.save()
    runs.append(lifecycle.submit(configuration, document, actor="olga"))

    assert [run.publishes for run in runs] == [True, False]
    assert lifecycle.claim_next_run("w1").values["publishes"]
