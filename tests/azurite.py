"""A blob service for the tests: Azurite, in memory, on its own port, for the duration of the test session."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen
from uuid import uuid4

import pytest
from django.conf import settings
from django.core.files.storage import default_storage
from django.http import StreamingHttpResponse

ACCOUNT = "ade"
KEY = "QURFIHRlc3RzIGtleSwgb2Ygbm8gdXNlIGVsc2V3aGVyZQ=="
PROGRAM = "azurite-blob"
# Azurite implements an older version of the API than the client requests.
FLAGS = ["--skipApiVersionCheck", "--inMemoryPersistence", "--disableTelemetry", "--silent"]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "ade-ci", "node_modules", ".bin")


class Azurite:
    def __init__(self, path, home):
        # The launcher ends it together with the test process, however that ends.
        launch = [sys.executable, "-m", "config.launch", str(os.getpid()), path]
        self._process = subprocess.Popen(
            [*launch, "--blobHost", "127.0.0.1", "--blobPort", "0", *FLAGS],
            cwd=settings.BASE_DIR,
            env={"PATH": os.environ["PATH"], "HOME": str(home), "AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.endpoint = f"{self._address()}/{ACCOUNT}"

    def connection(self, key=KEY):
        return connection_string(self.endpoint, key)

    def end(self):
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()

    def _address(self):
        said = []
        for line in self._process.stdout:
            said.append(line)
            if found := re.search(r"listens on (http://\S+)", line):
                return found[1]
        self.end()
        raise AssertionError("".join(said))


def connection_string(endpoint, key=KEY):
    return f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={key};BlobEndpoint={endpoint};"


def program():
    if named := os.environ.get("ADE_AZURITE"):
        return named
    return shutil.which(PROGRAM) or shutil.which(PROGRAM, path=CACHE)


def storages(connection, container):
    """Return the storage settings as ADE_STORAGE=azure makes them."""
    options = {"connection_string": connection, "azure_container": container}
    return settings.STORAGES | {"default": {"BACKEND": "documents.blobs.Blobs", "OPTIONS": options}}


def stored_files():
    """Return the keys of all files in the default storage."""
    if hasattr(default_storage, "client"):
        return list(default_storage.client.list_blob_names())
    root = Path(default_storage.location)
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def followed(answer):
    """Follow a redirect as a browser does."""
    if answer.status_code != 302:
        return answer
    with urlopen(answer["Location"]) as found:
        return StreamingHttpResponse([found.read()], status=found.status, headers=dict(found.headers))


@pytest.fixture(scope="session")
def azurite(tmp_path_factory):
    path = program()
    if path is None:
        pytest.skip(f"{PROGRAM} is not installed; set ADE_AZURITE to its path")
    azurite = Azurite(path, tmp_path_factory.mktemp("azurite"))
    yield azurite
    azurite.end()


@pytest.fixture
def blobs(azurite, settings):
    """Make a container of the test's own the default storage."""
    settings.ADE_STORAGE, settings.ADE_AZURE_CONTAINER = "azure", f"test-{uuid4().hex}"
    settings.STORAGES = storages(azurite.connection(), settings.ADE_AZURE_CONTAINER)
    default_storage.prepare()
    yield default_storage
    default_storage.client.delete_container()
    default_storage.service_client.close()


# For a test of only one of them.
local_only = pytest.mark.parametrize("each_storage", ["local"], indirect=True)
azure_only = pytest.mark.parametrize("each_storage", ["azure"], indirect=True)


@pytest.fixture(params=["local", pytest.param("azure", marks=pytest.mark.long)])
def each_storage(request, settings, tmp_path):
    """Run the test once with a directory and once with a container."""
    settings.MEDIA_ROOT = tmp_path / "media"
    if request.param == "azure":
        request.getfixturevalue("blobs")
    return request.param
