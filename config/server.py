"""How gunicorn serves the web: `gunicorn -c python:config.server --bind ADDRESS`."""

from config import settings

wsgi_app = "config.asgi:application"
worker_class = "asgi"
workers = settings.WEB_CONCURRENCY
# Django refuses the lifespan protocol.
asgi_lifespan = "off"
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
