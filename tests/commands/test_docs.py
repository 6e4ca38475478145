import argparse
import re

import pytest
from django.conf import settings
from django.core.management import get_commands, load_command_class

from config.doctor import all_checks
from work.operations.commands import MEANINGS
from work.operations.outcomes import Outcome

pytestmark = pytest.mark.edge

DOCS = settings.BASE_DIR / "docs"
PAGES = [settings.BASE_DIR / "README.md", *sorted(DOCS.glob("*.md"))]
REFERENCE = (DOCS / "reference" / "commands.md").read_text()


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
    verbs = re.findall(rf"^### {noun} ([a-z]+)$", REFERENCE, re.MULTILINE)

    assert f"\n## {noun}\n" in REFERENCE
    assert verbs == list(verbs_of(parser_of(noun)))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_commands_that_a_page_names_are_there(page):
    for noun, verb in re.findall(r"manage\.py ([a-z_]+)(?:\s([a-z]+))?", page.read_text()):
        assert noun in get_commands()
        assert noun not in ours() or not verb or verb in (verbs_of(parser_of(noun)) or [verb])


@pytest.mark.parametrize("noun", sorted(ours()))
def test_every_command_but_up_answers_in_json(noun):
    verbs = verbs_of(parser_of(noun))
    for name, parser in verbs.items() or [(noun, parser_of(noun))]:
        assert noun == "up" or "--json" in parser.format_help(), name


def test_every_exit_code_is_documented():
    for code in MEANINGS:
        assert re.search(rf"^\| {code.value} \|", REFERENCE, re.MULTILINE)


def test_every_result_is_documented():
    # Outcomes of pages only: commands have other ways to submit runs, to check feeds, to run jobs, and to send a ping.
    of_pages = {Outcome.NOT_YOURS, Outcome.PINGED, Outcome.HAS_NEWER, Outcome.DUE, Outcome.IS_PAUSED, Outcome.STARTED}

    for outcome in set(Outcome) - of_pages:
        assert f"| `{outcome}` |" in REFERENCE


def test_every_check_that_is_documented_is_there():
    names = {check.name for check in all_checks()}
    pages = "".join(path.read_text() for path in DOCS.glob("*.md"))

    for named in re.findall(r"`(?:manage.py )?(?:doctor )?(invariant\.[a-z_]+)`", pages):
        assert named in names
