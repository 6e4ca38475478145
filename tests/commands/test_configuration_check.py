import json
import zipfile

import pytest
from fpdf import FPDF

from builds import environments
from builds.models import Build, Configuration
from documents.models import Document
from runs import scratch
from runs.models import Run
from tests.builds.conftest import host as host
from tests.builds.conftest import index as index
from tests.builds.making import built, left_behind, path_of, step
from tests.factories import ConfigurationFactory
from tests.work.supervised import needs_bubblewrap
from work.processes.scratch import LOCKS

pytestmark = [pytest.mark.long, pytest.mark.django_db, pytest.mark.usefixtures("index")]

GOOD = """
from pathlib import Path

from ade_engine import step


@step
def read(context):
    print("hello")
    context.log("a word")
    context.field("size", context.document.size_bytes, confidence=0.5, page=2)
    context.field("type", context.document.content_type)
    context.field("name", context.document.name)


@step
def write(context):
    context.artifact("out/copy.txt", context.document.text)
"""


@pytest.fixture
def package(tmp_path):
    def package(files=None, requirements="", **manifest):
        folder = tmp_path / "package"
        folder.mkdir(exist_ok=True)
        told = "".join(f"{key} = {json.dumps(value)}\n" for key, value in {"name": "tried", **manifest}.items())
        texts = {"ade.toml": f"[configuration]\n{told}", "requirements.txt": requirements}
        for path, text in (texts | (files or {"main.py": GOOD})).items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        return folder

    return package


@pytest.fixture
def letter(tmp_path):
    path = tmp_path / "letter.txt"
    path.write_text("Dear Ravi")
    return path


@pytest.fixture
def check(manage):
    def check(*arguments):
        ended = manage("configuration", "check", *arguments, "--json")
        return ended.code, ended.json

    return check


def messages(told):
    return [problem["message"] for problem in told["problems"]]


def nothing_is_left():
    return left_behind() == [] and environments.all_environments() == [] and not desks()


def desks():
    root = scratch.root()
    return [path for path in root.iterdir() if path.name != LOCKS] if root.exists() else []


def test_a_good_package(check, package):
    code, told = check(package(requirements="apple\n"))

    assert (code, told["ok"], told["problems"], told["run"]) == (0, True, [], None)
    assert (told["name"], told["environment"]) == ("tried", "made")
    assert told["lock"].startswith("apple==1.0 \\\n    --hash=sha256:")
    assert "importing the entry point" in told["log"]
    assert nothing_is_left()


def test_its_steps_over_a_file(check, package, letter):
    code, told = check(package(), "--document", letter)

    run = told["run"]
    assert (code, told["problems"]) == (0, [])
    assert [(step["step"], step["attempt"], step["result"]) for step in run["steps"]] == [
        ("read", 1, "succeeded"),
        ("write", 1, "succeeded"),
    ]
    assert all(step["seconds"] >= 0 for step in run["steps"])
    found = [(field["name"], field["value"], field["confidence"], field["page"]) for field in run["fields"]]
    assert found == [("size", 9, 0.5, 2), ("type", "text/plain", None, None), ("name", "letter.txt", None, None)]
    # The lines come through two pipes, so their order varies.
    assert sorted((line["stream"], line["step"], line["message"]) for line in run["log"]) == [
        ("log", "read", "a word"),
        ("stdout", None, "hello"),
    ]
    assert run["artifacts"] == [{"name": "out/copy.txt", "size_bytes": 9, "path": None}]
    assert nothing_is_left()


def test_its_steps_see_the_text_of_the_file(check, package, tmp_path):
    made = FPDF()
    made.add_page()
    made.set_font("Helvetica", size=12)
    made.cell(text="Apples were delivered.")
    file = tmp_path / "letter.pdf"
    file.write_bytes(bytes(made.output()))
    body = "    context.field('text', context.document.text.strip())\n"
    main = f"from ade_engine import step\n\n@step\ndef tell(context):\n{body}"

    code, told = check(package({"main.py": main}), "--document", file)

    assert (code, told["problems"]) == (0, [])
    found = [(field["name"], field["value"]) for field in told["run"]["fields"]]
    assert found == [("text", "Apples were delivered.")]
    assert nothing_is_left()


