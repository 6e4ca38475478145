"""Configurations as packages: a folder or zip file with a manifest, requirements and the configuration's own files.

This module does not use the database; `builds/configurations.py` does. The rules are in `builds/contents.py`.
"""

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from builds import archives, contents, fingerprint, folders
from builds.contents import MANIFEST, REQUIREMENTS, BadPackage, shown

__all__ = ["BadPackage", "Package", "problems_of", "read", "read_directory", "read_zip", "write_directory", "write_zip"]

_TABLE = "configuration"
# Key of the manifest -> default. The description is only for readers.
_KEYS = {"name": "unnamed", "entry_point": "main", "python": "", "description": ""}


@dataclass(frozen=True, slots=True)
class Package:
    name: str
    entry_point: str
    requirements: str
    python_version: str
    files: Mapping[str, str]

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
    """Read a package from a folder or a zip file. Raises BadPackage."""
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
    """Write to a new or empty folder, or with `force` to any. Return the other files in it, which stay."""
    return folders.write(_written(package), path, force=force)


def write_zip(package: Package, file: IO[bytes]) -> None:
    """Write a zip file whose bytes depend only on the package."""
    archives.write(_written(package), file)


def problems_of(package: Package) -> Iterator[str]:
    yield from contents.problems_of_name(package.name)
    yield from contents.problems_of_entry_point(package.entry_point)
    yield from contents.problems_of_python_version(package.python_version)
    yield from contents.problems_of_requirements(package.requirements)
    yield from contents.problems_of_files(dict(package.files))


def _written(package: Package) -> dict[str, bytes]:
    if problems := list(problems_of(package)):
        raise BadPackage(problems)
    texts = {MANIFEST: _manifest_of(package), REQUIREMENTS: package.requirements, **package.files}
    if not package.requirements:
        del texts[REQUIREMENTS]
    return {path: text.encode() for path, text in texts.items()}


def _manifest_of(package: Package) -> str:
    values = {"name": package.name, "entry_point": package.entry_point, "python": package.python_version}
    # A JSON string is also valid TOML, unless characters outside ASCII are escaped.
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in values.items() if value]
    return "".join([f"[{_TABLE}]\n", *lines])


def _package(found: Mapping[str, bytes], problems: list[str]) -> Package:
    texts = {path: text for path, content in found.items() if (text := _text(path, content, problems)) is not None}
    manifest = texts.pop(MANIFEST, None)
    if MANIFEST not in found:
        problems.append(_no_manifest(found))
    values = _KEYS | (_values(manifest, problems) if manifest is not None else {})
    package = Package(
        name=values["name"],
        entry_point=values["entry_point"],
        requirements=texts.pop(REQUIREMENTS, ""),
        python_version=values["python"],
        files=texts,
    )
    problems += problems_of(package)
    if problems:
        raise BadPackage(problems)
    return package


def _text(path: str, content: bytes, problems: list[str]) -> str | None:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        byte = content[error.start]
        problems.append(f"{shown(path)} is not UTF-8 text: it has the byte 0x{byte:02x} at {error.start}.")
        return None


def _no_manifest(found: Iterable[str]) -> str:
    deeper = sorted(path for path in found if path.endswith(f"/{MANIFEST}"))
    if deeper:
        return (
            f"{MANIFEST} must be at the top of the package, not at {shown(deeper[0])}: pack the content of that folder."
        )
    return f"The package has no {MANIFEST} at its top."


def _values(manifest: str, problems: list[str]) -> dict[str, str]:
    """Return the valid values of the manifest, and add a problem for each invalid one."""
    try:
        parsed = _parsed(manifest)
    except ValueError as error:
        problems.append(f"{MANIFEST} is not valid TOML: {error}.")
        return {}
    problems += _problems_of_manifest(parsed)
    table = parsed.get(_TABLE)
    return {key: value for key, value in table.items() if isinstance(value, str)} if isinstance(table, dict) else {}


def _parsed(manifest: str) -> dict[str, Any]:
    if (size := len(manifest.encode())) > contents.MOST_MANIFEST_BYTES:
        raise ValueError(f"it has {size} bytes, and at most {contents.MOST_MANIFEST_BYTES} are allowed")
    try:
        # Some editors write a byte order mark.
        return tomllib.loads(manifest.removeprefix("\ufeff"))
    except RecursionError:
        raise ValueError("its values are nested too deeply") from None


def _problems_of_manifest(parsed: Mapping[str, Any]) -> Iterator[str]:
    table = parsed.get(_TABLE)
    if not isinstance(table, dict):
        yield f"{MANIFEST} has no table [{_TABLE}]{'' if table is None else f', but another value named {_TABLE}'}."
        return
    for key in [*(key for key in parsed if key != _TABLE), *(key for key in table if key not in _KEYS)]:
        yield f"Unknown key {shown(key)} in {MANIFEST}. Known keys of [{_TABLE}]: {', '.join(_KEYS)}."
    for key in _KEYS:
        if not isinstance(table.get(key, ""), str):
            yield f"{key} in {MANIFEST} must be a text in quotes, not {shown(table[key])}."
    if "name" not in table:
        yield f"The table [{_TABLE}] in {MANIFEST} has no name."
