"""gunicorn's configuration: `gunicorn -c python:config.server --bind ADDRESS`."""

from importlib import import_module
from typing import Any

from django.db import connection

from api.streams import stopping
from config import databases, settings

wsgi_app = "config.asgi:application"
worker_class = "config.connections.Worker"
workers = settings.WEB_CONCURRENCY
# Only web processes have a connection pool. It must be set here, before they load the settings.
settings.DATABASES["default"] = databases.pooled(settings.DATABASES["default"], settings.ADE_WEB_STATEMENT_SECONDS)
# Django does not support the lifespan protocol.
asgi_lifespan = "off"
# gunicorn trusts these proxies to report whether a request came by https. Without ADE_PROXIES, FORWARDED_ALLOW_IPS
# applies.
if settings.ADE_PROXIES:
    forwarded_allow_ips = ",".join(settings.ADE_PROXIES)
graceful_timeout = 5
timeout = 60
# The control socket would be in the home directory, where all installations of a user would share it.
control_socket_disable = True
# Used if an operator enables the access log. It leaves out query strings, because they may contain tokens or signatures
# of links.
access_log_format = '%(h)s %(l)s %(u)s %(t)s "%(m)s %(U)s %(H)s" %(s)s %(b)s'
logconfig_dict = settings.LOGGING | {
    "loggers": {
        "gunicorn.error": {"level": "INFO", "handlers": [], "propagate": True},
        # Pages that update themselves would fill the log with their requests.
        "gunicorn.access": {"level": "WARNING", "handlers": [], "propagate": True},
    }
}


def post_worker_init(worker: Any) -> None:
    # Make open streams end by themselves when the worker stops. Otherwise a shutdown would wait for all of them.
    stopping.stop_checks.append(lambda: not worker.alive)
    # Imported here because it imports models, which is possible only after django.setup().
    import_module("config.token_checks").warn_of_demo_user()
    connection.close()
