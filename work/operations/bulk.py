"""Bulk actions on rows selected in an admin list, or on all rows that match its filter.

The first page is a preview. Its form is sent again with a key that runs the action once, and a last page shows the
result for each row.

The action runs in batches, oldest rows first. Each batch starts after the last row of the previous one, and none goes
beyond the rows that existed at the preview. So no row is handled twice, and no row that the action itself made.
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
from work.operations.numbers import id_of
from work.operations.outcomes import DONE, Outcome, ahead, sentence
from work.operations.previews import Operation, RowResult, apply, preview

# How many new rows a message names, and how many rows a preview lists.
MOST_NAMED = 20
MOST_SHOWN = 100


def is_chosen_in_a_list(request: HttpRequest) -> bool:
    return ACTION_CHECKBOX_NAME in request.POST


def urls(site: Any) -> list[URLPattern]:
    """Return the URLs of the result pages, for the admin of one model."""
    name = f"{site.opts.app_label}_{site.opts.model_name}_outcome"
    return [
        path("outcome/<slug:key>/", _of(site, outcome_page), name=name),
        path("outcome/<slug:key>/csv/", _of(site, outcome_table), name=f"{name}_table"),
    ]


def answer(site: Any, request: HttpRequest, verb: str, rows: Any, wish: Operation) -> HttpResponse:
    """Answer a list's form: first with the preview, and when that is confirmed, with the result."""
    key, until = request.POST.get("once", ""), _number(request, "until")
    if not re.fullmatch("[A-Za-z0-9_-]{16,64}", key) or until is None:
        return _rehearsal(site, request, verb, rows, wish)
    if once.begin(request.user, key):
        rows = rows if _is_across(request) else _chosen(site, request)
        _do(site, request, verb, rows.filter(pk__lte=until), wish)
    return HttpResponseRedirect(reverse(_name(site, "outcome"), args=[key]))


def tell(site: Any, request: HttpRequest, ended: Sequence[RowResult]) -> None:
    outcomes = Counter(each.outcome for each in ended)
    said = sentence(site.model, outcomes, site.states.claimed if site.states else None)
    site.message_user(request, said, messages.SUCCESS if DONE & outcomes.keys() else messages.WARNING)
    if made := [each.made for each in ended if each.made]:
        links = format_html_join(
            ", ", '<a href="{}">{}</a>', ((_page_of(row), previews.called(row)) for row in made[:MOST_NAMED])
        )
        more = f" and {len(made) - MOST_NAMED:,} more" if len(made) > MOST_NAMED else ""
        site.message_user(request, format_html("New: {}{}.", links, more))


def outcome_page(site: Any, request: HttpRequest, key: str) -> HttpResponse:
    told = _told(site, request, key)
    outcomes = Counter(Outcome(outcome) for _, _, outcome, *_ in told.get("rows", ()))
    context = {
        **told,
        "title": f"{told['label']}: results of {len(told['rows']):,}" if told else "Results",
        "outcomes": [(outcome.value, number, outcome in DONE) for outcome, number in outcomes.items()],
        "table": reverse(_name(site, "outcome_table"), args=[key]),
        "is_told": bool(told),
        "change": _name(site, "change"),
        "MOST_AT_ONCE": previews.MOST_AT_ONCE,
    }
    return _page(site, request, "admin/outcome.html", context)


def outcome_table(site: Any, request: HttpRequest, key: str) -> HttpResponse:
    told = _told(site, request, key)
    name = f"{site.opts.model_name}-{told.get('verb', 'act')}"
    return previews.table(name, site.opts.verbose_name, told.get("rows", ()))


def _rehearsal(site: Any, request: HttpRequest, verb: str, rows: Any, wish: Operation) -> HttpResponse:
    rehearsal = preview(rows, wish, site.operated(request))
    newest = rows.order_by("-pk").values_list("pk", flat=True).first() if rehearsal.is_cut else None
    label = getattr(site, verb).short_description
    will_do = sum(number for outcome, number in rehearsal.outcomes.items() if outcome in DONE)
    kind = site.opts.verbose_name if will_do == 1 else site.opts.verbose_name_plural
    context = {
        "title": f"{label}: preview",
        "label": label,
        "verb": verb,
        "said": rehearsal.said,
        "will_do": will_do,
        "button": label if rehearsal.is_cut else f"{label}: {will_do:,} {kind}",
        "each": [(each.row, ahead(each.outcome), each.outcome in DONE) for each in rehearsal.each[:MOST_SHOWN]],
        "hidden": len(rehearsal.each) - MOST_SHOWN,
        "is_cut": rehearsal.is_cut,
        "is_in_pieces": len(rehearsal.each) > previews.MOST_AT_ONCE,
        "most_at_once": previews.MOST_AT_ONCE,
        "takes_reason": wish.takes_reason,
        "form": _form(request)
        | {
            "until": newest or (rehearsal.each[-1].row.pk if rehearsal.each else 0),
            "rehearsed": 0 if rehearsal.is_cut else len(rehearsal.each),
        },
        "change": _name(site, "change"),
    }
    return _page(site, request, "admin/rehearsal.html", context)


