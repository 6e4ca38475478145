"""Lists the paths that child processes of ADE must not see."""

from pathlib import Path

from django.conf import settings
from django.db import connection


def places() -> list[Path]:
    """Return ADE's data directory, the database files and the settings files."""
    var, database = Path(settings.VAR_DIR), connection.settings_dict
    files = [settings.BASE_DIR / ".env", settings.BASE_DIR / settings.ENV["ADE_ENV_FILE"]]
    if connection.vendor == "sqlite":
        files += [Path(f"{database['NAME']}{beside}") for beside in ("", "-wal", "-shm")]
    return [var, *(file for file in dict.fromkeys(files) if file.is_file() and var not in file.parents)]
