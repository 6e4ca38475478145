"""PDFs and images read by Azure Document Intelligence: the requests, and the use of the answers."""

import json
import sys
import time

import pytest

from documents import extraction, remote_services
from documents.children import COLD_EXTRACTOR
from documents.extraction import ExtractionFailed
from documents.extraction import azure as reader
from tests.documents.processing import pdf
from tests.documents.samples import png
from tests.extractor.scans import image_of
from tests.processes import descendants, shown_of
from tests.services.document_intelligence import KEY
from tests.services.serving import says
from tests.stepping import until
from work.claims import Interrupted

pytestmark = [pytest.mark.django_db, pytest.mark.once, pytest.mark.usefixtures("places"), pytest.mark.long]

PDF, PNG, TXT = "application/pdf", "image/png", "text/plain"
INVOICE = "Invoice number: 42\nTotal amount: 7.00 EUR\nApples | 3\nPears | 4\nThank you."


@pytest.fixture
def directory(tmp_path):
    made = tmp_path / "desk"
    made.mkdir()
    return made


@pytest.fixture
def read(directory):
    def read(content, content_type=PDF, first=1, last=25, *, wall_seconds=30.0, stop=lambda: None):
        file = directory / "document"
        file.write_bytes(content)
        found = extraction.extract(
            file, content_type, first, last, directory,
            wall_seconds=wall_seconds, stop=stop, on_start=lambda child: None, run=COLD_EXTRACTOR,
        )  # fmt: skip
        return json.loads(found.path.read_bytes())

    return read


def test_a_page_has_the_shape_that_the_local_reader_gives_it(azure, read, settings):
    settings.ADE_EXTRACTOR = "local"
    local = read(pdf(INVOICE, "two"))
    settings.ADE_EXTRACTOR = "azure"

    found = read(pdf(INVOICE, "two"))

    assert found.keys() == local.keys()
    assert (found["pages_total"], found["version"]) == (2, local["version"])
    for ours, theirs in zip(found["pages"], local["pages"], strict=True):
        assert ours.keys() == theirs.keys() | {"fields"}
        same = ("number", "width", "height", "images", "has_text")
        assert [ours[name] for name in same] == [theirs[name] for name in same]
        assert [word for word, *_ in ours["words"]] == theirs["text"].split()
        # The local reader determines word places only on request.
        for mine, other in zip(ours["words"], theirs["words"], strict=bool(theirs["words"])):
            assert mine[1:] == pytest.approx(other[1:], abs=0.002)


def test_lines_tables_and_paragraphs_are_told_apart(azure, read):
    (page,) = read(pdf(INVOICE))["pages"]

    assert page["text"] == ("Invoice number: 42\n\nTotal amount: 7.00 EUR\n\nApples | 3\nPears | 4\n\nThank you.")
    (table,) = page["tables"]
    assert table["rows"] == [["Apples", "3"], ["Pears", "4"]]
    left, top, right, bottom = table["box"]
    assert 0 < left < right < 1
    assert 0 < top < bottom < 1


def test_pairs_of_keys_and_values_become_fields_with_their_places(azure, read):
    (page,) = read(pdf(INVOICE))["pages"]

    number, total = page["fields"]
    assert (number["name"], number["value"], number["kind"]) == ("invoice_number", "42", "text")
    assert number["source"] == "service"
    assert (number["page"], number["confidence"]) == (1, 0.93)
    (word,) = [word for word in page["words"] if word[0] == "42"]
    assert number["box"] == word[1:]
    assert (total["name"], total["value"]) == ("total_amount", "7.00 EUR")


def test_the_fields_of_an_invoice_come_with_what_they_are_and_lists_with_their_numbers(azure, read, settings):
    settings.ADE_AZURE_MODEL = "prebuilt-invoice"

    (page,) = read(pdf(f"{INVOICE}\nInvoice date: 03.04.2026"))["pages"]

    fields = {field["name"]: (field["value"], field["kind"]) for field in reversed(page["fields"])}
    assert fields["invoice_number"] == ("42", "text")
    assert fields["total_amount"] == ("7.00 EUR", "amount")
    assert fields["invoice_date"] == ("2026-04-03", "date")
    assert fields["items_1_description"] == ("42", "text")


def test_a_model_that_knows_no_pairs_is_not_asked_for_them(azure, read, settings):
    settings.ADE_AZURE_MODEL = "prebuilt-read"

    (page,) = read(pdf(INVOICE))["pages"]

    assert page["fields"] == []
    assert "features" not in azure.asked[0].query


def test_exactly_the_pages_of_a_segment_are_analysed(azure, read):
    found = read(pdf(*[f"Page {n}." for n in range(1, 31)]), first=26, last=50)

    assert azure.asked[0].query["pages"] == "26-30"
    assert [page["text"] for page in found["pages"]] == [f"Page {n}." for n in range(26, 31)]
    assert [page["number"] for page in found["pages"]] == list(range(26, 31))
    assert found["pages_total"] == 30


