"""Services that are slow, away, busy, or answer nonsense (faults F4 to F9): the error and its consequences."""

import json
import math
import time
from datetime import timedelta

import pytest

from ade_services.trouble import LONGEST_PAUSE_SECONDS, pause
from documents import remote_services
from documents.embedding import EmbeddingFailed, openai
from documents.extraction import ExtractionFailed
from documents.extraction import azure as azure_reader
from tests.documents.processing import PDF, pdf
from tests.services import document_intelligence as di
from tests.services import openai as oa
from tests.services.serving import changed, cut_off, drips, goes_on, hangs, hangs_up, says, unpacks_to
from work import clock

pytestmark = [pytest.mark.once, pytest.mark.usefixtures("places"), pytest.mark.long]

HTML = b"<html><body>Bad gateway</body></html>"
INVALID = di.failed("InvalidRequest", "Invalid request.", "InvalidContent")
QUOTA = {"error": {"message": "You have no credit left.", "type": "insufficient_quota", "code": "insufficient_quota"}}


@pytest.fixture
def failing(tmp_path):
    """Return a function that returns the error of a service; both services report the same errors."""

    def failing(service, *, wall_seconds=30.0):
        ask = read if isinstance(service, di.DocumentIntelligence) else embed
        with pytest.raises((ExtractionFailed, EmbeddingFailed)) as caught:
            ask(tmp_path, wall_seconds)
        for key in (di.KEY, oa.KEY):
            assert key not in str(caught.value)
        assert str(caught.value).startswith(("Azure Document Intelligence ", "OpenAI ", "The "))
        assert str(caught.value).endswith(".")
        return caught.value

    return failing


def read(directory, wall_seconds):
    file = directory / "document"
    file.write_bytes(pdf("Total: 7.00"))
    azure_reader.extract(file, PDF, 1, 25, directory, wall_seconds=wall_seconds)


def embed(directory, wall_seconds):
    openai.embed(["apples", "pears"], directory, wall_seconds=wall_seconds)


# F4: rate limits


def test_f4_seconds_of_a_pause_are_handed_on(azure, open_ai, failing):
    azure.then("analyze", says(429, di.failed("429", "Too many requests."), Retry_After=17))
    open_ai.then("embed", says(429, QUOTA | {"error": {"code": "rate_limit_exceeded"}}, Retry_After=18))

    errors = failing(azure), failing(open_ai)

    assert [(error.permanent, error.retry_after) for error in errors] == [(False, 17), (False, 18)]
    assert azure.count("analyze") == open_ai.count("embed") == 1


def test_f4_a_pause_may_end_at_a_moment_and_may_be_told_with_a_failing_look(azure, failing):
    until = (clock.now() + timedelta(seconds=90)).strftime("%a, %d %b %Y %H:%M:%S GMT")
    azure.then("poll", says(429, b"", Retry_After=until))

    error = failing(azure)

    assert not error.permanent
    assert 60 < error.retry_after <= 90


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "30"}, 30),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Wed, 01 Jul 2026 10:01:00 GMT", "date": "Wed, 01 Jul 2026 10:00:00 GMT"}, 60),
        ({"retry-after": "Wed, 01 Jul 2020 10:01:00 GMT"}, 0),
        ({"retry-after": "-5"}, 0),
        ({"retry-after": "1000000000"}, LONGEST_PAUSE_SECONDS),
        ({"retry-after": "1e400"}, LONGEST_PAUSE_SECONDS),
        ({"retry-after": "Wed, 01 Jul 9999 10:01:00 GMT"}, LONGEST_PAUSE_SECONDS),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "Wed, 99 Jul 99999999999 10:01:00 GMT"}, None),
    ],
)
def test_f4_a_pause_is_understood_in_all_its_ways(headers, seconds):
    assert pause(headers) == seconds


# F5: unavailable


@pytest.mark.parametrize("status", [500, 502, 503])
def test_f5_what_cannot_answer_now_is_asked_again(azure, open_ai, failing, status):
    azure.then("analyze" if status != 503 else "poll", says(status, HTML))
    open_ai.then("embed", says(status, HTML))

    errors = failing(azure), failing(open_ai)

    assert [(error.permanent, error.retry_after) for error in errors] == [(False, None)] * 2
    assert all(str(status) in str(error) for error in errors)


