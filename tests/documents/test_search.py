import random
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from documents import embedding
from documents.embedding import EmbeddingFailed
from documents.models import DocumentChunk
from documents.search import MOST_AT_ONCE, MOST_IN_ALL, MOST_OF_A_DOCUMENT, search
from tests.documents.searched import published
from tests.factories import MembershipFactory, UserFactory, WorkspaceFactory, force_status
from work import clock
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db

APPLES = "The delivery of apples arrived on time and nobody complained."
INVOICE = "This invoice has to be paid within thirty days of its receipt."
BILL = "Payment of the bill is due one month after you have got it."
CATS = "Cats like fish and sleep most of the day."


def everywhere():
    return Workspace.objects.all()


def names(found):
    return [hit.name for hit in found.hits]


def by_words(text, **options):
    return names(search(everywhere(), text, by="words", **options))


@pytest.fixture
def letters(workspace):
    for name, text in {"apples": APPLES, "invoice": INVOICE, "bill": BILL, "cats": CATS}.items():
        published(workspace, text, name=name)


# Words


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("apples", {"apples"}),
        ("ARRIVED delivery", {"apples"}),
        ("delivery cats", set()),
        ("the", {"apples", "bill", "cats"}),
        ("the -apples", {"bill", "cats"}),
        ('the -"the delivery"', {"bill", "cats"}),
        ('"arrived on time"', {"apples"}),
        ('"time on arrived"', set()),
        ('"arrived time"', set()),
        ("deliv*", {"apples"}),
        ("deliv", set()),
        ('"paid with*"', {"invoice"}),
        ("of*", {"apples", "invoice", "bill", "cats"}),
        ("-apples", set()),
        ("nothing-of-this-kind", set()),
    ],
)
def test_words_are_found_as_they_were_typed(letters, typed, expected):
    assert set(by_words(typed)) == expected


@pytest.mark.parametrize("stored", ["Müller", "müller", "MÜLLER", "Muller", "MULLER", "mu\u0308ller"])
@pytest.mark.parametrize("typed", ["Müller", "müller", "MULLER", "mull*", '"MU\u0308LLER"'])
def test_case_and_accents_make_no_difference(workspace, stored, typed):
    published(workspace, f"Dear {stored}, thank you.", name="letter")

    assert by_words(typed) == ["letter"]


@pytest.mark.parametrize("typed", ["INV-2024-001", "inv 2024", "2024", "“2024”", "inv/2024/001", '"2024 001"'])
def test_numbers_with_signs_in_them_are_found_by_their_parts(workspace, typed):
    published(workspace, "Our reference: INV-2024-001, see above.", name="letter")

    assert by_words(typed) == ["letter"]


@pytest.mark.parametrize(
    "typed",
    [
        *("apples' OR 1=1 --", "apples); DROP TABLE documents; --", "apples:*", "apples & !cats", "apples <-> cats"),
        *('apples"', "apples NEAR cats", "words:apples", "{words}: apples", "^apples", "apples + cats", "a%b_c\\"),
        *("apples\0", "\0", "\ud800apples", "(((((", "'", "''", '"', "*", "-", "- -", "%", "\\", "$$", "🍎"),
        *("x" * 100_000, "a " * 10_000, "-b " * 1000, '"' * 999),
    ],
)
@pytest.mark.parametrize("by", ["words", "both"])
def test_nothing_that_is_typed_is_an_error(letters, typed, by):
    found = search(everywhere(), typed, by=by)

    assert DocumentChunk.objects.count() == 4
    assert len(found.hits) <= 4


def test_any_mixture_of_signs_finds_the_same_by_the_index_and_without_it(letters, monkeypatch):
    chance = random.Random(1)
    pieces = ["apples", "THE", "of", '"', "-", "*", " ", "deliv", "cats", "(", "'", ":", "\0", "on time", "&", "|"]
    typed = ["".join(chance.choices(pieces, k=chance.randint(1, 8))) for _ in range(150)]
    by_index = [set(by_words(each)) for each in typed]
    assert any(by_index)
    monkeypatch.setattr("documents.fulltext.has_index", lambda: False)
    if connection.vendor == "postgresql":
        return  # its column has no text to look at

    assert [set(by_words(each)) for each in typed] == by_index


@pytest.mark.only_on("sqlite")
def test_without_an_index_of_words_it_says_so(letters, monkeypatch):
    monkeypatch.setattr("documents.fulltext.has_index", lambda: False)

    found = search(everywhere(), "the -cats", by="words")

    assert names(found) == ["bill", "apples"]
    assert "no index of words" in found.notes[0]


