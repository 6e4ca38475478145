"""The document text that a step sees, which may not have been extracted yet."""

import pytest

from runs.models import Run
from tests.factories import write
from tests.runs.engine.running import error_of

pytestmark = [pytest.mark.once, pytest.mark.long, pytest.mark.django_db(transaction=True)]

TELL = """
from ade_engine import step

@step
def tell(ctx):
    ctx.field("text", ctx.document.text)
    ctx.field("status", ctx.document.status)
"""


@pytest.fixture
def told(lane):
    configuration, _ = lane.configure({"main.py": TELL})

    def told(status, content_type="application/pdf", **columns):
        document = write(lane.document("in the file"), content_type=content_type, status=status, **columns)
        run = lane.execute(document=document, configuration=configuration, wait_for_processing=False)
        return run, dict(run.fields.values_list("name", "value"))

    return told


def test_text_that_was_extracted_is_seen(told):
    run, fields = told("processed", text="what was read\n\nof it")

    assert run.status == "succeeded"
    assert fields == {"text": "what was read\n\nof it", "status": "processed"}


def test_while_the_text_is_still_being_read_the_run_says_so_and_is_not_tried_again(told):
    run, fields = told("processing")

    assert error_of(run) == (
        "failed",
        "REJECTED",
        "The text of 'deeds.txt' is still being extracted. Run again when the document is processed.",
    )
    assert fields == {}
    assert not Run.objects.get(pk=run.pk).artifacts.exists()


def test_a_text_file_need_not_have_been_read(told):
    run, fields = told("processing", "text/plain")

    assert run.status == "succeeded"
    assert fields["text"] == "in the file"


@pytest.mark.parametrize("status", ["processed", "failed"])
def test_a_document_without_text_has_none(told, status):
    run, fields = told(status)

    assert run.status == "succeeded"
    assert fields["text"] == ""
