import pytest

from console import snapshots
from console.snapshots import difference

pytestmark = pytest.mark.edge


def package(files, requirements="", **more):
    return {"entry_point": "main", "python_version": "", "files": files, "requirements": requirements} | more


def changes(found):
    return [(each.path, each.change) for each in found.texts]


def test_packages_that_are_the_same_differ_in_nothing():
    assert difference(package({"main.py": "1\n"}), package({"main.py": "1\n"})).is_none


def test_files_are_added_removed_and_changed():
    found = difference(
        package({"a.py": "1\n", "b.py": "1\n"}, "x==1\n"), package({"b.py": "2\n", "c.py": "1\n"}, "x==2")
    )

    assert changes(found) == [
        ("requirements.txt", "changed"),
        ("a.py", "removed"),
        ("b.py", "changed"),
        ("c.py", "added"),
    ]
    assert [line.text for line in found.texts[2].lines] == ["@@ -1 +1 @@", "-1", "+2"]
    assert [line.tone for line in found.texts[2].lines] == ["place", "removed", "added"]


def test_settings_that_differ_are_told():
    found = difference(package({}), package({}, python_version="3.12"))

    assert [(each.name, each.before, each.after) for each in found.settings] == [("Python", "same as ADE's", "3.12")]


def test_what_differs_behind_its_lines_is_said():
    (text,) = difference(package({"a.py": "1\n"}), package({"a.py": "1\r\n"})).texts

    assert (text.lines, text.note) == ([], "Only the line endings differ.")


def test_files_that_are_too_long_are_named_only():
    long = "\n".join(map(str, range(snapshots.MOST_COMPARED)))

    first, second = difference(package({"a.py": long, "b.py": "1"}), package({"a.py": f"{long}\n0", "b.py": "2"})).texts

    assert (first.lines, "too many to be compared here" in first.note) == ((), True)
    assert len(second.lines) == 3


def test_no_more_lines_are_shown_than_have_room():
    text = "\n".join(map(str, range(900)))

    first, second = difference(package({}), package({"a.py": text, "b.py": text})).texts

    assert (len(first.lines), first.note) == (snapshots.MOST_LINES, "More lines differ than are shown here.")
    assert second.lines == []


def test_no_more_files_are_named_than_have_room():
    found = difference(package({}), package({f"m{n}.py": "1" for n in range(snapshots.MOST_TEXTS + 2)}))

    assert (len(found.texts), found.left_out) == (snapshots.MOST_TEXTS, 2)


def test_characters_that_nobody_sees_are_spelled_out():
    (text,) = difference(package({}), package({"a.py": "\x1b[31m\u202eevil"})).texts

    assert text.lines[-1].text == "+\\x1b[31m\\u202eevil"