def test_who_has_a_word_more_often_stands_first(workspace):
    published(workspace, f"apples {CATS}", name="once")
    published(workspace, f"apples apples apples {CATS}", name="often")

    assert by_words("apples") == ["often", "once"]


# Meaning


def test_what_means_the_same_is_found_without_its_words(letters):
    found = search(everywhere(), "when must I pay my account", by="meaning", limit=2)

    assert set(names(found)) == {"invoice", "bill"}
    assert {hit.why for hit in found.hits} == {"meaning"}
    assert found.hits[0].nearness > found.hits[1].nearness > 0
    assert found.how == ("meaning",)


def test_what_is_excluded_or_quoted_holds_for_meaning_too(letters):
    assert "cats" not in names(search(everywhere(), "fish for pets -sleep", by="meaning"))
    assert names(search(everywhere(), '"thirty days" money', by="meaning")) == ["invoice"]


def test_both_ways_together_say_why_each_was_found(letters):
    found = search(everywhere(), "invoice")

    first, *others = found.hits
    assert (first.name, first.why, first.words_place, first.meaning_place) == ("invoice", "both", 1, 1)
    assert {hit.why for hit in others} == {"meaning"}
    assert all(first.score > hit.score for hit in others)
    assert found.how == ("words", "meaning")


def test_vectors_of_another_model_are_not_compared_and_that_is_said(workspace):
    published(workspace, CATS, name="theirs", model="another model")
    published(workspace, APPLES, name="ours")

    found = search(everywhere(), "pets -nothing", by="meaning")

    assert names(found) == ["ours"]
    assert found.notes == (
        f"1 document has vectors of another model than {embedding.model()} and can be found by words only. "
        "Process it again.",
    )
    assert set(by_words("fish OR apples -or fish")) == set()
    assert by_words("fish") == ["theirs"]


def test_nobody_is_told_of_vectors_elsewhere(workspace):
    published(WorkspaceFactory(), CATS, model="another model")
    published(workspace, APPLES)

    assert search(Workspace.objects.filter(pk=workspace.pk), "pets", by="meaning").notes == ()


def test_without_an_answer_of_the_model_words_are_found_and_that_is_said(letters, monkeypatch):
    def fail(text):
        raise EmbeddingFailed("OpenAI did not answer within 5 s.")

    monkeypatch.setattr("documents.embedding.of_query", fail)

    found = search(everywhere(), "apples")

    assert (names(found), found.how) == (["apples"], ("words",))
    said = "because the model for meaning failed (OpenAI did not answer within 5 s)"
    assert found.notes[0] == f"Searched by words only, {said}."


def test_chunks_without_vectors_are_found_by_their_words(workspace):
    published(workspace, APPLES, name="plain", model="")

    found = search(everywhere(), "apples")

    assert [(hit.name, hit.why, hit.nearness) for hit in found.hits] == [("plain", "words", None)]


# Permissions


def test_nothing_of_another_workspace_appears_nor_changes_the_order(workspace, olga):
    theirs = WorkspaceFactory(name="Theirs")
    for n in range(150):
        published(theirs, f"{APPLES} {n}", name="theirs")
    published(workspace, f"{CATS} apples", name="mine")
    visible = Workspace.objects.for_user(olga)

    found = search(visible, "apples")

    assert [(hit.name, hit.words_place, hit.meaning_place) for hit in found.hits] == [("mine", 1, 1)]
    assert not found.has_more
    assert names(search(visible, "apples", by="meaning")) == ["mine"]
    assert names(search(visible, "complained")) == ["mine"]
    assert names(search(visible, "complained", by="words")) == []


def test_who_is_in_no_workspace_finds_nothing(letters, zed):
    assert search(Workspace.objects.for_user(zed), "apples").hits == ()


def test_who_is_in_two_workspaces_finds_what_is_in_both(workspace, olga):
    other = MembershipFactory(user=olga).workspace
    published(workspace, APPLES, name="one")
    published(other, APPLES, name="other")
    published(WorkspaceFactory(), APPLES, name="neither")

    assert set(names(search(Workspace.objects.for_user(olga), "apples"))) == {"one", "other"}


def test_a_chunk_that_lies_about_its_workspace_is_not_found(workspace):
    document = published(WorkspaceFactory(), APPLES)
    DocumentChunk.objects.filter(document=document).update(workspace=workspace)

    assert search(Workspace.objects.filter(pk=workspace.pk), "apples").hits == ()


def test_what_has_been_purged_is_not_found(workspace):
    document = published(workspace, APPLES, name="gone")
    force_status(document, "processed", purged_at=clock.now(), file="", embedding=None)

    assert search(everywhere(), "apples").hits == ()


