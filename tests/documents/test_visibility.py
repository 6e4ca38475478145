import pytest
from django.contrib.auth.models import AnonymousUser

from builds.models import Build, Configuration
from documents.models import (
    CellCorrection,
    Document,
    DocumentChunk,
    DocumentField,
    DocumentProcessingJob,
    DocumentTable,
    FieldCorrection,
    Stage,
)
from runs.models import Artifact, Run, RunField
from tests.factories import (
    ArtifactFactory,
    CellCorrectionFactory,
    DocumentChunkFactory,
    DocumentFieldFactory,
    DocumentTableFactory,
    FieldCorrectionFactory,
    MembershipFactory,
    RunFieldFactory,
    StageFactory,
    UserFactory,
)
from workspaces.models import Workspace

MODELS = [
    *(Workspace, Document, DocumentChunk, DocumentField, FieldCorrection, DocumentProcessingJob, Stage),
    *(DocumentTable, CellCorrection, Configuration, Build, Run, RunField, Artifact),
]

pytestmark = [pytest.mark.django_db, pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)]


@pytest.fixture(autouse=True)
def theirs(workspace):
    """One row of each kind in the workspace of the cast, and one elsewhere."""
    StageFactory(job__document__workspace=workspace)
    ArtifactFactory(run__configuration__workspace=workspace)
    DocumentChunkFactory(document__workspace=workspace)
    DocumentFieldFactory(document__workspace=workspace)
    FieldCorrectionFactory(document__workspace=workspace)
    RunFieldFactory(run__configuration__workspace=workspace)
    DocumentTableFactory(document__workspace=workspace)
    CellCorrectionFactory(document__workspace=workspace)
    StageFactory()
    ArtifactFactory()
    DocumentChunkFactory()
    DocumentFieldFactory()
    FieldCorrectionFactory()
    RunFieldFactory()
    DocumentTableFactory()
    CellCorrectionFactory()


def workspaces(rows):
    path = {
        Workspace: "pk",
        DocumentChunk: "document__workspace",
        DocumentField: "document__workspace",
        FieldCorrection: "document__workspace",
        DocumentTable: "document__workspace",
        CellCorrection: "document__workspace",
        DocumentProcessingJob: "document__workspace",
        Stage: "job__document__workspace",
        Build: "configuration__workspace",
        Artifact: "run__workspace",
        RunField: "run__workspace",
    }
    return set(rows.values_list(path.get(rows.model, "workspace"), flat=True))


@pytest.mark.parametrize("who", ["olga", "ravi"])
def test_members_see_what_is_in_their_workspace_and_nothing_else(model, who, workspace, request):
    assert workspaces(model.objects.for_user(request.getfixturevalue(who))) == {workspace.pk}


def test_who_is_no_member_sees_nothing(model, zed):
    assert not model.objects.for_user(zed).exists()


def test_who_has_not_signed_in_sees_nothing(model, workspace):
    assert not model.objects.for_user(AnonymousUser()).exists()


def test_a_superuser_sees_everything(model):
    assert model.objects.for_user(UserFactory(is_superuser=True)).count() == model.objects.count() > 1


def test_a_superuser_that_was_shut_out_sees_no_more_than_its_workspaces(model):
    assert not model.objects.for_user(UserFactory(is_superuser=True, is_active=False)).exists()


def test_a_row_is_seen_once_by_a_member_of_many_workspaces(model, olga):
    for other in Workspace.objects.exclude(memberships__user=olga):
        MembershipFactory(workspace=other, user=olga)

    assert model.objects.for_user(olga).count() == model.objects.count()
