"""Reads and writes configurations as packages. A package is a folder or zip file with a manifest, requirements and the
configuration's own files.

This module does not use the database; `builds/configurations.py` does. `builds/contents.py` has the rules for packages.
"""

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from builds import archives, contents, fingerprint, folders
from builds.contents import MANIFEST, REQUIREMENTS, BadPackage, shown

__all__ = ["BadPackage", "Package", "problems_of", "read", "read_directory", "read_zip", "write_directory", "write_zip"]

_TABLE = "configuration"
# Key of the manifest -> default. ADE does not use the description; it is for people who read the manifest.
_KEYS: dict[str, str | bool] = {
    **{"name": "unnamed", "entry_point": "main", "python": "", "description": ""},
    "publish": False,
}


@dataclass(frozen=True, slots=True)
class Package:
    name: str
    entry_point: str
    requirements: str
    python_version: str
    files: Mapping[str, str]
    # Whether runs publish their findings as fields of their document. It does not change the environment.
    publish: bool = False

    def snapshot(self) -> fingerprint.Snapshot:
        return {
            "entry_point": self.entry_point,
            "requirements": self.requirements,
            "python_version": self.python_version,
            "files": dict(self.files),
        }

    @property
    def contents_sha256(self) -> str:
        return fingerprint.of_contents(self.snapshot())


def read(path: Path) -> Package:
    """Read a package from a folder or a zip file. Raise BadPackage if it is not acceptable."""
    if path.is_dir():
        return read_directory(path)
    if not path.is_file():
        raise BadPackage([f"{str(path)!r} is neither a folder nor a zip file."])
    with path.open("rb") as file:
        return read_zip(file)


def read_directory(path: Path) -> Package:
    return _package(*folders.read(path))


def read_zip(file: IO[bytes]) -> Package:
    return _package(*archives.read(file))


def write_directory(package: Package, path: Path, *, force: bool = False) -> list[str]:
    """Write to a new or empty folder, or with `force` to any folder. Return the folder's other files, which stay."""
    return folders.write(_files_of(package), path, force=force)


def write_zip(package: Package, file: IO[bytes]) -> None:
    """Write a zip file whose bytes depend only on the package."""
    archives.write(_files_of(package), file)


def problems_of(package: Package) -> Iterator[str]:
    yield from contents.problems_of_name(package.name)
    yield from contents.problems_of_entry_point(package.entry_point)
    yield from contents.problems_of_python_version(package.python_version)
    yield from contents.problems_of_requirements(package.requirements)
    yield from contents.problems_of_files(dict(package.files))


def _files_of(package: Package) -> dict[str, bytes]:
    if problems := list(problems_of(package)):
        raise BadPackage(problems)
    values: dict[str, Any] = {
        "name": package.name,
        "entry_point": package.entry_point,
        "python": package.python_version,
        "publish": package.publish,
    }
    # Without escapes for non-ASCII characters, texts and booleans of JSON are also valid TOML.
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in values.items() if value]
    texts = {MANIFEST: "".join([f"[{_TABLE}]\n", *lines]), REQUIREMENTS: package.requirements, **package.files}
    if not package.requirements:
        del texts[REQUIREMENTS]
    return {path: text.encode() for path, text in texts.items()}


def _package(files: Mapping[str, bytes], problems: list[str]) -> Package:
    texts: dict[str, str] = {}
    for path, content in files.items():
        try:
            texts[path] = content.decode()
        except UnicodeDecodeError as error:
            byte = content[error.start]
            problems.append(f"{shown(path)} is not UTF-8 text: it has the byte 0x{byte:02x} at {error.start}.")
    manifest = texts.pop(MANIFEST, None)
    if MANIFEST not in files:
        deeper = sorted(path for path in files if path.endswith(f"/{MANIFEST}"))
        problems.append(
            f"{MANIFEST} must be at the top of the package, not at {shown(deeper[0])}: pack the content of that folder."
            if deeper
            else f"The package has no {MANIFEST} at its top."
        )
    values: dict[str, Any] = _KEYS | (_read_manifest(manifest, problems) if manifest is not None else {})
    package = Package(
        name=values["name"],
        entry_point=values["entry_point"],
        requirements=texts.pop(REQUIREMENTS, ""),
        python_version=values["python"],
        files=texts,
        publish=values["publish"],
    )
    problems += problems_of(package)
    if problems:
        raise BadPackage(problems)
    return package


def _read_manifest(manifest: str, problems: list[str]) -> dict[str, str | bool]:
    """Return the manifest's valid values. Add a problem for each invalid value."""
    try:
        if (size := len(manifest.encode())) > contents.MOST_MANIFEST_BYTES:
            raise ValueError(f"it has {size} bytes, and at most {contents.MOST_MANIFEST_BYTES} are allowed")
        # Some editors write a byte order mark, which TOML does not allow.
        data = tomllib.loads(manifest.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        reason = "its values are nested too deeply" if isinstance(error, RecursionError) else str(error)
        problems.append(f"{MANIFEST} is not valid TOML: {reason}.")
        return {}
    table = data.get(_TABLE)
    if not isinstance(table, dict):
        other = "" if table is None else f", but another value named {_TABLE}"
        problems.append(f"{MANIFEST} has no table [{_TABLE}]{other}.")
        return {}
    for key in [*(key for key in data if key != _TABLE), *(key for key in table if key not in _KEYS)]:
        problems.append(f"Unknown key {shown(key)} in {MANIFEST}. Known keys of [{_TABLE}]: {', '.join(_KEYS)}.")
    for key, default in _KEYS.items():
        if not isinstance(table.get(key, default), type(default)):
            kind = "a text in quotes" if isinstance(default, str) else "true or false, without quotes"
            problems.append(f"{key} in {MANIFEST} must be {kind}, not {shown(table[key])}.")
    if "name" not in table:
        problems.append(f"The table [{_TABLE}] in {MANIFEST} has no name.")
    return {key: table[key] for key in table if key in _KEYS and isinstance(table[key], type(_KEYS[key]))}
