"""Malformed forms against the deployed server: they are refused, and no file remains."""

import http.client
import json
import os
import socket
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from django.conf import settings

from api import tokens
from documents.models import Document
from tests.documents.samples import PDF
from tests.stepping import until

pytestmark = [pytest.mark.long, pytest.mark.django_db(transaction=True)]

MOST_BYTES = 200_000
B = b"boundary"


@pytest.fixture
def server(programs, tmp_path, workspace, olga):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (tmp_path / "var").mkdir()
    program = programs.start(
        *("-m", "gunicorn", "-c", "python:config.server", "--bind", f"127.0.0.1:{port}"),
        ADE_VAR_DIR=tmp_path / "var",
        ADE_MAX_UPLOAD_BYTES=MOST_BYTES,
        ADE_ALLOWED_HOSTS="127.0.0.1",
        WEB_CONCURRENCY=1,
    )
    until(lambda: _is_there(port) or not program.is_alive())
    assert program.is_alive(), program.logged()
    _, token = tokens.issue(workspace, olga, "hostile", ["operate"], actor="test")
    return Server(program, port, token, tmp_path / "var")


def _is_there(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


class Server:
    def __init__(self, program, port, token, var):
        self.program, self.port, self.token, self.var = program, port, token, var

    def post(self, body, content_type, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        said = {"Content-Type": content_type, "Authorization": f"Bearer {self.token}"} | headers
        connection.request("POST", "/documents", body, said)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, json.loads(text), answer

    def memory(self):
        process = psutil.Process(self.program.pid)
        return sum(each.memory_info().rss for each in [process, *process.children(recursive=True)])

    def left(self):
        """Return the upload files that remain, including deleted files that are still open."""
        kept = [path for path in Path(self.var, "uploads").rglob("*") if path.is_file()]
        opened = []
        for each in psutil.Process(self.program.pid).children(recursive=True):
            for number in os.listdir(f"/proc/{each.pid}/fd"):
                # The descriptor may be closed before it is read.
                with suppress(FileNotFoundError):
                    opened.append(os.readlink(f"/proc/{each.pid}/fd/{number}"))
        return kept + [path for path in opened if path.startswith(str(self.var / "uploads"))]


def part(name, data, filename=None, *headers):
    said = f'Content-Disposition: form-data; name="{name}"'.encode()
    said += f'; filename="{filename}"'.encode() if filename is not None else b""
    return b"--" + B + b"\r\n" + b"\r\n".join([said, *headers]) + b"\r\n\r\n" + data + b"\r\n"


END = b"--" + B + b"--\r\n"
FORM = f"multipart/form-data; boundary={B.decode()}"
WHOLE = part("file", PDF, "invoice.pdf") + END
BASE64 = b"Content-Transfer-Encoding: base64"
HOSTILE = {
    "no boundary": (WHOLE, "multipart/form-data"),
    "an empty boundary": (WHOLE, "multipart/form-data; boundary="),
    "another boundary": (WHOLE, "multipart/form-data; boundary=other"),
    "a huge boundary": (WHOLE, f"multipart/form-data; boundary={'x' * 6000}"),
    "a boundary that is none": (WHOLE, "multipart/form-data; boundary=a\tb;;;"),
    "no body": (b"", FORM),
    "nothing but an end": (END, FORM),
    "a file without a name": (part("file", PDF, "") + END, FORM),
    "1,000 files": (b"".join(part(f"f{n}", b"x", "a.txt") for n in range(1000)) + END, FORM),
    "1,000 files called file": (b"".join(part("file", b"x", "a.txt") for n in range(1000)) + END, FORM),
    "2,000 values": (b"".join(part(f"v{n}", b"x") for n in range(2000)) + part("file", PDF, "a.pdf") + END, FORM),
    "blank base64": (part("file", b" " * 100_000, "a.pdf", BASE64) + END, FORM),
    "broken base64": (part("file", b"a=b=c" * 100, "a.pdf", BASE64) + END, FORM),
    "blank lines of base64": (part("file", b"\r\n" * 60_000, "a.pdf", BASE64) + END, FORM),
    "an unknown charset": (part("workspace", b"1", None, b"Content-Type: text/plain; charset=x-none") + END, FORM),
    "an unknown charset of the form": (part("file", b"", "a.pdf") + END, f"{FORM}; charset=x-none"),
    "too much": (part("file", PDF + b"%" * MOST_BYTES, "a.pdf") + END, FORM),
    "far too much": (part("file", PDF + b"%" * 2_000_000, "a.pdf") + END, FORM),
    "huge headers": (part("file", PDF, "a" * 100_000 + ".pdf", b"X: " + b"y" * 100_000) + END, FORM),
    "a body that is said to be JSON": (WHOLE, "application/json"),
    "many parts without a name": ((b"--" + B + b"\r\n\r\nx\r\n") * 5000 + END, FORM),
}
# Malformed forms that Django accepts anyway: the document is whole, or it contains the part that was sent.
NO_END = part("file", PDF, "invoice.pdf")[:-2]


def test_hostile_forms_are_refused_and_leave_nothing(server):
    server.post(WHOLE, FORM)
    before, answers = server.memory(), {}

    for what, (body, content_type) in HOSTILE.items():
        started = time.monotonic()
        status, told, _ = server.post(body, content_type)
        answers[what] = (status, frozenset(told), time.monotonic() - started < 100)

    assert {what: found for what, found in answers.items() if found[0] not in (400, 413, 415)} == {}
    assert {found[1:] for found in answers.values()} == {(frozenset({"code", "message", "details"}), True)}
    assert Document.objects.count() == 1
    assert server.memory() - before < 60_000_000
    until(lambda: not server.left())


def test_a_form_without_an_end_is_no_accident(server):
    status, _, _ = server.post(NO_END, FORM)

    assert status == 400
    assert Document.objects.count() == (status == 200)
    until(lambda: not server.left())


def test_whoever_hangs_up_in_the_middle_leaves_nothing(server):
    for length in (10, 300, 100_000):
        with socket.create_connection(("127.0.0.1", server.port)) as raw:
            raw.sendall(
                f"POST /documents HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {server.token}\r\n"
                f"Content-Type: {FORM}\r\nContent-Length: 190000\r\n\r\n".encode()
                + (part("file", PDF + b"%" * 150_000, "a.pdf"))[:length]
            )

    until(lambda: not server.left())
    status, _, answer = server.post(WHOLE, FORM)

    assert (status, Document.objects.count()) == (200, 1)
    assert answer.headers["X-Request-ID"]


def test_what_is_sent_comes_out_in_parts(server):
    data = PDF + bytes(range(32, 127)) * 1000
    _, made, _ = server.post(part("file", data, "long.pdf") + END, FORM)

    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=300)
    connection.request(
        "GET",
        f"/api/v1/documents/{made['id']}/content",
        headers={"Authorization": f"Bearer {server.token}", "Range": "bytes=70000-80000"},
    )
    answer = connection.getresponse()

    assert (answer.status, answer.read()) == (206, data[70000:80001])
    assert answer.headers["Content-Length"] == "10001"
    connection.close()
    assert settings.DEBUG is False
