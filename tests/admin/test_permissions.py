import pytest
from django.urls import reverse

from runs.models import Run
from tests.factories import (
    ArtifactFactory,
    BuildFactory,
    ConfigurationFactory,
    DocumentFactory,
    JobFactory,
    JobRunFactory,
    MembershipFactory,
    RunFactory,
    StageFactory,
    UserFactory,
    columns_of,
)
from work import boots
from work.models import Event

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


@pytest.fixture
def rows(workspace, configuration, document):
    """One row of each kind in Aster."""
    run = RunFactory(configuration=configuration, input_document=document)
    job = JobFactory(document=document, status="PROCESSING")
    return {
        "workspace": workspace,
        "document": document,
        "documentprocessingjob": job,
        "stage": StageFactory(job=job),
        "configuration": configuration,
        "build": run.build,
        "run": run,
        "artifact": ArtifactFactory(run=run),
    }


def urls_of(row):
    name = f"admin:{row._meta.app_label}_{row._meta.model_name}"
    return reverse(f"{name}_changelist"), reverse(f"{name}_change", args=[row.pk])


WORKS = ["document", "documentprocessingjob", "stage", "build", "run", "artifact"]


@pytest.mark.parametrize("who", ["olga", "ravi"])
def test_members_see_their_rows_and_no_others(rows, who, sign_in, request):
    other = RunFactory(build=BuildFactory())
    ArtifactFactory(run=other)
    StageFactory(job__document=other.input_document)
    site = sign_in(request.getfixturevalue(who))

    for name, row in rows.items():
        rows_url, row_url = urls_of(row)
        found = site.get(rows_url).context["cl"].result_list
        assert [each.pk for each in found] == [row.pk], name
        assert site.get(row_url).status_code == 200, name


def test_members_do_not_see_the_rows_of_others(rows, olga, sign_in):
    elsewhere = RunFactory()
    theirs = [
        elsewhere,
        elsewhere.workspace,
        elsewhere.configuration,
        elsewhere.build,
        elsewhere.input_document,
        ArtifactFactory(run=elsewhere),
        JobFactory(document=elsewhere.input_document),
        StageFactory(job__document=DocumentFactory()),
    ]
    site = sign_in(olga)

    for row in theirs:
        page = site.get(urls_of(row)[1])
        # The same answer as for a row that does not exist.
        assert (page.status_code, page.url) == (302, "/admin/")


def test_filters_tell_nothing_of_others(rows, olga, sign_in):
    elsewhere = RunFactory()
    site = sign_in(olga)

    page = site.get(urls_of(elsewhere)[0])
    assert elsewhere.workspace.name not in page.content.decode()
    assert elsewhere.configuration.name not in page.content.decode()
    chosen = site.get(urls_of(elsewhere)[0], {"workspace": elsewhere.workspace_id})
    assert elsewhere not in chosen.context["cl"].result_list


def test_a_stranger_sees_nothing(rows, zed, sign_in):
    site = sign_in(zed)

    for row in rows.values():
        rows_url, row_url = urls_of(row)
        assert site.get(rows_url).status_code == 403
        assert site.get(row_url).status_code in (302, 403)
    apps = site.get("/admin/").context["app_list"]
    # Only the rows that belong to no workspace.
    assert [app["app_label"] for app in apps] == ["feeds"]
    assert not any(model["add_url"] for app in apps for model in app["models"])


def test_whoever_is_no_staff_is_asked_to_sign_in(rows, olga, sign_in):
    olga.is_staff = False
    olga.save()
    site = sign_in(olga)

    for row in rows.values():
        for url in urls_of(row):
            assert site.get(url).url.startswith("/admin/login/")
    assert site.post(f"/admin/runs/run/{rows['run'].pk}/cancel/").url.startswith("/admin/login/")


@pytest.mark.parametrize("who", ["olga", "ravi", "root"])
@pytest.mark.parametrize("name", WORKS)
def test_work_is_not_added_changed_or_deleted_by_hand(rows, who, name, sign_in, request):
    user = UserFactory(is_staff=True, is_superuser=True) if who == "root" else request.getfixturevalue(who)
    row, site = rows[name], sign_in(user)
    rows_url, row_url = urls_of(row)
    before = columns_of(row)

    answers = [
        site.get(f"{rows_url}add/"),
        site.post(f"{rows_url}add/", {"status": "succeeded"}),
        site.post(row_url, {"status": "succeeded", "name": "changed", "error_message": "changed"}),
        site.get(row_url.replace("/change/", "/delete/")),
        site.post(row_url.replace("/change/", "/delete/"), {"post": "yes"}),
    ]
    site.post(rows_url, {"action": "delete_selected", "_selected_action": row.pk, "post": "yes"})

    # Documents and runs are added with forms of their own: see `test_upload_form.py` and `test_runs.py`.
    add = [200, 200] if name in ("document", "run") and who != "ravi" else [403, 403]
    assert [answer.status_code for answer in answers] == [*add, 403, 403, 403]
    assert type(row).objects.count() == 1
    assert columns_of(row) == before


def test_what_belongs_to_no_workspace_is_for_superusers(olga, sign_in):
    rows = [JobRunFactory(), boots.register("w1", "boot-1", {}), Event.objects.first()]
    site = sign_in(olga)

    for row in rows:
        for url in urls_of(row):
            assert site.get(url).status_code == 403


def test_events_and_workers_cannot_be_changed_by_superusers_either(sign_in):
    site = sign_in(UserFactory(is_staff=True, is_superuser=True))
    for row in (JobRunFactory(), boots.register("w1", "boot-1", {}), Event.objects.first()):
        before = columns_of(row)
        url = urls_of(row)[1]

        assert site.post(url, {"message": "changed", "name": "changed", "status": "failed"}).status_code == 403
        assert site.post(url.replace("/change/", "/delete/"), {"post": "yes"}).status_code == 403

        assert columns_of(row) == before


def test_a_member_of_two_workspaces_sees_each_row_once(rows, olga, sign_in):
    other = RunFactory()
    MembershipFactory(workspace=other.workspace, user=olga, role="viewer")

    found = sign_in(olga).get(urls_of(other)[0]).context["cl"].result_list

    assert [run.pk for run in found] == [other.pk, rows["run"].pk]
    assert Run.objects.count() == 2


def test_a_superuser_who_was_deactivated_sees_nothing(rows, sign_in):
    site = sign_in(UserFactory(is_staff=True, is_superuser=True, is_active=False))

    assert site.get(urls_of(rows["run"])[0]).url.startswith("/admin/login/")


@pytest.mark.parametrize("name", ["configuration", "workspace"])
def test_viewers_change_nothing(rows, ravi, name, sign_in):
    row, site = rows[name], sign_in(ravi)
    before = columns_of(row)

    assert site.post(urls_of(row)[1], {"name": "changed"}).status_code == 403
    assert site.get(f"{urls_of(row)[0]}add/").status_code == 403
    assert columns_of(row) == before


def test_configurations_of_others_cannot_be_taken_over(rows, olga, sign_in):
    other = ConfigurationFactory()
    MembershipFactory(workspace=other.workspace, user=olga, role="viewer")
    before = columns_of(other)

    assert sign_in(olga).post(urls_of(other)[1], {"name": "changed"}).status_code == 403

    assert columns_of(other) == before
