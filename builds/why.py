"""Explains why a build is waiting; see `work/why.py`. A build waits only for its turn."""

from datetime import datetime

from django.db.models import Q, QuerySet

from builds.lifecycle import BUILD_STATES
from builds.models import Build
from work import clock, why
from work.why import Explanation, LiveWorkers, Names
from workspaces.models import User


def explain(build: Build, crew: LiveWorkers | None = None, *, user: User | None = None) -> Explanation:
    """Explain the build's current state in the database. Without a user, the answer may name any other build.

    Raise Build.DoesNotExist if the build is missing.
    """
    waits = Build.objects.claimable(clock.now()).filter(pk=build.pk).exists()
    now = Build.objects.defer("snapshot", "lock").get(pk=build.pk)
    if not waits:
        return why.of_others(BUILD_STATES, now, now.status, now.status)
    crew = crew or LiveWorkers.now()
    ahead = why.count(_ahead, now.queued_at, now.pk)
    gates = [why.of_worker(crew, BUILD_STATES), why.of_capacity(crew, BUILD_STATES, ahead, _names(user))]
    return why.of_queued(BUILD_STATES, now.pk, gates)


def _names(user: User | None) -> Names | None:
    if user is None:
        return None
    visible = Build.objects.for_user(user)
    return lambda ids: set(visible.filter(pk__in=ids).values_list("pk", flat=True))


# A module function, because the function is the key of the compiled SQL.
def _ahead(queued_at: datetime, id: int) -> "QuerySet[Build, tuple[int]]":
    not_later = Build.objects.claimable(queued_at).filter(queued_at__lte=queued_at)
    return why.counted(not_later.filter(Q(queued_at__lt=queued_at) | Q(pk__lt=id)))
