"""ADE as deployed: gunicorn on the database of the test, with workers."""

import socket
import urllib.error
import urllib.request

from tests.stepping import until


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def served(programs, config="config.server", **environment):
    """Start the server and yield its address as soon as it answers."""
    address = f"http://127.0.0.1:{(port := free_port())}"
    server = programs.start(
        *("-m", "gunicorn", "-c", f"python:{config}", "--bind", f"127.0.0.1:{port}"),
        **({"WEB_CONCURRENCY": 1} | environment),
    )
    until(lambda: answers(address) or not server.is_alive(), seconds=60, every=0.1)
    assert server.is_alive(), server.logged()
    return address


def answers(address):
    try:
        with urllib.request.urlopen(f"{address}/api/v1/openapi.json", timeout=300):
            return True
    except OSError:
        return False
