"""Headers, cookies and hosts (S24), and responses that no cache may store (S28)."""

import io
import os
import subprocess
import sys

import pytest
from django.conf import settings
from django.core.files.storage import default_storage

from documents import intake, views
from tests.documents.samples import PDF
from tests.factories import BriefFactory

pytestmark = [pytest.mark.edge, pytest.mark.django_db]
PAGES = ("/admin/", "/admin/runs/run/", "/documents/search/", "/briefs/")
PATHS = ("/api/v1/runs", "/api/v1/runs/1", "/api/v1/nowhere")


def words(answer, header):
    return {word.strip().lower() for word in answer.get(header, "").split(",")}


@pytest.mark.parametrize("path", PATHS)
def test_answers_to_programs_are_kept_by_nobody(issue, ask, client, olga, path):
    for answer in (ask(issue(olga), path), client.get(path)):
        assert {"private", "no-store"} <= words(answer, "Cache-Control")
        assert {"authorization", "cookie"} <= words(answer, "Vary")
        assert answer["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("path", PAGES)
def test_pages_of_whoever_is_signed_in_are_kept_by_nobody(client, olga, path):
    client.force_login(olga)

    answer = client.get(path)

    assert answer.status_code == 200
    # A brief may be stored privately and revalidated with its ETag.
    assert {"private", "no-cache" if path == "/briefs/" else "no-store"} <= words(answer, "Cache-Control")
    assert "cookie" in words(answer, "Vary")


def test_what_everybody_may_read_may_be_kept(client, settings):
    settings.ADE_PUBLIC_BRIEFS = True
    BriefFactory()

    assert "no-store" not in words(client.get("/briefs/"), "Cache-Control")


def test_downloads_have_their_own(client, olga, workspace, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    document = intake.receive(workspace, io.BytesIO(PDF), "invoice.pdf", "", "olga")

    answer = client.get(views.link(document, olga))

    assert answer["Cache-Control"] == "private, no-store"
    assert b"".join(answer.streaming_content) == PDF
    default_storage.delete(document.file.name)


@pytest.mark.parametrize("path", [*PAGES, *PATHS, "/nowhere"])
def test_nothing_is_shown_in_a_frame(client, olga, path):
    client.force_login(olga)

    assert client.get(path)["X-Frame-Options"] == "DENY"


@pytest.mark.parametrize("path", ["/api/v1/runs", "/documents/search/", "/admin/login/"])
@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "localhost:80@evil.example", "a b", ""])
def test_other_hosts_are_refused(client, settings, path, host):
    settings.ALLOWED_HOSTS = ["localhost"]

    answer = client.get(path, headers={"Host": host, "X-Forwarded-Host": "localhost"})

    assert answer.status_code == 400
    assert not path.startswith("/api") or answer.json()["code"] == "invalid_request"


def test_nobody_says_for_somebody_else_which_host_it_is(client, settings):
    settings.ALLOWED_HOSTS = ["localhost"]

    answer = client.get(
        "/documents/search/",
        headers={"Host": "localhost", "X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https"},
    )

    assert "evil" not in answer["Location"]
    assert not answer.wsgi_request.is_secure()


def test_the_cookie_of_a_session_is_for_nobody_else(client, olga):
    olga.set_password("a password of olga's")
    olga.save()

    client.post("/admin/login/", {"username": "olga", "password": "a password of olga's"})

    cookie = client.cookies["sessionid"]
    assert (cookie["httponly"], cookie["samesite"]) == (True, "Lax")
    assert client.cookies["csrftoken"]["samesite"] == "Lax"


CHECK = """
from django.conf import settings
print(settings.SESSION_COOKIE_SECURE, settings.CSRF_COOKIE_SECURE, settings.SECURE_SSL_REDIRECT)
"""


@pytest.mark.long
def test_an_installation_for_others_passes_the_checks_of_django(tmp_path):
    variables = {"DEBUG": "false", "SECRET_KEY": "k3y-" * 20 + "abcdefghij", "ADE_VAR_DIR": str(tmp_path)}
    environment = {"PATH": os.environ["PATH"], "ADE_ENV_FILE": os.devnull} | variables

    def manage(*arguments):
        command = [sys.executable, "manage.py", *arguments]
        return subprocess.run(
            command, cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True, check=False
        )

    checked = manage("check", "--deploy", "--fail-level", "WARNING")

    assert checked.returncode == 0, checked.stderr
    assert manage("shell", "--verbosity=0", f"--command={CHECK}").stdout.split() == ["True"] * 3
