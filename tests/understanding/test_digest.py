import json

import pytest

from ade_extractor import DIGEST, OUTPUT, digest
from ade_extractor.einvoices import Found
from tests.understanding.drawing.layouts import invoice

pytestmark = pytest.mark.once


def digested(folder, pages, pages_total, words_of=None):
    path = folder / OUTPUT
    path.write_text(json.dumps({"pages": pages, "pages_total": pages_total}), "utf-8")
    digest.write([path], folder, lambda number: (words_of(number), []), Found())
    return json.loads((folder / DIGEST).read_text("utf-8"))


def test_the_digest_has_fields_lines_and_type(tmp_path):
    paper = invoice("digest", "en", "sections")

    result = digested(tmp_path, paper.pages, len(paper.pages))

    fields = {field["name"]: field["value"] for field in result["fields"]}
    assert fields["gross_total"] == paper.truth["gross_total"]
    assert result["type"]["name"] == paper.type
    assert result["tables"][0]["name"] == "line_items"
    assert result["problems"] == []


def test_of_a_long_document_only_pages_with_labels_are_read_with_places(tmp_path):
    (paper, *_) = invoice("digest", "en", "sections").pages
    texts = ["Once upon a time", paper["text"], "and so on"]
    pages = [paper | {"number": number, "text": text, "words": []} for number, text in enumerate(texts, 1)]
    asked = []

    def words_of(number):
        asked.append(number)
        return json.dumps(paper["words"])

    result = digested(tmp_path, pages, digest.ALL_WORDS_PAGES + 1, words_of)

    assert asked == [2]
    assert {field["page"] for field in result["fields"]} == {2}
    assert result["pages"] == 3


def test_fields_of_a_service_are_kept_beside_those_of_other_pages(tmp_path):
    (paper, *_) = invoice("digest", "en", "sections").pages
    told = {"name": "total", "value": "1", "kind": "text", "confidence": 0.4, "page": 2, "box": None, "source": "azure"}
    read = paper | {"number": 2, "fields": [told, told | {"value": "2", "confidence": 0.6}]}

    result = digested(tmp_path, [paper, read], 2)

    assert [field["value"] for field in result["fields"] if field["source"] == "azure"] == ["2"]
    assert {field["page"] for field in result["fields"] if field["source"] == "page"} == {1}
