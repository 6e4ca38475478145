import io

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from builds import packages
from builds.models import Configuration
from builds.packages import Package
from tests.documents.samples import zipped
from tests.factories import BuildFactory, ConfigurationFactory, MembershipFactory

pytestmark = [pytest.mark.edge, pytest.mark.django_db]

CONFIGURATIONS = "/api/v1/configurations"
FILES = {"main.py": "def main(document):\n    return {}\n", "rules/words.txt": "total\n"}


def package_of(name="invoices", files=FILES, requirements=""):
    whole = io.BytesIO()
    packages.write_zip(Package(name, "main", requirements, "", files), whole)
    return whole.getvalue()


def create(client, data=None, headers=None, **values):
    file = SimpleUploadedFile("package.zip", package_of() if data is None else data, "application/zip")
    return client.post(CONFIGURATIONS, {"file": file} | values, headers=headers or {})


def replace(client, configuration, data, content_type="application/zip", **headers):
    path = f"{CONFIGURATIONS}/{configuration.pk}/package"
    return client.put(path, data, content_type=content_type, headers=headers)


def test_a_package_becomes_a_configuration(operator, workspace):
    answer = create(operator)

    made = Configuration.objects.get()
    assert (answer.status_code, answer.json()["id"]) == (201, made.pk)
    assert (made.workspace, made.name, made.files) == (workspace, "invoices", FILES)
    assert answer.json()["files"] == [
        {"path": "main.py", "size_bytes": len(FILES["main.py"])},
        {"path": "rules/words.txt", "size_bytes": 6},
    ]


def test_what_went_in_comes_out(operator, viewer):
    made = create(operator).json()

    answer = viewer.get(f"{CONFIGURATIONS}/{made['id']}/package")

    assert (answer.status_code, answer.content) == (200, package_of())
    assert answer["Content-Type"] == "application/zip"
    assert answer["Content-Disposition"] == 'attachment; filename="invoices.zip"'
    assert answer["X-Content-Type-Options"] == "nosniff"
    same = viewer.get(f"{CONFIGURATIONS}/{made['id']}/package", headers={"If-None-Match": answer["ETag"]})
    assert (same.status_code, same.content) == (304, b"")


def test_a_name_is_taken_once(operator, workspace):
    made = create(operator).json()

    again, renamed = create(operator), create(operator, name="receipts")

    assert (again.status_code, again.json()["details"]) == (409, {"configuration_id": made["id"]})
    assert (renamed.status_code, renamed.json()["name"]) == (201, "receipts")


def test_whoever_lost_the_answer_gets_it_again(operator):
    first, lost = (create(operator, headers={"Idempotency-Key": "k"}) for _ in range(2))
    other = create(operator, name="other", headers={"Idempotency-Key": "k"})

    assert (lost.status_code, lost.content) == (201, first.content)
    assert other.json()["code"] == "idempotency_key_reused"


@pytest.mark.parametrize(
    "data",
    [
        b"no zip",
        package_of()[:-5],
        zipped({"main.py": "x"}),
        zipped({"ade.toml": '[configuration]\nname = "x"\n', "../main.py": "x"}),
        zipped({"ade.toml": '[configuration]\nname = "x"\n', "main.py": "0" * 2_000_000}),
    ],
)
def test_what_is_no_package_is_refused(operator, configuration, data):
    for answer in (create(operator, data), replace(operator, configuration, data)):
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_package")
        assert answer.json()["details"]["problems"]
    assert Configuration.objects.count() == 1


def test_what_is_too_large_is_refused(operator, configuration):
    data = b"0" * (4 * 2**20 + 1)

    assert [create(operator, data).status_code, replace(operator, configuration, data).status_code] == [413, 413]


def test_a_package_replaces_the_contents_and_not_the_name(operator, configuration):
    new = package_of("another", {"main.py": "x = 1\n"})

    stored, again = replace(operator, configuration, new), replace(operator, configuration, new)

    configuration.refresh_from_db()
    assert (stored.status_code, stored.json()["result"], again.json()["result"]) == (200, "updated", "unchanged")
    assert (configuration.name, configuration.files) == ("invoices", {"main.py": "x = 1\n"})


def test_whoever_names_the_tag_overwrites_nobody(operator, configuration):
    path = f"{CONFIGURATIONS}/{configuration.pk}/package"
    tag = operator.get(path)["ETag"]

    first = replace(operator, configuration, package_of(), **{"If-Match": tag})
    second = replace(operator, configuration, package_of(files={"main.py": "y\n"}), **{"If-Match": tag})

    assert (first.status_code, second.status_code, second.json()["code"]) == (200, 412, "precondition_failed")
    configuration.refresh_from_db()
    assert configuration.files == FILES


@pytest.mark.parametrize("content_type", ["application/json", "multipart/form-data; boundary=x", "text/plain"])
def test_only_a_zip_file_is_taken(operator, configuration, content_type):
    answer = replace(operator, configuration, package_of(), content_type)

    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")


def test_viewers_read_and_others_see_nothing(viewer, client, ravi, configuration):
    client.force_login(ravi)
    stranger = MembershipFactory().user
    path = f"{CONFIGURATIONS}/{configuration.pk}"

    for who in (viewer, client):
        assert who.get(path).status_code == 200
        assert create(who).status_code == 403
        assert replace(who, configuration, package_of()).status_code == 403
        assert who.post(f"{path}/check").status_code == 403
    client.force_login(stranger)
    asked = [client.get(path), client.get(f"{path}/package"), replace(client, configuration, b"")]
    assert [answer.status_code for answer in [*asked, client.post(f"{path}/check")]] == [404] * 4
    assert client.get(CONFIGURATIONS).json()["items"] == []


def test_a_list_is_chosen_by_name_and_workspace(viewer, configuration, workspace):
    ConfigurationFactory(workspace=workspace)
    ConfigurationFactory(name="invoices")

    found = viewer.get(CONFIGURATIONS, {"name": "invoices", "workspace_id": workspace.pk}).json()["items"]

    assert [row["id"] for row in found] == [configuration.pk]
    assert "files" not in found[0]


def test_a_check_tells_what_cannot_be_parsed(operator, workspace):
    files = {"main.py": "def main(:\n", "rules.py": "ok = 1\n"}
    broken = ConfigurationFactory(workspace=workspace, files=files)

    told = operator.post(f"{CONFIGURATIONS}/{broken.pk}/check").json()

    assert (told["ok"], told["environment"]) == (False, None)
    assert [(each["stage"], each["path"], each["line"]) for each in told["problems"]] == [("syntax", "main.py", 1)]


def test_a_check_runs_nothing_and_survives_what_cannot_be_parsed(operator, workspace, tmp_path):
    files = {
        "main.py": f"open({str(tmp_path / 'ran')!r}, 'w')\n",
        "deep.py": "(" * 5000,
        "long.py": "-" * 500_000 + "1",
        "chain.py": "x" + ".a" * 200_000,
    }
    hostile = ConfigurationFactory(workspace=workspace, files=files)

    answer = operator.post(f"{CONFIGURATIONS}/{hostile.pk}/check")

    assert (answer.status_code, answer.json()["ok"]) == (200, False)
    assert {each["stage"] for each in answer.json()["problems"]} == {"syntax"}
    assert not (tmp_path / "ran").exists()


def test_a_check_knows_of_a_build(operator, configuration):
    BuildFactory(configuration=configuration, status="ready")

    told = operator.post(f"{CONFIGURATIONS}/{configuration.pk}/check").json()

    assert (told["ok"], told["environment"]) == (True, "ready")
