"""Checks of the code's structure against what the documentation promises, beyond single verbs and pages."""

import ast
import re
import tomllib

import pytest
from django.conf import settings

from config import VERSION
from tests.factories import MOVES, DocumentFactory, ErrandFactory, RunFactory
from tests.testwork.models import Errand
from work import failpoints
from work.models import PROTECTED, Work
from work.work_types import other_subjects

pytestmark = pytest.mark.once

ROOT = settings.BASE_DIR
APPS = (
    *("work", "schedules", "workspaces", "documents", "builds", "runs"),
    *("feeds", "webhooks", "api", "console", "config"),
)
WRITERS = {"work/lifecycle.py", "work/sql/returning.py", "work/sql/portable.py"}
SOURCES = {
    str(path.relative_to(ROOT)): path
    for app in APPS
    for path in sorted((ROOT / app).rglob("*.py"))
    if "migrations" not in path.parts
}
TREES = {name: ast.parse(path.read_text()) for name, path in SOURCES.items()}
PAGES = [*sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "reference").glob("*.md"))]
DOCS = {str(path.relative_to(ROOT / "docs")): path.read_text() for path in PAGES}
TABLES = {states.kind: states for states in MOVES.values() if not states.model.__module__.startswith("tests.")}

# The single writer of status

QUERYSET_WRITES = {"update", "bulk_update", "update_or_create", "create", "get_or_create"}
SQL_WRITE = re.compile(r"\bupdate\b.+\bset\b.+\bstatus\b\s*=|\bset\s+status\b\s*=", re.IGNORECASE | re.DOTALL)


def writes_of_status(tree, *, knows_rows=True):
    ways = [by_queryset, by_setattr, by_sql, *([by_assignment] if knows_rows else [])]
    return [node.lineno for node in ast.walk(tree) if any(way(node) for way in ways)]


def by_queryset(node):
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in QUERYSET_WRITES):
        return False
    named = {keyword.arg for keyword in node.keywords}
    # bulk_update and update_or_create name their columns in lists and dictionaries.
    named |= {each.value for part in [*node.args, *node.keywords] for each in names_in(part)}
    return bool(named & PROTECTED)


def by_assignment(node):
    targets = getattr(node, "targets", [getattr(node, "target", None)])
    return isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign) and any(
        isinstance(target, ast.Attribute) and target.attr == "status" for target in targets
    )


def by_setattr(node):
    is_call = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "setattr"
    return is_call and any(each.value == "status" for each in names_in(node))


