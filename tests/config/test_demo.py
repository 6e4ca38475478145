import pytest

from builds import contents
from builds.models import Build, Configuration
from config import demo
from config.demo import demo_user, demo_workspace
from documents.models import Document
from runs.models import Run
from workspaces.models import Membership, Workspace

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


@pytest.fixture(autouse=True)
def media(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path


def test_the_user_administers_a_workspace_with_configurations_documents_and_runs():
    demo_workspace(demo_user())

    member = Membership.objects.get()
    assert (member.user.username, member.workspace.name, member.role) == ("demo", "demo", "admin")
    assert {row.workspace for row in [*Configuration.objects.all(), *Document.objects.all()]} == {member.workspace}
    assert Configuration.objects.count() == Document.objects.count() == Build.objects.count() == 3
    assert Run.objects.count() == len(demo.RUNS)


def test_the_configurations_are_such_as_the_admin_would_take():
    demo_workspace(demo_user())

    for configuration in Configuration.objects.all():
        assert list(contents.problems_of_files(configuration.files)) == []
        assert list(contents.problems_of_entry_point(configuration.entry_point)) == []
        assert list(contents.problems_of_requirements(configuration.requirements)) == []
        compile(configuration.files["main.py"], "main.py", "exec")


def test_the_documents_are_stored_as_they_are():
    demo_workspace(demo_user())

    for document in Document.objects.all():
        original = (demo.EXAMPLES / "documents" / document.name).read_bytes()
        with document.file.open() as stored:
            assert stored.read() == original
        assert document.size_bytes == len(original)


def test_every_further_start_leaves_it_as_it_is():
    demo_workspace(demo_user())
    Workspace.objects.update(name="ours")
    Run.objects.all().delete()

    demo_workspace(demo_user())

    assert [workspace.name for workspace in Workspace.objects.all()] == ["ours"]
    assert not Run.objects.exists()


def test_a_user_without_a_workspace_gets_back_what_is_missing_and_nothing_twice():
    demo_workspace(demo_user())
    Membership.objects.all().delete()
    Run.objects.filter(pk=Run.objects.order_by("pk").first().pk).delete()

    demo_workspace(demo_user())

    assert Membership.objects.count() == Workspace.objects.count() == 1
    assert Configuration.objects.count() == Document.objects.count() == 3
    assert Run.objects.count() == len(demo.RUNS)


def test_a_start_that_was_broken_off_is_continued():
    Workspace.objects.create(name="demo")

    demo_workspace(demo_user())

    assert Membership.objects.count() == 1
    assert Configuration.objects.count() == 3


def test_a_queue_that_is_too_short_for_the_demo_takes_nothing_else_away(settings):
    settings.ADE_QUEUE_SIZE = 1

    demo_workspace(demo_user())

    assert Run.objects.count() == Membership.objects.count() == 1
    assert Document.objects.count() == 3
