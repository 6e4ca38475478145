import re
from collections.abc import Callable, Iterable
from typing import Any

from django.contrib import admin
from django.core.paginator import Paginator
from django.db.models import PROTECT, Model, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.functional import cached_property

from work.boots import WORKER
from work.commands import clean
from work.kinds import all_kinds
from work.models import Event, Worker
from work.moves import Moves

# Counted no further: a list of a million rows must not be read to say how long it is.
MOST_COUNTED = 10_000
EVENTS = 100
LARGEST_ID = 2**63 - 1
SHORT = 100

Lookups = Iterable[tuple[Any, Any]]


class AtLeast(int):
    def __str__(self) -> str:
        return f"over {int(self)}"


class BoundedPaginator(Paginator):  # type: ignore[type-arg]  # takes none at run time
    """Goes as far as it counts; what lies further back is found by filters and by search."""

    @cached_property
    def count(self) -> int:
        rows = self.object_list
        assert isinstance(rows, QuerySet)
        counted = rows.order_by()[: MOST_COUNTED + 1].count()
        return AtLeast(MOST_COUNTED) if counted > MOST_COUNTED else counted


def choice_filter(name: str, choices: Callable[[], Lookups], chosen: Callable[[Any, str], Any] | None = None) -> Any:
    """A filter of a list by one column with few words; `chosen` says how, where it is not by equality."""

    class ChoiceFilter(admin.SimpleListFilter):
        title = name.replace("_", " ")
        parameter_name = name

        def lookups(self, request: HttpRequest, model_admin: Any) -> Lookups:
            return choices()

        def queryset(self, request: HttpRequest, queryset: Any) -> Any:
            word = self.value()
            if word is None or word not in dict(choices()):
                return queryset
            return chosen(queryset, word) if chosen else queryset.filter(**{name: word})

    return ChoiceFilter


class LongListAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # takes none at run time
    """Lists stay fast however long they are, and can be searched by nothing but what they offer."""

    ordering = ["-id"]
    # Nothing else is sorted by an index.
    sortable_by = ()
    list_per_page = 50
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    paginator = BoundedPaginator

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """By the filters that are offered, and by no other column of this or any other table."""
        return lookup in {getattr(offered, "parameter_name", None) for offered in self.list_filter}

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> tuple[Any, bool]:
        """A number, alone or behind a word as in "run 17", is an id; only if there is no such row, it is a text."""
        term = search_term.replace("\0", "").strip()
        if found := re.fullmatch(r"(?:[a-z_ ]+ )?#?([0-9]{1,19})", term):
            by_id = queryset.filter(pk=min(int(found[1]), LARGEST_ID))
            if by_id.exists():
                return by_id, False
        for word in term.split():
            queryset = queryset.filter(self._holding(word))
        return queryset, False

    def _holding(self, word: str) -> Q:
        found = Q()
        for name in self.search_fields:
            relation, _, column = str(name).rpartition("__")
            if relation:
                # No join: it would look up the other row of each of a million.
                related: Any = self.model._meta.get_field(relation).related_model
                ids = related._base_manager.filter(**{f"{column}__icontains": word}).values("pk")
                found |= Q(**{f"{relation}__in": ids})
            else:
                found |= Q(**{f"{column}__icontains": word})
        return found


class ReadOnlyAdmin(LongListAdmin):
    """Nothing is added, changed or deleted by hand."""

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


class SubjectAdmin(ReadOnlyAdmin):
    """Rows that events are about: their page shows the latest ones."""

    change_form_template = "admin/subject.html"
    moves: Moves

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        if obj := kwargs.get("obj"):
            events = Event.objects.filter(subject_kind=self.moves.kind, subject_id=obj.pk).order_by("-sequence")
            context["events"] = events[:EVENTS]
        return super().render_change_form(request, context, *args, **kwargs)


def short(text: str) -> str:
    line = clean(" ".join(text.split()))
    return line if len(line) <= SHORT else f"{line[: SHORT - 1]}…"


def is_referred_to(row: Model) -> bool:
    """Whether rows are there that forbid to delete this one. Asked before Django collects them all to list them."""
    guards = (relation for relation in row._meta.related_objects if relation.on_delete is PROTECT)
    return any(getattr(row, str(relation.get_accessor_name())).exists() for relation in guards)


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin):
    list_display = ["id", "at", "subject", "sequence", "kind", "change", "actor", "said"]
    list_filter = [choice_filter("subject_kind", lambda: [(kind.name, kind.name) for kind in all_kinds()])]
    search_fields = ["subject_id"]
    search_help_text = "The number of an event, or of what it is about"

    @admin.display(description="about")
    def subject(self, event: Event) -> str:
        return f"{event.subject_kind} {event.subject_id}"

    @admin.display(description="status")
    def change(self, event: Event) -> str:
        return " → ".join(dict.fromkeys(filter(None, (event.from_status, event.to_status))))

    @admin.display(description="message")
    def said(self, event: Event) -> str:
        return short(event.message)

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> tuple[Any, bool]:
        """About "run 17", or about anything numbered 17: all else would mean to read all events."""
        kinds = [kind.name for kind in all_kinds()] + ["worker"]
        found = re.fullmatch(r"(?:([a-z_]+) )?#?([0-9]{1,19})", search_term.replace("\0", "").strip())
        if not search_term:
            return queryset, False
        if not found or found[1] not in (None, *kinds):
            return queryset.none(), False
        about = [found[1]] if found[1] else kinds
        return queryset.filter(subject_kind__in=about, subject_id=min(int(found[2]), LARGEST_ID)), False


@admin.register(Worker)
class WorkerAdmin(SubjectAdmin):
    moves = WORKER
    list_display = ["id", "state", "owner", "version", "lanes", "started_at", "heartbeat_at", "doing"]
    list_filter = [
        choice_filter("state", lambda: [("alive", "alive")], lambda workers, _: workers.alive()),
    ]
    search_fields = ["name", "host"]
    fields = ["owner", "state", "version", "lanes", "doing", "started_at", "heartbeat_at", "stopped_at", "machine"]
    readonly_fields = ["owner", "state"]
