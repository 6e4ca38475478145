import json
import time

import pytest

from console.pretty import DEEPEST, indented, plain
from tests import effort

pytestmark = pytest.mark.edge

MOST = 10_000


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[]",
        "1",
        '"a"',
        '{"a": [], "b": {}}',
        '[1, [2, [3]], {"a": null}]',
        '{"a": "{\\"b\\": [1, 2]}", "c": ","}',
    ],
)
def test_json_is_indented_as_programs_do_it(text):
    assert indented(text, MOST) == json.dumps(json.loads(text), indent=2)


def test_json_stays_as_it_was_written():
    text = '{"a":1.10,"a":1e999,"b":"\\u202e","c":123456789012345678901234567890}'

    assert indented(text, MOST) == text.replace("{", "{\n  ").replace(',"', ',\n  "').replace(":", ": ").replace(
        "}", "\n}"
    )


@pytest.mark.parametrize(
    "text",
    ["", "{", "hello world", "{'a': 1}", '"', "[" * 100_000, "[" * 41 + "]" * 41, '{"a": "\\', "]" * 9, "\ud800"],
)
def test_what_is_no_json_or_too_deep_is_none(text):
    assert indented(text, MOST) is None


def test_it_is_as_deep_as_it_may_be():
    assert indented("[" * DEEPEST + "]" * DEEPEST, MOST).count("\n") == 2 * DEEPEST - 2


@pytest.mark.parametrize(
    "text",
    [
        "[" * 39 + "1," * 120_000 + "1" + "]" * 39,
        '"' + '\\"' * 120_000 + '"',
        '"' * 250_001,
        '["' * 125_000,
        "9" * 250_000,
        "{" + '"":0,' * 50_000 + '"":0}',
    ],
)
def test_nothing_takes_long_or_grows_large(text):
    began = time.process_time()

    found = indented(text, MOST)

    assert effort.since(began) < 2
    assert found is None or len(found) <= MOST + 2


def test_what_cannot_be_seen_is_made_visible():
    assert plain("a\x1b[31m\0\u202e\ud800\r\nb\rc\u2028\x85") == "a\\x1b[31m\\x00\\u202e\\ud800\nb\\rc\\u2028\\x85"


@pytest.mark.parametrize("text", ["Müller\t12\xa0€\n", "日本語", "می\u200cخواهم", "👩\u200d🔬", "e\u0301", "<b>&amp;"])
def test_what_people_write_stays(text):
    assert plain(text) == text
