"""gunicorn as it is, with streams that do all that they do after seconds."""

import os
from importlib import import_module

from config import server
from config.server import (  # noqa: F401  # what gunicorn reads are the names of a module
    asgi_lifespan,
    control_socket_disable,
    graceful_timeout,
    logconfig_dict,
    timeout,
    worker_class,
    workers,
    wsgi_app,
)


def post_worker_init(worker):
    server.post_worker_init(worker)
    # It has models; before Django is set up, nobody can import it.
    following = import_module("api.streams.following")
    for name in ("LONGEST_SECONDS", "HEARTBEAT_SECONDS", "CHECK_SECONDS"):
        setattr(following, name, float(os.environ.get(f"TEST_{name}", getattr(following, name))))
