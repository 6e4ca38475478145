"""How gunicorn serves the web: `gunicorn -c python:config.server --bind ADDRESS`."""

from typing import Any

from api.streams import stopping
from config import settings

wsgi_app = "config.asgi:application"
worker_class = "asgi"
workers = settings.WEB_CONCURRENCY
# Here, and not in the settings: before the processes of the web load them, and of nobody else.
settings.DATABASES["default"] = settings.pooled(settings.DATABASES["default"])
# Django refuses the lifespan protocol.
asgi_lifespan = "off"
# Whose word is taken for whether people came with https; otherwise it is what FORWARDED_ALLOW_IPS says.
if settings.ADE_PROXIES:
    forwarded_allow_ips = ",".join(settings.ADE_PROXIES)
graceful_timeout = 5
timeout = 60
# It would lie in the home directory, one for all installations of a user.
control_socket_disable = True
logconfig_dict = settings.LOGGING | {
    "loggers": {
        "gunicorn.error": {"level": "INFO", "handlers": [], "propagate": True},
        # Pages that follow what happens would fill the log with their own requests.
        "gunicorn.access": {"level": "WARNING", "handlers": [], "propagate": True},
    }
}


def post_worker_init(worker: Any) -> None:
    # Streams that are open end by themselves; otherwise all of them would be waited for.
    stopping.asks.append(lambda: not worker.alive)