def by_sql(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and bool(SQL_WRITE.search(node.value))


def names_in(node):
    collections = [each for each in ast.walk(node) if isinstance(each, ast.List | ast.Tuple | ast.Set | ast.Dict)]
    elements = [e for each in collections for e in (each.keys if isinstance(each, ast.Dict) else each.elts)]
    if isinstance(node, ast.Call):
        elements += node.args
    return [each for each in elements if isinstance(each, ast.Constant)]


def found_in(code):
    return writes_of_status(ast.parse(code))


@pytest.mark.parametrize(
    "code",
    [
        "Run.objects.filter(pk=1).update(status='failed')",
        "Run.objects.bulk_update(runs, ['status'])",
        "Run.objects.bulk_update(runs, fields=['gate', 'lease_owner'])",
        "Run.objects.update_or_create(pk=1, defaults={'status': 'failed'})",
        "Run.objects.create(status='running')",
        "run.status = 'failed'",
        "run.status += 'x'",
        "setattr(run, 'status', 'failed')",
        "cursor.execute('UPDATE runs SET gate = 1, status = %s')",
        "cursor.execute('update runs\\n set status=%s')",
        "cursor.execute(f'UPDATE {table} SET status = 1')",
    ],
)
def test_the_search_finds_a_write_of_status(code):
    assert found_in(code)


@pytest.mark.parametrize(
    "code",
    [
        "Run.objects.filter(status='queued').update(gate='')",
        "rows.filter(status__in=['queued', 'running'])",
        "run.status == 'failed'",
        "return JsonResponse(body, status=404)",
        "cursor.execute('SELECT status FROM runs WHERE status = 1')",
    ],
)
def test_the_search_finds_nothing_else(code):
    assert not found_in(code)


@pytest.mark.parametrize("name", sorted(SOURCES.keys() - WRITERS))
def test_nothing_but_the_lifecycle_writes_status(name):
    # A pipe has a status too; a module that imports no models has no rows.
    knows_rows = any("django" in each or "models" in each for each in imports_of(TREES[name]))

    assert [f"{name}:{line}" for line in writes_of_status(TREES[name], knows_rows=knows_rows)] == []


def imports_of(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_only_the_lifecycle_knows_the_writers():
    users = {
        writer: {name for name, tree in TREES.items() if writer in imports_of(tree)}
        for writer in ("work.sql.returning", "work.sql.portable")
    }

    assert users == {"work.sql.returning": {"work/lifecycle.py"}, "work.sql.portable": {"work/lifecycle.py"}}


def test_only_who_declares_moves_makes_them():
    """Pages, commands and the admin call verbs of their app, never the kernel."""
    users = {name for name, tree in TREES.items() if {"work.lifecycle"} & set(imports_of(tree))}
    declaring = {name for name in users if "StateMachine(" in SOURCES[name].read_text()}

    # The verbs of documents that record something, or that delete contents, have files of their own.
    of_documents = {"documents/history.py", "documents/purging.py"}
    assert {name for name in users - declaring if not name.startswith("work/")} == of_documents


@pytest.mark.django_db
@pytest.mark.parametrize("column", sorted(PROTECTED))
def test_no_queryset_writes_a_protected_column(column):
    errand = ErrandFactory()

    for write in (
        lambda: Errand.objects.filter(pk=errand.pk).update(**{column: None}),
        lambda: Errand.objects.bulk_update([errand], [column]),
        lambda: errand.save(update_fields=[column]),
    ):
        with pytest.raises(TypeError, match="call a verb"):
            write()


@pytest.mark.django_db
@pytest.mark.parametrize("factory", [DocumentFactory, ErrandFactory, RunFactory], ids=lambda each: each.__name__)
def test_save_does_not_write_what_the_lifecycle_has_written_meanwhile(factory):
    stale, columns = factory(), PROTECTED
    if not isinstance(stale, Work):
        columns = {"status", "last_sequence"}
    before = type(stale).objects.filter(pk=stale.pk).values(*columns).get()
    for column in columns:
        setattr(stale, column, before["last_sequence"] + 7 if column == "last_sequence" else None)

    stale.save()

    assert type(stale).objects.filter(pk=stale.pk).values(*columns).get() == before


# Imports


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_no_function_hides_an_import(name):
    hidden = [
        f"{name}:{inner.lineno}"
        for node in ast.walk(TREES[name])
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for inner in ast.walk(node)
        if isinstance(inner, ast.Import | ast.ImportFrom)
    ]

    assert hidden == []


WEB = re.compile(r"admin\.py$|/(urls|views|middleware)\.py$|^api/routes/|^config/(api|asgi|handler|server)\.py$")


def test_whatever_the_web_answers_with_is_held_to_schedule_nothing():
    """Import-linter only checks modules that are listed, so a new page has to be listed."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (named,) = (set(each["source_modules"]) for each in contracts if each["name"] == "The web schedules nothing")
    web = {name.removesuffix(".py").replace("/", ".") for name in SOURCES if WEB.search(name)}

    assert {module for module in web if not named & {module, module.rpartition(".")[0]}} == set()


# docs/lifecycle.md

LIFECYCLE = DOCS["lifecycle.md"]
SECTION = re.compile(r"^### [^\n]+ \(`(\w+)`\)$(.+?)(?=^##)", re.MULTILINE | re.DOTALL)
ARROW = re.compile(r"^ +(\S+) --> (\S+?)(?:: (.+))?$", re.MULTILINE)
ROW = re.compile(r"^\| `(\w+)` \| (.+) \| (\w+) \| (.+) \| `(\w+)` \|$", re.MULTILINE)
SECTIONS = dict(SECTION.findall(LIFECYCLE))


def test_the_lifecycle_page_draws_every_kind_of_work():
    assert SECTIONS.keys() == TABLES.keys()


@pytest.mark.parametrize("kind", TABLES)
def test_the_picture_of_a_kind_is_its_table(kind):
    states, (picture,) = TABLES[kind], re.findall(r"```mermaid\nstateDiagram-v2\n(.+?)```", SECTIONS[kind], re.DOTALL)
    arrows = ARROW.findall(picture)

    drawn = {(verb, origin, target) for origin, target, verbs in arrows if verbs for verb in verbs.split(", ")}
    assert drawn == {(verb, origin, states[verb].target) for verb in states for origin in states[verb].origins}
    assert [target for origin, target, _ in arrows if origin == "[*]"] == [states.initial]
    assert {origin for origin, target, _ in arrows if target == "[*]"} == getattr(states.model, "TERMINAL", set())
    assert len(arrows) == len(picture.splitlines())


@pytest.mark.parametrize("kind", TABLES)
def test_the_table_below_the_picture_says_who_may_make_which_move(kind):
    states = TABLES[kind]

    assert ROW.findall(SECTIONS[kind]) == [
        (verb, ", ".join(states[verb].origins), states[verb].target, str(states[verb].by), states[verb].event)
        for verb in states
    ]


# docs/reference/events.md

EVENT_ROW = re.compile(r"^\| `([A-Z_]+)` \| (.+) \|$", re.MULTILINE)


def events_of_tables():
    for states in [*TABLES.values(), *other_subjects()]:
        yield states.created
        yield from filter(None, [states.pruned])
        yield from (states[verb].event for verb in states)


def events_said_elsewhere():
    """Yield the event kinds passed to `record`, `Told` and a journal, as literals or as constants of the module."""
    for tree in TREES.values():
        constants = {
            target.id: node.value.value
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            place = {"record": 2, "Told": 0, "tell": 0}.get(name)
            if place is None or len(node.args) <= place:
                continue
            kind = node.args[place]
            said = kind.value if isinstance(kind, ast.Constant) else constants.get(getattr(kind, "id", ""))
            # Messages of an engine to its worker have lower-case kinds and are not events.
            if said and said.isupper():
                yield said


def test_every_kind_of_event_is_explained():
    explained = [kind for kind, _ in EVENT_ROW.findall(DOCS["reference/events.md"])]

    assert set(explained) == {*events_of_tables(), *events_said_elsewhere()}
    # Runs and builds have lines of output.
    assert sorted(explained) == sorted([*set(explained), "LOG"])


@pytest.mark.parametrize("states", [*TABLES.values(), *other_subjects()], ids=lambda states: states.kind)
def test_a_state_machine_explains_the_events_of_its_verbs(states):
    written = {states.created, *filter(None, [states.pruned]), *(states[verb].event for verb in states)}

    assert written <= states.events.keys()


# Commands


def test_every_command_is_documented():
    commands = {path.stem for name, path in SOURCES.items() if "/management/commands/" in name} - {"__init__"}

    assert commands == set(re.findall(r"^## ([a-z]+)$", DOCS["reference/commands.md"], re.MULTILINE))


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda page: page.name
)
def test_the_links_of_a_page_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())

    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", [name for name in DOCS if name != "README.md"])
def test_every_page_is_listed_in_the_table_of_contents(page):
    assert f"({page})" in DOCS["README.md"]


# Failpoints


def failpoints_in_the_code():
    """Yield failpoints as patterns: code that handles every kind writes `{kind}.claimed`."""
    for tree in TREES.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("hit", "inside"):
                (name,) = node.args
                parts = name.values if isinstance(name, ast.JoinedStr) else [name]
                yield "".join(re.escape(p.value) if isinstance(p, ast.Constant) else r"\w+" for p in parts)


def test_every_failpoint_has_a_name_and_every_name_a_failpoint():
    patterns = set(failpoints_in_the_code())

    assert {name for name in failpoints.NAMES if not any(re.fullmatch(each, name) for each in patterns)} == set()
    assert {each for each in patterns if not any(re.fullmatch(each, name) for name in failpoints.NAMES)} == set()


def test_the_version_and_the_license_are_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert project["version"] == VERSION
    assert project["license"] == "Apache-2.0"
    assert (ROOT / "LICENSE").read_text().split()[:4] == ["Apache", "License", "Version", "2.0,"]
    assert re.search(
        rf"^## \[{re.escape(VERSION)}\] - \d{{4}}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )


def test_everything_shipped_from_others_is_named_in_notice():
    notice = (ROOT / "NOTICE").read_text()

    vendored = list((ROOT / "static" / "vendor").rglob("*.js"))

    assert vendored
    assert all(str(path.relative_to(ROOT)) in notice for path in vendored)
