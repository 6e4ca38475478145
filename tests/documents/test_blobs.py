"""Behaviour specific to containers: how they fail, what they cost, and that keys are never revealed."""

import io
import json
import os
import subprocess
import sys
import time
import traceback
from base64 import b64encode

import pytest
from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from documents import blobs as module
from documents import intake, storage
from documents.intake import Refused
from tests.azurite import KEY, connection_string, storages, stored_files
from tests.documents.faulty import WAYS, Gate
from tests.documents.samples import PNG

pytestmark = [pytest.mark.once, pytest.mark.long]

BLOB = "documents/2026/11/" + "0" * 32
OTHER_KEY = b64encode(b"another key of the same account").decode()
ASKS = {
    "exists": lambda: default_storage.exists(BLOB),
    "size": lambda: default_storage.size(BLOB),
    "time": lambda: default_storage.get_modified_time(BLOB),
    "open": lambda: default_storage.open(BLOB),
    "delete": lambda: default_storage.delete(BLOB),
    "save": lambda: default_storage.save(BLOB, ContentFile(b"x")),
    "listdir": lambda: default_storage.listdir("documents"),
    "walk": lambda: list(storage.files.walk("documents")),
    "link": lambda: storage.files.link(BLOB, "attachment", "text/plain", seconds=300),
    "is_public": lambda: storage.files.is_public(),
}
every_ask = pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS)


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(module, "READ_SECONDS", 0.3)


@pytest.fixture
def gate(blobs, azurite, settings):
    """A proxy for the container of the test that forwards everything at first."""
    with Gate(azurite.endpoint) as gate:
        gate.fault = lambda method, path: None
        settings.STORAGES = storages(connection_string(gate.address), settings.ADE_AZURE_CONTAINER)
        yield gate
        default_storage.service_client.close()
        settings.STORAGES = storages(azurite.connection(), settings.ADE_AZURE_CONTAINER)


@every_ask
@pytest.mark.parametrize("way", WAYS)
def test_a_service_that_does_not_work_is_an_os_error_at_once(ask, way, settings, impatient):
    with WAYS[way]() as address:
        settings.STORAGES = storages(connection_string(address), "documents")
        started = time.monotonic()

        with pytest.raises(OSError, match="the blob service ") as failed:
            ask()
        default_storage.service_client.close()

    # If the client retried, its first pause would take 15 seconds.
    assert time.monotonic() - started < 14
    assert not isinstance(failed.value, FileNotFoundError)
    words = {"refuses": "cannot be reached", "hangs": "did not answer in time", "fails": "answered with 500"}
    assert words[way] in failed.value.strerror


@every_ask
def test_a_container_that_is_not_there_is_no_missing_file(ask, azurite, settings):
    settings.STORAGES = storages(azurite.connection(), "nowhere")

    with pytest.raises(OSError, match="the container does not exist") as failed:
        ask()
    default_storage.service_client.close()

    assert not isinstance(failed.value, FileNotFoundError)


@every_ask
def test_a_wrong_key_is_told(ask, azurite, blobs, settings):
    settings.STORAGES = storages(azurite.connection(OTHER_KEY), settings.ADE_AZURE_CONTAINER)

    with pytest.raises(PermissionError) as failed:
        ask()
    default_storage.service_client.close()
    settings.STORAGES = storages(azurite.connection(), settings.ADE_AZURE_CONTAINER)

    assert failed.value.strerror == "the blob service refuses access (403 AuthorizationFailure)"


@every_ask
@pytest.mark.parametrize("way", WAYS)
def test_no_key_and_no_link_is_in_what_is_said_of_a_failure(ask, way, settings, caplog, impatient):
    caplog.set_level("DEBUG")
    signed = "SharedAccessSignature=sv=2024-11-04&ss=b&srt=sco&sp=rwdl&se=2030-01-01T00:00:00Z&sig=SECRETSIGNATURE"
    with WAYS[way]() as address:
        for connection in (connection_string(address), f"AccountName=ade;BlobEndpoint={address};{signed}"):
            settings.STORAGES = storages(connection, "documents")
            with pytest.raises(OSError, match="the blob service ") as failed:
                ask()
            default_storage.service_client.close()

            said = "".join(traceback.format_exception(failed.value)) + repr(failed.value) + caplog.text
            assert KEY not in said
            assert "sig=" not in said
            assert "SECRETSIGNATURE" not in said


