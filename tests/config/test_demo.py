import pytest

from builds import contents
from builds.models import Configuration
from config.demo import demo_user, demo_workspace
from documents.models import Membership, Workspace

pytestmark = pytest.mark.django_db


def test_the_user_administers_a_workspace_with_a_configuration():
    demo_workspace(demo_user())

    member = Membership.objects.get()
    assert (member.user.username, member.workspace.name, member.role) == ("demo", "demo", "admin")
    assert Configuration.objects.get().workspace == member.workspace


def test_the_configuration_is_one_that_the_admin_would_take():
    demo_workspace(demo_user())

    configuration = Configuration.objects.get()
    assert list(contents.problems_of_files(configuration.files)) == []
    assert list(contents.problems_of_entry_point(configuration.entry_point)) == []
    compile(configuration.files["main.py"], "main.py", "exec")


def test_every_further_start_leaves_it_as_it_is():
    demo_workspace(demo_user())
    Workspace.objects.update(name="ours")
    Configuration.objects.all().delete()

    demo_workspace(demo_user())

    assert [workspace.name for workspace in Workspace.objects.all()] == ["ours"]
    assert not Configuration.objects.exists()


def test_a_user_without_a_workspace_gets_back_what_is_missing_and_nothing_twice():
    demo_workspace(demo_user())
    Membership.objects.all().delete()

    demo_workspace(demo_user())

    assert Membership.objects.count() == Workspace.objects.count() == Configuration.objects.count() == 1


def test_a_start_that_was_broken_off_is_continued():
    Workspace.objects.create(name="demo")

    demo_workspace(demo_user())

    assert Membership.objects.count() == Configuration.objects.count() == 1
