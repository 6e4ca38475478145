"""The list of documents, and the page of one document with its fields and corrections."""

from collections import Counter

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.db.models import Exists, OuterRef
from django.http import Http404, HttpRequest, HttpResponseRedirect, JsonResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from builds.models import Configuration
from console import boxes, formatting, lists, page_images
from console.document_page import page_of
from console.frame import act, actor_of, back, find, is_superuser, must_operate, page, report, show
from console.processing import in_words, processing_of
from documents import corrections, listing, operations, quality, reprocessing, type_recognition, types, why
from documents.corrections import InvalidCorrection
from documents.fields import LONGEST_NAME, LONGEST_VALUE
from documents.forms import AgainForm, IntakeForm, UploadForm
from documents.lifecycle import DOCUMENT_STATES
from documents.listing import Filters
from documents.models import Document, DocumentProblem
from documents.type_recognition import UnknownType
from runs import listing as run_listing
from work.models import Event
from work.operations.outcomes import sentence
from workspaces.models import Workspace

# In the place of a status: the documents that need review, whatever their status.
TO_REVIEW = "to_review"
MOST_WORKSPACES = 100
LATEST_RUNS = 10
MOST_CONFIGURATIONS = 1000
MOST_TABLES = 100
LATEST_EVENTS = 30


@page
def documents(request: HttpRequest) -> HttpResponseBase:
    status, workspace_id = request.GET.get("status", ""), lists.number(request.GET.get("workspace"))
    of_status = status if status in Document.Status.values else None
    wanted = Filters(workspace_id, of_status, request.GET.get("type") or None, is_to_review=status == TO_REVIEW)
    rows = listing.documents(request.user, wanted, lists.ROWS + 1, behind=lists.starts_after(request))
    workspaces = Workspace.objects.for_user(request.user)
    context = {
        "slice": lists.sliced(request, rows),
        "statuses": {**{each: each for each in Document.Status.values}, TO_REVIEW: "to review"},
        "status": TO_REVIEW if wanted.is_to_review else wanted.status,
        "type": wanted.type,
        "workspace": workspaces.filter(pk=workspace_id).first() if workspace_id is not None else None,
        "has_filter": workspace_id is not None,
        "may": Workspace.objects.operated_by(request.user).exists(),
    }
    return show(request, "console/documents.html", "Documents", context, live=reverse("console:live"))


