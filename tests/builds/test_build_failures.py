import time
from datetime import timedelta

import pytest

from builds import builder, environments, fingerprint, lifecycle
from builds.lifecycle import NEGATIVE_CACHE_SECONDS
from tests.builds.making import built, left_behind, log_of, path_of, queued, step, work_on
from tests.builds.wheels import put_wheel
from tests.factories import age, events_of, told, write

pytestmark = [pytest.mark.long, pytest.mark.django_db]

IN_THE_WAY = "A package has a file at a path of the engine or of the configuration: "
IMPORTED = "The entry point cannot be imported: "
# Code with a mistake, and the error message for it.
ENTRY_POINTS = {
    "a syntax error": ("import (\n", "SyntaxError: invalid syntax (main.py, line 1)"),
    "a missing module": ("\nimport nowhere\n", "ModuleNotFoundError: No module named 'nowhere' (main.py, line 2)"),
    "no steps": ("x = 1\n", "main has no function with @step, and the entry point names no function (MODULE:FUNCTION)"),
    "an error": ("def f():\n    return 1 / 0\n\n\nf()\n", "ZeroDivisionError: division by zero (main.py, line 2)"),
    "an exit": (
        "import sys\n\nsys.exit(0)\n",
        "the configuration called sys.exit(0) when it was imported (main.py, line 3)",
    ),
    "two steps of one name": (
        step(before=step()),
        "ValueError: Two steps are named 'read'. Step names must be unique. (main.py, line 10)",
    ),
    "too much memory": ("x = bytearray(1 << 40)\n", "MemoryError:  (main.py, line 1)"),
    "an exit past everything": ("import os\n\nos._exit(0)\n", "exited with code 0 after "),
    "a crash": ("import os\n\nos.kill(os.getpid(), 9)\n", "was killed by SIGKILL"),
}


@pytest.mark.parametrize(("main", "said"), ENTRY_POINTS.values(), ids=ENTRY_POINTS)
def test_an_entry_point_that_cannot_be_imported_is_told_in_one_line(host, main, said):
    build = built(main)

    assert (build.status, build.failure_type) == ("failed", "CHECK_FAILED")
    assert build.error_message.startswith(f"{IMPORTED}{said}")
    assert told(build)[-1] == "BUILD_FAILED"
    assert not path_of(build).exists()
    assert left_behind() == []


def test_an_error_deep_inside_is_told_with_the_place_in_the_configuration(host):
    build = built(files={"main.py": "import rules.words\n", "rules/words.py": "\nimport json\n\njson.loads('{')\n"})

    assert build.error_message.endswith("(char 1) (rules/words.py, line 4)")
    traceback = "\n".join(log_of(build))
    assert "rules/words.py" in traceback
    assert "ade_engine/runner.py" not in traceback


@pytest.mark.parametrize(
    ("contents", "said"),
    [
        ({"entry_point": "other"}, "ModuleNotFoundError: No module named 'other'"),
        ({"entry_point": "main:other"}, "main:other does not exist"),
        ({"entry_point": "main:x", "files": {"main.py": "x = 1"}}, "main:x is not a function but 1"),
        ({"files": {}}, "ModuleNotFoundError: No module named 'main'"),
    ],
)
def test_an_entry_point_that_is_not_there(host, contents, said):
    build = built(**contents)

    assert build.error_message == f"{IMPORTED}{said}"


def test_an_entry_point_that_hangs(host, monkeypatch):
    monkeypatch.setattr(builder, "CHECK_SECONDS", 0.5)

    build = built("import time\n\ntime.sleep(600)\n")

    assert (build.failure_type, build.error_message) == (
        "TIMED_OUT",
        "Importing the entry point: not finished within 0.5 s",
    )
    assert left_behind() == []


def test_a_build_that_takes_too_long(host, settings):
    settings.ADE_BUILD_TIMEOUT = 2

    started = time.monotonic()
    build = built("import time\n\ntime.sleep(600)\n")

    assert time.monotonic() - started < 60
    assert (build.status, build.failure_type) == ("failed", "TIMED_OUT")
    expected = "Importing the entry point: not finished within the time limit of a build, 2 s (ADE_BUILD_TIMEOUT)"
    assert build.error_message == expected
    assert left_behind() == []


def test_a_python_that_is_not_on_this_machine(index):
    build = built(python_version="3.99", requirements="apple")

    assert (build.status, build.failure_type) == ("failed", "BUILD_FAILED")
    assert build.error_message.startswith("The environment cannot be made: error: No interpreter found for Python 3.99")


