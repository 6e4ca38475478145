import asyncio
import io
import json
import os
import tempfile

import pytest
import structlog
from django.core.files.storage import default_storage

from config.handler import BESIDE_BYTES, Handler
from documents import intake, views
from documents.models import Document
from tests.documents.samples import PDF

pytestmark = [pytest.mark.edge, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def storage(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"


class Client:
    """An ASGI client that sends parts of a body and receives the answer."""

    def __init__(self, path, parts=(b"",), method="GET", ends="http.request", more_query=b"", **headers):
        path, _, query = path.partition("?")
        self.scope = {"type": "http", "method": method, "path": path, "query_string": query.encode() + more_query}
        self.scope["headers"] = [(b"host", b"localhost")] + [
            (name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()
        ]
        self.parts, self.ends = list(parts), ends
        self.taken, self.sent = 0, []

    async def receive(self):
        if self.taken < len(self.parts):
            self.taken += 1
            more = self.taken < len(self.parts) or self.ends != "http.request"
            return {"type": "http.request", "body": self.parts[self.taken - 1], "more_body": more}
        if self.ends == "http.request":
            await asyncio.sleep(60)
        return {"type": "http.disconnect"}

    async def receive_for_ever(self):
        if self.taken < len(self.parts):
            return await self.receive()
        return await asyncio.sleep(600)

    async def send(self, message):
        self.sent.append(message)

    def ask(self):
        asyncio.run(Handler()(self.scope, self.receive, self.send))
        return self

    @property
    def status(self):
        return self.sent[0]["status"]

    @property
    def headers(self):
        return {name.decode(): value.decode() for name, value in self.sent[0]["headers"]}

    @property
    def bodies(self):
        return [message["body"] for message in self.sent[1:] if message.get("body")]


def test_what_is_too_large_is_not_kept(settings, monkeypatch):
    settings.ADE_MAX_UPLOAD_BYTES = settings.FILE_UPLOAD_MAX_MEMORY_SIZE = 1000
    written = []
    write = tempfile.SpooledTemporaryFile.write
    monkeypatch.setattr(
        tempfile.SpooledTemporaryFile, "write", lambda self, data: written.append(len(data)) or write(self, data)
    )

    client = Client("/admin/", [bytes(1 << 16)] * 40, "POST", content_length="5").ask()

    assert client.status == 413
    assert b"The request has more than 1,049,576 bytes. A file may have at most 1,000 bytes." in client.bodies[0]
    assert client.taken == 40
    assert sum(written) <= 1000 + BESIDE_BYTES
    assert os.listdir(settings.FILE_UPLOAD_TEMP_DIR) == []


def test_what_has_no_end_is_not_read_for_ever(settings):
    settings.ADE_MAX_UPLOAD_BYTES = 1000

    client = Client("/admin/", [bytes(1 << 16)] * 1000, "POST").ask()

    assert client.status == 413
    assert client.taken < 100


PROGRAMS = ["/api/v1/runs", "/api/nothing", "/documents", "/configurations/1/runs"]


def refused(path, kind, **headers):
    if kind == "bytes":
        return Client(f"{path}?status=", more_query=b"\xff", **headers).ask()
    return Client(path, [bytes(1 << 16)] * 40, "POST", **headers).ask()


@pytest.mark.parametrize(("kind", "status", "code"), [("bytes", 400, "invalid_request"), ("body", 413, "too_large")])
@pytest.mark.parametrize("path", PROGRAMS)
def test_what_is_refused_before_there_is_a_request_has_the_shape_of_all_refusals(settings, path, kind, status, code):
    settings.ADE_MAX_UPLOAD_BYTES = 1000

    client = refused(path, kind)

    told = json.loads(client.bodies[0])
    assert (client.status, set(told), told["code"]) == (status, {"code", "message", "details"}, code)
    assert client.headers["Content-Type"] == "application/json"
    assert client.headers["Cache-Control"] == "private, no-store"
    assert client.headers["Vary"] == "Authorization, Cookie"


@pytest.mark.parametrize("kind", ["bytes", "body"])
@pytest.mark.parametrize("path", [*PROGRAMS, "/admin/"])
def test_what_is_refused_before_there_is_a_request_has_an_id_that_the_log_has_too(settings, caplog, path, kind):
    settings.ADE_MAX_UPLOAD_BYTES = 1000
    seen = []
    caplog.handler.addFilter(lambda _: seen.append(structlog.contextvars.get_contextvars().get("request_id")) or True)

    given = refused(path, kind, x_request_id="request-17").headers["X-Request-ID"]
    made = [refused(path, kind, **headers).headers["X-Request-ID"] for headers in ({}, {"x_request_id": "a b\x7f" * 9})]

    assert given == "request-17"
    assert all(len(id) == 32 for id in made)
    assert seen == [given, *made]


def test_a_page_that_is_asked_for_with_such_bytes_is_refused_as_pages_are():
    client = refused("/admin/", "bytes")

    assert (client.status, client.bodies) == (400, [])
    assert client.headers["Content-Type"].startswith("text/html")


def test_who_goes_away_is_not_answered():
    assert Client("/admin/", [b"x"], "POST", ends="http.disconnect").ask().sent == []


def behind_a_proxy(address, peer="10.1.0.1", **named):
    client = Client("/api/v1/openapi.json", **named)
    client.scope["client"] = (peer, 1)
    client.scope["headers"].append((b"x-forwarded-for", address.encode()))
    return client


async def asked_while_another_is_under_way(settings, *clients):
    """Call the handler with these clients while the first one never finishes its body."""
    handler = Handler()
    first, *others = clients
    first.ends, first.parts = "never", [b"x"]
    under_way = asyncio.create_task(handler(first.scope, first.receive_for_ever, first.send))
    while first.taken < 1:
        await asyncio.sleep(0)
    for each in others:
        await handler(each.scope, each.receive, each.send)
    under_way.cancel()
    await asyncio.gather(under_way, return_exceptions=True)
    return [each.status for each in others], handler.requests_of


def test_behind_a_proxy_each_client_has_so_many_requests_under_way(settings):
    settings.ADE_PROXIES, settings.ADE_CONNECTIONS_PER_CLIENT = ["10.1.0.0/16"], 1
    clients = [behind_a_proxy(address) for address in ("192.0.2.7", "192.0.2.7", "192.0.2.8", "192.0.2.7, 192.0.2.9")]

    statuses, counted = asyncio.run(asked_while_another_is_under_way(settings, *clients))

    assert statuses == [429, 200, 200]
    refused = clients[1]
    assert json.loads(refused.bodies[0])["code"] == "rate_limited"
    assert (refused.headers["Retry-After"], refused.headers["Connection"]) == ("5", "close")
    assert len(refused.headers["X-Request-ID"]) == 32
    assert refused.taken == 0
    assert counted == {}


def test_whom_somebody_else_names_is_not_counted(settings):
    settings.ADE_PROXIES, settings.ADE_CONNECTIONS_PER_CLIENT = ["10.1.0.0/16"], 1
    clients = [behind_a_proxy("192.0.2.7", peer="198.51.100.1") for _ in range(3)]

    assert asyncio.run(asked_while_another_is_under_way(settings, *clients))[0] == [200, 200]


def test_a_web_socket_is_refused_without_a_word():
    client = Client("/")
    client.scope["type"] = "websocket"

    assert client.ask().sent == [{"type": "websocket.close"}]


def test_bodies_lie_in_our_folder(settings, monkeypatch):
    settings.FILE_UPLOAD_MAX_MEMORY_SIZE = 10
    folders = []
    make = tempfile.TemporaryFile
    monkeypatch.setattr(
        tempfile, "TemporaryFile", lambda *args, **options: folders.append(options) or make(*args, **options)
    )

    client = Client("/admin/login/", [b"x" * 100], "POST").ask()

    assert client.status == 403
    assert [options["dir"] for options in folders] == [settings.FILE_UPLOAD_TEMP_DIR]


def test_an_upload_becomes_a_document(client, olga, workspace, settings):
    settings.FILE_UPLOAD_MAX_MEMORY_SIZE = 100
    client.force_login(olga)
    page = client.get("/admin/documents/document/add/")
    cookies = "; ".join(f"{name}={morsel.value}" for name, morsel in client.cookies.items())
    data = PDF + b"%" + b"x" * 200_000
    body = b"".join(
        b'--B\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % (name, value.encode())
        for name, value in ((b"workspace", str(workspace.pk)), (b"csrfmiddlewaretoken", page.context["csrf_token"]))
    )
    body += b'--B\r\nContent-Disposition: form-data; name="file"; filename="a.pdf"\r\n\r\n' + data + b"\r\n--B--\r\n"
    parts = [body[place : place + 5000] for place in range(0, len(body), 5000)]

    answer = Client(
        "/admin/documents/document/add/",
        parts,
        "POST",
        content_type="multipart/form-data; boundary=B",
        content_length=str(len(body)),
        cookie=cookies,
    ).ask()

    assert answer.status == 302
    with Document.objects.get().file.open() as file:
        assert file.read() == data
    assert os.listdir(settings.FILE_UPLOAD_TEMP_DIR) == []


def test_downloads_come_in_parts(workspace, olga):
    data = PDF + b"x" * 1_000_000
    document = intake.receive(workspace, io.BytesIO(data), "invoice.pdf", "", "olga")

    got = Client(views.link(document, olga)).ask()

    assert got.status == 200
    assert b"".join(got.bodies) == data
    assert max(map(len, got.bodies)) <= 1 << 16
    assert dict(got.sent[0]["headers"])[b"Content-Length"] == str(len(data)).encode()


def test_head_of_a_download_has_no_body(workspace, olga):
    document = intake.receive(workspace, io.BytesIO(PDF), "invoice.pdf", "", "olga")

    got = Client(views.link(document, olga), method="HEAD").ask()

    assert (got.status, got.bodies) == (200, [])
    assert dict(got.sent[0]["headers"])[b"Content-Length"] == str(len(PDF)).encode()
    assert default_storage.exists(document.file.name)