@page
def quality_page(request: HttpRequest) -> HttpResponseBase:
    """Show how many documents needed no person, by week and by type."""
    workspace_id = lists.number(request.GET.get("workspace"))
    workspaces = Workspace.objects.for_user(request.user).order_by("name")
    context = {
        "quality": quality.of_user(request.user, workspace_id),
        "most": quality.MOST,
        "workspaces": workspaces[:MOST_WORKSPACES],
        "workspace_id": workspace_id,
    }
    return show(request, "console/document_quality.html", "Documents without review", context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def add(request: HttpRequest) -> HttpResponseBase:
    """Add documents. As in the admin, a file is stored before the transaction begins.

    A script sends one file per request and asks for JSON.
    """
    is_sent = request.method == "POST"
    if not Workspace.objects.operated_by(request.user).exists():
        if is_superuser(request):
            # A superuser may operate every workspace, so there is none at all.
            status = 409 if is_sent else 200
            return show(request, "console/no_workspace.html", "No workspace yet", {}, status=status)
        raise PermissionDenied("You must be an operator of a workspace to add a document.")
    is_again = "again" in request.POST
    upload = UploadForm(request, is_sent=is_sent and not is_again, takes_many=True)
    form = AgainForm(request, is_sent=True) if is_again else upload
    wants_json = request.accepts("application/json") and not request.accepts("text/html")
    files = request.FILES.getlist("file")
    # One file may be what is left of several that were too large together.
    if (len(files) > 1 or (files and upload.was_too_large)) and not is_again and not wants_json:
        each = upload.made_each()
        context = {"each": each, "was_too_large": upload.was_too_large, "form": upload, "upload": upload}
        return show(request, "console/document_add.html", "Add documents", context)
    document = form.made() if is_sent else None
    if is_sent and wants_json:
        return _told(form, document)
    if document:
        messages.success(request, f"Stored {document.name} as document {document.pk}.")
        return HttpResponseRedirect(reverse("console:document", args=[document.pk]))
    context = {"form": form, "upload": upload}
    return show(request, "console/document_add.html", "Add documents", context, status=form.answer_code)


def _told(form: IntakeForm, document: Document | None) -> JsonResponse:
    """Return what became of a file, for the script of the page."""
    named = document or form.there
    told = {"document": named.pk, "page": reverse("console:document", args=[named.pk])} if named else {}
    if document:
        return JsonResponse(told, status=201)
    errors = " ".join(str(error) for errors in form.errors.values() for error in errors)
    status = form.answer_code if form.answer_code >= 400 else 409 if form.there else 422
    return JsonResponse({**told, "error": errors}, status=status)


@page
def document(request: HttpRequest, id: int) -> HttpResponseBase:
    operated = Workspace.objects.operated_by(request.user).filter(pk=OuterRef("workspace_id"))
    document: Document = find(
        request, Document.objects.listed().select_related("sender").annotate(may=Exists(operated)), id, "document"
    )
    processing, is_processing = processing_of(document), document.status == Document.Status.PROCESSING
    lines, also_found = boxes.lines_of(id)
    # While the document is being processed, its type may change, so there is nothing to choose yet.
    known = types.WorkspaceTypes() if is_processing else types.of_workspace(document.workspace_id)
    shown = lines if "fields" in request.GET else lines[: boxes.MOST_SHOWN]
    may = getattr(document, "may", False) and document.purged_at is None
    of_document = run_listing.RunFilter(input_document_id=id)
    runs = run_listing.runs(request.user, of_document, run_listing.PageRequest(LATEST_RUNS)).listed()
    latest_runs = list(runs.order_by("-pk")[:LATEST_RUNS])
    # A document that is processed for the first time has no tables yet.
    has_tables = not is_processing or bool(document.embedding_model)
    tables = list(document.tables.order_by("pk")[: MOST_TABLES + 1]) if has_tables else []
    context = {
        "document": document,
        "tables": tables[:MOST_TABLES],
        "more_tables": len(tables) > MOST_TABLES,
        "sentence": in_words(document, processing),
        "may": may,
        "configurations": _configurations_of(document) if may else [],
        "latest_configuration": latest_runs[0].configuration_id if latest_runs else None,
        "explanation": why.explain(document) if is_processing else None,
        "processing": processing,
        "lines": shown,
        "left_out": len(lines) - len(shown),
        "unsure": sum(line.is_unsure for line in lines),
        "also_found": also_found[: boxes.MOST_SHOWN],
        "also_found_count": len(also_found),
        "type": known.get(document.type),
        "types": [] if is_processing else known.all(),
        "problems": DocumentProblem.objects.filter(document=id).open().order_by("pk") if document.to_review else [],
        "page": page_of(request, document, shown),
        "runs": latest_runs,
        "events": Event.objects.about(DOCUMENT_STATES.kind, id).order_by("-sequence")[:LATEST_EVENTS],
        "longest": {"name": LONGEST_NAME, "value": LONGEST_VALUE},
    }
    # While the document is being processed, follow all events, because its stages write events of their own.
    live = reverse("console:live") if is_processing else ""
    return show(request, "console/document.html", f"Document {id}", context, live=live)


@page
def page_image(request: HttpRequest, id: int, number: int) -> HttpResponseBase:
    document: Document = find(request, Document.objects.listed(), id, "document")
    return page_images.document_response(document, number)


@act
def correct(request: HttpRequest, id: int) -> HttpResponseBase:
    _operated_document(request, id)
    name, value = request.POST.get("name", ""), request.POST.get("value", "")
    try:
        correction = corrections.correct(id, name, value, actor=actor_of(request))
    except InvalidCorrection as error:
        messages.error(request, formatting.after("The correction was not saved", str(error)))
    else:
        if correction is None:
            raise Http404("This document no longer exists.")
        messages.success(request, str(correction))
    return back(request, reverse("console:document", args=[id]))


@act
def withdraw(request: HttpRequest, id: int) -> HttpResponseBase:
    _operated_document(request, id)
    name = request.POST.get("name", "")
    if corrections.withdraw(id, name, actor=actor_of(request)):
        messages.success(request, f"Withdrew the correction of {corrections.quote(name)}.")
    else:
        messages.warning(request, f"There is no correction of {corrections.quote(name)} to withdraw.")
    return back(request, reverse("console:document", args=[id]))


@act
def choose_type(request: HttpRequest, id: int) -> HttpResponseBase:
    _operated_document(request, id)
    name = request.POST.get("type", "")
    try:
        is_changed = type_recognition.choose(id, name, actor=actor_of(request))
    except UnknownType as error:
        messages.error(request, formatting.after("The type was not changed", str(error)))
    else:
        if is_changed is None:
            raise Http404("This document no longer exists.")
        said = f"The type is {name!r} now." if name else "ADE decides the type again."
        messages.success(request, said if is_changed else "The document has this type already.")
    return back(request, reverse("console:document", args=[id]))


@act
def dismiss(request: HttpRequest, id: int) -> HttpResponseBase:
    problem: DocumentProblem = find(request, DocumentProblem.objects.listed(), id, "problem")
    must_operate(request, problem.document.workspace_id)
    outcome = operations.DISMISS.apply_to(problem, actor=actor_of(request)).outcome
    report(request, outcome, sentence(DocumentProblem, Counter([outcome])))
    return back(request, reverse("console:document", args=[problem.document_id]))


@act
def reprocess(request: HttpRequest, id: int) -> HttpResponseBase:
    outcome = reprocessing.reprocess(_operated_document(request, id), actor=actor_of(request), in_bulk=False)
    report(request, outcome, sentence(Document, Counter([outcome])))
    return back(request, reverse("console:document", args=[id]))


def _configurations_of(document: Document) -> list[tuple[int, str]]:
    """Return ID and name of the configurations that can run over a document."""
    rows = Configuration.objects.filter(workspace=document.workspace_id).order_by("name")
    return list(rows.values_list("pk", "name")[:MOST_CONFIGURATIONS])


def _operated_document(request: HttpRequest, id: int) -> Document:
    document: Document = find(request, Document.objects.listed(), id, "document")
    must_operate(request, document.workspace_id)
    return document
