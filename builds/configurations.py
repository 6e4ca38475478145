"""What is done with configurations: they have no status, so there is no lifecycle of theirs."""

from dataclasses import replace
from enum import StrEnum

from builds import packages
from builds.models import CONTENTS, Configuration
from builds.packages import BadPackage, Package
from documents.models import Workspace


class Stored(StrEnum):
    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"


def store(workspace: Workspace, package: Package, *, name: str | None = None) -> tuple[Configuration, Stored]:
    """Under its own name, or under another one. What is there already is not written again."""
    package = package if name is None else replace(package, name=name)
    if problems := list(packages.problems_of(package)):
        raise BadPackage(problems)
    wanted = package.snapshot()
    found, is_new = Configuration.objects.get_or_create(workspace=workspace, name=package.name, defaults=wanted)
    if is_new:
        return found, Stored.CREATED
    if found.contents_sha256 == package.contents_sha256:
        return found, Stored.UNCHANGED
    for field, value in wanted.items():
        setattr(found, field, value)
    found.save(update_fields=[*CONTENTS, "updated_at"])
    return found, Stored.UPDATED


def packed(configuration: Configuration) -> Package:
    return Package(
        name=configuration.name,
        entry_point=configuration.entry_point,
        requirements=configuration.requirements,
        python_version=configuration.python_version,
        files=configuration.files,
    )
