"""Finds the type of the file system that contains a file."""

import os
import re
from pathlib import Path

NETWORK_FILE_SYSTEMS = frozenset(
    {
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "9p", "ncpfs", "ceph", "glusterfs", "lustre", "beegfs"),
        *("gpfs", "ocfs2", "gfs2", "fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.s3fs", "fuse.rclone", "davfs"),
    }
)
MOUNTS = Path("/proc/self/mountinfo")


def file_system_of(path: str, mounts: str | None = None) -> str | None:
    """Return Linux's name for the type, or None if it is unknown."""
    if mounts is None:
        if not MOUNTS.exists():
            return None
        mounts = MOUNTS.read_text(errors="surrogateescape")
    best, kind = "", None
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        point = _unescaped(before.split()[4])
        # A later mount at the same point hides the earlier one.
        if len(point) >= len(best) and os.path.commonpath([point, path]) == point:
            best, kind = point, after.split()[0]
    return kind


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)
