"""Packages that a test creates in a folder that replaces a package index."""

import base64
import hashlib
import io
import tarfile
import zipfile

ABOUT = "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {tag}\n"


def put_wheel(index, name, version="1.0", *, requires=(), more=None, unlisted=(), tag="py3-none-any"):
    """Write a wheel with a module of that name that has a VERSION, and `more` files; RECORD does not list the
    `unlisted` ones.
    """
    told = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f"VERSION = {version!r}\n",
        **{path.format(told=told): text for path, text in (more or {}).items()},
        f"{told}/METADATA": ABOUT.format(name=name, version=version)
        + "".join(f"Requires-Dist: {r}\n" for r in requires),
        f"{told}/WHEEL": WHEEL.format(tag=tag),
    }
    record = [
        f"{path},sha256={_digest(text)},{len(text.encode())}" for path, text in files.items() if path not in unlisted
    ]
    files[f"{told}/RECORD"] = "\n".join([*record, f"{told}/RECORD,,", ""])
    path = index / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for each, text in files.items():
            wheel.writestr(zipfile.ZipInfo(each), text)
    return path


def put_sdist(index, name, version="1.0", *, setup=""):
    path = index / f"{name}-{version}.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for each, text in {"setup.py": setup, "PKG-INFO": ABOUT.format(name=name, version=version)}.items():
            entry = tarfile.TarInfo(f"{name}-{version}/{each}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return path


def _digest(text):
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
