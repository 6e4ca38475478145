import re
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from builds import environments
from tests.builds.making import built, log_of, path_of, pinned, ran, run_of, step, value_of, work_on
from tests.builds.wheels import put_wheel
from tests.factories import events_of

pytestmark = [pytest.mark.long, pytest.mark.django_db]

EAT = step("import apple", "context.field('apple', apple.VERSION)")
TRIES = "the package index is unreachable: trying the cached packages"


class Site(SimpleHTTPRequestHandler):
    def end_headers(self):
        # Otherwise uv would use its cached answer for minutes.
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def log_message(self, *args):
        pass


class Server:
    """A package index for pip and uv, served from files, which a test can stop."""

    def __init__(self, folder):
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Site, directory=folder))
        self.address = f"127.0.0.1:{self._server.server_address[1]}"
        self._folder = folder
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    def offer(self, name, version="1.0"):
        project = self._folder / name
        project.mkdir(parents=True, exist_ok=True)
        put_wheel(project, name, version)
        links = "".join(f'<a href="{wheel.name}">{wheel.name}</a>\n' for wheel in project.glob("*.whl"))
        (project / "index.html").write_text(f"<!DOCTYPE html><html><body>{links}</body></html>")

    def end(self):
        if self._thread.is_alive():
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()


@pytest.fixture
def server(host, tmp_path, monkeypatch):
    server = Server(tmp_path / "site")
    monkeypatch.setenv("UV_DEFAULT_INDEX", f"http://{server.address}")
    # The tests should not wait for uv's retries.
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    server.offer("apple")
    yield server
    server.end()


def test_when_the_index_is_away_the_cache_will_do(server):
    first = built(EAT, requirements="apple")
    server.end()

    build = built(EAT, requirements="apple  # another fingerprint")

    assert (build.status, build.error_message) == ("ready", "")
    assert build.fingerprint != first.fingerprint
    assert pinned(build) == {"apple": "1.0"}
    assert TRIES in log_of(build)
    assert value_of(ran(build), "apple") == "1.0"


def test_when_the_index_is_away_and_the_cache_is_cold_it_is_told_that_it_is_away(server):
    server.end()

    build = built(EAT, requirements="apple")

    assert (build.status, build.failure_type) == ("failed", "BUILD_FAILED")
    assert build.error_message.startswith("The requirements cannot be met: ")
    assert server.address in build.error_message
    assert TRIES in log_of(build)


def test_what_the_index_does_not_have_is_not_looked_for_in_the_cache(server):
    build = built(requirements="pear")

    assert "pear was not found in the package registry" in build.error_message
    assert TRIES not in log_of(build)


def test_a_host_that_is_offline_does_not_ask(server, settings):
    built(EAT, requirements="apple")
    server.offer("apple", "2.0")
    settings.ADE_BUILD_OFFLINE = True

    build = built(EAT, requirements="apple>=1")

    assert (build.status, pinned(build)) == ("ready", {"apple": "1.0"})


def test_a_host_that_is_offline_says_what_is_missing(server, settings):
    settings.ADE_BUILD_OFFLINE = True

    build = built(EAT, requirements="apple")

    assert build.status == "failed"
    assert "apple" in build.error_message
    assert re.search("cache|offline|network was disabled", build.error_message, re.IGNORECASE)


def test_without_requirements_nobody_asks_an_index(server, settings):
    server.end()

    assert built().status == "ready"


def test_an_environment_is_made_again_from_the_cache(server):
    build = built(EAT, requirements="apple")
    environments.erase(path_of(build))
    server.end()

    run = work_on(run_of(build))

    assert (run.status, run.error_message) == ("succeeded", "")
    assert environments.exists(path_of(build).name)


def test_a_password_for_the_index_is_nowhere_to_be_read(server, monkeypatch):
    monkeypatch.setenv("UV_DEFAULT_INDEX", f"http://olga:canary@{server.address}")
    ready = built(EAT, requirements="apple")
    server.end()
    failed = built(requirements="pear")

    assert (ready.status, failed.status) == ("ready", "failed")
    said = [build.error_message + build.lock + str([*events_of(build).values()]) for build in (ready, failed)]
    assert "canary" not in "".join(said)
    assert all(b"canary" not in path.read_bytes() for path in path_of(ready).rglob("*") if path.is_file())
