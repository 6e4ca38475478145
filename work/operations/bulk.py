"""Bulk actions on the rows selected in an admin list, or on all rows that match its filter.

The first page is a preview. When the user confirms it, its form sends a key that lets the action run only once. The
last page shows the result for each row.

The action runs in batches, oldest rows first. Each batch starts after the last row of the previous batch, and no batch
goes beyond the rows that existed at the preview. So the action handles no row twice, and no row that it has created.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join

from work.operations import once, previews
from work.operations.ids import id_of
from work.operations.outcomes import DONE, Outcome, forecast, sentence
from work.operations.previews import Operation, RowResult, apply, preview

# The maximum number of new rows that a message names, and of rows that a preview lists.
MOST_NAMED = 20
MOST_SHOWN = 100


class _Form:
    """The form of a list, a preview or a result page. It has the selected rows and how far the action has got."""

    def __init__(self, request: HttpRequest) -> None:
        self.url = request.get_full_path()
        self.key = request.POST.get("once", "")
        self.until, self.after, self.so_far, self.previewed = (
            id_of(request.POST.get(name)) for name in ("until", "after", "so_far", "rehearsed")
        )
        self.selected = request.POST.getlist(ACTION_CHECKBOX_NAME)
        self.selected_ids = {id for text in self.selected if (id := id_of(text)) is not None}
        # "1" if the user selected all rows that match the filter, "0" if the user selected single rows.
        self.across = request.POST.get("select_across", "0")
        self.is_across = self.across == "1"
        self.reason = previews.reason_of(request)

    def next(self, **values: Any) -> dict[str, Any]:
        """Return the values of the form on the next page."""
        repeated = {"url": self.url, "chosen": self.selected, "across": self.across, "until": self.until}
        return repeated | {"once": once.new_key()} | values


def urls(site: Any) -> list[URLPattern]:
    """Return the URLs of the result pages, for the admin of one model."""
    name = f"{site.opts.app_label}_{site.opts.model_name}_outcome"

    def view(page: Any) -> Any:
        return site.admin_site.admin_view(lambda request, key: page(site, request, key))

    return [
        path("outcome/<slug:key>/", view(outcome_page), name=name),
        path("outcome/<slug:key>/csv/", view(outcome_table), name=f"{name}_table"),
    ]


def answer(site: Any, request: HttpRequest, operation: Operation, rows: Any) -> HttpResponse:
    """Answer the form of a list with the preview. Answer the form of the preview with the result."""
    form = _Form(request)
    if not re.fullmatch("[A-Za-z0-9_-]{16,64}", form.key) or form.until is None:
        return _preview_page(site, request, operation, rows)
    if once.begin(request.user, form.key):
        # Rows that were selected one by one are included even if the list's filter no longer matches them.
        rows = rows if form.is_across else site.get_queryset(request).filter(pk__in=form.selected_ids)
        _do_batch(site, request, operation, rows.filter(pk__lte=form.until))
    return HttpResponseRedirect(reverse(_url_name(site, "outcome"), args=[form.key]))


def show_results(site: Any, request: HttpRequest, results: Sequence[RowResult]) -> None:
    outcomes = Counter(result.outcome for result in results)
    message = sentence(site.model, outcomes, site.states.claimed if site.states else None)
    site.message_user(request, message, messages.SUCCESS if DONE & outcomes.keys() else messages.WARNING)
    if new_rows := [result.made for result in results if result.made]:
        links = format_html_join(
            ", ", '<a href="{}">{}</a>', ((_page_of(row), previews.title_of(row)) for row in new_rows[:MOST_NAMED])
        )
        more = f" and {len(new_rows) - MOST_NAMED:,} more" if len(new_rows) > MOST_NAMED else ""
        site.message_user(request, format_html("New: {}{}.", links, more))


def _preview_page(site: Any, request: HttpRequest, operation: Operation, rows: Any) -> HttpResponse:
    result = preview(rows, operation, site.operated(request))
    newest = rows.order_by("-pk").values_list("pk", flat=True).first() if result.is_cut else None
    will_do = sum(number for outcome, number in result.outcomes.items() if outcome in DONE)
    kind = site.opts.verbose_name if will_do == 1 else site.opts.verbose_name_plural
    context = {
        "title": f"{operation.label}: preview",
        "label": operation.label,
        "verb": operation.name,
        "said": result.message,
        "will_do": will_do,
        "button": operation.label if result.is_cut else f"{operation.label}: {will_do:,} {kind}",
        "each": [(each.row, forecast(each.outcome), each.outcome in DONE) for each in result.each[:MOST_SHOWN]],
        "hidden": len(result.each) - MOST_SHOWN,
        "is_cut": result.is_cut,
        "is_in_pieces": len(result.each) > previews.MOST_AT_ONCE,
        "most_at_once": previews.MOST_AT_ONCE,
        "takes_reason": operation.takes_reason,
        "form": _Form(request).next(
            until=newest or (result.each[-1].row.pk if result.each else 0),
            rehearsed=0 if result.is_cut else len(result.each),
        ),
        "change": _url_name(site, "change"),
    }
    return _page(site, request, "admin/rehearsal.html", context)


def outcome_page(site: Any, request: HttpRequest, key: str) -> HttpResponse:
    stored = _stored_results(site, request, key)
    outcomes = Counter(Outcome(outcome) for _, _, outcome, *_ in stored.get("rows", ()))
    context = {
        **stored,
        "title": f"{stored['label']}: results of {len(stored['rows']):,}" if stored else "Results",
        "outcomes": [(outcome.value, number, outcome in DONE) for outcome, number in outcomes.items()],
        "table": reverse(_url_name(site, "outcome_table"), args=[key]),
        "is_told": bool(stored),
        "change": _url_name(site, "change"),
        "MOST_AT_ONCE": previews.MOST_AT_ONCE,
    }
    return _page(site, request, "admin/outcome.html", context)


def outcome_table(site: Any, request: HttpRequest, key: str) -> HttpResponse:
    stored = _stored_results(site, request, key)
    name = f"{site.opts.model_name}-{stored.get('verb', 'act')}"
    return previews.table(name, site.opts.verbose_name, stored.get("rows", ()))


def _do_batch(site: Any, request: HttpRequest, operation: Operation, rows: Any) -> None:
    """Apply the action to the next batch of rows, and store the result under the key of the form."""
    form = _Form(request)
    after = form.after or 0
    next_rows = rows.filter(pk__gt=after).order_by("pk")[: previews.MOST_AT_ONCE + 1]
    batch, has_more = list(next_rows[: previews.MOST_AT_ONCE]), len(next_rows) > previews.MOST_AT_ONCE
    missing: list[RowResult] = []
    if not form.is_across:
        selected_ids = {id for id in form.selected_ids if id <= (form.until or 0)}
        missing_ids = selected_ids - set(rows.values_list("pk", flat=True))
        missing = [RowResult(id, "", Outcome.NOT_FOUND, None) for id in sorted(missing_ids)]
    done: list[RowResult] = []
    try:
        apply(batch, operation, site.operated(request), done, actor=request.user.get_username(), reason=form.reason)
    finally:
        # Store the results even if one row raises an error, because the rows before it are done.
        has_more = has_more or len(done) < len(batch)
        results = done if has_more else [*done, *missing]
        so_far, previewed = (form.so_far or 0) + len(results), form.previewed or 0
        stored = {
            "model": site.opts.label_lower,
            "verb": operation.name,
            "label": operation.label,
            "reason": form.reason,
            "rows": previews.storable_rows(results, _page_of),
            "so_far": so_far,
            "has_more": has_more,
            "rehearsed": previewed,
            # The number of rows that no longer match the filter. Rows selected one by one have results of their own.
            "left": max(0, previewed - so_far) if form.is_across else 0,
            "form": form.next(after=done[-1].id if done else after, so_far=so_far, rehearsed=previewed),
        }
        once.keep(request.user, form.key, stored)
    show_results(site, request, results)


def _stored_results(site: Any, request: HttpRequest, key: str) -> dict[str, Any]:
    """Return the stored result, which is empty while the action runs. Raise Http404 if this user has no such result."""
    if not site.has_view_permission(request):
        raise PermissionDenied
    stored = once.find(request.user, key)
    if stored is None or stored.get("model", site.opts.label_lower) != site.opts.label_lower:
        raise Http404("This result does not exist, or belongs to another user. Results are kept for one day.")
    return stored


def _page(site: Any, request: HttpRequest, template: str, context: dict[str, Any]) -> HttpResponse:
    around = site.admin_site.each_context(request) | {"opts": site.opts, "many": site.opts.verbose_name_plural}
    return TemplateResponse(request, template, around | context)


def _url_name(site: Any, page: str) -> str:
    return f"admin:{site.opts.app_label}_{site.opts.model_name}_{page}"


def _page_of(row: Model) -> str:
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk])
