"""The check before the web starts."""

import sys
from threading import Thread

from django.db import Error, connection

from work import schema

# With this exit code gunicorn stops instead of restarting the process.
APP_LOAD_ERROR = 4


def refuse_an_older_schema() -> None:
    """Exit if migrations are missing, because single pages would fail.

    An unavailable database is no reason not to start: each request handles that.
    """
    reasons: list[str] = []

    def check() -> None:
        try:
            if reason := schema.missing_migrations():
                reasons.append(reason)
        except Error:
            pass
        finally:
            connection.close()

    # A separate thread and connection, because the importing code may run in an event loop.
    thread = Thread(target=check)
    thread.start()
    thread.join()
    if reasons:
        sys.stderr.write(f"The web server does not start: {reasons[0]}, then start again.\n")
        sys.exit(APP_LOAD_ERROR)
