"""Writes what is known about a sender as JSON, and reads it into a workspace, which may be another one."""

import json
from typing import Any

from django.db import transaction

from ade_understanding.learning.checks import InvalidLesson, check
from documents import senders
from documents.fields import LONGEST_NAME, clean_name
from documents.models import Sender, SenderIdentity, SenderLesson
from documents.senders import name_of
from work import clock

VERSION = 1
MOST_BYTES = 1 << 20
MOST_LESSONS = 500
_MOST_COUNTED = 10**6


class InvalidFile(Exception):
    """The file cannot be imported; the message says why."""


def export(sender: Sender) -> dict[str, Any]:
    identities = SenderIdentity.objects.filter(sender=sender).order_by("kind", "value").values("kind", "value")
    lessons = SenderLesson.objects.filter(sender=sender).exclude(method={}).counted().order_by("field", "id")
    return {
        "version": VERSION,
        "name": sender.name,
        "identities": list(identities),
        "lessons": [
            {
                "field": lesson.field,
                "method": lesson.method,
                "right": lesson.right,
                "wrong": lesson.wrong,
                "switched_off": lesson.switched_off_at is not None,
            }
            for lesson in lessons
        ],
    }


def read(data: bytes) -> dict[str, Any]:
    """Return the content of an exported file. Raises InvalidFile."""
    if len(data) > MOST_BYTES:
        raise InvalidFile(f"The file has {len(data):,} bytes, but at most {MOST_BYTES:,} are allowed.")
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidFile(f"The file is not JSON: {error}.") from error
    _check(content)
    checked: dict[str, Any] = content
    return checked


def take_in(workspace_id: int, content: dict[str, Any], *, actor: str) -> tuple[Sender, int]:
    """Add the content of a file to the sender with its identities, or to a new one. Return the number of new lessons.

    Lessons that the sender has already are left as they are. Raises InvalidFile.
    """
    _check(content)
    identities = [senders.identity(each["kind"], each["value"]) for each in content["identities"]]
    known = [each for each in identities if each]
    if not known:
        raise InvalidFile("The file has no identity of a sender, such as a VAT id. Export it again.")
    with transaction.atomic():
        known.sort(key=lambda each: list(senders.FIELDS.values()).index(SenderIdentity.Kind(each.kind)))
        sender = Sender.objects.get(pk=senders.find_or_create(workspace_id, known, name_of(content["name"])))
        there = [(lesson.field, lesson.method) for lesson in SenderLesson.objects.filter(sender=sender)]
        new = [each for each in content["lessons"] if (each["field"], each["method"]) not in there]
        off = {"switched_off_at": clock.now(), "switched_off_by": actor[:150]}
        SenderLesson.objects.bulk_create(
            SenderLesson(
                sender=sender,
                field=each["field"],
                method=each["method"],
                imported_right=each["right"],
                imported_wrong=each["wrong"],
                **(off if each["switched_off"] else {}),
            )
            for each in new
        )
    return sender, len(new)


def _check(content: Any) -> None:
    if not isinstance(content, dict) or content.get("version") != VERSION:
        raise InvalidFile(f"The file was not exported by this version of ADE: its version is not {VERSION}.")
    name, identities, lessons = (content.get(key) for key in ("name", "identities", "lessons"))
    if not isinstance(name, str) or not name.strip() or "\0" in name:
        raise InvalidFile("The name of the sender is missing.")
    kinds = set(SenderIdentity.Kind.values)
    if not isinstance(identities, list) or not all(
        isinstance(each, dict) and each.get("kind") in kinds and isinstance(each.get("value"), str)
        for each in identities
    ):
        raise InvalidFile(f"Each identity needs a value and a kind: {', '.join(sorted(kinds))}.")
    if not isinstance(lessons, list) or len(lessons) > MOST_LESSONS:
        raise InvalidFile(f"The file needs a list of at most {MOST_LESSONS} lessons.")
    for number, lesson in enumerate(lessons, 1):
        try:
            _check_lesson(lesson)
        except InvalidLesson as error:
            raise InvalidFile(f"Lesson {number} is invalid: {error}") from error


def _check_lesson(lesson: Any) -> None:
    if not isinstance(lesson, dict) or not isinstance(field := lesson.get("field"), str):
        raise InvalidLesson("It names no field.")
    if not 1 <= len(field) <= LONGEST_NAME or clean_name(field) != field:
        raise InvalidLesson(f"The name of its field must have 1 to {LONGEST_NAME} characters.")
    for key in ("right", "wrong"):
        number = lesson.get(key)
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= _MOST_COUNTED:
            raise InvalidLesson(f"“{key}” must be a number of documents.")
    if not isinstance(lesson.get("switched_off"), bool):
        raise InvalidLesson("“switched_off” must be true or false.")
    check(lesson.get("method"))
