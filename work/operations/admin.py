import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import PROTECT, Model, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.functional import cached_property
from django.views.decorators.http import require_POST

from work import draining
from work.boots import WORKER_STATES
from work.models import Event, Worker
from work.operations import bulk
from work.operations.commands import clean
from work.operations.ids import id_of
from work.operations.previews import Operation, RowResult, apply
from work.state_machine import StateMachine
from work.work_types import all_work_types, other_subjects

# Stop counting here: showing the length of a list must not mean reading a million rows.
MOST_COUNTED = 10_000
EVENTS = 100
LARGEST_ID = 2**63 - 1
SHORT = 100

Lookups = Iterable[tuple[Any, Any]]


class AtLeast(int):
    def __str__(self) -> str:
        return f"over {int(self)}"


class BoundedPaginator(Paginator):  # type: ignore[type-arg]  # not generic at run time
    """Counts, and offers pages, only up to MOST_COUNTED rows. Filters and search find the rows beyond."""

    @cached_property
    def count(self) -> int:
        rows = self.object_list
        assert isinstance(rows, QuerySet)
        number = rows.order_by()[: MOST_COUNTED + 1].count()
        return AtLeast(MOST_COUNTED) if number > MOST_COUNTED else number


def choice_filter(name: str, choices: Callable[[], Lookups], narrow: Callable[[Any, str], Any] | None = None) -> Any:
    """Make a list filter for a column with few values. Pass `narrow` if comparing for equality is not enough."""

    class ChoiceFilter(admin.SimpleListFilter):
        title = name.replace("_", " ")
        parameter_name = name

        def lookups(self, request: HttpRequest, model_admin: Any) -> Lookups:
            return choices()

        def queryset(self, request: HttpRequest, queryset: Any) -> Any:
            word = self.value()
            if not word:
                return queryset
            if word not in dict(choices()):
                # Never ignore an unknown value: an action may apply to all rows of the list.
                return queryset.none()
            return narrow(queryset, word) if narrow else queryset.filter(**{name: word})

    return ChoiceFilter


def related_filter(name: str) -> Any:
    """Make a list filter by a related row. The list does not show it, but the related row's page links to it."""

    class OfOne(admin.SimpleListFilter):
        title = parameter_name = name

        def has_output(self) -> bool:
            return bool(self.value())

        def lookups(self, request: HttpRequest, model_admin: Any) -> Lookups:
            id = self.value()
            return [(id, f"{name} {id}")] if id and id_of(id) is not None else []

        def queryset(self, request: HttpRequest, queryset: Any) -> Any:
            id = self.value()
            if not id:
                return queryset
            return queryset.filter(**{f"{name}_id": id}) if self.lookup_choices else queryset.none()

    return OfOne


class LongListAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # not generic at run time
    """Lists that stay fast with millions of rows. They can be filtered only by the filters that they show."""

    ordering = ["-id"]
    # No other column has an index to sort by.
    sortable_by = ()
    list_per_page = 50
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    paginator = BoundedPaginator

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Allow only the list's own filters, not lookups on any other column of this or another table."""
        return lookup in {getattr(list_filter, "parameter_name", None) for list_filter in self.list_filter}

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> tuple[Any, bool]:
        """Search for a number, alone or after a word as in "run 17", as an id; if no row has that id, as text."""
        term = search_term.replace("\0", "").strip()
        if match := re.fullmatch(r"(?:[a-z_ ]+ )?#?([0-9]{1,19})", term):
            by_id = queryset.filter(pk=min(int(match[1]), LARGEST_ID))
            if by_id.exists():
                return by_id, False
        for word in term.split():
            condition = Q()
            for name in self.search_fields:
                relation, _, column = str(name).rpartition("__")
                if relation:
                    # Use a subquery, because a join would look up the related row for each of a million rows.
                    related: Any = self.model._meta.get_field(relation).related_model
                    ids = related._base_manager.filter(**{f"{column}__icontains": word}).values("pk")
                    condition |= Q(**{f"{relation}__in": ids})
                else:
                    condition |= Q(**{f"{column}__icontains": word})
            queryset = queryset.filter(condition)
        return queryset, False


class ReadOnlyAdmin(LongListAdmin):
    """Admin of rows that no person may add, change or delete by hand."""

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


