"""Deletes old stored responses (of creating requests), audit entries, failed sign-ins and sessions."""

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any

from axes.models import AccessAttempt, AccessAttemptExpiration
from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import Model, QuerySet

from api.idempotency import KEPT_HOURS
from api.models import AuditEntry, KeptAnswer
from work import clock
from work.pruning import Batch, Due, Policy, days_before_now, delete, due_of, in_batches, in_words, lock

# Failed sign-ins are kept much longer than a lockout lasts.
KEEP_ATTEMPTS_DAYS = 30


Rows = QuerySet[Any]


def _policy(name: str, keeps: Callable[[], str], model: type[Model], old: Callable[[], "Rows"], moment: str) -> Policy:
    def due() -> Due:
        return due_of(old(), model._base_manager.none(), moment)

    def purge_batch(ids: list[int]) -> Mapping[str, int]:
        with transaction.atomic():
            pks = list(lock(old().filter(pk__in=ids)).values_list("pk", flat=True))
            if model is AccessAttempt:
                delete(AccessAttemptExpiration, pks)
            return {model._meta.db_table: delete(model, pks)}

    def purge(_actor: str) -> Iterator[Batch]:
        return in_batches(old().order_by(), purge_batch)

    return Policy(name, keeps=keeps, due=due, purge=purge)


def old_entries() -> "Rows":
    days = settings.ADE_KEEP_AUDIT_DAYS
    return AuditEntry.objects.filter(at__lt=days_before_now(days)) if days else AuditEntry.objects.none()


ANSWERS = _policy(
    "answers to creating requests",
    lambda: f"{KEPT_HOURS} hours",
    KeptAnswer,
    lambda: KeptAnswer.objects.filter(created_at__lt=clock.now() - timedelta(hours=KEPT_HOURS)),
    "created_at",
)
AUDIT = _policy("audit log", lambda: in_words(settings.ADE_KEEP_AUDIT_DAYS), AuditEntry, old_entries, "at")
ATTEMPTS = _policy(
    "failed sign-ins",
    lambda: in_words(KEEP_ATTEMPTS_DAYS),
    AccessAttempt,
    lambda: AccessAttempt.objects.filter(attempt_time__lt=days_before_now(KEEP_ATTEMPTS_DAYS)),
    "attempt_time",
)
SESSIONS = _policy(
    "sessions",
    lambda: "until they expire",
    Session,
    lambda: Session.objects.filter(expire_date__lt=clock.now()),
    "expire_date",
)
