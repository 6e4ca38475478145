import http.client
import os
import re
import signal
import socket
import subprocess
import sys
from argparse import ArgumentTypeError
from uuid import uuid4

import psutil
import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command

from config.demo import demo_user, new_password
from config.management.commands.up import (
    Command,
    listening_socket,
    only_one_here,
    port_number,
    prepare_storage,
    refuse_strangers,
)
from tests.azurite import connection_string, storages
from tests.documents.faulty import refusing
from tests.stepping import DEADLINE_SECONDS, until

pytestmark = pytest.mark.edge


def welcome(**options):
    return Command().welcome("127.0.0.1", 8000, **{"reset_password": False} | options)


def password_in(text):
    return re.search(r"password  (.+)", text).group(1)


@pytest.mark.django_db
def test_the_password_is_shown_once():
    demo_user()

    first, second = password_in(welcome()), password_in(welcome())

    assert User.objects.get(username="demo").check_password(first)
    assert second == "was printed at the first start; `manage.py up --reset-password` creates a new one"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", ""])  # noqa: S104  # no socket is bound to it
def test_with_debug_on_other_machines_are_not_let_in(settings, host):
    settings.DEBUG = True

    with pytest.raises(CommandError, match="while DEBUG is on"):
        call_command("up", host=host)


@pytest.mark.parametrize(("host", "debug"), [("127.0.0.1", True), ("localhost", True), ("::1", True), ("::", False)])
def test_this_machine_is_always_let_in(settings, host, debug):
    settings.DEBUG = debug

    refuse_strangers(host)


@pytest.mark.django_db
def test_a_new_password_can_be_asked_for():
    old = new_password(demo_user())

    new = password_in(welcome(reset_password=True))

    user = User.objects.get(username="demo")
    assert user.check_password(new)
    assert not user.check_password(old)


@pytest.mark.django_db
def test_a_first_start_that_was_broken_off_loses_no_password():
    assert not demo_user().has_usable_password()

    password = password_in(welcome())

    assert demo_user().check_password(password)


def test_a_container_is_made_at_the_first_start(azurite, settings):
    settings.STORAGES = storages(azurite.connection(), f"test-{uuid4().hex}")

    for _ in range(2):
        prepare_storage()

    assert not default_storage.is_public()
    default_storage.client.delete_container()
    default_storage.service_client.close()


def test_a_storage_that_is_away_is_told(settings):
    with refusing() as address:
        settings.STORAGES = storages(connection_string(address), "documents")

        with pytest.raises(
            CommandError, match="The storage for files cannot be used: the blob service cannot be reached"
        ):
            prepare_storage()


@pytest.mark.django_db
def test_the_demo_user_administers():
    assert (demo_user().is_staff, demo_user().is_superuser) == (True, True)


def test_the_next_free_port_is_taken():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with listening_socket("127.0.0.1", port) as listener:
            assert port < listener.getsockname()[1] <= port + 100


def test_an_address_that_is_not_ours_is_a_clear_error():
    # 192.0.2.1 is reserved for documentation; no machine has it.
    with pytest.raises(CommandError, match=r"No port from 8000 to 8099 on 192\.0\.2\.1 can be used"):
        listening_socket("192.0.2.1", 8000)


def test_behind_the_last_port_there_is_none():
    with pytest.raises(CommandError, match=r"No port from 65500 to 65535 on 192\.0\.2\.1 can be used: .* with --port"):
        listening_socket("192.0.2.1", 65500)


@pytest.mark.parametrize("text", ["0", "65536", "-1", "http", "1_000", ""])
def test_what_is_no_port_is_refused(text):
    with pytest.raises(ArgumentTypeError, match="the port must be a number from 1 to 65535, not"):
        port_number(text)


def test_a_second_start_beside_the_first_is_refused(tmp_path):
    lock = tmp_path / "up.lock"
    with only_one_here(lock), pytest.raises(CommandError, match="already running here"), only_one_here(lock):
        pass
    with only_one_here(lock):
        pass


@pytest.fixture
def up(tmp_path):
    environment = {
        "PATH": os.environ["PATH"],
        "ADE_VAR_DIR": str(tmp_path),
        "ADE_ENV_FILE": os.devnull,
        "ADE_DRAIN_SECONDS": "5",
    }
    process = subprocess.Popen(
        [sys.executable, "manage.py", "up"],
        cwd=settings.BASE_DIR,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def read_welcome(process):
    lines = []
    while not lines or "database  " not in lines[-1]:
        line = process.stdout.readline()
        assert line, "".join(lines)
        lines.append(line)
    return "".join(lines)


def status_of(address, path):
    site = http.client.HTTPConnection(address, timeout=DEADLINE_SECONDS)
    site.request("GET", path)
    status = site.getresponse().status
    site.close()
    return status


def lives(process):
    """Return whether a process is running; a zombie is not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.long
def test_everything_starts_answers_and_stops(up):
    said = read_welcome(up)
    address = re.search(r"http://(\S+)/", said.split("address")[1]).group(1)
    children = psutil.Process(up.pid).children(recursive=True)

    assert status_of(address, "/admin/login/") == 200
    assert status_of(address, "/static/admin/css/base.css") == 200
    assert len(password_in(said)) >= 16

    up.send_signal(signal.SIGINT)
    out, _ = up.communicate(timeout=DEADLINE_SECONDS)

    assert up.returncode == 0, out
    assert not [child for child in children if lives(child)]


@pytest.mark.long
def test_nothing_outlives_a_killed_up(up):
    read_welcome(up)
    children = psutil.Process(up.pid).children(recursive=True)
    assert len(children) >= 3

    up.kill()

    until(lambda: not any(lives(child) for child in children))