def test_f5_what_is_not_there_or_hangs_up_is_asked_again(azure, open_ai, failing, settings):
    azure.then("analyze", hangs_up)
    azure.then("poll", hangs_up)
    open_ai.then("embed", hangs_up)
    errors = [failing(azure), failing(azure), failing(open_ai)]
    settings.ADE_AZURE_DI_ENDPOINT = "http://127.0.0.1:9"
    settings.ADE_OPENAI_URL = "http://127.0.0.1:9/v1"

    errors += [failing(azure), failing(open_ai)]

    assert [error.permanent for error in errors] == [False] * 5
    assert ["cannot be reached (Connection refused)." in str(error) for error in errors[3:]] == [True] * 2
    assert ["Connection reset" in str(error) for error in errors[:3]] == [True] * 3


def test_f5_an_analysis_that_fails_by_no_fault_of_the_document_is_begun_again(azure, failing):
    azure.then("poll", says(200, di.failed()))

    error = failing(azure)

    assert (error.code, error.permanent) == ("unavailable", False)


# F6: refused


def test_f6_a_key_that_is_not_taken_ends_it_and_says_which_setting(azure, open_ai, failing, settings):
    settings.ADE_AZURE_DI_KEY, settings.ADE_OPENAI_KEY = "another-key-of-azure", "another-key-of-openai"

    errors = failing(azure), failing(open_ai)

    assert [error.permanent for error in errors] == [True, True]
    assert [name in str(error) for name, error in zip(("ADE_AZURE_DI_KEY", "ADE_OPENAI_KEY"), errors, strict=True)]
    assert not any("another-key" in str(error) for error in errors)


def test_f6_a_model_that_is_not_there_ends_it_and_says_which_setting(azure, open_ai, failing, settings):
    settings.ADE_AZURE_MODEL, settings.ADE_OPENAI_MODEL = "no-such-model", "another-such-model"

    errors = failing(azure), failing(open_ai)

    assert [error.permanent for error in errors] == [True, True]
    assert "ADE_AZURE_MODEL (no-such-model)." in str(errors[0])
    assert "ADE_OPENAI_MODEL (another-such-model) " in str(errors[1])


@pytest.mark.parametrize("status", [400, 403, 413])
def test_f6_what_is_refused_is_not_asked_again(azure, open_ai, failing, status):
    azure.then("analyze", says(status, di.failed("InvalidRequest", "Not so.", "InvalidArgument")))
    open_ai.then("embed", says(status, {"error": {"message": "Not so.", "code": "not_so"}}))

    errors = failing(azure), failing(open_ai)

    assert [error.permanent for error in errors] == [True, True]
    assert errors[0].of_service
    assert (f"{status} InvalidRequest/InvalidArgument" in str(errors[0])) == (f"{status} not_so" in str(errors[1]))


def test_f6_content_that_is_refused_ends_it(azure, failing):
    azure.then("poll", says(200, INVALID))

    error = failing(azure)

    assert (error.code, error.permanent, error.of_service) == ("refused", True, True)
    assert "InvalidRequest/InvalidContent" in str(error)


def test_f6_a_quota_that_is_exhausted_ends_it_though_it_is_told_as_too_often(open_ai, failing):
    open_ai.then("embed", says(429, QUOTA, Retry_After=1))

    error = failing(open_ai)

    assert (error.permanent, error.retry_after) == (True, None)
    assert "billing" in str(error)


# F7: slow


def test_f7_an_answer_that_does_not_come_is_not_waited_for(azure, open_ai, failing, monkeypatch):
    monkeypatch.setattr(remote_services, "READ_SECONDS", 1.0)
    azure.then("analyze", hangs)
    open_ai.then("embed", hangs)

    errors = failing(azure), failing(open_ai)

    assert [error.permanent for error in errors] == [False, False]
    assert ["within 1 s" in str(error) for error in errors] == [True, True]


