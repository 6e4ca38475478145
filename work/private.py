"""What no program that ADE starts for somebody has to see."""

from pathlib import Path

from django.conf import settings
from django.db import connection


def places() -> list[Path]:
    """The directory of ADE with all that it stores, the database, and the file of the settings; to be hidden."""
    var, database = Path(settings.VAR_DIR), connection.settings_dict
    files = [settings.BASE_DIR / ".env", settings.BASE_DIR / settings.ENV["ADE_ENV_FILE"]]
    if connection.vendor == "sqlite":
        files += [Path(f"{database['NAME']}{beside}") for beside in ("", "-wal", "-shm")]
    return [var, *(file for file in dict.fromkeys(files) if file.is_file() and var not in file.parents)]