def test_its_steps_see_the_fields_and_tables_of_the_file(check, package, tmp_path):
    letter, items = tmp_path / "letter.txt", tmp_path / "items.csv"
    letter.write_text("Invoice number: AO-2026-0117\nDate: 2026-11-18\n")
    items.write_text("article;amount\nApples;2\nPears;3\n")
    main = """
from ade_engine import step

@step
def read(context):
    for field in context.document.fields.values():
        context.field(field.name, field.value, confidence=field.confidence)
    for table in context.document.tables.values():
        context.field(table.name, [[cell.text for cell in row.values()] for row in table.rows])
"""

    found = [check(package({"main.py": main}), "--document", path)[1]["run"]["fields"] for path in (letter, items)]

    values = [{field["name"]: field["value"] for field in fields} for fields in found]
    assert values[0]["invoice_number"] == "AO-2026-0117"
    assert ["Apples", "2"] in next(value for value in values[1].values() if isinstance(value, list))


def test_what_it_makes_is_kept_where_that_is_wanted(check, package, letter, tmp_path):
    code, told = check(package(), "--document", letter, "--output", tmp_path / "kept")

    copy = tmp_path / "kept" / "out" / "copy.txt"
    assert (code, told["run"]["artifacts"][0]["path"], copy.read_text()) == (0, str(copy), "Dear Ravi")


def test_nothing_is_stored(check, package, letter):
    check(package(), "--document", letter)

    assert [model.objects.count() for model in (Configuration, Build, Document, Run)] == [0, 0, 0, 0]


def test_a_zip_file(check, package, tmp_path):
    with zipfile.ZipFile(tmp_path / "tried.zip", "w") as archive:
        for path in package().iterdir():
            archive.write(path, path.name)

    code, told = check(tmp_path / "tried.zip")

    assert (code, told["name"]) == (0, "tried")


def test_a_configuration_that_is_stored(check, configuration, letter):
    configuration.files = {"main.py": GOOD}
    configuration.save()

    code, told = check("Aster/invoices", "--document", letter)

    assert (code, told["name"], len(told["run"]["fields"])) == (0, "invoices", 3)


def test_where_its_build_is_ready_that_is_used(check, letter):
    build = built(step("import apple", "context.field('apple', apple.VERSION)"), requirements="apple")

    code, told = check(build.configuration.pk, "--document", letter)

    assert (code, told["environment"], told["lock"]) == (0, "ready", build.lock)
    assert told["run"]["fields"][0]["value"] == "1.0"
    assert told["log"] == []
    assert path_of(build).exists()


def test_all_that_is_wrong_with_a_package_is_told_at_once(check, package):
    folder = package({"main.py": GOOD, "a b.py": "", "Main.py": ""}, requirements="-r other.txt\n", entry="main")

    code, told = check(folder)

    assert (code, told["ok"], told["name"]) == (1, False, None)
    assert {problem["stage"] for problem in told["problems"]} == {"package"}
    assert len(told["problems"]) >= 4
    assert any("a b.py" in message for message in messages(told))


def test_every_file_is_looked_at_for_its_syntax(check, package):
    files = {
        "main.py": GOOD,
        "one.py": "x = 1\ny = (\n",
        "rules/two.py": "def f():\nreturn 1\n",
        "words.txt": "x = (\n",
    }
    files["deep.py"] = "-" * 100_000 + "1"

    code, told = check(package(files, requirements="apple\nplum\n"))

    assert code == 1
    found = [(problem["stage"], problem["path"], problem["line"]) for problem in told["problems"]]
    assert found == [
        ("syntax", "deep.py", None),
        ("syntax", "one.py", 2),
        ("syntax", "rules/two.py", 2),
        ("build", None, None),
    ]
    assert messages(told)[0] == "cannot be compiled: MemoryError"
    assert "'(' was never closed" in messages(told)[1]
    assert "plum was not found" in messages(told)[3]
    assert nothing_is_left()


def test_nothing_of_it_is_imported_here(check, package, tmp_path):
    mark = f"open({str(tmp_path / 'imported')!r}, 'w').close()\n"

    check(package({"main.py": mark + GOOD + "\n(\n", "sitecustomize.py": mark, "conftest.py": mark}))

    assert not (tmp_path / "imported").exists()


@needs_bubblewrap
def test_its_steps_run_inside_the_walls(check, package, letter, tmp_path):
    body = [
        "import socket",
        f"context.field('var', sorted(os.listdir({str(tmp_path / 'var')!r})))",
        f"context.field('writable', os.access({str(tmp_path)!r}, os.W_OK))",
        "context.field('network', [name for _, name in socket.if_nameindex()])",
    ]

    code, told = check(package({"main.py": step(*body, before="import os")}), "--document", letter)

    found = {field["name"]: field["value"] for field in told["run"]["fields"]}
    assert (code, found["writable"], found["network"]) == (0, False, ["lo"])
    assert set(found["var"]) <= {"engines", "environments"}


