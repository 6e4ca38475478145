import time

import pytest

from console.causes import KEY_CHARACTERS, LONGEST, cause_of, normal
from tests import effort

pytestmark = pytest.mark.edge


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        ("", ""),
        ("no text layer", "no text layer"),
        ("expected 12 columns, found 9", "expected # columns, found #"),
        ("expected 1,200.50 EUR, found -3", "expected # EUR, found #"),
        ("row 17: 'Müller & Söhne' is no number", "row #: “…” is no number"),
        ('expected "a", found "b"', "expected “…”, found “…”"),
        ("expected `a`, “b”, «c» or ‘d’", "expected “…”, “…”, “…” or “…”"),
        ("it doesn't say and can't know", "it doesn't say and can't know"),
        ("no such file: /var/lib/ade/17/in.pdf", "no such file: PATH"),
        ("no such file: ./in/page-3.png, really", "no such file: PATH, really"),
        (r"no such file: C:\Users\olga\in.pdf", "no such file: PATH"),
        ("cannot read report-2026.final.PDF: it is empty", "cannot read FILE: it is empty"),
        ("GET https://example.org/a?b=1 answered 503", "GET URL answered #"),
        ("build 5 of 0d3f1c9e-7a52-4b0e-9a53-0f2f6f2f0a11 failed", "build # of # failed"),
        ("sha 9f86d081884c7d65 is not 2c26b46b68ffc68f", "sha # is not #"),
        ("sha 1234567890123456 is not 2c26b46b68ffc68f", "sha # is not #"),
        ("object at 0x7f00ab12 is gone", "object at # is gone"),
        ("token Zk3V9xQp1mB7rT is unknown", "token # is unknown"),
        ("the facade was deadbeaten", "the facade was deadbeaten"),
        ("since 2026-11-19T02:16:48.878660+00:00", "since #"),
        ("since 2026-11-19 02:16 UTC", "since #"),
        ("timed out after 120 s", "timed out after # s"),
        ("one\n  two\t three", "one two three"),
        ("<script>alert(1)</script>", "<script>alert(#)<PATH>"),
    ],
)
def test_what_a_message_names_is_left_out(message, cause):
    assert normal(message) == cause


def test_messages_that_differ_in_names_and_numbers_have_one_cause():
    first = cause_of("run", "STEP_FAILED", "step 3 of 'a.pdf': expected 12 columns, found 9")
    second = cause_of("run", "STEP_FAILED", "step 17 of 'b b.pdf': expected 7 columns, found 1,000")

    assert first == second
    assert first.words == "step # of “…”: expected # columns, found #"


@pytest.mark.parametrize(
    "other",
    [
        ("run", "STEP_FAILED", "no such field"),
        ("run", "ENGINE_FAILED", "no such column"),
        ("build", "STEP_FAILED", "no such column"),
    ],
)
def test_other_messages_types_and_kinds_have_causes_of_their_own(other):
    assert cause_of("run", "STEP_FAILED", "no such column").key != cause_of(*other).key


def test_a_key_can_stand_in_an_address_and_is_the_same_tomorrow():
    key = cause_of("run", "STEP_FAILED", "../<script> {{7*7}} \ud800").key

    assert len(key) == KEY_CHARACTERS
    assert set(key) <= set("0123456789abcdef")
    assert cause_of("run", "TIMED_OUT", "timed out after 120 s").key == "97acc1b15508ae0d"


HARD = [
    *("a", "1", "/", ".", "'", '"', "“", "«", "-", "~", ":", "\\", "_", " ", "\n", "f", "a/", "a.", "a-", "1.", "1:"),
    *(" '", ' "', "0x", "“a", "a'", "a.b-", "a/b.", "http://", "file:", "C:\\", "2026-11-19 ", "x" * 11 + " "),
]


@pytest.mark.parametrize("piece", HARD)
def test_a_long_message_takes_no_longer_than_its_length(piece):
    began = time.process_time()
    cause = normal(piece * (1_000_000 // len(piece)))

    assert len(cause) <= LONGEST
    assert effort.since(began) < 0.5


@pytest.mark.parametrize("piece", HARD)
def test_no_pattern_goes_back_and_forth(piece, monkeypatch):
    monkeypatch.setattr("console.causes.MOST_READ", 200_000)
    began = time.process_time()

    normal(piece * (200_000 // len(piece)))

    assert effort.since(began) < 3
