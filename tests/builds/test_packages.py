import hashlib
import io
import os
import socket
import tracemalloc
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builds import contents, folders, packages
from builds.contents import BadPackage
from builds.packages import Package

MANIFEST = """
[configuration]
name = "invoices"
entry_point = "rules:main"
python = "3.12"
description = "Reads invoices."
"""
WHOLE = Package(
    name="Rechnungen “A”",
    entry_point="rules:main",
    requirements="pandas>=2\r\n# last\n",
    python_version="3.12",
    files={"rules.py": "def main():\n\treturn 'ä漢😀'\r\n", "data/t.csv": "", "data/deep/x.json": "\ufeff{}"},
    publish=True,
)
BARE = Package(name="a", entry_point="main", requirements="", python_version="", files={})
NO_TABLE = "ade.toml has no table [configuration], but another value named configuration."


@pytest.fixture
def folder(tmp_path):
    return written(tmp_path / "package", {"ade.toml": MANIFEST, "rules.py": "def main(): ...\n"})


def written(folder, files):
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def problems_of(path):
    with pytest.raises(BadPackage) as caught:
        packages.read(path)
    return caught.value.problems


def zip_of(package):
    whole = io.BytesIO()
    packages.write_zip(package, whole)
    return whole.getvalue()


# Reading


def test_a_folder_is_read(folder):
    written(folder, {"requirements.txt": "pandas\n", "data/t.csv": "a;b\n"})

    assert packages.read(folder) == Package(
        name="invoices",
        entry_point="rules:main",
        requirements="pandas\n",
        python_version="3.12",
        files={"rules.py": "def main(): ...\n", "data/t.csv": "a;b\n"},
    )


@pytest.mark.parametrize("publish", [True, False])
def test_a_package_says_whether_its_runs_publish(tmp_path, publish):
    written(tmp_path, {"ade.toml": f'[configuration]\nname = "a"\npublish = {str(publish).lower()}\n'})

    package = packages.read(tmp_path)

    assert package == replace(BARE, publish=publish)
    assert package.contents_sha256 == BARE.contents_sha256


def test_only_a_name_has_to_be_said(tmp_path):
    written(tmp_path, {"ade.toml": '\ufeff[configuration]\r\nname = "a"\r\n'})

    assert packages.read(tmp_path) == BARE


def test_a_file_is_read_as_a_zip_whatever_it_is_called(tmp_path):
    (tmp_path / "upload").write_bytes(zip_of(WHOLE))

    assert packages.read(tmp_path / "upload") == WHOLE


def test_there_has_to_be_something_to_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")

    assert problems_of(tmp_path / "absent")[0].endswith("absent' is neither a folder nor a zip file.")
    assert problems_of(tmp_path / "pipe")[0].endswith("pipe' is neither a folder nor a zip file.")


@pytest.mark.parametrize(
    ("manifest", "problems"),
    [
        ("", ["ade.toml has no table [configuration]."]),
        ("configuration = 7", [NO_TABLE]),
        ("[[configuration]]\nname = 'a'", [NO_TABLE]),
        ("[configuration]", ["The table [configuration] in ade.toml has no name."]),
        (
            "[configuration]\nname = ''",
            ["The name must have 1 to 100 printable characters, no spaces around them, not ''."],
        ),
        (
            "[configuration]\nname = 'a'\npublish = 'yes'",
            ["publish in ade.toml must be true or false, without quotes, not 'yes'."],
        ),
        (
            "[configuration]\nname = 'a'\npublish = 1",
            ["publish in ade.toml must be true or false, without quotes, not 1."],
        ),
        (
            "[configuration]\nname = 'a'\npython = 3.12",
            ["python in ade.toml must be a text in quotes, not 3.12."],
        ),
        (
            "[configuration]\nname = 'a'\npython = '3.9'",
            ["The Python version must be '3.11' or later, or empty to use ADE's own, not '3.9'."],
        ),
        (
            "[configuration]\nname = 'a'\nentry_point = 'os.system(1)'",
            ["The entry point must be a module or MODULE:FUNCTION, not 'os.system(1)'."],
        ),
        (
            "[configuration]\nname = 'a'\nfiles = ['/etc/passwd']\n[tool.x]",
            [
                f"Unknown key {found} in ade.toml."
                " Known keys of [configuration]: name, entry_point, python, description, publish."
                for found in ("'tool'", "'files'")
            ],
        ),
        (
            "[configuration]\nname = []\npython = 1979-05-27",
            [
                "name in ade.toml must be a text in quotes, not [].",
                "python in ade.toml must be a text in quotes, not datetime.date(1979, 5, 27).",
            ],
        ),
    ],
)  # fmt: skip
def test_manifests_that_cannot_be(tmp_path, manifest, problems):
    written(tmp_path, {"ade.toml": manifest})

    assert problems_of(tmp_path) == problems


