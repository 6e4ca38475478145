"""Checks the database before a web process starts."""

import sys
from threading import Thread

from django.db import Error, connection

from work import schema

# With this exit code, gunicorn stops instead of restarting the process.
APP_LOAD_ERROR = 4


def refuse_an_older_schema() -> None:
    """Exit if migrations are missing, because some pages would fail.

    Start even if the database is unavailable, because each request handles that.
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

    # Use a separate thread and connection, because this module may be imported inside an event loop.
    thread = Thread(target=check)
    thread.start()
    thread.join()
    if reasons:
        sys.stderr.write(f"The web server does not start: {reasons[0]}, then start again.\n")
        sys.exit(APP_LOAD_ERROR)
