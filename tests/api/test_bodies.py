import contextlib
import json
import time

import pytest
from django.test import Client

from api.bodies import MOST_DEPTH, loads
from api.errors import Problem
from runs.models import Run
from tests import effort

pytestmark = pytest.mark.edge

REFUSED = {
    "no JSON": b"document_id=1",
    "broken": b'{"document_id": 1',
    "100,000 levels of lists": b"[" * 100_000 + b"]" * 100_000,
    "100,000 levels that do not end": b'{"a":' * 100_000,
    "a level too many": b'{"document_id":' + b"[" * MOST_DEPTH + b"]" * MOST_DEPTH + b"}",
    "5,000 digits": b'{"document_id": ' + b"9" * 5000 + b"}",
    "20 digits": b'{"document_id": 99999999999999999999}',
    "NaN": b'{"document_id": NaN}',
    "Infinity": b'{"document_id": -Infinity}',
    "1e400": b'{"document_id": 1e400}',
    "NUL": b'{"document_id": "\\u0000"}',
    "NUL in a key": b'{"\\u0000": 1}',
    "NUL in a list": b'{"document_id": [["\\u0000"]]}',
    "NUL as it is": b'{"document_id": "\0"}',
    "half of a pair": b'{"document_id": "\\ud800"}',
    "the other half": b'{"document_id": "\\udfff x"}',
    "a key twice": b'{"document_id": 1, "document_id": 1}',
    "a byte order mark": b'\xef\xbb\xbf{"document_id": 1}',
    "UTF-16": '{"document_id": 1}'.encode("utf-16"),
    "Latin-1": '{"é": 1}'.encode("latin-1"),
    "text alone that is none": b'"\\u0000"',
}
INVALID = {
    "nothing": b"",
    "a list": b"[]",
    "text": b'"x"',
    "null": b"null",
    "a number": b"1",
    "a key that is not known": b'{"document_id": 1, "priority": 1}',
    "100,000 keys": json.dumps({f"k{n}": n for n in range(50_000)}).encode(),
    "no key": b"{}",
    "a number as text": b'{"document_id": "1"}',
    "a number with a point": b'{"document_id": 1.5}',
    "true": b'{"document_id": true}',
    "null as a number": b'{"document_id": null}',
    "less than any id": b'{"document_id": 0}',
    "more than any id": b'{"document_id": 9223372036854775808}',
}


@pytest.fixture
def address(configuration):
    return f"/configurations/{configuration.pk}/runs"


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_json_that_is_taken_is_refused(program, address, told, name):
    assert told(program.post(address, REFUSED[name])) == (400, "invalid_json")

    assert not Run.objects.exists()


@pytest.mark.parametrize("name", INVALID)
def test_what_is_not_as_described_is_refused(program, address, told, name):
    assert told(program.post(address, INVALID[name])) == (400, "invalid_request")

    assert not Run.objects.exists()


@pytest.mark.parametrize("number", [b"%d.0", b"%d0e-1", b"%d"])
def test_a_whole_number_is_one_however_it_is_written(program, address, document, number):
    assert program.post(address, b'{"document_id": ' + number % document.pk + b"}").status_code == 201


def test_a_body_that_is_too_long_is_refused(program, address, told):
    assert told(program.post(address, b'{"document_id": "' + b"x" * (3 << 20) + b'"}')) == (413, "too_large")


def test_the_message_names_what_is_wrong_and_not_where_it_is_in_the_code(program, address):
    answer = program.post(address, b'{"document_id": "x", "other": 1}').json()

    assert [each["where"] for each in answer["details"]["wrong"]] == ["body.document_id", "body.other"]


@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonx", ""],
)
def test_only_json_is_taken_where_json_is_expected(program, address, told, document, content_type):
    body = json.dumps({"document_id": document.pk})

    answer = program.post(address, body, content_type=content_type)

    assert told(answer) == (415, "unsupported_media_type")
    assert not Run.objects.exists()


def test_the_charset_of_json_is_utf_8_whatever_is_said(program, address, told, document):
    body = json.dumps({"document_id": document.pk}).encode()

    headers = {"Authorization": f"Bearer {program.shown}"}

    answer = Client().generic("POST", address, body, "application/json; charset=klingon", headers=headers)

    assert told(answer) == (201, None)


@pytest.mark.parametrize(
    "query",
    ["limit=1%00", "cursor=%00", "status=queued&status=failed", "limit=1&limit=2", "status__regex=.*", "order=%00"],
)
def test_parameters_are_text_once_each(program, told, query):
    assert told(program.get(f"/api/v1/runs?{query}")) == (400, "invalid_request")


# The worst cases for the checks before the parser, which must be as quick as the parser.
MEGABYTE = 1 << 20
LONG = {
    "brackets": b"[" * MEGABYTE,
    "one string": b'"' + b"x" * MEGABYTE + b'"',
    "quotes": b'"' + b'\\"' * (MEGABYTE // 2),
    "strings": b"[" + b'"",' * (MEGABYTE // 3) + b'""]',
    "keys, one of them twice": b"{" + b",".join(b'"%d":1' % n for n in range(90_000)) + b',"0":1}',
}


@pytest.mark.parametrize("name", LONG)
def test_a_megabyte_of_anything_is_read_in_a_moment(name):
    def seconds():
        started = time.process_time()
        with contextlib.suppress(Problem):
            loads(LONG[name])
        return effort.since(started)

    assert min(seconds() for _ in range(2)) < 0.25


@pytest.mark.parametrize(
    "body", ['"[[[["', '["[", "{", "\\"[", "\\\\"]', "{}", '{"a": ' * 31 + "[1]" + "}" * 31, '"\\ud83d\\ude00"', "-0.5"]
)
def test_brackets_in_strings_are_no_levels(body):
    assert loads(body.encode()) == json.loads(body)