@pytest.mark.parametrize(
    ("manifest", "found"),
    [
        ("[configuration", "ade.toml is not valid TOML: "),
        ("[configuration]\nname = 'a'\nname = 'b'", "Cannot overwrite a value"),
        ("a = " + "[" * 5000, "its values are nested too deeply."),
        ("a = " + "9" * 5000, "ade.toml is not valid TOML: "),
        ("# " + "x" * 2**14, "it has 16386 bytes, and at most 16384 are allowed."),
        (b"\xff", "'ade.toml' is not UTF-8 text: it has the byte 0xff at 0."),
    ],
    ids=lambda value: str(value)[:20],
)
def test_manifests_that_are_none(tmp_path, manifest, found):
    (problem,) = problems_of(written(tmp_path, {"ade.toml": manifest}))

    assert found in problem


def test_a_folder_without_a_manifest(tmp_path):
    assert problems_of(tmp_path) == ["The package has no ade.toml at its top."]
    assert problems_of(written(tmp_path, {"a/ade.toml": MANIFEST})) == [
        "ade.toml must be at the top of the package, not at 'a/ade.toml': pack the content of that folder.",
    ]


def test_what_python_git_and_editors_leave_is_passed_over(folder):
    left = {".git/config": b"\xff", ".venv/bin/python": b"\x7fELF", "__pycache__/a.pyc": b"\0", "b.pyc": b"\0"}
    before = packages.read(folder)

    written(folder, left)
    (folder / ".link").symlink_to("/etc/passwd")

    assert packages.read(folder) == before


def test_links_are_not_followed(folder, tmp_path):
    written(tmp_path, {"secret/key.txt": "the secret"})
    (folder / "key.txt").symlink_to(tmp_path / "secret/key.txt")
    (folder / "inner.txt").symlink_to("rules.py")
    (folder / "secret").symlink_to(tmp_path / "secret")
    (folder / "nowhere").symlink_to("nowhere")

    assert problems_of(folder) == [
        f"'{name}' is a symbolic link. A package may only contain files and folders."
        for name in ("inner.txt", "key.txt", "nowhere", "secret")
    ]


def test_what_becomes_a_link_or_a_pipe_meanwhile_is_not_read(folder, tmp_path, monkeypatch):
    outside = written(tmp_path / "outside", {"key.txt": "the secret"})
    written(folder, {"a.txt": "", "b.txt": "", "c/key.txt": ""})
    real = os.open

    def swapped(path, flags, *arguments, **options):
        if path == "a.txt":
            (folder / path).unlink()
            (folder / path).symlink_to("rules.py")
        if path == "b.txt":
            (folder / path).unlink()
            os.mkfifo(folder / path)
        if path == "c":
            (folder / path).rename(tmp_path / "away")
            (folder / path).symlink_to(outside)
        return real(path, flags, *arguments, **options)

    monkeypatch.setattr(os, "open", swapped)

    assert problems_of(folder) == [
        "Could not read 'a.txt': Too many levels of symbolic links.",
        "Could not read 'b.txt': it is no longer a file.",
        "Could not read 'c': Not a directory.",
    ]