def test_a_blob_that_another_has_made_meanwhile_stays(blobs, monkeypatch):
    blobs.save(BLOB, ContentFile(b"first"))
    monkeypatch.setattr(module.Blobs, "exists", lambda storage, name: False)

    for content in (b"second", bytes(9 << 20)):
        with pytest.raises(FileExistsError):
            blobs.save(BLOB, ContentFile(content))

    with blobs.open(BLOB) as file:
        assert file.read() == b"first"


def test_what_is_too_large_is_noticed_on_the_way_and_never_there(db, workspace, blobs, settings):
    settings.ADE_MAX_UPLOAD_BYTES = 10_000_000
    data = PNG[:-12] + bytes(20_000_000) + PNG[-12:]

    with pytest.raises(Refused, match="larger than the limit of 10,000,000 bytes"):
        intake.receive(workspace, io.BytesIO(data), "scan.png", "", "olga")

    assert stored_files() == []


def test_what_cannot_be_read_on_the_way_is_never_there(blobs):
    class Breaking(ContentFile):
        def chunks(self, chunk_size=None):
            yield bytes(4 << 20)
            yield bytes(4 << 20)
            raise OSError(5, "Input/output error")

    with pytest.raises(OSError, match="Input/output error"):
        blobs.save(BLOB, Breaking(b""))

    assert stored_files() == []


def test_nobody_is_told_of_it_as_a_page(blobs):
    class Sent(ContentFile):
        content_type = "text/html"

    blobs.save("documents/page.html", Sent(b"<script>"))

    properties = blobs.client.get_blob_client("documents/page.html").get_blob_properties()
    assert properties.content_settings.content_type == "application/octet-stream"


def test_a_container_that_strangers_can_read_is_noticed(azurite, blobs):
    assert not blobs.is_public()

    blobs.client.set_container_access_policy(signed_identifiers={}, public_access="blob")

    assert blobs.is_public()


def test_the_keys_of_a_folder_come_a_page_at_a_time(gate, monkeypatch):
    monkeypatch.setattr(module, "PAGE_KEYS", 2)
    keys = [default_storage.save(f"documents/{number}", ContentFile(b"x")) for number in range(7)]
    gate.seen.clear()

    walk = storage.files.walk("documents")

    assert [next(walk) for _ in range(3)] == keys[:3]
    assert len(gate.seen) == 2
    assert list(walk) == keys[3:]
    assert len(gate.seen) == 4


def test_a_short_file_is_stored_in_two_requests(gate):
    default_storage.save(BLOB, ContentFile(b"x" * 1_000_000))

    assert [method for method, _ in gate.seen] == ["HEAD", "PUT"]


def test_an_answer_that_breaks_off_is_told(gate):
    default_storage.save(BLOB, ContentFile(b"x" * 1000))
    gate.fault = lambda method, path: "break" if method == "GET" else None
    gate.seen.clear()

    with pytest.raises(OSError, match="the blob service cut off its answer"):
        default_storage.open(BLOB)

    # The client itself retries when a connection breaks in the middle of a block.
    assert len(gate.seen) <= 3


MEASURED = """
import io, json, shutil
import django
django.setup()
from django.core.files import File
from django.core.files.storage import default_storage
from documents.intake import HashingFile

def peak():
    (line,) = [line for line in open("/proc/self/status") if line.startswith("VmHWM:")]
    return int(line.split()[1]) // 1024

class Zeros(io.RawIOBase):
    left = 100 << 20
    def read(self, size=-1):
        data = bytes(min(size, self.left))
        self.left -= len(data)
        return data

default_storage.save("documents/warm", File(io.BytesIO(b"x"), "warm"))
default_storage.open("documents/warm").close()
before = peak()
default_storage.save("documents/large", HashingFile(Zeros(), "large"))
stored = peak()
with default_storage.open("documents/large") as source, open("/dev/null", "wb") as copy:
    shutil.copyfileobj(source, copy, 1 << 20)
    size = source.size
print(json.dumps({"before": before, "stored": stored, "copied": peak(), "size": size}))
"""


def test_a_file_of_a_hundred_megabytes_is_never_in_memory(blobs, azurite):
    ended = subprocess.run(
        [sys.executable, "-c", MEASURED],
        cwd=settings.BASE_DIR,
        env=os.environ
        | {
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "ADE_STORAGE": "azure",
            "ADE_AZURE_STORAGE_CONNECTION": azurite.connection(),
            "ADE_AZURE_CONTAINER": settings.ADE_AZURE_CONTAINER,
        },
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == 0, ended.stderr
    measured = json.loads(ended.stdout)
    assert measured["size"] == 100 << 20
    assert measured["copied"] - measured["before"] < 40, measured
