import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from documents import downloads
from runs import views
from tests.azurite import followed, local_only
from tests.factories import ArtifactFactory, MembershipFactory, RunFactory, write

pytestmark = pytest.mark.django_db
DATA = b'{"total": 42}'


@pytest.fixture
def artifact(configuration, each_storage):
    file = default_storage.save("runs/1/1/0001", ContentFile(DATA))
    run = RunFactory(configuration=configuration)
    return ArtifactFactory(run=run, name="tables/total.json", file=file, size_bytes=len(DATA))


def path_of(artifact):
    return f"/artifacts/{artifact.pk}/download/"


@pytest.mark.parametrize("who", ["olga", "ravi"])
def test_members_get_the_file(client, artifact, who, request):
    client.force_login(request.getfixturevalue(who))

    answer = client.get(path_of(artifact))
    found = followed(answer)

    assert b"".join(found.streaming_content) == DATA
    assert found["Content-Disposition"] == 'attachment; filename="total.json"'
    assert found["Content-Type"] == "application/json"
    assert answer["Content-Security-Policy"].startswith("sandbox; ")
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Cache-Control"] == "private, no-store"


def test_others_learn_nothing(client, artifact, zed):
    for user in (zed, MembershipFactory().user):
        client.force_login(user)

        assert client.get(path_of(artifact)).status_code == 404
    client.logout()
    assert client.get(path_of(artifact)).status_code == 404
    assert client.get("/artifacts/999999/download/").status_code == 404


@pytest.mark.parametrize(
    ("name", "content_type"),
    [
        ("report.html", "text/html"),
        ("chart.svg", "image/svg+xml"),
        ("a.xhtml", "application/xhtml+xml"),
        ("a.js", "text/javascript"),
    ],
)
def test_what_an_engine_made_is_never_a_page(client, artifact, olga, name, content_type):
    artifact.name, artifact.content_type = name, content_type
    artifact.save()
    client.force_login(olga)

    answer = followed(client.get(path_of(artifact)))

    assert answer["Content-Type"] == "application/octet-stream"
    assert answer["Content-Disposition"] == f'attachment; filename="{name}"'
    assert b"".join(answer.streaming_content) == DATA


@local_only
def test_head_has_no_body(client, artifact, olga):
    client.force_login(olga)

    answer = client.head(path_of(artifact))

    assert (answer.content, answer["Content-Length"]) == (b"", str(len(DATA)))


def test_a_signed_link_is_for_one_artifact(client, artifact, olga, zed):
    other = ArtifactFactory(run=artifact.run, file=artifact.file)

    answer = followed(client.get(views.link(artifact, olga)))

    assert b"".join(answer.streaming_content) == DATA
    assert client.get(views.link(artifact, zed)).status_code == 404
    key = downloads.key_of("artifact", artifact.pk, olga)
    assert client.get(path_of(other), {"key": key}).status_code == 404
    assert client.get(path_of(artifact), {"key": downloads.key_of("document", artifact.pk, olga)}).status_code == 404


def test_the_admin_leads_there(client, artifact, olga):
    client.force_login(olga)

    for page in ("/admin/runs/artifact/", f"/admin/runs/artifact/{artifact.pk}/change/"):
        assert f'href="{path_of(artifact)}"' in client.get(page).content.decode()


def test_names_of_artifacts_stay_text(client, artifact, olga):
    write(artifact, name='"><script>alert(1)</script>')
    client.force_login(olga)

    assert "<script>alert(1)" not in client.get("/admin/runs/artifact/").content.decode()
