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
    found: list[str] = []
    # A separate thread and connection, because the importing code may run in an event loop.
    asking = Thread(target=_ask, args=[found])
    asking.start()
    asking.join()
    if found:
        sys.stderr.write(f"The web server does not start: {found[0]}, then start again.\n")
        sys.exit(APP_LOAD_ERROR)


def _ask(found: list[str]) -> None:
    try:
        if missing := schema.behind():
            found.append(missing)
    except Error:
        pass
    finally:
        connection.close()
