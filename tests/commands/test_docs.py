import argparse
import re

import pytest
from django.conf import settings
from django.core.management import load_command_class

from config.doctor import all_checks
from work.operations.commands import MEANINGS
from work.operations.outcomes import Outcome

pytestmark = pytest.mark.edge

DOCS = settings.BASE_DIR / "docs"


def ours():
    """Return the app of each command."""
    paths = settings.BASE_DIR.glob("*/management/commands/*.py")
    return {path.stem: path.parts[-4] for path in paths if path.stem != "__init__"}


def parser_of(noun):
    return load_command_class(ours()[noun], noun).create_parser("manage.py", noun)


def verbs_of(parser):
    verbs = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return next((action.choices for action in verbs), {})


@pytest.mark.parametrize("noun", ours())
def test_every_command_is_documented_with_its_verbs(noun):
    page = (DOCS / "commands.md").read_text()

    for verb in verbs_of(parser_of(noun)) or [""]:
        assert re.search(rf"^\| `{noun} ?{verb}[ `]", page, re.MULTILINE), verb


def test_every_command_that_is_documented_is_there():
    tables = re.findall(r"^\| command \|.*\n(?:\|.*\n)+", (DOCS / "commands.md").read_text(), re.MULTILINE)
    documented = re.findall(r"^\| `([a-z]+) ?([a-z]*)", "".join(tables), re.MULTILINE)

    assert len(documented) > 20
    for noun, verb in documented:
        assert verb in verbs_of(parser_of(noun)) or not verb


@pytest.mark.parametrize("noun", sorted(ours()))
def test_every_command_but_up_answers_in_json(noun):
    verbs = verbs_of(parser_of(noun))
    for name, parser in verbs.items() or [(noun, parser_of(noun))]:
        assert noun == "up" or "--json" in parser.format_help(), name


def test_every_exit_code_is_documented():
    page = (DOCS / "commands.md").read_text()

    for code in MEANINGS:
        assert re.search(rf"^\| {code.value} \|", page, re.MULTILINE)


def test_every_result_is_documented():
    page = (DOCS / "commands.md").read_text()

    # Outcomes of pages only: no command sends a ping, or repeats all failures of one cause.
    for outcome in set(Outcome) - {Outcome.NOT_YOURS, Outcome.PINGED, Outcome.HAS_NEWER}:
        assert f"| `{outcome}` |" in page


def test_every_check_is_documented():
    page = (DOCS / "operations.md").read_text()

    names = {check.name for check in all_checks()} | {
        "database.isolation",
        "database.sqlite_file",
        "database.sqlite_mode",
    }
    for name in names:
        assert name.startswith("invariant.") or f"| `{name}` |" in page
    for named in re.findall(r"`(?:doctor )?invariant\.(\w+)`", page):
        assert f"invariant.{named}" in names
