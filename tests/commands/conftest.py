import io
import json
from dataclasses import dataclass

import pytest
from django.core.management import get_commands, load_command_class

from tests.factories import ConfigurationFactory
from tests.feeds.servers import server  # noqa: F401  # pytest finds fixtures by their names here


@dataclass
class Ended:
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def error(self):
        return json.loads(self.err)


@pytest.fixture
def manage(monkeypatch):
    """Return a function that runs a command in this process as the command line does, and returns how it ended."""
    # The command must not close the connection of the test.
    monkeypatch.setattr("work.operations.commands.connections.close_all", lambda: None)

    def run(noun, *arguments):
        command = load_command_class(get_commands()[noun], noun)
        out, err = io.StringIO(), io.StringIO()
        command.stdout._out, command.stderr._out = out, err
        code = 0
        try:
            command.run_from_argv(["manage.py", noun, *map(str, arguments)])
        except SystemExit as exit:
            code = exit.code or 0
        return Ended(code, out.getvalue(), err.getvalue())

    return run


@pytest.fixture
def other_invoices():
    return ConfigurationFactory(name="invoices")
