"""Bytes that would cause harm if they were deserialised (S27) are treated as data or refused."""

import pickle

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from tests.api.table import ROWS
from tests.api.test_every_route import READS, made
from tests.factories import UserFactory

pytestmark = [pytest.mark.edge, pytest.mark.django_db]

WITH_JSON = sorted(
    name
    for name, row in ROWS.items()
    if row.body is not None and row.files is None and not row.anybody and name.split()[0] not in READS
)
TYPES = ["application/yaml", "text/yaml", "application/x-python-pickle", "application/octet-stream"]


class Opens:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


@pytest.fixture
def path(tmp_path):
    """Return a path that exists only if a payload was deserialised."""
    yield tmp_path / "opened"
    assert not (tmp_path / "opened").exists()


@pytest.fixture
def hostile(path):
    return [
        *(pickle.dumps(Opens(path), protocol) for protocol in (0, 2, pickle.HIGHEST_PROTOCOL)),
        f"!!python/object/apply:builtins.open [{path}, w]\n".encode(),
        f"a: &a [{path}]\nb: *a\n".encode(),
    ]


@pytest.fixture
def root(client):
    client.force_login(UserFactory(is_superuser=True))
    return client


def asked(client, name, workspace, data, content_type):
    method, path = name.split()
    path = path.format(**made(ROWS[name].ids, workspace))
    return client.generic(method, path, data, content_type)


@pytest.mark.parametrize("name", WITH_JSON)
def test_of_a_body_nothing_but_json_is_read(root, workspace, hostile, name):
    for data in hostile:
        refused = asked(root, name, workspace, data, "application/json")
        assert (refused.status_code, refused.json()["code"]) == (400, "invalid_json")
    for content_type in TYPES:
        refused = asked(root, name, workspace, data, content_type)
        assert (refused.status_code, refused.json()["code"]) == (415, "unsupported_media_type")


@pytest.mark.parametrize("name", sorted(name for name, row in ROWS.items() if row.raw))
def test_of_packages_and_lists_of_feeds_nothing_else_is_read(root, workspace, hostile, name):
    for data in hostile:
        answers = [asked(root, name, workspace, data, each) for each in (ROWS[name].raw[1], *TYPES)]
        assert answers[0].status_code == 400
        assert {answer.status_code for answer in answers} <= {400, 415}


def test_a_form_with_a_package_is_a_zip_file_or_refused(root, workspace, hostile):
    for data in hostile:
        form = {"workspace": workspace.pk, "file": SimpleUploadedFile("p.zip", data)}
        refused = root.post("/api/v1/configurations", form)
        assert (refused.status_code, refused.json()["code"]) == (400, "bad_package")