def test_one_request_is_one_analysis(azure, read):
    read(pdf("one"))

    assert [asked.what for asked in azure.asked] == ["analyze", "poll", "poll", "poll"]


def test_an_image_is_read_and_its_places_are_shares_of_it(azure, read):
    azure.written = "Total 42"

    (page,) = read(png(), PNG)["pages"]

    assert (page["text"], page["has_text"], page["width"], page["height"]) == ("Total 42", True, 1, 1)
    assert page["words"] == [["Total", 0, 0, 0.5, 0.5], ["42", 0.5, 0, 1, 0.5]]
    assert "pages" not in azure.asked[0].query


def test_scans_are_left_to_the_service(azure, tmp_path, directory):
    """ADE spends no time on pages that the service reads, and does not advise to install OCR."""
    file = image_of(tmp_path / "letter.pdf", "A letter.").convert("L")
    file.save(directory / "scan.png")
    azure.written = "Read elsewhere"
    asked = []

    def run(arguments, **options):
        asked.append(arguments)
        return COLD_EXTRACTOR(arguments, **options)

    found = reader.extract(directory / "scan.png", PNG, 1, 25, directory, wall_seconds=30, run=run)

    (page,) = json.loads(found.path.read_bytes())["pages"]
    assert (page["text"], page["ocr"]) == ("Read elsewhere", None)
    assert (found.scans, json.loads(found.path.read_bytes())["scans"]) == (0, 0)
    assert "--without-ocr" in asked[0]


def test_what_is_neither_pdf_nor_image_is_read_here(azure, read):
    (page,) = read(b"A letter.", TXT)["pages"]

    assert page["text"] == "A letter."
    assert azure.asked == []


def test_for_what_cannot_be_read_at_all_nobody_is_paid(azure, read):
    with pytest.raises(ExtractionFailed) as caught:
        read(b"%PDF-1.7 and nothing else")

    assert (caught.value.permanent, caught.value.of_service) == (True, False)
    assert azure.asked == []


def test_the_key_stands_nowhere_but_in_the_request(azure, read, directory):
    looked = []

    def look():
        if azure.count("poll"):
            looked.extend(shown_of("ade_services"))

    read(pdf("one"), stop=look)

    assert looked
    assert not any(KEY.encode() in each for each in looked)
    assert not any(KEY.encode() in path.read_bytes() for path in directory.rglob("*") if path.is_file())
    assert {asked.headers["ocp-apim-subscription-key"] for asked in azure.asked} == {KEY}


def test_whoever_is_told_to_stop_does_so_at_once(azure, read):
    azure.running = 10**6
    before = time.monotonic()

    with pytest.raises(Interrupted):
        read(pdf("one"), stop=lambda: "lease_lost" if azure.count("poll") else None)

    assert time.monotonic() - before < 60
    until(lambda: not descendants("ade_services"))


def test_the_key_is_shown_to_no_other_place_than_the_one_in_the_settings(azure, read, open_ai):
    elsewhere = f"{open_ai.url}/documentintelligence/documentModels/prebuilt-layout/analyzeResults/1"
    azure.then("analyze", says(202, Operation_Location=elsewhere))

    with pytest.raises(ExtractionFailed, match="leads to another host") as caught:
        read(pdf("one"))

    assert not caught.value.permanent
    assert open_ai.asked == []


def test_it_looks_no_more_often_than_every_two_seconds_unless_it_is_told(azure, read, monkeypatch):
    assert reader.POLL_SECONDS == 2
    azure.look_after_ms, azure.running = 0, 1
    monkeypatch.setattr(reader, "POLL_SECONDS", 0.6)
    before = time.monotonic()

    read(pdf("one"))

    assert azure.count("poll") == 2
    assert time.monotonic() - before > 0.6


def test_an_analysis_that_lacks_pages_is_refused_for_good(azure, read):
    """The free tier reads only two pages."""
    azure.then("poll", cut_to(2))
    azure.running = 0

    with pytest.raises(ExtractionFailed, match="page 3 is missing") as caught:
        read(pdf("one", "two", "three"))

    assert (caught.value.permanent, caught.value.of_service) == (True, True)


def cut_to(pages):
    def fault(handler, answer):
        status, headers, body = answer()
        told = json.loads(body)
        del told["analyzeResult"]["pages"][pages:]
        handler.answer(status, headers, json.dumps(told).encode())

    return fault


def test_a_deadline_holds_from_outside_too(azure, read, monkeypatch):
    monkeypatch.setattr(remote_services, "REPORT_SECONDS", -60.0)
    azure.running = 10**6

    with pytest.raises(ExtractionFailed, match="did not answer within") as caught:
        read(pdf("one"), wall_seconds=3)

    assert (caught.value.code, caught.value.permanent) == ("timed_out", False)


def test_the_client_is_never_loaded_where_a_worker_is(azure, read):
    read(pdf("one"))

    assert not [name for name in sys.modules if name.startswith("azure.ai")]
