"""A server that implements the protocol of Azure Document Intelligence and reads the PDFs that it receives."""

import base64
import json
import re
import struct
import threading
import uuid

import pypdfium2

from tests.services.serving import Service

KEY = "0123456789abcdef0123456789abcdef"
ANALYZE = re.compile(r"/documentintelligence/documentModels/([^/:]+):analyze")
POLL = re.compile(r"/documentintelligence/documentModels/([^/]+)/analyzeResults/([0-9a-f-]+)")
PAIR = re.compile(r"([A-Z][\w ]{1,30}):\s+(.+)")
MODELS = ("prebuilt-layout", "prebuilt-read", "prebuilt-invoice")
POINTS = 72
CONFIDENCE = 0.93
# pdfium is not thread-safe.
_reading = threading.Lock()


class DocumentIntelligence(Service):
    def __init__(self):
        # How often an analysis is reported as running, the text of images, and the polling interval that it requests.
        self.running, self.written, self.look_after_ms = 2, "Scanned words", 10
        self.analyses, self._looks = {}, {}
        super().__init__()

    def handle(self, asked):
        if asked.headers.get("ocp-apim-subscription-key") != KEY:
            return "refused", lambda: error(401, "401", "Access denied: the key is not one of this resource.")
        if found := ANALYZE.fullmatch(asked.path):
            return "analyze", lambda: self._analyze(found[1], asked)
        if found := POLL.fullmatch(asked.path):
            return "poll", lambda: self._poll(found[2])
        return "lost", lambda: error(404, "404", "Resource not found")

    def _analyze(self, model, asked):
        if asked.query.get("api-version") is None:
            return error(400, "InvalidRequest", "The parameter api-version is missing.")
        if model not in MODELS:
            return error(404, "NotFound", "The resource does not exist.", "ModelNotFound")
        data = asked.body
        if asked.headers["content-type"].startswith("application/json"):
            data = base64.b64decode(json.loads(data)["base64Source"])
        id = str(uuid.uuid4())
        self.analyses[id] = self._read(data, model, asked.query)
        self._looks[id] = 0
        place = f"{self.url}/documentintelligence/documentModels/{model}/analyzeResults/{id}?api-version=2024-11-30"
        return 202, {"Operation-Location": place, "apim-request-id": id, "retry-after-ms": self.look_after_ms}, b""

    def _poll(self, id):
        if id not in self.analyses:
            return error(404, "NotFound", "The resource does not exist.")
        self._looks[id] += 1
        times = {"createdDateTime": "2026-01-02T03:04:05Z", "lastUpdatedDateTime": "2026-01-02T03:04:06Z"}
        if self._looks[id] <= self.running:
            return 200, {"retry-after-ms": self.look_after_ms}, json.dumps({"status": "running", **times}).encode()
        return 200, {}, json.dumps({"status": "succeeded", **times, "analyzeResult": self.analyses[id]}).encode()

    def _read(self, data, model, query):
        wanted = range_of(query.get("pages"))
        pages = self._image(data) if data[:4] == b"\x89PNG" else of_pdf(data, wanted)
        return result(pages, model, query.get("features", ""))

    def _image(self, data):
        width, height = struct.unpack(">2L", data[16:24])
        words = self.written.split()
        boxes = [(n * width / len(words), 0, (n + 1) * width / len(words), height / 2) for n in range(len(words))]
        return [(1, width, height, "pixel", [list(zip(words, boxes, strict=True))])]


def failed(code="InternalServerError", message="An unexpected error occurred.", inner=None):
    """Return the result of a failed analysis."""
    said = {"code": code, "message": message}
    if inner:
        said["innererror"] = {"code": inner, "message": "The file is corrupted or of a format that is not supported."}
    return {"status": "failed", "error": said}


def error(status, code, message, inner=None, **headers):
    said = {"error": failed(code, message, inner)["error"]}
    return status, headers, json.dumps(said).encode()


def range_of(pages):
    if pages is None:
        return None
    first, _, last = pages.partition("-")
    return range(int(first), int(last or first) + 1)


def of_pdf(data, wanted):
    with _reading:
        document = pypdfium2.PdfDocument(data)
        numbers = [n for n in range(1, len(document) + 1) if wanted is None or n in wanted]
        pages = [(n, *size_of(document[n - 1]), "inch", lines_of(document[n - 1])) for n in numbers]
        document.close()
    return pages


def size_of(page):
    return page.get_width() / POINTS, page.get_height() / POINTS


def lines_of(page):
    """Return words with their boxes, in inches from the top."""
    text_page, height = page.get_textpage(), page.get_height()
    text, lines = text_page.get_text_range(), []
    for line in re.finditer(r"[^\r\n]+", text):
        words = [(m[0], m.start() + line.start(), m.end() + line.start()) for m in re.finditer(r"\S+", line[0])]
        lines.append([(word, box_of(text_page, start, end, height)) for word, start, end in words])
    return [line for line in lines if line]


