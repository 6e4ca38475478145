import re

import pytest
from django.conf import settings

from tests.examples.running import run_example

pytestmark = [pytest.mark.once, pytest.mark.long]

TUTORIAL = (settings.BASE_DIR / "docs" / "writing-configurations.md").read_text()
BLOCKS = re.findall(r"```(?:python|toml)\n# (\S+)\n(.*?)```", TUTORIAL, re.DOTALL)
QUOTES = [(path, text) for path, text in BLOCKS if path.startswith("examples/")]


@pytest.fixture
def counter(tmp_path):
    """Write the first example of the tutorial to files, exactly as printed there."""
    package = tmp_path / "counter"
    package.mkdir()
    for name, text in BLOCKS:
        if name in ("ade.toml", "main.py"):
            (package / name).write_text(text)
    return package


def test_the_first_ten_lines_count_words(counter, tmp_path):
    outcome = run_example(counter, tmp_path / "run", "text.txt", "Four words are here")

    assert outcome.result["outcome"] == "succeeded", outcome.printed
    assert outcome.value("words") == 4


def test_the_first_ten_lines_reject_what_has_no_text(counter, tmp_path):
    assert run_example(counter, tmp_path / "run", "text.txt", "").result["outcome"] == "rejected"


@pytest.mark.parametrize(("path", "text"), QUOTES)
def test_what_is_quoted_stands_in_the_example(path, text):
    assert text in (settings.BASE_DIR / path).read_text()


def test_there_are_quotes():
    assert len(QUOTES) >= 4