@pytest.mark.parametrize("by", ["words", "meaning", "both"])
def test_only_what_is_asked_for(workspace, by):
    now = clock.now()
    published(workspace, APPLES, name="old", created_at=now - timedelta(days=9), content_type="text/plain")
    published(workspace, APPLES, name="new", created_at=now - timedelta(days=1), content_type="text/csv")

    def found(**options):
        return set(names(search(everywhere(), "apples", by=by, **options)))

    assert found() == {"old", "new"}
    assert found(content_type="text/csv") == {"new"}
    assert found(content_type="image/png") == set()
    assert found(status="processing") == {"old", "new"}
    assert found(status="failed") == set()
    assert found(since=now - timedelta(days=5)) == {"new"}
    assert found(until=now - timedelta(days=5)) == {"old"}
    assert found(since=now - timedelta(days=5), until=now - timedelta(days=5)) == set()


# Limits


def test_a_small_workspace_among_a_large_one_still_gets_all_that_it_has(workspace, olga):
    large = WorkspaceFactory()
    published(large, *(f"{APPLES} {n}" for n in range(1500)))
    for n in range(12):
        published(workspace, f"{CATS} {n}")

    found = search(Workspace.objects.for_user(olga), "delivery of apples", by="meaning", limit=10)

    assert len(found.hits) == 10
    assert found.has_more


def test_a_long_document_leaves_room_for_others(workspace):
    published(workspace, *(f"apples apples apples apples {n}" for n in range(130)), name="book")
    for n in range(5):
        published(workspace, f"{CATS} apples {n}", name=f"letter {n}")

    for by in ("words", "meaning", "both"):
        found = names(search(everywhere(), "apples", by=by))

        assert found.count("book") == MOST_OF_A_DOCUMENT
        assert len(set(found)) == 6


def test_hits_are_read_page_by_page(workspace):
    for n in range(7):
        published(workspace, f"{APPLES} {n}", name=str(n))

    pages = [search(everywhere(), "apples", limit=3, after=after) for after in (0, 3, 6, 9)]

    assert [len(page.hits) for page in pages] == [3, 3, 1, 0]
    assert [page.has_more for page in pages] == [True, True, False, False]
    assert len({hit.chunk_id for page in pages for hit in page.hits}) == 7


def test_nobody_gets_more_than_can_be_read(workspace):
    published(workspace, APPLES)

    assert len(search(everywhere(), "apples", limit=10**9).hits) == 1
    assert search(everywhere(), "apples", after=10**9).hits == ()
    assert MOST_AT_ONCE <= MOST_IN_ALL


def test_it_asks_as_often_for_many_hits_as_for_one(workspace):
    published(workspace, APPLES)
    with CaptureQueriesContext(connection) as few:
        search(everywhere(), "apples")
    for n in range(15):
        published(workspace, f"{APPLES} {n}")
    search(everywhere(), "apples")

    with CaptureQueriesContext(connection) as many:
        assert len(search(everywhere(), "apples").hits) == 16

    assert len(many) <= len(few)


# Results


def test_a_hit_says_where_it_is_and_marks_the_words(workspace):
    document = published(workspace, CATS, f"Straße 5. {APPLES}", name="letter.pdf")

    (hit,) = search(everywhere(), "APPLES strasse deliv*", by="words").hits

    assert (hit.document_id, hit.name, hit.workspace, hit.position, hit.page) == (
        document.pk,
        "letter.pdf",
        workspace.name,
        1,
        2,
    )
    assert "".join(part.text for part in hit.snippet) == f"Straße 5. {APPLES}"
    assert [part.text for part in hit.snippet if part.is_match] == ["Straße", "delivery", "apples"]


def test_a_snippet_shows_the_place_with_the_words(workspace):
    text = " ".join([*["before"] * 100, "apples", *["between"] * 100, "apples and pears", *["behind"] * 100])
    published(workspace, text)

    (hit,) = search(everywhere(), "apples pears", by="words").hits

    shown = "".join(part.text for part in hit.snippet)
    assert shown.startswith("… ")
    assert shown.endswith(" …")
    assert "apples and pears" in shown
    assert len(shown) < 300


def test_a_snippet_of_what_was_found_by_its_meaning_is_its_beginning(workspace):
    published(workspace, f"{CATS} {'And so on. ' * 100}")

    (hit,) = search(everywhere(), "pets", by="meaning").hits

    assert hit.snippet[0].text.startswith("Cats like fish")
    assert not any(part.is_match for part in hit.snippet)


def test_users_that_were_shut_out_find_nothing(letters):
    assert search(Workspace.objects.for_user(UserFactory(is_superuser=True, is_active=False)), "apples").hits == ()
