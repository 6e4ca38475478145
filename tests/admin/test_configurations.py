import json

import pytest

from builds.models import Configuration
from tests.factories import MembershipFactory, RunFactory, WorkspaceFactory

pytestmark = [pytest.mark.edge, pytest.mark.django_db]

ADD = "/admin/builds/configuration/add/"


@pytest.fixture
def site(olga, sign_in):
    return sign_in(olga)


def change_of(configuration):
    return f"/admin/builds/configuration/{configuration.pk}/change/"


def form(**values):
    empty = {"name": "orders", "entry_point": "main", "python_version": "", "requirements": ""}
    return empty | {"files": '{"main.py": "x = 1"}'} | values


def test_one_is_added(site, workspace):
    assert site.post(ADD, form(workspace=workspace.pk)).status_code == 302

    made = Configuration.objects.get()
    assert made.files == {"main.py": "x = 1"}
    assert made.workspace == workspace


def test_what_is_changed_has_another_hash(site, configuration):
    before = configuration.contents_sha256

    assert site.post(change_of(configuration), form(files='{"main.py": "x = 2"}')).status_code == 302

    configuration.refresh_from_db()
    assert configuration.files == {"main.py": "x = 2"}
    assert configuration.contents_sha256 != before


def test_files_are_laid_out_for_people(site, configuration):
    page = site.get(change_of(configuration)).content.decode()

    assert "{\n  &quot;main.py&quot;: &quot;def main(document):" in page


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ("[]", "Expected an object that maps paths to texts, found a list."),
        ("7", "found a number."),
        ("{", "Enter a valid JSON."),
        ("[" * 100_000, "Enter a valid JSON."),
        ("9" * 5000, "Enter a valid JSON."),
        ('{"a": NaN}', "Expected the text of 'a', found a number."),
        ('{"main.py": 7}', "Expected the text of 'main.py', found a number."),
        ('{"main.py": null}', "found nothing."),
        ('{"../x": ""}', "Expected a relative path"),
        ('{"/etc/passwd": ""}', "Expected a relative path"),
        ('{"a//b": ""}', "Expected a relative path"),
        ('{"a/.ssh/b": ""}', "Expected a relative path"),
        ('{"": ""}', "Expected a relative path"),
        ('{"-rf": ""}', "Expected a relative path"),
        ('{"a\\\\b": ""}', "Expected a relative path"),
        ('{"a\\u0000": ""}', "Expected a relative path"),
        ('{"a\\nb": ""}', "Expected a relative path"),
        ('{"a": "\\u0000"}', "Expected text in 'a', found '\\x00', which no database stores."),
        ('{"Main.py": "", "main.py": ""}', "differ only in capital letters"),
        ('{"a": "", "a/b": ""}', "Expected a file or a folder at 'a', found both."),
        ('{"__pycache__/a": ""}', "which Python makes by itself"),
        ('{"requirements.txt": ""}', "which a package has for itself"),
        ('{"ADE.toml": ""}', "which a package has for itself"),
        (json.dumps({"a" * 201: ""}), "Expected paths of at most 200 characters, found one of 201."),
        (json.dumps({f"f{n}": "" for n in range(201)}), "Expected at most 200 files, found 201."),
        (json.dumps({"a": "x" * (2**20 + 1)}), "Expected at most 1048576 bytes in all files, found 1048577."),
        ('{"a": "\\ud800"}', "Expected text in 'a', found '\\ud800', which no database stores."),
    ],
    ids=lambda value: value[:30],
)
def test_files_that_cannot_be(site, configuration, files, message):
    page = site.post(change_of(configuration), form(files=files))

    assert page.status_code == 200
    assert any(message in error for error in page.context["adminform"].form.errors["files"])


@pytest.mark.parametrize("entry_point", ["main", "package.module", "main:run", "_a1"])
def test_entry_points(site, configuration, entry_point):
    assert site.post(change_of(configuration), form(entry_point=entry_point)).status_code == 302


