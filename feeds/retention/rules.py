"""Rules for which rows may be deleted and which other rows keep them, by model label as in `settings.PURGE_ALLOWED` and
`settings.IMMUTABLE`.

A system check verifies the rules, and deletions follow them: see `delete` in `work/pruning.py`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core import checks
from django.db.models import Exists, Model, OuterRef, Q, QuerySet


@dataclass(frozen=True)
class Rule:
    # Rows that refer to this one through these relations keep it.
    kept_by: tuple[str, ...] = ()
    # Rows that refer to this one through these relations are deleted first, in the same transaction.
    goes_with: tuple[str, ...] = ()


RULES = {
    "feeds.RawArticle": Rule(kept_by=("brief_articles",), goes_with=("links",)),
    "feeds.ClusterArticle": Rule(),
    "feeds.EventCluster": Rule(kept_by=("brief_items", "links", "merged")),
    "feeds.PurgedUrl": Rule(),
    "work.Worker": Rule(),
    "api.KeptAnswer": Rule(),
    "api.AuditEntry": Rule(),
    "axes.AccessAttempt": Rule(goes_with=("expiration",)),
    "axes.AccessAttemptExpiration": Rule(),
    "sessions.Session": Rule(),
    "webhooks.Delivery": Rule(),
}


def needed(model: type[Model]) -> Q:
    """Match rows of the model that are kept because another row refers to them."""
    kept_by = (Exists(rows.filter(**{column: OuterRef("pk")})) for rows, column in _keepers(model))
    return Q(*kept_by, _connector=Q.OR)


def not_needed(model: type[Model], ids: Sequence[int]) -> list[int]:
    """Return the IDs of rows that no committed row keeps. The caller must have locked the rows."""
    needed_ids: set[int] = set()
    for rows, column in _keepers(model):
        needed_ids.update(rows.filter(**{f"{column}__in": ids}).values_list(column, flat=True))
    return [id for id in ids if id not in needed_ids]


def check_rules(app_configs: Any = None, **_: Any) -> list[checks.CheckMessage]:
    problems: list[tuple[str, str]] = []
    allowed, immutable = settings.PURGE_ALLOWED, settings.IMMUTABLE
    known = {model._meta.label for model in apps.get_models()}
    for label in sorted({*allowed, *immutable} - known):
        problems.append(("E001", f"PURGE_ALLOWED or IMMUTABLE names {label}, which is not a model."))
    for label in sorted({*allowed} & {*immutable}):
        problems.append(("E002", f"{label} is in both PURGE_ALLOWED and IMMUTABLE. Remove it from one of them."))
    for label in sorted({*allowed} & known):
        if label not in RULES:
            message = f"{label} is in PURGE_ALLOWED but has no rule. Add one in feeds/retention/rules.py."
            problems.append(("E003", message))
        else:
            problems += _problems_of(label, RULES[label])
    return [checks.Error(problem, id=f"ade.{code}") for code, problem in problems]


def _problems_of(label: str, rule: Rule) -> Iterator[tuple[str, str]]:
    for relation in apps.get_model(label)._meta.related_objects:
        name, other = str(relation.get_accessor_name()), relation.related_model._meta.label
        if name not in {*rule.kept_by, *rule.goes_with}:
            yield (
                "E004",
                f"The rule for {label} does not cover {other}, which refers to it as {name}. Add {name} to kept_by or"
                " to goes_with.",
            )
        if name in rule.goes_with and other not in settings.PURGE_ALLOWED:
            yield "E005", f"{other} is deleted together with {label}, but is not in PURGE_ALLOWED. Add it there."


def _keepers(model: type[Model]) -> Iterable[tuple["QuerySet[Any]", str]]:
    """Yield the rows that can keep rows of this model, with the column that refers to them."""
    for relation in model._meta.related_objects:
        if relation.get_accessor_name() in RULES[model._meta.label].kept_by:
            yield relation.related_model._base_manager.all(), relation.field.attname
