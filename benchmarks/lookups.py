"""Actor commands for the search part: create documents, and search as people do. The texts mix common words with the
special words of a topic, as real documents do. The vectors come from ADE's own model.
"""

import random
import time
from collections.abc import Iterator
from functools import cache
from typing import Any

from django.contrib.auth import get_user_model
from django.db import connection, transaction

from ade_embedder.query import model as embedder
from ade_embedder.query import vectors_of
from benchmarks import processes, rows
from documents import embedding, vectors
from documents.lifecycle import create_workspace
from documents.models import Document, DocumentChunk
from documents.publication import ROWS
from documents.search import matrix, meaning, search
from documents.search.scope import Scope
from workspaces.models import Membership, Workspace

TYPES = ("application/pdf", "text/plain", "text/html", "application/vnd.ms-excel")
CHUNKS_OF_A_DOCUMENT = 10
# The shares of the documents in each workspace. The user who searches sees only the first three workspaces.
SHARES = (0.8, 0.1, 0.09, 0.01)
SEEN = 3
TOPICS, WORDS_OF_A_TOPIC = 500, 40
SHARE_COMMON, SHARE_ANY, SHARE_SECOND = 0.5, 0.1, 0.2
_COMMON = (
    "the of and to in a is that for it as was with be by on not he his but at are this have from or had an they which"
    " one you were all her she there would their we him been has when who will no more if out so up said what its"
    " about than into them can only other time new some could these two may first then do any like my now over such"
    " our man me even most made after also did many off before must well back through years"
)
COMMON = _COMMON.split()


def seed(chunks: int) -> dict[str, float]:
    """Create documents with this many chunks. Return the seconds for writing them and for creating the index."""
    _let_servers_have_memory()
    workspaces = [create_workspace(f"search {n}") for n in range(len(SHARES))]
    user = get_user_model().objects.create(username="searcher")
    Membership.objects.bulk_create(Membership(user=user, workspace=each) for each in workspaces[:SEEN])
    chance = random.Random(1)  # noqa: S311  # must be reproducible
    model = _model()
    if connection.vendor == "postgresql":
        # Indexing all rows at once is quicker than row by row. In real installations, indexes grow both ways.
        vectors.drop_indexes()
    began = time.monotonic()
    for start in range(0, chunks, ROWS * CHUNKS_OF_A_DOCUMENT):
        number = min(chunks - start, ROWS * CHUNKS_OF_A_DOCUMENT) // CHUNKS_OF_A_DOCUMENT
        documents = [_document(chance.choices(workspaces, SHARES)[0], chance) for _ in range(number)]
        Document.objects.bulk_create(documents, batch_size=ROWS)
        DocumentChunk.objects.bulk_create(_chunks(documents, chance), batch_size=ROWS)
    written = time.monotonic() - began
    if connection.vendor == "postgresql":
        vectors.make_index(model)
    rows.settle()
    return {"written": written, "indexed": time.monotonic() - began - written}


def ask(number: int, seed: int, by: str = "both") -> dict[str, Any]:
    """Run this many searches through `search()`. Return the milliseconds of each, and the processor milliseconds of
    all.
    """
    chance = random.Random(seed)  # noqa: S311  # must be reproducible
    visible = Workspace.objects.for_user(get_user_model().objects.get(username="searcher"))
    taken, busy = [], _busy_seconds()
    for _ in range(number):
        typed, options = _query(chance)
        began = time.monotonic()
        found = search(visible, typed, by=by, **options)
        taken.append(1000 * (time.monotonic() - began))
        assert set(found.how) == ({"words", "meaning"} if by == "both" else {by}), found.notes
    return {"each": taken, "busy": 1000 * (_busy_seconds() - busy)}


def recall(number: int, seed: int, most: int = 10) -> list[float]:
    """Run this many searches by meaning. Return for each the share of the nearest chunks, as found by a full scan, that
    the index finds too.
    """
    chance, model = random.Random(seed), _model()  # noqa: S311  # must be reproducible
    scope = Scope(tuple(Workspace.objects.order_by("pk").values_list("pk", flat=True)[:SEEN]))
    shares = []
    for _ in range(number):
        vector = embedding.of_query(" ".join(chance.sample(chance.choice(_topics()), chance.randint(2, 5))))
        exact = {id for id, _ in matrix.nearest(vector, model, scope, most)}
        shares.append(len(exact & {id for id, _ in meaning.nearest(vector, model, scope, most)}) / len(exact))
    matrix.cache.clear()
    return shares


