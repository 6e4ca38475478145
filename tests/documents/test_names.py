import time
import unicodedata

import pytest

from documents.names import clean_name
from tests import effort
from tests.documents.hostile import NAMES

pytestmark = pytest.mark.once


def test_there_are_many_hostile_names():
    assert len(set(NAMES)) >= 81


@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name[:40]))
def test_no_name_does_harm(name):
    started = time.process_time()

    found = clean_name(name)

    assert effort.since(started) < 1
    assert found
    assert found.strip() == found
    assert found not in (".", "..")
    assert 0 < len(found.encode()) <= 255
    assert not any(c in found for c in "/\\\r\n\0\u2028\u2029")
    hidden = [c for c in found if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")]
    assert set(hidden) <= {"\u200c", "\u200d"}
    assert clean_name(found) == found


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("invoice.pdf", "invoice.pdf"),
        ("Invoice of  Ms Müller (2).pdf", "Invoice of Ms Müller (2).pdf"),
        ("日本語の請求書.pdf", "日本語の請求書.pdf"),
        ("../../etc/passwd", "passwd"),
        ("C:\\files\\a.pdf", "a.pdf"),
        ("a\r\nb.pdf", "a b.pdf"),
        ("a\0.pdf", "a.pdf"),
        ("invoice\u202efdp.exe", "invoicefdp.exe"),
        ("e\u0301.pdf", "é.pdf"),
        ("👨\u200d👩\u200d👧.pdf", "👨\u200d👩\u200d👧.pdf"),
        ("a" * 300 + ".pdf", "a" * 251 + ".pdf"),
        ("ä" * 300 + ".pdf", "ä" * 125 + ".pdf"),
        ("a" * 100_000 + ".docx", "a" * 250 + ".docx"),
        ("", "unnamed"),
        ("..", "unnamed"),
        ("a/", "unnamed"),
        ("\u202e\u200b", "unnamed"),
        ("{{7*7}} $(id) %s", "{{7*7}} $(id) %s"),
    ],
    ids=lambda name: ascii(name[:30]),
)
def test_names(name, expected):
    assert clean_name(name) == expected