def box_of(text_page, start, end, height):
    boxes = [text_page.get_charbox(index, loose=True) for index in range(start, end)]
    left, bottom = min(box[0] for box in boxes), min(box[1] for box in boxes)
    right, top = max(box[2] for box in boxes), max(box[3] for box in boxes)
    return left / POINTS, (height - top) / POINTS, right / POINTS, (height - bottom) / POINTS


def polygon(box):
    left, top, right, bottom = (round(each, 4) for each in box)
    return [left, top, right, top, right, bottom, left, bottom]


def around(boxes):
    return tuple(best(box[n] for box in boxes) for n, best in enumerate((min, min, max, max)))


def result(pages, model, features):
    content, said, paragraphs, pairs, tables = "", [], [], [], []
    for number, width, height, unit, lines in pages:
        told, rows = [], []
        for line in lines:
            text, place = " ".join(word for word, _ in line), around([box for _, box in line])
            span = {"offset": len(content), "length": len(text)}
            region = {"pageNumber": number, "polygon": polygon(place)}
            told.append({"content": text, "polygon": polygon(place), "spans": [span], "_words": line, "_span": span})
            content += f"{text}\n"
            paragraphs.append({"content": text, "spans": [span], "boundingRegions": [region]})
            if " | " in text:
                rows.append((text.split(" | "), region, span))
            if found := PAIR.fullmatch(text):
                pairs.append(pair(found, line, number, span))
        said.append(page_of(number, width, height, unit, told))
        tables += [table_of(rows)] if rows else []
    whole = {
        "apiVersion": "2024-11-30", "modelId": model, "stringIndexType": "unicodeCodePoint", "contentFormat": "text",
        "content": content, "pages": said, "paragraphs": paragraphs, "tables": tables, "styles": [], "sections": [],
    }  # fmt: skip
    if "keyValuePairs" in features:
        whole["keyValuePairs"] = pairs
    if model == "prebuilt-invoice":
        whole["documents"] = [invoice_of(pairs)]
    return whole


def page_of(number, width, height, unit, lines):
    words = [
        {"content": word, "polygon": polygon(box), "confidence": 0.99, "span": {"offset": 0, "length": len(word)}}
        for line in lines
        for word, box in line["_words"]
    ]
    shown = [{name: value for name, value in line.items() if name[0] != "_"} for line in lines]
    spans = [line["_span"] for line in lines]
    return {
        "pageNumber": number, "angle": 0, "width": width, "height": height, "unit": unit, "words": words,
        "lines": shown, "spans": spans[:1],
    }  # fmt: skip


def pair(found, line, number, span):
    names = len(found[1].split())
    places = [
        [{"pageNumber": number, "polygon": polygon(around([box for _, box in part]))}]
        for part in (line[:names], line[names:])
    ]
    return {
        "key": {"content": f"{found[1]}:", "boundingRegions": places[0], "spans": [span]},
        "value": {"content": found[2], "boundingRegions": places[1], "spans": [span]},
        "confidence": CONFIDENCE,
    }


def table_of(rows):
    cells = [
        {"rowIndex": r, "columnIndex": c, "content": text, "spans": [span], "boundingRegions": [region]}
        for r, (texts, region, span) in enumerate(rows)
        for c, text in enumerate(texts)
    ]
    first, last = rows[0][2], rows[-1][2]
    span = {"offset": first["offset"], "length": last["offset"] + last["length"] - first["offset"]}
    columns = max(len(texts) for texts, _, _ in rows)
    corners = [(p[0], p[1], p[4], p[5]) for _, region, _ in rows for p in [region["polygon"]]]
    whole = {"pageNumber": rows[0][1]["pageNumber"], "polygon": polygon(around(corners))}
    return {
        "rowCount": len(rows), "columnCount": columns, "cells": cells, "boundingRegions": [whole],
        "spans": [span],
    }  # fmt: skip


def typed(label, text):
    if "amount" in label:
        amount, _, code = text.partition(" ")
        return {"type": "currency", "valueCurrency": {"amount": float(amount), "currencyCode": code}}
    if "date" in label:
        return {"type": "date", "valueDate": "-".join(reversed(text.split(".")))}
    return {"type": "string", "valueString": text}


def invoice_of(pairs):
    fields = {
        each["key"]["content"].rstrip(":").title().replace(" ", ""): {
            **typed(each["key"]["content"], each["value"]["content"]),
            "content": each["value"]["content"],
            "boundingRegions": each["value"]["boundingRegions"],
            "confidence": CONFIDENCE,
        }
        for each in pairs
    }
    item = {"type": "object", "valueObject": {"Description": {**next(iter(fields.values())), "type": "string"}}}
    return {"docType": "invoice", "confidence": 1, "spans": [], "fields": fields | {
        "Items": {"type": "array", "valueArray": [item]}
    }}  # fmt: skip