class SharedAdmin(LongListAdmin):
    """Admin of rows that belong to the installation. Every user of the admin may see them."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.admin_site.has_permission(request)


class SubjectAdmin(ReadOnlyAdmin):
    """Admin of rows with a history. The page of a row shows its latest events."""

    change_form_template = "admin/subject.html"
    # None for a model without a history.
    states: StateMachine | None = None

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        if self.states and (obj := kwargs.get("obj")):
            events = Event.objects.about(self.states.kind, obj.pk).order_by("-sequence")
            context["events"] = events[:EVENTS]
        return super().render_change_form(request, context, *args, **kwargs)


class VerbAdmin(SubjectAdmin):
    """Admin with operations. Each is an action of the list and a button on a row's page."""

    operations: Sequence[Operation] = ()

    def __init__(self, model: type[Model], admin_site: admin.AdminSite) -> None:
        super().__init__(model, admin_site)
        self.actions = [self._action_of(operation) for operation in self.operations]

    def has_operate_permission(self, request: HttpRequest) -> bool:
        raise NotImplementedError

    def operated(self, request: HttpRequest) -> Callable[[Any], bool]:
        """Return a function that checks whether the user may operate a row. Use one such function for many rows."""
        may = self.has_operate_permission(request)
        return lambda row: may

    def _action_of(self, operation: Operation) -> Any:
        """Return the list action. It first shows a preview, and does the operation once the user has confirmed it."""

        def act(site: Any, request: HttpRequest, rows: Any) -> HttpResponse:
            return bulk.answer(self, request, operation, rows)

        act.__name__ = operation.name
        return admin.action(act, description=operation.label, permissions=["operate"])

    def get_urls(self) -> list[URLPattern]:
        buttons = [
            path(
                f"<int:id>/{operation.name}/",
                self.admin_site.admin_view(require_POST(partial(self._do_one, operation=operation))),
            )
            for operation in self.operations
        ]
        return [*buttons, *bulk.urls(self), *super().get_urls()]

    def _do_one(self, request: HttpRequest, id: int, operation: Operation) -> HttpResponse:
        row = self.get_queryset(request).filter(pk=id).first()
        if row is None:
            raise Http404
        if not self.operated(request)(row):
            raise PermissionDenied
        results: list[RowResult] = []
        apply([row], operation, lambda row: True, results, actor=request.user.get_username(), reason="")
        bulk.show_results(self, request, results)
        return HttpResponseRedirect(reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_change", args=[id]))

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        row = kwargs.get("obj")
        if row and self.operated(request)(row):
            context["buttons"] = [(each.name, each.label) for each in self.operations if each.is_offered(row)]
        return super().render_change_form(request, context, *args, **kwargs)


def short(text: str) -> str:
    line = clean(" ".join(text.split()))
    return line if len(line) <= SHORT else f"{line[: SHORT - 1]}…"


def is_referred_to(row: Model) -> bool:
    """Return whether other rows forbid deleting this row.

    Call this first, because otherwise Django collects all related rows in order to list them.
    """
    guards = (relation for relation in row._meta.related_objects if relation.on_delete is PROTECT)
    return any(getattr(row, str(relation.get_accessor_name())).exists() for relation in guards)


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin):
    list_display = ["id", "at", "subject", "sequence", "kind", "change", "actor", "event_message"]
    list_filter = [choice_filter("subject_kind", lambda: [(name, name) for name in _subject_kinds()])]
    search_fields = ["subject_id"]
    search_help_text = "An id: of an event, or of the row that events belong to"

    @admin.display(description="subject")
    def subject(self, event: Event) -> str:
        return f"{event.subject_kind} {event.subject_id}"

    @admin.display(description="status")
    def change(self, event: Event) -> str:
        return " → ".join(dict.fromkeys(filter(None, (event.from_status, event.to_status))))

    @admin.display(description="message")
    def event_message(self, event: Event) -> str:
        return short(event.message)

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> tuple[Any, bool]:
        """Search for the events of "run 17", or of any row with the id 17. Other searches would read all events."""
        kinds = _subject_kinds()
        match = re.fullmatch(r"(?:([a-z_]+) )?#?([0-9]{1,19})", search_term.replace("\0", "").strip())
        if not search_term:
            return queryset, False
        if not match or match[1] not in (None, *kinds):
            return queryset.none(), False
        kinds = [match[1]] if match[1] else kinds
        return queryset.filter(subject_kind__in=kinds, subject_id=min(int(match[2]), LARGEST_ID)), False


@admin.register(Worker)
class WorkerAdmin(VerbAdmin):
    states = WORKER_STATES
    list_display = ["id", "state", "owner", "version", "lanes", "started_at", "heartbeat_at", "doing"]
    list_display += ["drain_requested_at", "drain_requested_by"]
    list_filter = [
        choice_filter("state", lambda: [("alive", "alive")], lambda workers, _: workers.alive()),
    ]
    search_fields = ["name", "host"]
    fields = ["owner", "state", "version", "lanes", "doing", "started_at", "heartbeat_at", "stopped_at", "machine"]
    fields += ["drain_requested_at", "drain_requested_by", "drain_reason"]
    readonly_fields = ["owner", "state"]
    operations = [draining.DRAIN]

    def has_operate_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(draining.PERMISSION)


def _subject_kinds() -> list[str]:
    return [*(kind.name for kind in all_work_types()), *(states.kind for states in other_subjects())]