def test_a_build_that_another_engine_was_asked_for(host, monkeypatch):
    build = queued()
    monkeypatch.setattr(fingerprint, "ENGINE_VERSION", "other")

    work_on(build)

    assert (build.status, build.failure_type) == ("failed", "OTHER_ENGINE")
    assert build.error_message.startswith("This worker has engine other on ")
    assert build.error_message.endswith("Restart the older processes, then run again.")


def test_a_snapshot_that_somebody_has_changed_is_not_built(host):
    build = queued()
    write(build, snapshot=build.snapshot | {"files": {"main.py": "x = 1"}})

    assert work_on(build).failure_type == "OTHER_ENGINE"
    assert not environments.all_environments()


def test_a_package_in_the_place_of_the_engine(index):
    put_wheel(
        index,
        "trojan",
        more={"ade_engine/__init__.py": "", "ade_engine/__main__.py": "print('gotcha')"},
    )

    build = built(requirements="trojan")

    assert (build.status, build.failure_type) == ("failed", "BUILD_FAILED")
    assert build.error_message.startswith("A package has a file at a path of the engine or of the configuration: ")
    assert "gotcha" not in str(log_of(build))


def test_a_package_in_the_place_of_the_configuration(index):
    put_wheel(index, "trojan", more={"trojan-1.0.data/data/configuration/main.py/x": ""})

    build = built(requirements="trojan")

    assert build.failure_type == "BUILD_FAILED"
    assert build.error_message.startswith("A package has a file at a path of the engine or of the configuration: ")


def test_a_package_that_brings_another_place_for_packages_confuses_nobody(index):
    put_wheel(index, "odd", more={"odd-1.0.data/data/lib/python9/site-packages/ade_engine/__init__.py": "1 / 0"})

    assert built(requirements="odd").status == "ready"


def test_what_somebody_says_without_end_is_cut(host):
    build = built("for n in range(100_000):\n    print('word ' * 20)\n1 / 0\n")

    assert build.error_message == f"{IMPORTED}ZeroDivisionError: division by zero (main.py, line 3)"
    assert sum(len(line) for line in log_of(build)) < 2 << 20


@pytest.mark.parametrize("text", ["a\0b", "a\udc80b", "a\x1b[2Jb"])
def test_what_no_database_stores_is_told_in_other_letters(host, text):
    build = built(f"print({text!r}.encode(errors='surrogateescape'))\nraise ValueError({text!r})\n")

    assert build.status == "failed"
    assert build.error_message.startswith(f"{IMPORTED}ValueError: a")
    assert build.error_message.endswith("b (main.py, line 2)")


@pytest.mark.parametrize(
    ("event", "status"),
    [
        ({"kind": "refused", "error": "x" * 1_000_000}, "failed"),
        ({"kind": "refused", "error": ["x"] * 100_000}, "failed"),
        ({"kind": "checked", "steps": ["x" * 10_000] * 3}, "ready"),
        ({"kind": "checked", "steps": 3}, "failed"),
    ],
    ids=["a long reason", "a list", "long names", "a number"],
)
def test_who_speaks_in_the_name_of_the_engine_is_not_heard_for_long(host, event, status):
    speak = "import os\nfor number in range(3, 20):\n    try:\n        os.write(number, text)\n    except OSError:\n"
    text = f"import json\ntext = json.dumps({event!r}).encode() + b'\\n'\n"
    build = built(f"{text}{speak}        pass\nos._exit(0)\n")

    assert build.status == status, build.error_message
    assert len(build.error_message) < 2200
    assert sum(map(len, log_of(build))) < 2000


def test_it_is_built_again_by_a_person(index):
    build = built(requirements="pear")
    assert build.status == "failed"
    put_wheel(index, "pear")

    assert lifecycle.again(build.pk, actor="olga")
    work_on(build)

    assert (build.status, build.failure_type, build.error_message) == ("ready", "", "")
    assert path_of(build).exists()


def test_it_is_built_again_for_a_submission_when_the_failure_is_forgotten(index):
    build = built(requirements="pear")
    put_wheel(index, "pear")
    assert lifecycle.get_or_create_build(build.configuration, actor="olga").status == "failed"

    age(build, timedelta(seconds=NEGATIVE_CACHE_SECONDS + 1).total_seconds())
    chosen = lifecycle.get_or_create_build(build.configuration, actor="olga")
    work_on(build)

    assert (chosen.id, chosen.status, build.status) == (build.pk, "queued", "ready")


def test_the_reason_stands_in_the_history(host):
    build = built("x = 1\n")

    assert events_of(build).last().message == build.error_message
