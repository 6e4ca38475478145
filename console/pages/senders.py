"""The list of senders, and the page of one sender with what ADE has learned about it."""

import json
from collections import Counter
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse

from console import lists
from console.frame import act, actor_of, back, find, must_operate, operates, page, report, show
from documents import lesson_files, operations
from documents.learning import confidence_of
from documents.lesson_previews import preview
from documents.models import Document, Sender, SenderIdentity, SenderLesson, SenderUpdate
from work.operations.outcomes import sentence
from work.operations.previews import Operation

LATEST_DOCUMENTS = 10
MOST_LESSONS = 200


@page
def senders(request: HttpRequest) -> HttpResponseBase:
    slice = lists.slice_of(request, Sender.objects.for_user(request.user).listed())
    return show(request, "console/senders.html", "Senders", {"slice": slice})


@page
def sender(request: HttpRequest, id: int) -> HttpResponseBase:
    sender: Sender = find(request, Sender.objects.listed(), id, "sender")
    lessons = SenderLesson.objects.filter(sender=id).counted().order_by("field", "id")[:MOST_LESSONS]
    documents = Document.objects.filter(sender=id).only("pk", "name", "status", "purged_at", "created_at")
    context = {
        "sender": sender,
        "may": operates(request, sender.workspace_id),
        "identities": SenderIdentity.objects.filter(sender=id).order_by("kind", "value"),
        "lessons": [(lesson, confidence_of(lesson.right, lesson.wrong)) for lesson in lessons],
        "documents": documents.order_by("-pk")[:LATEST_DOCUMENTS],
        "is_updating": SenderUpdate.objects.filter(sender=id).exists(),
    }
    return show(request, "console/sender.html", f"Sender {id}", context)


@page
def show_preview(request: HttpRequest, id: int) -> HttpResponseBase:
    sender: Sender = find(request, Sender.objects.listed(), id, "sender")
    context = {"sender": sender, "preview": preview(sender), "may": operates(request, sender.workspace_id)}
    return show(request, "console/sender_preview.html", "Preview", context)


@page
def export(request: HttpRequest, id: int) -> HttpResponseBase:
    sender: Sender = find(request, Sender.objects.listed(), id, "sender")
    headers = {"Content-Disposition": f'attachment; filename="sender-{id}.json"'}
    text = json.dumps(lesson_files.export(sender), ensure_ascii=False, indent=1)
    return HttpResponse(text, "application/json; charset=utf-8", headers=headers)


@act
def apply(request: HttpRequest, id: int) -> HttpResponseBase:
    return _operate_sender(request, id, operations.SENDER_APPLY)


@act
def switch_off(request: HttpRequest, id: int) -> HttpResponseBase:
    return _operate_sender(request, id, operations.SENDER_OFF)


@act
def switch_on(request: HttpRequest, id: int) -> HttpResponseBase:
    return _operate_sender(request, id, operations.SENDER_ON)


@act
def forget(request: HttpRequest, id: int) -> HttpResponseBase:
    _operate_sender(request, id, operations.SENDER_FORGET)
    # The page with the button is gone.
    return HttpResponseRedirect(reverse("console:senders"))


@act
def switch_lesson_off(request: HttpRequest, id: int) -> HttpResponseBase:
    return _operate_lesson(request, id, operations.LESSON_OFF)


@act
def switch_lesson_on(request: HttpRequest, id: int) -> HttpResponseBase:
    return _operate_lesson(request, id, operations.LESSON_ON)


def _operate_sender(request: HttpRequest, id: int, operation: Operation) -> HttpResponseBase:
    sender: Sender = find(request, Sender.objects.listed(), id, "sender")
    return _operate(request, sender, sender.workspace_id, operation, id)


def _operate_lesson(request: HttpRequest, id: int, operation: Operation) -> HttpResponseBase:
    lesson: SenderLesson = find(request, SenderLesson.objects.listed(), id, "lesson")
    return _operate(request, lesson, lesson.sender.workspace_id, operation, lesson.sender_id)


def _operate(
    request: HttpRequest, row: Any, workspace_id: int, operation: Operation, sender_id: int
) -> HttpResponseBase:
    must_operate(request, workspace_id)
    outcome = operation.apply_to(row, actor=actor_of(request)).outcome
    report(request, outcome, sentence(type(row), Counter([outcome])))
    return back(request, reverse("console:sender", args=[sender_id]))