def test_only_files_are_read(folder, monkeypatch):
    os.mkfifo(folder / "pipe")
    monkeypatch.chdir(folder)
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind("socket")

        assert problems_of(folder) == [
            f"'{name}' is a device, a pipe or a socket. A package may only contain files and folders."
            for name in ("pipe", "socket")
        ]


def test_all_that_is_wrong_is_told_at_once(folder):
    bad = {"logo.png": b"\x89PNG", "requirements.txt": "-r x\n", "ade.toml": "", "a b.txt": "", "n.txt": "\0"}
    (folder / "link").symlink_to("rules.py")

    problems = problems_of(written(folder, bad))

    assert [problem.split(",")[0].split(":")[0][:34] for problem in problems] == [
        "'link' is a symbolic link. A packa",
        "'logo.png' is not UTF-8 text",
        "ade.toml has no table [configurati",
        "Line 1 of the requirements",
        "'a b.txt' is not a relative path o",
        "'n.txt' contains '\\x00'",
    ]


def test_a_name_that_is_no_text_is_refused(folder):
    (folder / os.fsdecode(b"caf\xe9.py")).write_text("")

    assert "'caf\\udce9.py' is not a relative path" in problems_of(folder)[0]


def test_one_may_not_be_allowed_to_read_all(folder, monkeypatch):
    real = os.open

    def refused(path, *arguments, **options):
        if path == "rules.py":
            raise PermissionError(13, "Permission denied")
        return real(path, *arguments, **options)

    monkeypatch.setattr(os, "open", refused)

    assert problems_of(folder) == ["Could not read 'rules.py': Permission denied."]


def test_a_folder_has_limits(tmp_path):
    many = written(tmp_path / "many", {f"{n}.txt": "" for n in range(203)})
    crowd = written(tmp_path / "crowd", {f"data/.{n}": "" for n in range(1001)})
    deep = written(tmp_path / "deep", {"ade.toml": MANIFEST, "/".join("a" * 150): ""})
    assert problems_of(many) == ["A package may have at most 200 files, but has more, up to '99.txt'."]
    assert problems_of(crowd) == ["The folder 'data/' has more than 1000 entries."]
    assert "is a folder whose path is too long" in problems_of(deep)[0]


def test_no_more_of_a_file_is_read_than_a_package_may_have(folder):
    with (folder / "b.bin").open("wb") as file:
        file.truncate(2**40)

    tracemalloc.start()
    try:
        problems = problems_of(folder)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert problems == ["All files together may have at most 1130496 bytes, but have more, up to 'b.bin'."]
    assert peak < 8 * 2**20


def test_every_limit_of_what_a_package_may_hold_can_be_reached(tmp_path):
    files = {"big.txt": "x" * contents.MOST_BYTES, **{f"{n}.txt": "" for n in range(contents.MOST_FILES - 1)}}
    full = replace(BARE, requirements="#" * contents.MOST_REQUIREMENTS_BYTES, files=files)

    packages.write_directory(full, tmp_path / "full")

    assert packages.read(tmp_path / "full") == full
    assert packages.read_zip(io.BytesIO(zip_of(full))) == full


# Writing


@pytest.mark.parametrize("package", [WHOLE, BARE])
def test_what_is_written_is_read_again(tmp_path, package):
    assert packages.write_directory(package, tmp_path / "a") == []

    for again in (packages.read(tmp_path / "a"), packages.read_zip(io.BytesIO(zip_of(package)))):
        assert again == package
        assert again.contents_sha256 == package.contents_sha256


paths = st.from_regex(r"[a-c_][a-c0-9_.-]{0,3}(/[a-c][a-c0-9]{0,3}){0,2}", fullmatch=True)
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=50)


