import io
import zipfile

import pytest

from builds.models import Configuration
from tests.factories import ConfigurationFactory

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


@pytest.fixture
def package(tmp_path):
    folder = tmp_path / "invoices"
    folder.mkdir()
    (folder / "ade.toml").write_text('[configuration]\nname = "invoices"\npython = "3.12"\n')
    (folder / "requirements.txt").write_text("pandas>=2\n")
    (folder / "main.py").write_text("def main(document):\n    return {}\n")
    return folder


@pytest.fixture
def zipped(package, tmp_path):
    with zipfile.ZipFile(tmp_path / "invoices.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in package.iterdir():
            archive.write(path, path.name)
    return tmp_path / "invoices.zip"


def test_a_folder_is_imported(manage, workspace, package):
    ended = manage("configuration", "import", package, "--workspace", "Aster")

    made = Configuration.objects.get()
    assert (ended.code, ended.out) == (0, f"Created: configuration {made.pk} Aster/invoices.\n")
    assert made.files == {"main.py": "def main(document):\n    return {}\n"}
    assert (made.requirements, made.python_version, made.workspace) == ("pandas>=2\n", "3.12", workspace)


def test_a_zip_file_is_imported(manage, workspace, package, zipped):
    first = manage("configuration", "import", zipped, "--workspace", workspace.pk, "--json").json
    second = manage("configuration", "import", package, "--workspace", workspace.pk, "--json").json

    assert [first.pop("result"), second.pop("result")] == ["created", "unchanged"]
    assert first == second


def test_what_has_changed_is_updated(manage, workspace, package):
    manage("configuration", "import", package, "--workspace", "Aster")
    (package / "main.py").write_text("x = 2\n")

    ended = manage("configuration", "import", package, "--workspace", "Aster", "--json")

    assert ended.json["result"] == "updated"
    assert Configuration.objects.get().files == {"main.py": "x = 2\n"}


def test_another_name_may_be_given(manage, workspace, package):
    manage("configuration", "import", package, "--workspace", "Aster", "--name", "orders")

    assert Configuration.objects.get().name == "orders"


def test_an_import_of_an_export_changes_nothing(manage, tmp_path):
    made = ConfigurationFactory(
        workspace__name="Öst",
        name="Rechnungen “A”",
        requirements="pandas\r\nnumpy",
        python_version="3.13",
        entry_point="pack.rules:main",
        files={"pack/__init__.py": "", "pack/rules.py": "x = 'é'\r\n"},
    )

    for path in (tmp_path / "folder", tmp_path / "a.zip"):
        exported = manage("configuration", "export", made.pk, path, "--json").json
        imported = manage("configuration", "import", path, "--workspace", "Öst", "--json").json

        assert exported == {"path": str(path), "contents_sha256": made.contents_sha256, "others": []}
        assert (imported["id"], imported["result"]) == (made.pk, "unchanged")
        copied = manage("configuration", "import", path, "--workspace", "Öst", "--name", path.name, "--json").json
        assert copied["contents_sha256"] == made.contents_sha256


def test_all_that_is_wrong_with_a_package_is_told_and_nothing_is_stored(manage, workspace, package):
    (package / "logo.png").write_bytes(b"\x89PNG")
    (package / "requirements.txt").write_text("--index-url https://evil.example\n")

    ended = manage("configuration", "import", package, "--workspace", "Aster", "--json")

    assert (ended.code, ended.error["code"], len(ended.error["details"]["problems"])) == (1, "bad_package", 2)
    assert ended.error["message"].startswith(f"'{package}' is not a valid package. ")
    assert not Configuration.objects.exists()


def test_a_hostile_zip_file_leaves_nothing_anywhere(manage, workspace, tmp_path, monkeypatch):
    hostile, here = io.BytesIO(), tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    with zipfile.ZipFile(hostile, "w") as archive:
        archive.writestr("ade.toml", '[configuration]\nname = "x"\n')
        archive.writestr("../escaped\x1b[31m.py", "x = 1\n")
    (tmp_path / "x.zip").write_bytes(hostile.getvalue())

    ended = manage("configuration", "import", tmp_path / "x.zip", "--workspace", "Aster")

    assert (ended.code, ended.out, "\x1b" in ended.err) == (1, "", False)
    assert "it leads out of the package" in ended.err
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["here", "x.zip"]
    assert not Configuration.objects.exists()


def test_a_name_that_cannot_be(manage, workspace, package):
    ended = manage("configuration", "import", package, "--workspace", "Aster", "--name", "a\x1bb", "--json")

    assert (ended.code, ended.error["code"]) == (1, "bad_package")


@pytest.mark.parametrize("what", ["path", "workspace"])
def test_what_does_not_exist(manage, workspace, package, what):
    named = {"path": str(package), "workspace": "Aster"} | {what: "nowhere"}

    ended = manage("configuration", "import", named["path"], "--workspace", named["workspace"], "--json")

    assert (ended.code, ended.error["code"], ended.error["details"]["wanted"]) == (6, "not_found", "nowhere")


def test_a_workspace_has_to_be_named(manage, package):
    assert manage("configuration", "import", package).code == 2


def test_one_may_not_be_allowed_to_read_it(manage, workspace, zipped, monkeypatch):
    def refused(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("builds.packages.read", refused)

    ended = manage("configuration", "import", zipped, "--workspace", "Aster", "--json")

    assert (ended.code, ended.error["code"]) == (1, "not_readable")
    assert "Permission denied" in ended.error["message"]


@pytest.mark.parametrize("name", ["folder", "a.zip", "a.ZIP"])
def test_an_export_writes_over_nothing_unless_forced(manage, configuration, tmp_path, name):
    path = tmp_path / name
    there = path if path.suffix else path / "main.py"
    there.parent.mkdir(exist_ok=True)
    there.write_text("mine")

    refused = manage("configuration", "export", "invoices", path, "--json")

    assert (refused.code, refused.error["code"], there.read_text()) == (1, "not_written", "mine")
    assert manage("configuration", "export", "invoices", path, "--force").code == 0
    assert there.read_bytes() != b"mine"


def test_an_export_by_force_says_what_it_has_left(manage, configuration, tmp_path):
    (tmp_path / "old.py").write_text("")

    ended = manage("configuration", "export", "invoices", tmp_path, "--force")

    assert ended.out == (
        f"Wrote Aster/invoices to {tmp_path}."
        " Other files in the folder were kept, and an import would read them: old.py.\n"
    )


def test_an_export_goes_where_there_is_a_folder(manage, configuration, tmp_path):
    ended = manage("configuration", "export", "invoices", tmp_path / "absent" / "a.zip", "--json")

    assert (ended.code, ended.error["code"]) == (1, "not_written")


def test_what_no_import_would_take_is_not_exported(manage, tmp_path):
    made = ConfigurationFactory(files={"../escaped.py": ""})

    ended = manage("configuration", "export", made.pk, tmp_path / "a", "--json")

    assert (ended.code, ended.error["code"]) == (1, "bad_package")
    assert list(tmp_path.iterdir()) == []


def test_show_prints_the_version_of_python(manage):
    made = ConfigurationFactory(python_version="3.13")

    assert "python version   3.13\n" in manage("configuration", "show", made.pk).out
    assert manage("configuration", "show", made.pk, "--json").json["python_version"] == "3.13"
