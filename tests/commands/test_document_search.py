import pytest
from django.db import connection

from documents import embedding, vectors
from tests.documents.searched import published
from tests.factories import WorkspaceFactory

pytestmark = [pytest.mark.edge, pytest.mark.django_db]

APPLES = "The delivery of apples arrived on time."


def test_search_answers_with_what_was_found(manage, workspace):
    document = published(workspace, APPLES, name="letter.pdf")

    found = manage("document", "search", "apples", "--json").json

    (hit,) = found["hits"]
    assert (hit["document_id"], hit["name"], hit["workspace"]) == (document.pk, "letter.pdf", "Aster")
    assert (hit["why"], hit["page"], hit["words_place"], hit["meaning_place"]) == ("both", 1, 1, 1)
    assert {"text": "apples", "is_match": True} in hit["snippet"]
    assert (found["how"], found["notes"], found["has_more"]) == (["words", "meaning"], [], False)


def test_search_is_readable(manage, workspace):
    document = published(workspace, f"{APPLES}\x1b[31m", name="letter.pdf")

    ended = manage("document", "search", "apples")

    assert ended.out.startswith(
        f"{document.pk}  Aster/letter.pdf, page 1  (both)\n    The delivery of [apples] arrived"
    )
    assert "\x1b" not in ended.out
    assert manage("document", "search", "pears", "--by", "words").out == "No results.\n"


def test_search_chooses(manage, workspace):
    published(workspace, APPLES, name="here", content_type="application/pdf")
    published(WorkspaceFactory(name="Other"), APPLES, name="there", content_type="text/csv")

    def names(*options):
        return {hit["name"] for hit in manage("document", "search", "apples", *options, "--json").json["hits"]}

    assert names() == {"here", "there"}
    assert names("--workspace", "Other") == {"there"}
    assert names("--type", "pdf") == {"here"}
    assert names("--type", "text/csv", "--by", "meaning") == {"there"}
    assert names("--status", "failed") == set()
    assert len(names("--limit", "1")) == 1


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--type", "exe"), 2),
        (("--limit", "0"), 2),
        (("--limit", "9" * 5000), 2),
        (("--by", "luck"), 2),
        (("--workspace", "nowhere"), 6),
    ],
)
def test_what_cannot_be_asked_is_told(manage, options, code):
    ended = manage("document", "search", "apples", *options, "--json")

    assert ended.code == code
    assert ended.error["message"]


@pytest.mark.django_db(transaction=True)
def test_index_makes_what_is_not_there(manage):
    if connection.vendor == "postgresql":
        vectors.drop_indexes()
        vectors.keep_as_bytes()
        assert manage("doctor", "search", "--json").json["checks"][-1]["level"] == "warn"

    made = manage("document", "index", "--json").json

    is_postgresql = connection.vendor == "postgresql"
    assert made == {
        "words": "an index",
        "vectors": "pgvector" if is_postgresql else "bytes",
        "model": embedding.model(),
        "is_indexed": is_postgresql,
    }
    assert manage("document", "index", "--rebuild", "--json").json == made
    levels = {check["name"]: check["level"] for check in manage("doctor", "search", "--json").json["checks"]}
    assert (levels["search.words"], levels["search.vectors"]) == ("ok", "ok")


@pytest.mark.only_on("postgresql")
def test_doctor_misses_the_index_of_the_model_of_today(manage, monkeypatch):
    monkeypatch.setattr("documents.embedding.model", lambda: "another")

    check = manage("doctor", "search.vectors", "--json").json["checks"][-1]

    assert (check["level"], check["found"]) == ("warn", "the vectors of another have no index")


@pytest.mark.only_on("sqlite")
def test_doctor_tells_of_words_that_are_out_of_step(manage):
    with connection.cursor() as cursor:
        cursor.execute("DROP TRIGGER chunk_words_added")

    ended = manage("doctor", "search.words", "--json")

    assert (ended.code, ended.json["checks"][-1]["advice"]) == (1, "Run `manage.py document index --rebuild`.")
