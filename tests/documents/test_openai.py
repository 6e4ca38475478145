"""Texts turned into vectors by OpenAI: the requests, and the use of the answers."""

import json
import math
import sys

import pytest

from ade_services.openai_embeddings import MOST_INPUT_BYTES, MOST_INPUTS, batches
from documents import embedding
from documents.children import COLD_EMBEDDER
from documents.embedding import EmbeddingFailed, numbers, openai
from tests.processes import shown_of
from tests.services.openai import KEY, encoded, vector_of
from tests.services.serving import changed, hangs
from work.claims import Interrupted

pytestmark = [pytest.mark.once, pytest.mark.usefixtures("places"), pytest.mark.long]


@pytest.fixture
def embed(tmp_path):
    def embed(*texts, stop=lambda: None):
        return embedding.embed(texts, tmp_path, stop=stop, on_start=lambda child: None, run=COLD_EMBEDDER)

    return embed


def near(a, b):
    return sum(map(lambda x, y: x * y, numbers(a), numbers(b)))


def test_vectors_have_length_1_and_their_mean_stands_behind_them(open_ai, embed):
    found = embed("apples and pears", "a bill to pay")

    assert found.model == embedding.model() == "openai:text-embedding-3-small:256"
    assert embedding.dimensions() == 256
    assert [len(numbers(each)) for each in [*found.each, found.mean]] == [256] * 3
    assert [near(each, each) for each in [*found.each, found.mean]] == pytest.approx([1] * 3)
    expected = vector_of("apples and pears", 256)
    length = math.hypot(*expected)
    assert list(numbers(found.each[0])) == pytest.approx([each / length for each in expected], abs=1e-6)
    total = [a + b for a, b in zip(*map(numbers, found.each), strict=True)]
    assert list(numbers(found.mean)) == pytest.approx([each / math.hypot(*total) for each in total], abs=1e-6)


def test_model_and_number_of_dimensions_are_those_of_the_settings(open_ai, embed, settings):
    settings.ADE_OPENAI_MODEL, settings.ADE_OPENAI_DIMENSIONS = "text-embedding-3-large", 64

    found = embed("apples")

    assert found.model == "openai:text-embedding-3-large:64"
    assert len(numbers(found.each[0])) == 64
    asked = json.loads(open_ai.asked[0].body)
    assert (asked["model"], asked["dimensions"], asked["encoding_format"]) == ("text-embedding-3-large", 64, "base64")


def test_many_texts_are_asked_for_in_batches_and_stay_in_their_order(open_ai, embed):
    texts = [f"text {n}" for n in range(2 * MOST_INPUTS + 1)]

    found = embed(*texts)

    assert [len(batch) for batch in open_ai.texts()] == [MOST_INPUTS, MOST_INPUTS, 1]
    assert [text for batch in open_ai.texts() for text in batch] == texts
    assert len(found.each) == len(texts)
    assert near(found.each[-1], openai.of_query(texts[-1])) == pytest.approx(1)


def test_a_batch_has_no_more_bytes_than_may_become_tokens():
    texts = ["ä" * 450] * 600

    sizes = [sum(len(text.encode()) for text in batch) for batch in batches(texts)]

    assert max(sizes) <= MOST_INPUT_BYTES
    assert [text for batch in batches(texts) for text in batch] == texts
    assert [len(batch) for batch in batches(["x" * (MOST_INPUT_BYTES + 1), "y"])] == [1, 1]
    assert list(batches([])) == []


def test_vectors_are_taken_by_their_index_and_not_by_their_place(open_ai, embed):
    expected = embed("one", "two").each
    open_ai.then("embed", changed(turned_around))

    assert embed("one", "two").each == expected


def turned_around(body):
    told = json.loads(body)
    told["data"].reverse()
    return json.dumps(told).encode()


def test_who_answers_with_numbers_though_asked_for_base64_is_understood_too(open_ai, embed):
    expected = embed("one").each
    open_ai.then("embed", changed(lambda body: body.replace(as_json("one", packed=True), as_json("one"))))

    assert embed("one").each == expected


def as_json(text, *, packed=False):
    wanted = {"encoding_format": "base64"} if packed else {}
    return json.dumps(encoded(vector_of(text, 256), wanted)).encode()


def test_for_no_texts_nobody_is_asked(open_ai, embed):
    found = embed()

    assert (found.each, found.mean, open_ai.asked) == ([], b"", [])


def test_what_somebody_looks_for_has_the_vector_of_a_text(open_ai, embed):
    (expected,) = embed("where are the apples").each

    assert openai.of_query("where are the apples") == expected


def test_who_looks_for_something_does_not_wait_for_long(open_ai, monkeypatch):
    monkeypatch.setattr(openai, "QUERY_SECONDS", 2.0)
    open_ai.then("embed", hangs)

    with pytest.raises(EmbeddingFailed, match="did not answer within"):
        openai.of_query("apples")


def test_whoever_is_told_to_stop_does_so_at_once(open_ai, embed):
    open_ai.always("embed", hangs)

    with pytest.raises(Interrupted):
        embed("apples", stop=lambda: "shutdown" if open_ai.asked else None)


def test_the_key_stands_nowhere_but_in_the_request(open_ai, embed, tmp_path):
    looked = []
    open_ai.then("embed", hangs)

    def look():
        if open_ai.asked:
            looked.extend(shown_of("ade_services"))
            return "seen enough"
        return None

    with pytest.raises(Interrupted):
        embed("apples", stop=look)

    assert looked
    assert not any(KEY.encode() in each for each in looked)
    assert not any(KEY.encode() in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert open_ai.asked[0].headers["authorization"] == f"Bearer {KEY}"


def test_a_proxy_is_told_to_the_child_and_to_nobody_else(open_ai, embed, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://somebody:proxy-password@127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://somebody:proxy-password@127.0.0.1:9")

    with pytest.raises(EmbeddingFailed, match="cannot be reached"):
        embed("apples")

    assert open_ai.asked == []
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    assert embed("apples").each


def test_the_client_is_never_loaded_where_a_worker_is(open_ai, embed):
    embed("apples")

    assert "openai.resources" not in sys.modules
