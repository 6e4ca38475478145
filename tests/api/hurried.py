"""The gunicorn configuration of the product, with the timeouts of streams and connections shortened to seconds."""

import os
from importlib import import_module

from config import connections, server
from config.server import (  # noqa: F401  # gunicorn reads the names of this module
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
    # It has models, so it can only be imported after Django is set up.
    following = import_module("api.streams.following")
    hurry(following, "LONGEST_SECONDS", "HEARTBEAT_SECONDS", "CHECK_SECONDS")
    hurry(connections, "HEADER_SECONDS", "BODY_SECONDS", "WRITE_SECONDS")


def hurry(module, *names):
    for name in names:
        setattr(module, name, float(os.environ.get(f"TEST_{name}", getattr(module, name))))
