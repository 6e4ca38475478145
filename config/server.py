"""gunicorn's configuration: `gunicorn -c python:config.server --bind ADDRESS`."""

from importlib import import_module
from typing import Any

from django.db import connection

from api.streams import stopping
from config import databases, settings

wsgi_app = "config.asgi:application"
worker_class = "config.connections.Worker"
workers = settings.WEB_CONCURRENCY
# Only for web processes, and set here, before they load the settings.
settings.DATABASES["default"] = databases.pooled(settings.DATABASES["default"], settings.ADE_WEB_STATEMENT_SECONDS)
# Django refuses the lifespan protocol.
asgi_lifespan = "off"
# The proxies that are trusted to report https. Without the setting, FORWARDED_ALLOW_IPS applies.
if settings.ADE_PROXIES:
    forwarded_allow_ips = ",".join(settings.ADE_PROXIES)
graceful_timeout = 5
timeout = 60
# It would be in the home directory, shared by all installations of a user.
control_socket_disable = True
# For operators who enable the access log: query strings may contain tokens or signatures of links.
access_log_format = '%(h)s %(l)s %(u)s %(t)s "%(m)s %(U)s %(H)s" %(s)s %(b)s'
logconfig_dict = settings.LOGGING | {
    "loggers": {
        "gunicorn.error": {"level": "INFO", "handlers": [], "propagate": True},
        # Live pages would fill the log with their requests.
        "gunicorn.access": {"level": "WARNING", "handlers": [], "propagate": True},
    }
}


def post_worker_init(worker: Any) -> None:
    # Open streams must end by themselves; otherwise a shutdown would wait for all of them.
    stopping.stop_checks.append(lambda: not worker.alive)
    # It imports models, which is only possible after django.setup().
    import_module("config.token_checks").warn_of_demo_user()
    connection.close()
