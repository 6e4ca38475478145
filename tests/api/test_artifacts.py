import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.test import Client

from tests.factories import ArtifactFactory, RunFactory

pytestmark = [pytest.mark.edge, pytest.mark.django_db]
DATA = b'{"total": 42}'
SHA256 = "ab" * 32


@pytest.fixture
def artifact(configuration, kept_apart):
    file = default_storage.save("runs/1/1/0001", ContentFile(DATA))
    run = RunFactory(configuration=configuration)
    return ArtifactFactory(run=run, name="tables/total.json", file=file, size_bytes=len(DATA), sha256=SHA256)


def content(artifact):
    return f"/api/v1/artifacts/{artifact.pk}/content"


def test_the_file_comes_with_its_tag_and_as_nothing_to_show(viewer, artifact):
    answer = viewer.get(content(artifact))

    assert b"".join(answer.streaming_content) == DATA
    assert (answer["ETag"], answer["Content-Type"]) == (f'"{SHA256}"', "application/json")
    assert answer["Content-Disposition"] == 'attachment; filename="total.json"'
    assert answer["Cache-Control"] == "private, no-store"


def test_who_has_it_is_not_sent_it_again(viewer, artifact):
    assert viewer.get(content(artifact), headers={"if-none-match": f'"{SHA256}"'}).status_code == 304


def test_a_part_is_sent(viewer, artifact):
    answer = viewer.get(content(artifact), headers={"range": "bytes=2-6"})

    assert (answer.status_code, b"".join(answer.streaming_content)) == (206, b"total")
    assert viewer.get(content(artifact), headers={"range": "bytes=99-"}).status_code == 416


def test_a_link_works_for_whoever_has_it(viewer, artifact):
    link = viewer.get(f"/api/v1/artifacts/{artifact.pk}/link").json()

    answer = Client().get(link["url"])

    assert b"".join(answer.streaming_content) == DATA


def test_what_is_said_of_it_has_a_tag(viewer, artifact):
    answer = viewer.get(f"/api/v1/artifacts/{artifact.pk}")

    assert (answer.json()["name"], answer.json()["run_id"]) == ("tables/total.json", artifact.run_id)
    assert viewer.get(f"/api/v1/artifacts/{artifact.pk}", headers={"if-none-match": answer["ETag"]}).status_code == 304