@pytest.mark.parametrize("entry_point", ["", "1a", "a b", "a;b", "a..b", "main:", "os.system('x')", "ä", "a\nb"])
def test_entry_points_that_cannot_be(site, configuration, entry_point):
    page = site.post(change_of(configuration), form(entry_point=entry_point))

    assert page.context["adminform"].form.errors["entry_point"]


@pytest.mark.parametrize("version", ["", "3.11", "3.99"])
def test_versions_of_python(site, configuration, version):
    assert site.post(change_of(configuration), form(python_version=version)).status_code == 302

    configuration.refresh_from_db()
    assert configuration.python_version == version


@pytest.mark.parametrize("version", ["3", "3.10", "3.100", "3.011", "4.11", "3.12.1", "cpython", "3.1१"])
def test_versions_of_python_that_cannot_be(site, configuration, version):
    page = site.post(change_of(configuration), form(python_version=version))

    (error,) = page.context["adminform"].form.errors["python_version"]
    assert error == f"Expected a version of Python from '3.11' on, or nothing for that of ADE, found '{version}'."


def test_requirements_that_cannot_be_are_told_line_by_line(site, configuration):
    page = site.post(change_of(configuration), form(requirements="pandas\r\n-r other.txt\r\n./wheel\r\n"))

    errors = page.context["adminform"].form.errors["requirements"]
    assert ["in line 2, found '-r other.txt'" in errors[0], "in line 3, found './wheel'" in errors[1]] == [True, True]


def test_requirements_end_their_lines_as_everywhere(site, configuration):
    site.post(change_of(configuration), form(requirements="pandas\r\nnumpy>=2\r\n"))

    configuration.refresh_from_db()
    assert configuration.requirements == "pandas\nnumpy>=2"


@pytest.mark.parametrize("requirements", ["pandas\nnumpy\n", "pandas\r\nnumpy", "\n# none\n"])
def test_saving_what_nobody_has_edited_makes_no_other_build(site, configuration, requirements):
    configuration.requirements = requirements
    configuration.save()
    sent = requirements.replace("\r\n", "\n").replace("\n", "\r\n")

    unchanged = {"entry_point": configuration.entry_point, "files": json.dumps(configuration.files)}
    assert site.post(change_of(configuration), form(requirements=sent, **unchanged)).status_code == 302

    before = configuration.contents_sha256
    configuration.refresh_from_db()
    assert (configuration.requirements, configuration.contents_sha256) == (requirements, before)


def test_the_page_says_what_may_be_written_where(site, configuration):
    page = site.get(change_of(configuration)).content.decode()

    assert "Empty for the one that ADE itself runs on." in page
    assert "no options, addresses or paths" in page


def test_a_name_that_is_taken_is_told_in_words(site, workspace, configuration):
    page = site.post(ADD, form(workspace=workspace.pk, name="invoices"))

    assert "This workspace has a configuration of that name." in page.content.decode()


def test_it_cannot_be_added_to_a_workspace_that_one_does_not_operate(site, olga):
    read_only = MembershipFactory(user=olga, role="viewer").workspace
    for workspace in (read_only, WorkspaceFactory()):
        page = site.post(ADD, form(workspace=workspace.pk))

        assert page.context["adminform"].form.errors["workspace"]
    assert not Configuration.objects.exists()


def test_it_stays_in_its_workspace(site, olga, workspace, configuration):
    other = MembershipFactory(user=olga, role="admin").workspace

    site.post(change_of(configuration), form(workspace=other.pk))

    configuration.refresh_from_db()
    assert configuration.workspace == workspace


def test_it_can_be_deleted_until_it_has_been_used(site, configuration):
    delete = change_of(configuration).replace("/change/", "/delete/")
    run = RunFactory(configuration=configuration)
    assert site.post(delete, {"post": "yes"}).status_code == 403
    run.delete()
    run.build.delete()

    assert site.post(delete, {"post": "yes"}).status_code == 302

    assert not Configuration.objects.exists()