@pytest.mark.parametrize("what", ["analyze", "poll"])
def test_f7_an_answer_that_comes_byte_by_byte_has_an_end(azure, failing, what):
    azure.then(what, drips)
    before = time.monotonic()

    error = failing(azure, wall_seconds=5)

    assert (error.code, error.permanent) == ("timed_out", False)
    assert time.monotonic() - before < 60


def test_f7_vectors_that_come_byte_by_byte_have_an_end(open_ai, failing):
    open_ai.then("embed", drips)

    error = failing(open_ai, wall_seconds=3)

    assert not error.permanent
    assert "OpenAI did not answer within 3 s." in str(error)


# F8: never finished


def test_f8_an_analysis_that_never_ends_is_given_up(azure, failing):
    azure.running = 10**6

    error = failing(azure, wall_seconds=5)

    assert (error.code, error.permanent) == ("timed_out", False)
    assert azure.count("analyze") == 1


# F9: nonsense

NONSENSE = {
    "truncated": changed(lambda body: body[: len(body) // 2]),
    "cut off": cut_off,
    "no JSON": says(200, HTML),
    "empty": says(200, b""),
    "another": says(200, {"result": "fine"}),
    "a list": says(200, []),
    "nested": says(200, b'{"a":' * 100_000),
    "packed": unpacks_to(4000),
}
SMOKE = {"truncated", "cut off", "no JSON"}
OF_NONSENSE = [
    pytest.param(fault, id=name, marks=() if name in SMOKE else pytest.mark.long) for name, fault in NONSENSE.items()
]


@pytest.mark.parametrize("fault", OF_NONSENSE)
def test_f9_an_answer_that_is_none_is_told(azure, failing, fault):
    azure.then("poll", fault)

    assert not failing(azure).permanent


def test_f9_an_answer_that_is_huge_is_not_read_to_its_end(azure, open_ai, failing):
    azure.then("poll", goes_on(200))
    open_ai.then("embed", goes_on(200))

    errors = failing(azure), failing(open_ai)

    assert "too large: it has more than 67,108,864 bytes." in str(errors[0])
    assert "too large: it has more than 33,554,432 bytes." in str(errors[1])


@pytest.mark.parametrize("fault", OF_NONSENSE)
def test_f9_vectors_that_are_none_are_told(open_ai, failing, fault):
    open_ai.then("embed", fault)

    assert not failing(open_ai).permanent


WRONG_PAGES = {
    "NaN": lambda page: page["words"][0]["polygon"].__setitem__(1, math.nan),
    "no place": lambda page: page["words"][0].update(polygon=["a", "b", "c", "d"]),
    "no lines": lambda page: page.update(lines=7),
    "no text": lambda page: page["lines"][0].update(content=None),
    "no width": lambda page: page.update(width="wide"),
    "no pages": lambda page: page.clear(),
}


@pytest.mark.parametrize("change", WRONG_PAGES.values(), ids=WRONG_PAGES)
def test_f9_an_analysis_with_what_cannot_be_is_told(azure, failing, change):
    def spoil(body):
        told = json.loads(body)
        change(told["analyzeResult"]["pages"][0])
        return json.dumps(told).encode()

    azure.running = 0
    azure.then("poll", changed(spoil))

    error = failing(azure)

    assert error.code in ("wrong_answer", "incomplete"), str(error)


WRONG_VECTORS = {
    "too few": ([1.0] * 256,),
    "too many": ([1.0] * 256,) * 3,
    "short": ([1.0] * 256, [1.0] * 255),
    "NaN": ([1.0] * 256, [math.nan] * 256),
    "infinite": ([math.inf] * 256, [1.0] * 256),
}


@pytest.mark.parametrize("vectors", WRONG_VECTORS.values(), ids=WRONG_VECTORS)
def test_f9_vectors_of_another_number_or_dimension_or_of_no_numbers_are_told(open_ai, failing, vectors):
    open_ai.then("embed", oa.vectors(*vectors))

    error = failing(open_ai)

    assert not error.permanent
    assert "sent an invalid answer: " in str(error)