def publish(number: int, seed: int) -> float:
    """Write the chunks of one long document and remove them again. Return the seconds that writing took."""
    chance = random.Random(seed)  # noqa: S311  # must be reproducible
    document = _document(Workspace.objects.order_by("pk")[0], chance)
    document.save()
    chunks = list(_chunks([document], chance, number))
    began = time.monotonic()
    with transaction.atomic():
        DocumentChunk.objects.bulk_create(chunks, batch_size=ROWS)
    taken = time.monotonic() - began
    document.delete()
    return taken


def _busy_seconds() -> float:
    """Return the processor seconds of this process and of its database backend."""
    if connection.vendor != "postgresql":
        return time.process_time()
    ((backend,),) = rows.fetch("SELECT pg_backend_pid()")
    return time.process_time() + processes.own_processor_seconds(backend)


def _model() -> vectors.Model:
    return vectors.Model(embedding.model(), embedding.dimensions())


def _let_servers_have_memory() -> None:
    if connection.vendor == "postgresql":
        rows.execute("SET maintenance_work_mem = '512MB'")


def _document(workspace: Workspace, chance: random.Random) -> Document:
    return Document(
        workspace=workspace,
        name="made up",
        content_type=chance.choice(TYPES),
        size_bytes=1000,
        sha256=f"{chance.getrandbits(256):064x}",
        embedding_model=embedding.model(),
    )


def _chunks(
    documents: list[Document], chance: random.Random, each: int = CHUNKS_OF_A_DOCUMENT
) -> Iterator[DocumentChunk]:
    for document in documents:
        first, second = chance.choices(_topics(), k=2)
        texts = [_text(first, second, chance) for _ in range(each)]
        for position, (text, vector) in enumerate(zip(texts, vectors_of(texts), strict=True)):
            yield DocumentChunk(
                document=document,
                workspace=document.workspace,
                position=position,
                page=position // 3 + 1,
                text=text,
                embedding=vector,
                embedding_model=embedding.model(),
            )


def _text(first: list[str], second: list[str], chance: random.Random) -> str:
    """Return a text as long as a chunk of a real document."""
    return " ".join(_word(first, second, chance) for _ in range(chance.randint(70, 170)))


def _word(first: list[str], second: list[str], chance: random.Random) -> str:
    luck = chance.random()
    if luck < SHARE_COMMON:
        return COMMON[min(int(chance.paretovariate(0.6)), len(COMMON)) - 1]
    if luck < SHARE_COMMON + SHARE_ANY:
        return chance.choice(_vocabulary())
    return chance.choice(second if luck > 1 - SHARE_SECOND else first)


def _query(chance: random.Random) -> tuple[str, dict[str, Any]]:
    topic, luck = chance.choice(_topics()), chance.random()
    typed = " ".join(chance.sample(topic, chance.randint(1, 4)))
    if luck < 0.1:
        typed = f"{chance.choice(COMMON)} {typed}"
    elif luck < 0.2:
        # Search for words that nearly every text contains.
        typed = " ".join(COMMON[:2])
    elif luck < 0.3:
        typed = f'"{chance.choice(topic)} the"'
    elif luck < 0.4:
        typed = f"{chance.choice(topic)[:3]}* {chance.choice(topic)}"
    elif luck < 0.5:
        typed = f"{typed} -{chance.choice(topic)}"
    return typed, {"content_type": chance.choice(TYPES)} if chance.random() < 0.2 else {}


@cache
def _vocabulary() -> list[str]:
    """Return English words from the model's vocabulary."""
    known = (token.removeprefix("▁") for token in embedder().tokenizer.get_vocab() if token.startswith("▁"))
    return sorted(word for word in known if len(word) > 3 and word.isascii() and word.isalpha() and word.islower())


@cache
def _topics() -> list[list[str]]:
    chance = random.Random(2)  # noqa: S311  # must be reproducible
    return [chance.sample(_vocabulary(), WORDS_OF_A_TOPIC) for _ in range(TOPICS)]