@given(
    name=st.text(min_size=1, max_size=100),
    requirements=st.text("ab#\r\n ;=>1", max_size=30),
    python=st.sampled_from(["", "3.11", "3.20"]),
    files=st.dictionaries(paths, texts, max_size=5),
)
def test_whatever_may_be_written_is_read_again(name, requirements, python, files):
    package = Package(name, "main", requirements, python, files)
    if any(packages.problems_of(package)):
        with pytest.raises(BadPackage):
            zip_of(package)
    else:
        assert packages.read_zip(io.BytesIO(zip_of(package))) == package


def test_a_zip_has_the_same_bytes_everywhere_and_always():
    whole = replace(WHOLE, publish=False)
    other = replace(whole, files=dict(reversed(WHOLE.files.items())))

    assert zip_of(other) == zip_of(whole) != zip_of(WHOLE)
    assert hashlib.sha256(zip_of(whole)).hexdigest() == (
        "364a394e6679e9b13843f2329280092a46d50245396a987cd7cff769b6ba163b"
    )


def test_what_could_not_be_read_again_is_not_written(tmp_path):
    bad = replace(WHOLE, name=" a", files={"../escaped": "", "ade.toml": ""})

    for write in (lambda: packages.write_directory(bad, tmp_path / "a"), lambda: zip_of(bad)):
        with pytest.raises(BadPackage) as caught:
            write()
        assert len(caught.value.problems) == 3
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_has_to_be_empty(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    full = written(tmp_path / "full", {".hidden": ""})

    assert packages.write_directory(BARE, tmp_path / "empty") == []
    for path, message in ((full, "full is not empty"), (tmp_path / "file", "file is not a folder")):
        with pytest.raises(FileExistsError, match=message):
            packages.write_directory(BARE, path)
    assert [path.name for path in full.iterdir()] == [".hidden"]


def test_by_force_it_is_written_over_what_is_there_and_tells_what_stays(tmp_path):
    packages.write_directory(WHOLE, tmp_path)
    written(tmp_path, {".git/config": "", "data/old.csv": "old"})
    newer = replace(WHOLE, requirements="", files={"rules.py": "new"})

    others = packages.write_directory(newer, tmp_path, force=True)

    assert others == ["data/deep/x.json", "data/old.csv", "data/t.csv", "requirements.txt"]
    assert (tmp_path / "rules.py").read_text() == "new"
    assert (tmp_path / "data/old.csv").read_text() == "old"


def test_force_does_not_write_through_links(tmp_path):
    outside = written(tmp_path / "outside", {"rules.py": "mine", "twin.py": "mine"})
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    (tmp_path / "a/rules.py").symlink_to(outside / "rules.py")
    (tmp_path / "b/data").symlink_to(outside)
    (tmp_path / "c/rules.py").hardlink_to(outside / "twin.py")

    for name in ("a", "b"):
        with pytest.raises(FileExistsError, match="is a symbolic link"):
            folders.write({"rules.py": b"x", "data/deep/rules.py": b"x"}, tmp_path / name, force=True)
    folders.write({"rules.py": b"x"}, tmp_path / "c", force=True)

    assert {path.name: path.read_text() for path in outside.iterdir()} == {"rules.py": "mine", "twin.py": "mine"}


def test_by_force_nothing_is_written_into_what_is_no_package_at_all(tmp_path):
    written(tmp_path, {f"{n}.txt": "" for n in range(300)})

    with pytest.raises(BadPackage, match="A package may have at most 200 files, but has more"):
        packages.write_directory(WHOLE, tmp_path, force=True)

    assert not (tmp_path / "ade.toml").exists()


def test_a_refusal_of_thousands_is_told_in_short():
    bad = BadPackage(f"Problem {n}." for n in range(5000))

    assert len(bad.problems) == 5000
    assert str(bad).endswith("Problem 9. And 4990 more.")
