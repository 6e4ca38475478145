"""Recognises errors of SQL Server. The driver passes on their texts but not their numbers, and raises some of them as a
class that does not fit. The texts are English, because each connection asks for that (see `base.py`).
"""

import re
from types import TracebackType
from typing import Any

from django.db import DataError, IntegrityError, OperationalError
from django.db.utils import DatabaseErrorWrapper

DEADLOCK, LOCKED, CONFLICT = 1205, 1222, 3960
# Error number -> part of its text.
TEXTS = {
    DEADLOCK: "chosen as the deadlock victim",
    LOCKED: "Lock request time out period exceeded",
    CONFLICT: "Snapshot isolation transaction aborted due to update conflict",
    4060: "Cannot open database",
    18456: "Login failed for user",
}
NO_LIBRARY, TIMED_OUT = "Failed to load the driver", "Query timeout expired"


class CannotConnect(OperationalError):
    """No connection could be opened. The message is for operators."""


def number_of(error: BaseException) -> int | None:
    """Return the number of one of the errors above, or None for any other error."""
    # These errors quote values, which might contain one of the texts.
    if type(error).__name__ in (IntegrityError.__name__, DataError.__name__):
        return None
    text = str(error)
    return next((number for number, part in TEXTS.items() if part in text), None)


def is_timeout(error: BaseException) -> bool:
    """Return whether the driver stopped a statement that took too long."""
    return type(error).__name__ == OperationalError.__name__ and TIMED_OUT in str(error)


def sentence(error: BaseException, server: str) -> str:
    """Return a message about a failed connection."""
    text = str(getattr(error, "ddbc_error", "") or error)
    # Leave out who says it: "[Microsoft][SQL Server]".
    text = " ".join(re.sub(r"^(?:\[[^]]*\])+", "", text).split()).rstrip(".")
    if NO_LIBRARY in text:
        return "the driver for SQL Server cannot be loaded; on Debian and Ubuntu, install libltdl7 and libgssapi-krb5-2"
    return f"cannot connect to {server}: {text}"


class ErrorWrapper(DatabaseErrorWrapper):
    """Raises OperationalError for the errors above, whatever class the driver chose. Others keep their class."""

    def __init__(self, database: Any) -> None:
        super().__init__(database)
        self.database = database

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> Any:
        if isinstance(exc_value, self.database.Database.Error) and number_of(exc_value):
            self.database.errors_occurred = True
            raise OperationalError(*exc_value.args).with_traceback(traceback) from exc_value
        return super().__exit__(exc_type, exc_value, traceback)
