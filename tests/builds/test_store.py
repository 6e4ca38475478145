from dataclasses import replace

import pytest

from builds import configurations
from builds.contents import BadPackage
from builds.models import Configuration
from builds.packages import Package
from tests.factories import WorkspaceFactory, columns_of

pytestmark = pytest.mark.django_db

PACKAGE = Package("invoices", "rules", "pandas\n", "3.12", {"rules.py": "x = 1\n"})


def test_a_package_becomes_a_configuration(workspace):
    made, result = configurations.store(workspace, PACKAGE)

    made.refresh_from_db()
    assert result == "created"
    assert configurations.package_of(made) == PACKAGE
    assert (made.workspace, made.contents_sha256) == (workspace, PACKAGE.contents_sha256)


def test_it_may_have_another_name(workspace):
    configurations.store(workspace, PACKAGE)

    made, result = configurations.store(workspace, PACKAGE, name="orders")

    assert (made.name, result) == ("orders", "created")
    assert Configuration.objects.count() == 2


def test_the_same_contents_change_nothing(workspace):
    made, _ = configurations.store(workspace, PACKAGE)
    before = columns_of(made)

    again, result = configurations.store(workspace, replace(PACKAGE, files=dict(PACKAGE.files)))

    assert (again, result) == (made, "unchanged")
    assert columns_of(made) == before


@pytest.mark.parametrize(
    "change",
    [
        {"entry_point": "rules:run"},
        {"requirements": "pandas"},
        {"python_version": ""},
        {"files": {"rules.py": "x = 2"}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_other_contents_take_the_place_of_the_old(workspace, change):
    made, _ = configurations.store(workspace, PACKAGE)
    newer = replace(PACKAGE, **change)

    again, result = configurations.store(workspace, newer)

    assert (again.pk, result) == (made.pk, "updated")
    again.refresh_from_db()
    assert configurations.package_of(again) == newer
    assert again.contents_sha256 == newer.contents_sha256 != made.contents_sha256
    assert again.updated_at > made.updated_at


@pytest.mark.parametrize("publish", [True, False])
def test_a_configuration_that_publishes_needs_no_new_build(workspace, publish):
    made, _ = configurations.store(workspace, replace(PACKAGE, publish=not publish))

    again, result = configurations.store(workspace, replace(PACKAGE, publish=publish))

    assert (again.pk, result, again.publish) == (made.pk, "updated", publish)
    again.refresh_from_db()
    assert configurations.package_of(again).publish is publish
    assert again.contents_sha256 == made.contents_sha256
    assert configurations.store(workspace, replace(PACKAGE, publish=publish))[1] == "unchanged"


def test_a_configuration_that_was_renamed_meanwhile_keeps_its_new_name(workspace, monkeypatch):
    made, _ = configurations.store(workspace, PACKAGE)
    real = Configuration.save

    def renamed_first(self, **options):
        Configuration.objects.filter(pk=made.pk).update(name="renamed")
        real(self, **options)

    monkeypatch.setattr(Configuration, "save", renamed_first)
    configurations.store(workspace, replace(PACKAGE, requirements=""))

    made.refresh_from_db()
    assert (made.name, made.requirements) == ("renamed", "")


def test_another_workspace_has_its_own(workspace):
    configurations.store(workspace, PACKAGE)

    _, result = configurations.store(WorkspaceFactory(), PACKAGE)

    assert result == "created"


@pytest.mark.parametrize("name", ["", "a\n", "x" * 101])
def test_what_no_package_may_be_is_not_stored(workspace, name):
    with pytest.raises(BadPackage) as caught:
        configurations.store(workspace, replace(PACKAGE, files={"../x": ""}), name=name)

    assert len(caught.value.problems) == 2
    assert not Configuration.objects.exists()
