import json
import sys
from pathlib import Path
from typing import Any

from documents import lesson_files, operations
from documents.lesson_files import MOST_BYTES, InvalidFile
from documents.lesson_previews import preview
from documents.models import Document, Sender, SenderIdentity, SenderLesson
from work.operations.commands import (
    AddVerb,
    Answer,
    Exit,
    Failure,
    NounCommand,
    Row,
    actor_of,
    add_actor,
    add_ids,
    add_limit,
    clean,
    fields,
    not_found,
    of_each,
    table,
)
from work.operations.outcomes import Outcome
from work.operations.previews import Operation
from workspaces.commands import find_workspace

COLUMNS = ("id", "workspace__name", "name", "created_at", "switched_off_at", "switched_off_by", "applied_at")
# The file name that stands for standard input or standard output.
STANDARD = "-"


class Command(NounCommand):
    help = "Senders of documents, and what ADE has learned about them."

    def add_verbs(self, add: AddVerb) -> None:
        listing = add("list", self.list_senders, "List senders, newest first.")
        listing.add_argument("--workspace", metavar="WORKSPACE", help="name or id")
        add_limit(listing)
        add_ids(add("show", self.show, "Show a sender with its identities and lessons."))
        add_ids(add("preview", self.preview, "Show what its lessons would change on its past documents."))
        applying = add("apply", self.apply, "Use the lessons of senders for their past documents.")
        off = add("off", self.switch_off, "Switch senders off: their lessons are not used, and give no values.")
        on = add("on", self.switch_on, "Switch senders on again, for new documents.")
        forgetting = add("forget", self.forget, "Forget senders: delete what is known about them.")
        for parser in (applying, off, on, forgetting):
            add_ids(parser, many=True)
            add_actor(parser)
        exporting = add("export", self.export, "Write what is known about a sender as JSON.")
        add_ids(exporting)
        exporting.add_argument(
            "file", metavar="FILE", nargs="?", default=STANDARD, help="output file (default: standard output)"
        )
        importing = add("import", self.take_in, "Read what is known about a sender into a workspace.")
        importing.add_argument("file", metavar="FILE", help="exported file; - for standard input")
        importing.add_argument("--workspace", metavar="WORKSPACE", required=True, help="name or id")
        add_actor(importing)

    def list_senders(self, *, workspace: str | None, limit: int, before: int | None, **_: Any) -> Answer:
        senders = Sender.objects.kept().order_by("-id")
        senders = senders.filter(workspace=find_workspace(workspace)) if workspace else senders
        senders = senders.filter(pk__lt=before) if before else senders
        rows = [_row(row) for row in senders.values(*COLUMNS)[:limit]]
        return Answer({"senders": rows}, table(rows, "id", "workspace", "name", "switched_off_at", "created_at"))

    def show(self, *, id: int, **_: Any) -> Answer:
        sender = _find(id)
        identities = list(SenderIdentity.objects.filter(sender=id).order_by("kind", "value").values("kind", "value"))
        lessons = [
            {
                "id": lesson.pk,
                "field": lesson.field,
                "printed": bool(lesson.method),
                "learned_from_id": lesson.learned_from_id,
                "right": lesson.right,
                "wrong": lesson.wrong,
                "switched_off_at": lesson.switched_off_at,
            }
            for lesson in SenderLesson.objects.filter(sender=id).counted().order_by("field", "id")
        ]
        number = Document.objects.filter(sender=id).count()
        row = _row(Sender.objects.filter(pk=sender.pk).values(*COLUMNS).get()) | {"documents": number}
        shown = ("id", "field", "printed", "learned_from_id", "right", "wrong", "switched_off_at")
        parts = [fields(row), table(identities, "kind", "value"), table(lessons, *shown)]
        return Answer(row | {"identities": identities, "lessons": lessons}, "\n\n".join(parts))

    def preview(self, *, id: int, **_: Any) -> Answer:
        seen = preview(_find(id))
        rows = [vars(change) for change in seen.changes]
        data = {"id": id, "documents": seen.documents, "is_cut": seen.is_cut, "counts": seen.counts, "changes": rows}
        shown = table(rows, "document_id", "field", "before", "after", "verdict")
        return Answer(data, f"{shown}\n\n{seen.sentence}")

    def apply(self, *, ids: list[int], actor: str | None, **_: Any) -> Answer:
        return _each(operations.SENDER_APPLY, ids, actor)

    def switch_off(self, *, ids: list[int], actor: str | None, **_: Any) -> Answer:
        return _each(operations.SENDER_OFF, ids, actor)

    def switch_on(self, *, ids: list[int], actor: str | None, **_: Any) -> Answer:
        return _each(operations.SENDER_ON, ids, actor)

    def forget(self, *, ids: list[int], actor: str | None, **_: Any) -> Answer:
        return _each(operations.SENDER_FORGET, ids, actor)

    def export(self, *, id: int, file: str, **_: Any) -> Answer:
        content = lesson_files.export(_find(id))
        text = json.dumps(content, ensure_ascii=False, indent=1)
        if file == STANDARD:
            return Answer({"path": None, "sender": content}, text)
        try:
            with Path(file).open("x", encoding="utf-8") as target:
                target.write(f"{text}\n")
        except OSError as error:
            message = f"Could not write {file!r}: {error.strerror or error}. Choose another path."
            raise Failure(message, Exit.REFUSED, "not_written", path=file) from error
        return Answer({"path": file, "sender": content}, clean(f"Wrote {content['name']} to {file}."))

    def take_in(self, *, file: str, workspace: str, actor: str | None, **_: Any) -> Answer:
        into = find_workspace(workspace)
        try:
            content = lesson_files.read(_read(file))
            sender, number = lesson_files.take_in(into.pk, content, actor=actor_of(actor))
        except InvalidFile as error:
            raise Failure(f"{file}: {error}", Exit.REFUSED, "bad_file", path=file) from error
        said = f"Sender {sender.pk}, {sender.name}: {number} new lesson{'s' * (number != 1)}."
        return Answer({"id": sender.pk, "name": sender.name, "new_lessons": number}, clean(said))


def _find(id: int) -> Sender:
    sender = Sender.objects.kept().filter(pk=id).first()
    if sender is None:
        raise not_found("sender", id, "`manage.py sender list` shows them")
    return sender


def _each(operation: Operation, ids: list[int], actor: str | None) -> Answer:
    def one(sender: Sender) -> tuple[Outcome, Row]:
        return operation.apply_to(sender, actor=actor_of(actor)).outcome, {}

    return of_each("sender", ids, Sender.objects.kept().in_bulk(ids), one)


def _row(values: Row) -> dict[str, Any]:
    return {name.removesuffix("__name"): value for name, value in values.items()}


def _read(file: str) -> bytes:
    """Read a file up to one byte more than the limit, so that too long a file is noticed."""
    try:
        if file == STANDARD:
            return sys.stdin.buffer.read(MOST_BYTES + 1)
        with Path(file).open("rb") as source:
            return source.read(MOST_BYTES + 1)
    except FileNotFoundError as error:
        raise not_found("file", file, "name a file that `manage.py sender export` wrote, or -") from error
    except OSError as error:
        message = f"Could not read {file!r}: {error.strerror or error}."
        raise Failure(message, Exit.REFUSED, "not_readable", path=file) from error
