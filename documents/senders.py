"""Finds the sender of a document by what names it: VAT id, tax number, IBAN, the domain of its e-mail, or its name."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from django.db import IntegrityError, transaction
from django.db.models import Q

from ade_understanding.learning.lessons import document_of
from ade_understanding.learning.spellings import folded
from documents.models import Document, Sender, SenderIdentity, SenderLesson, SenderUpdate

Kind = SenderIdentity.Kind
# The fields that name a sender, the most reliable first.
FIELDS: Mapping[str, SenderIdentity.Kind] = {
    "vat_id": Kind.VAT_ID,
    "tax_number": Kind.TAX_NUMBER,
    "iban": Kind.IBAN,
    "email": Kind.DOMAIN,
    "seller": Kind.NAME,
}
# A value that is less sure than this names nobody.
SURE_FROM = 0.65
# Addresses of these providers say nothing about the sender.
COMMON_DOMAINS = frozenset(
    {
        *("aol.com", "arcor.de", "bluewin.ch", "freenet.de", "gmail.com", "gmx.at", "gmx.ch", "gmx.de", "gmx.net"),
        *("googlemail.com", "hotmail.com", "hotmail.de", "icloud.com", "live.com", "live.de", "mail.de", "mailbox.org"),
        *("me.com", "msn.com", "online.de", "orange.fr", "outlook.com", "outlook.de", "posteo.de", "proton.me"),
        *("protonmail.com", "t-online.de", "web.de", "yahoo.com", "yahoo.de", "ymail.com"),
    }
)
_FEWEST_CHARACTERS = {Kind.VAT_ID: 6, Kind.TAX_NUMBER: 8, Kind.IBAN: 12, Kind.DOMAIN: 4, Kind.NAME: 4}
_LONGEST = 200
# Identities of one workspace that are looked for on a page, the latest ones.
MOST_KNOWN = 2000
_STRENGTH = {Kind.VAT_ID: 3, Kind.TAX_NUMBER: 3, Kind.IBAN: 3, Kind.DOMAIN: 2, Kind.NAME: 2}
# Several companies of a group may have these in common.
_WEAK = (Kind.DOMAIN, Kind.NAME)
_ALL = 2**63 - 1


class Identity(NamedTuple):
    kind: str
    value: str


def identities_of(fields: Iterable[Mapping[str, Any]]) -> list[Identity]:
    """Return what names the sender, the most reliable first: one identity of each kind."""
    best: dict[str, tuple[float, str]] = {}
    for field in fields:
        name, confidence = str(field["name"]), field.get("confidence")
        confidence = 1.0 if confidence is None else float(confidence)
        if name in FIELDS and confidence >= SURE_FROM and confidence > best.get(name, (0.0, ""))[0]:
            best[name] = confidence, str(field["value"])
    found = (identity(kind, best[name][1]) for name, kind in FIELDS.items() if name in best)
    return [each for each in found if each]


def identity(kind: str, value: str) -> Identity | None:
    """Return the identity in its normal form, or None if the value names nobody."""
    if kind == Kind.NAME:
        value = " ".join("".join(c if c.isalnum() else " " for c in value.casefold()).split())
    elif kind == Kind.DOMAIN:
        value = value.casefold().rpartition("@")[2].strip()
        value = "" if value in COMMON_DOMAINS or "." not in value else value
    else:
        value = "".join(filter(str.isalnum, value)).upper()
    return Identity(kind, value) if _FEWEST_CHARACTERS[Kind(kind)] <= len(value) <= _LONGEST else None


def identify(
    workspace_id: int,
    fields: Sequence[Mapping[str, Any]],
    *,
    pages: Sequence[Mapping[str, Any]] = (),
    current: int | None = None,
) -> int | None:
    """Return the sender of a document with these fields, and create it if it is new. None if nothing names it.

    If the fields name no known sender, one whose identities are printed on the `pages` is taken. Identities that the
    sender did not have yet are added. If nobody has them, they belong to the `current` sender, unless it has a
    different VAT id. The caller must have opened a transaction.
    """
    wanted = identities_of(fields)
    owners = _owners(workspace_id, wanted) if wanted else {}
    if _owner(wanted, owners) is None and pages:
        current = printed_on(workspace_id, pages, fields) or current
    if not wanted:
        return current
    return find_or_create(workspace_id, wanted, _name(wanted, fields), current=current, owners=owners)


def find_or_create(
    workspace_id: int,
    wanted: Sequence[Identity],
    name: str,
    *,
    current: int | None = None,
    owners: Mapping[Identity, int] | None = None,
) -> int:
    """Return the sender with these identities, the most reliable first. A new one gets this name."""
    owners = _owners(workspace_id, wanted) if owners is None else owners
    sender_id = _owner(wanted, owners)
    if sender_id is None and current and not _has_other_vat_id(current, wanted):
        sender_id = current
    missing = [each for each in wanted if each not in owners]
    if sender_id:
        for other in {owners[each] for each in wanted if each in owners and each.kind in _WEAK} - {sender_id}:
            _merge(other, sender_id)
    if sender_id and not missing:
        return sender_id
    try:
        with transaction.atomic():
            if sender_id is None:
                sender_id = Sender.objects.create(workspace_id=workspace_id, name=name).pk
            SenderIdentity.objects.bulk_create(
                SenderIdentity(sender_id=sender_id, workspace_id=workspace_id, kind=each.kind, value=each.value)
                for each in missing
            )
    except IntegrityError:
        # Another transaction has just created a sender with one of these identities.
        found = _owner(wanted, _owners(workspace_id, wanted)) or sender_id
        if found is None:
            raise
        return found
    return sender_id


def printed_on(
    workspace_id: int, pages: Sequence[Mapping[str, Any]], fields: Sequence[Mapping[str, Any]] = ()
) -> int | None:
    """Return the known sender with the most identities on these pages, the most reliable ones counting most.

    A sender that the fields name as the buyer is left out.
    """
    document = document_of(pages)
    printed = "".join(
        word for sheet in document.sheets for cells in sheet.lines for cell in cells for word in cell.text
    )
    compact = "".join(filter(str.isalnum, printed)).upper()
    buyers = {folded(str(field["value"])) for field in fields if str(field["name"]).startswith("buyer")}
    scores: dict[int, int] = defaultdict(int)
    rows = SenderIdentity.objects.filter(workspace=workspace_id).order_by("-id")
    for kind, value, sender_id in rows.values_list("kind", "value", "sender")[:MOST_KNOWN]:
        if folded(value) in buyers:
            scores[sender_id] = -len(_STRENGTH) * max(_STRENGTH.values())
        elif "".join(filter(str.isalnum, value)).upper() in compact or (
            kind == Kind.NAME and document.with_value("text", value, "")
        ):
            scores[sender_id] += _STRENGTH[Kind(kind)]
    best = sorted(((score, id) for id, score in scores.items() if score > 0), reverse=True)[:2]
    # If two senders are named equally well, nothing says which one it is.
    is_clear = len(best) == 1 or (len(best) == 2 and best[0][0] > best[1][0])
    return best[0][1] if is_clear else None


def _merge(other: int, into: int) -> None:
    """Make one sender of two that turned out to be the same, unless people have taught something about the other."""
    is_known = SenderIdentity.objects.filter(sender=other).exclude(kind__in=_WEAK).exists()
    if not is_known and not SenderLesson.objects.filter(sender=other).exists():
        SenderIdentity.objects.filter(sender=other).update(sender=into)
        Document.objects.filter(sender=other).update(sender=into)
        Sender.objects.filter(pk=other).delete()


def update_documents(sender_id: int, *, applied_by: str = "") -> None:
    """Have the documents of a sender updated by `documents/sender_updates.py`. What is known about it has changed.

    With `applied_by`, its lessons also give values to documents that had none.
    """
    defaults: dict[str, Any] = {"below": _ALL}
    if applied_by:
        defaults["applied_by"] = applied_by
    SenderUpdate.objects.update_or_create(sender_id=sender_id, defaults=defaults)


def name_of(seller: str) -> str:
    return " ".join(seller.split())[:_LONGEST]


def possible_documents(sender: Sender) -> Any:
    """Return the documents of a sender, and those of its workspace whose sender is not known."""
    nobodys = Q(sender__isnull=True, workspace=sender.workspace_id, words_job__isnull=False)
    return Document.objects.filter(Q(sender=sender) | nobodys, purged_at__isnull=True)


def _owners(workspace_id: int, wanted: Sequence[Identity]) -> dict[Identity, int]:
    rows = SenderIdentity.objects.filter(workspace=workspace_id, value__in=[each.value for each in wanted])
    owners = {Identity(kind, value): id for kind, value, id in rows.values_list("kind", "value", "sender")}
    return {each: owners[each] for each in wanted if each in owners}


def _owner(wanted: Sequence[Identity], owners: Mapping[Identity, int]) -> int | None:
    """Return the owner of the most reliable identity.

    Companies may share an account or a name: the owner of a less reliable identity is another sender if it has a
    different VAT id.
    """
    first = next((each for each in wanted if each in owners), None)
    if first is None:
        return None
    if first.kind != Kind.VAT_ID and _has_other_vat_id(owners[first], wanted):
        return None
    return owners[first]


def _has_other_vat_id(sender_id: int, wanted: Sequence[Identity]) -> bool:
    vat_id = next((each.value for each in wanted if each.kind == Kind.VAT_ID), None)
    others = SenderIdentity.objects.filter(sender=sender_id, kind=Kind.VAT_ID).exclude(value=vat_id)
    return vat_id is not None and others.exists()


def _name(wanted: Sequence[Identity], fields: Iterable[Mapping[str, Any]]) -> str:
    """Return a name for people: the seller as printed, otherwise the domain, otherwise the best identity."""
    if any(each.kind == Kind.NAME for each in wanted):
        name = next(str(field["value"]) for field in fields if field["name"] == "seller" and field["value"])
        return name_of(name)
    return next((each.value for each in wanted if each.kind == Kind.DOMAIN), wanted[0].value)
