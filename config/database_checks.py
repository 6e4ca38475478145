"""The checks of `manage.py doctor` that only one kind of database needs."""

import os
import re
from pathlib import Path

from django.db import connection

from config.findings import Finding, fail, ok, warn
from work.sqlserver import needs

NETWORK_FILE_SYSTEMS = frozenset(
    {
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "9p", "ncpfs", "ceph", "glusterfs", "lustre", "beegfs"),
        *("gpfs", "ocfs2", "gfs2", "fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.s3fs", "fuse.rclone", "davfs"),
    }
)
MOUNTS = Path("/proc/self/mountinfo")


def sqlite_is_on_a_local_disk() -> Finding:
    path = os.path.realpath(connection.settings_dict["NAME"])
    kind = file_system_of(path)
    if kind in NETWORK_FILE_SYSTEMS:
        return fail(
            f"{path} is on {kind}, a network file system",
            "SQLite's locks are unreliable there, and rows may be lost. Use a local disk or PostgreSQL.",
        )
    return ok(f"{path} is on {kind or 'an unknown file system'}")


def file_system_of(path: str, mounts: str | None = None) -> str | None:
    """Return Linux's name for the type of file system that contains a file, or None if it is unknown."""
    if mounts is None:
        if not MOUNTS.exists():
            return None
        mounts = MOUNTS.read_text(errors="surrogateescape")
    best, kind = "", None
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        point = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), before.split()[4])
        # `>=`, because a later mount at the same point hides the earlier one.
        if len(point) >= len(best) and os.path.commonpath([point, path]) == point:
            best, kind = point, after.split()[0]
    return kind


def sqlite_mode() -> Finding:
    expected = {"journal_mode": "wal", "foreign_keys": "1"}
    with connection.cursor() as cursor:
        actual = {name: str(cursor.execute(f"PRAGMA {name}").fetchone()[0]) for name in expected}
    message = ", ".join(f"{name} is {value}" for name, value in actual.items())
    if actual != expected:
        return fail(message, "WAL and foreign keys must be on. config/databases.py sets both for every connection.")
    return ok(message)


def isolation() -> Finding:
    with connection.cursor() as cursor:
        cursor.execute("SHOW default_transaction_isolation")
        (level,) = cursor.fetchone()
    if level != "read committed":
        return warn(
            f"transactions are {level}",
            "ADE needs read committed; otherwise many writes are refused. Change default_transaction_isolation.",
        )
    return ok(f"transactions are {level}")


def sql_server_is_fit() -> Finding:
    found = needs.facts(connection)
    if lacks := list(needs.lacks(found)):
        return fail("; ".join(lack.message for lack in lacks), " ".join(lack.advice for lack in lacks))
    return ok(str(found))
