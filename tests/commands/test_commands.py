import os
import subprocess
import sys

import pytest
from django.conf import settings
from django.db import OperationalError

from config import environment_reader
from work.operations.commands import EXIT_CODES, MEANINGS, Exit, clean, fields, table

pytestmark = pytest.mark.edge


def run(*arguments, tmp_path, **options):
    environment = {"PATH": os.environ["PATH"], "ADE_VAR_DIR": str(tmp_path), "ADE_ENV_FILE": os.devnull}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    command = [sys.executable, "manage.py", *arguments]
    return subprocess.run(command, cwd=settings.BASE_DIR, env=environment, text=True, check=False, **pipes)


def test_a_database_without_tables_is_an_answer_and_no_traceback(tmp_path):
    ended = run("run", "list", tmp_path=tmp_path)

    assert (ended.returncode, ended.stdout) == (5, "")
    assert ended.stderr.startswith("The database is unavailable: no such table: runs. Run `manage.py doctor`")
    assert len(ended.stderr.splitlines()) == 1


def test_ctrl_c_is_no_traceback(tmp_path):
    ended = run("shell", "--verbosity=0", "--command=raise KeyboardInterrupt", tmp_path=tmp_path)

    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


def test_a_verb_is_needed_and_help_names_them_all(tmp_path):
    without, helped = run("run", tmp_path=tmp_path), run("run", "--help", tmp_path=tmp_path)

    assert (without.returncode, without.stdout) == (2, "")
    assert "See `manage.py run --help`." in without.stderr
    assert helped.returncode == 0
    for word in ("submit", "list", "show", "cancel", "again", "Exit codes: 0 done"):
        assert word in helped.stdout


@pytest.mark.django_db
def test_a_busy_database_is_told_in_json_too(manage, monkeypatch):
    def busy(*arguments, **options):
        raise OperationalError("database is locked")

    monkeypatch.setattr("runs.models.RunQuerySet.values", busy)

    ended = manage("run", "list", "--json")

    assert (ended.code, ended.out) == (5, "")
    assert ended.error["code"] == "database_unavailable"
    assert "database is locked" in ended.error["message"]


def test_a_reader_who_has_gone_is_no_failure(tmp_path):
    assert run("migrate", "-v0", tmp_path=tmp_path).returncode == 0
    read, write = os.pipe()
    os.close(read)

    ended = run("run", "list", tmp_path=tmp_path, stdout=write)
    os.close(write)

    assert (ended.returncode, ended.stderr) == (0, "")


def test_every_exit_code_is_explained():
    for code in Exit:
        assert f"{code.value} {MEANINGS[code]}" in EXIT_CODES


def test_what_is_wrong_with_the_settings_has_the_code_that_stops_a_web_server():
    assert Exit.SETTINGS == environment_reader.EXIT_CODE


def test_columns_are_aligned():
    rows = [{"id": 1, "name": "a"}, {"id": 100, "name": None}]

    assert table(rows, "id", "name") == "ID   NAME\n1    a\n100"
    assert table([], "id") == "None."


def test_a_cell_is_one_short_line():
    cell = table([{"text": "line\nline " + "x" * 100}], "text").splitlines()[1]

    assert cell == f"line line {'x' * 49}…"


def test_fields_show_what_says_something():
    assert fields({"id": 1, "error": "", "note": "a\nb", "lost": None}) == "id    1\nnote  a\n      b"


@pytest.mark.parametrize(
    ("text", "shown"),
    [("ä 漢", "ä 漢"), ("\x1b[0m", "\\x1b[0m"), ("\u202e", "\\u202e"), ("\udc80", "\\udc80"), ("\x00\t", "\\x00\\t")],
)
def test_what_could_drive_a_terminal_is_written_out(text, shown):
    assert clean(text) == shown
