"""Creates and replaces configurations. Configurations have no status, and so no lifecycle."""

import dataclasses
from enum import StrEnum

from builds import packages
from builds.models import CONTENTS, Configuration
from builds.packages import BadPackage, Package
from workspaces.models import Workspace


class StoreResult(StrEnum):
    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"


class NameTaken(Exception):
    def __init__(self, configuration: Configuration) -> None:
        super().__init__(
            f"The workspace already has a configuration {configuration.name!r}, with id {configuration.pk}."
            " Choose another name, or replace the package of that one."
        )
        self.configuration = configuration


def store(workspace: Workspace, package: Package, *, name: str | None = None) -> tuple[Configuration, StoreResult]:
    """Create or replace a configuration under the package's own or another name. Skip the write if nothing changes."""
    configuration, is_new = _get_or_create(workspace, package, name)
    return configuration, StoreResult.CREATED if is_new else replace(configuration, package)


def create(workspace: Workspace, package: Package, *, name: str | None = None) -> Configuration:
    """Create a configuration under the package's own or another name. Raise NameTaken or BadPackage if refused."""
    configuration, is_new = _get_or_create(workspace, package, name)
    if not is_new:
        raise NameTaken(configuration)
    return configuration


def replace(configuration: Configuration, package: Package) -> StoreResult:
    """Replace the contents of a configuration. Ignore the package's name, and do not write identical contents again."""
    if (configuration.contents_sha256, configuration.publish) == (package.contents_sha256, package.publish):
        return StoreResult.UNCHANGED
    for field, value in package.snapshot().items():
        setattr(configuration, field, value)
    configuration.publish = package.publish
    configuration.save(update_fields=[*CONTENTS, "publish", "updated_at"])
    return StoreResult.UPDATED


def package_of(configuration: Configuration) -> Package:
    return Package(
        name=configuration.name,
        entry_point=configuration.entry_point,
        requirements=configuration.requirements,
        python_version=configuration.python_version,
        files=configuration.files,
        publish=configuration.publish,
    )


def _get_or_create(workspace: Workspace, package: Package, name: str | None) -> tuple[Configuration, bool]:
    package = package if name is None else dataclasses.replace(package, name=name)
    if problems := list(packages.problems_of(package)):
        raise BadPackage(problems)
    values = {**package.snapshot(), "publish": package.publish}
    return Configuration.objects.get_or_create(workspace=workspace, name=package.name, defaults=values)