def _do(site: Any, request: HttpRequest, verb: str, rows: Any, wish: Operation) -> None:
    found = rows.filter(pk__gt=_number(request, "after") or 0).order_by("pk")[: previews.MOST_AT_ONCE + 1]
    piece, has_more = list(found[: previews.MOST_AT_ONCE]), len(found) > previews.MOST_AT_ONCE
    reason = " ".join(request.POST.get("reason", "").replace("\0", "").split())[: previews.LONGEST_REASON]
    gone = [] if _is_across(request) else _gone(request, rows)
    done: list[RowResult] = []
    try:
        apply(piece, wish, site.operated(request), done, actor=request.user.get_username(), reason=reason)
    finally:
        # This also runs if one row fails: the rows before it are done.
        has_more = has_more or len(done) < len(piece)
        ended = done if has_more else [*done, *gone]
        so_far, rehearsed = (_number(request, "so_far") or 0) + len(ended), _number(request, "rehearsed") or 0
        told = {
            "model": site.opts.label_lower,
            "verb": verb,
            "label": getattr(site, verb).short_description,
            "reason": reason,
            "rows": previews.told(ended, _page_of),
            "so_far": so_far,
            "has_more": has_more,
            "rehearsed": rehearsed,
            # The number of rows that no longer match. Rows selected one by one are reported one by one instead.
            "left": max(0, rehearsed - so_far) if _is_across(request) else 0,
            "form": _form(request)
            | {
                "after": done[-1].id if done else _number(request, "after") or 0,
                "so_far": so_far,
                "rehearsed": rehearsed,
            },
        }
        once.keep(request.user, request.POST["once"], told)
    tell(site, request, ended)


def _is_across(request: HttpRequest) -> bool:
    """Return whether the user selected all rows that match the filter, and not single rows."""
    return request.POST.get("select_across") == "1"


def _chosen(site: Any, request: HttpRequest) -> Any:
    """Return the selected rows, even if the filter of the list no longer matches them."""
    return site.get_queryset(request).filter(pk__in=_chosen_ids(request))


def _chosen_ids(request: HttpRequest) -> set[int]:
    return {id for text in request.POST.getlist(ACTION_CHECKBOX_NAME) if (id := id_of(text)) is not None}


def _gone(request: HttpRequest, rows: Any) -> list[RowResult]:
    """Return the selected rows that no longer exist."""
    until = _number(request, "until") or 0
    ids = {id for id in _chosen_ids(request) if id <= until} - set(rows.values_list("pk", flat=True))
    return [RowResult(id, "", Outcome.NOT_FOUND, None) for id in sorted(ids)]


def _form(request: HttpRequest) -> dict[str, Any]:
    """Return the values that the next form must repeat."""
    return {
        "url": request.get_full_path(),
        "chosen": request.POST.getlist(ACTION_CHECKBOX_NAME),
        "across": request.POST.get("select_across", "0"),
        "until": _number(request, "until"),
        "once": once.new_key(),
    }


def _told(site: Any, request: HttpRequest, key: str) -> dict[str, Any]:
    """Return the stored result, which is empty while the action runs. Raise Http404 if there is none for this user."""
    if not site.has_view_permission(request):
        raise PermissionDenied
    told = once.find(request.user, key)
    if told is None or told.get("model", site.opts.label_lower) != site.opts.label_lower:
        raise Http404("This result does not exist, or belongs to another user. Results are kept for one day.")
    return told


def _of(site: Any, view: Any) -> Any:
    return site.admin_site.admin_view(lambda request, key: view(site, request, key))


def _page(site: Any, request: HttpRequest, template: str, context: dict[str, Any]) -> HttpResponse:
    around = site.admin_site.each_context(request) | {"opts": site.opts, "many": site.opts.verbose_name_plural}
    return TemplateResponse(request, template, around | context)


def _name(site: Any, what: str) -> str:
    return f"admin:{site.opts.app_label}_{site.opts.model_name}_{what}"


def _page_of(row: Model) -> str:
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk])


def _number(request: HttpRequest, name: str) -> int | None:
    return id_of(request.POST.get(name))