@pytest.mark.parametrize(
    ("main", "said"),
    [
        ("import nowhere\n", "ModuleNotFoundError: No module named 'nowhere' (main.py, line 1)"),
        ("x = 1\n", "main has no function with @step, and the entry point names no function"),
    ],
)
def test_an_entry_point_that_does_not_load(check, package, letter, main, said):
    code, told = check(package({"main.py": main}), "--document", letter)

    assert (code, told["problems"][0]["stage"], told["run"]) == (1, "build", None)
    assert said in messages(told)[0]
    assert nothing_is_left()


def test_a_python_that_is_not_here_is_told_and_its_syntax_left_to_it(check, package):
    code, told = check(package({"main.py": "type New = int\n"}, python="3.99"))

    assert code == 1
    assert ["No interpreter found for Python 3.99" in message for message in messages(told)] == [True]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (["1 / 0"], "step read: ZeroDivisionError: division by zero"),
        (["from ade_engine import Rejected", "raise Rejected('not a letter')"], "not a letter"),
        (["import os", "os._exit(3)"], "The engine exited with code 3"),
        (["import os", "os.symlink('/etc/passwd', context.artifact('x'))"], "it is a symbolic link"),
    ],
)
def test_a_run_that_fails(check, package, letter, body, said):
    code, told = check(package({"main.py": step(*body)}), "--document", letter)

    assert (code, [problem["stage"] for problem in told["problems"]]) == (1, ["run"])
    assert said in messages(told)[0]
    assert nothing_is_left()


def test_both_attempts_at_a_step_are_shown(check, package, letter):
    _, told = check(package({"main.py": step("1 / 0")}), "--document", letter)

    shown = [(each["attempt"], each["result"]) for each in told["run"]["steps"]]
    assert shown == [(1, "failed, tried again"), (2, "failed")]
    assert "ZeroDivisionError: division by zero" in [line["message"] for line in told["run"]["log"]]


def test_a_run_that_takes_too_long(check, package, letter, settings):
    settings.ADE_RUN_TIMEOUT_SECONDS = 1

    code, told = check(package({"main.py": step("while True: pass")}), "--document", letter)

    assert (code, messages(told)) == (1, ["Timed out after 1 s in step read."])
    assert nothing_is_left()


def test_people_read_what_happened(manage, package, letter):
    ended = manage("configuration", "check", package(requirements="apple"), "--document", letter)

    assert ended.code == 0
    lines = ended.out.splitlines()
    assert lines.index("importing the entry point") < lines.index("name         tried")
    assert "packages     apple==1.0" in lines
    assert "environment  made for this check" in lines
    assert any(line.split() == ["size", "9", "0.5", "2", "read"] for line in lines)
    assert any(line.split() == ["out/copy.txt", "9"] for line in lines)
    assert "[read] a word" in lines
    assert lines[-1] == "No problems found."


def test_people_read_what_is_wrong_and_where(manage, package):
    ended = manage("configuration", "check", package({"main.py": "\n(\n"}))

    assert ended.code == 1
    assert ended.out.splitlines()[-2:] == ["1 problem found:", "syntax: main.py, line 2: '(' was never closed"]


def test_text_from_elsewhere_cannot_drive_the_terminal(manage, package, letter):
    main = step("context.log('\\x1b]0;owned\\x07')", "context.field('a', '\\x1b[2J')", "raise ValueError('\\x1b[2J')")

    out = manage("configuration", "check", package({"main.py": main}), "--document", letter).out

    assert "\x1b" not in out
    assert "\\x1b]0;owned\\x07" in out


def test_what_is_not_there(manage, package, tmp_path):
    assert manage("configuration", "check", tmp_path / "nothing").code == 6
    assert manage("configuration", "check", package(), "--document", tmp_path / "nothing").code == 6


def test_what_cannot_be_meant(manage, package, letter, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()

    assert manage("configuration", "check").code == 2
    assert manage("configuration", "check", package(), "--output", tmp_path / "new").code == 2
    assert manage("configuration", "check", package(), "--document", letter, "--output", tmp_path / "full").code == 2
    assert not (tmp_path / "new").exists()


def test_of_two_with_one_name_neither_is_meant(manage, workspace):
    for _ in range(2):
        ConfigurationFactory(name="twin")

    assert manage("configuration", "check", "twin").code == 2
