"""Turns texts into vectors with OpenAI, or with a service that has the same API.

The files are the same as for ADE's own model: consecutive vectors of little-endian 32-bit floats, followed by their
mean, all of length 1.
"""

import base64
import json
import math
import sys
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx2
import openai

from ade_services import OPENAI, TEXTS, VECTORS
from ade_services.child import Order
from ade_services.trouble import TooLarge, Trouble, away, detail, pause, reason, up_to, wrong, wrong_because

SERVICE = OPENAI.service
# Limit for one answer. 256 vectors of 2000 numbers take 3 MB.
MOST_BYTES = 32 << 20
MOST_INPUTS = 256
# OpenAI accepts 300,000 tokens per request, and a token is at least one byte.
MOST_INPUT_BYTES = 250_000
_UNREADABLE = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError)

Vector = Sequence[float]


def work(order: Order) -> dict[str, Any]:
    texts = json.loads(Path(TEXTS).read_bytes())
    total = [0.0] * order["dimensions"]
    timeout = httpx2.Timeout(order["read_seconds"], connect=order["connect_seconds"])
    client = openai.OpenAI(
        api_key=order["key"],
        base_url=order["url"],
        # The job counts the attempts.
        max_retries=0,
        timeout=timeout,
        # Compressed answers are not accepted, because a small one could decompress to any size.
        default_headers={"Accept-Encoding": "identity"},
        http_client=openai.DefaultHttpxClient(
            timeout=timeout, follow_redirects=False, event_hooks={"response": [_limit]}
        ),
    )
    with client, Path(VECTORS).open("wb") as file:
        for batch in batches(texts):
            for vector in _embed(client, order, batch):
                total = [a + b for a, b in zip(total, vector, strict=True)]
                file.write(_pack(vector))
        file.write(_pack(_of_length_1(total)))
    return {"vectors": len(texts)}


def batches(texts: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for text in texts:
        length = len(text.encode(errors="replace"))
        if batch and (len(batch) == MOST_INPUTS or size + length > MOST_INPUT_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += length
    if batch:
        yield batch


def _limit(response: httpx2.Response) -> None:
    if (encoding := response.headers.get("Content-Encoding", "identity")) != "identity":
        raise wrong(SERVICE, f"it is compressed ({encoding}), although ADE accepts only uncompressed answers")
    response.stream = _Limited(response.stream)


class _Limited(httpx2.SyncByteStream):
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        return up_to(MOST_BYTES, self._stream.__iter__)()

    def close(self) -> None:
        self._stream.close()


def _embed(client: openai.OpenAI, order: Order, texts: list[str]) -> list[Vector]:
    try:
        # The client asks for base64 by default, but it then needs numpy to decode it. Asking explicitly avoids that.
        answer = client.embeddings.create(
            input=texts, model=order["model"], dimensions=order["dimensions"], encoding_format="base64"
        )
        places = sorted(each.index for each in answer.data)
        if places != list(range(len(texts))):
            raise wrong(SERVICE, f"it has {len(places)} vectors for {len(texts)} texts")
        vectors: list[Vector] = []
        for each in sorted(answer.data, key=lambda each: each.index):
            if isinstance(each.embedding, str):
                numbers = array("f", base64.b64decode(each.embedding, validate=True))
                if sys.byteorder == "big":
                    numbers.byteswap()
                vectors.append(numbers)
            else:
                # Some compatible services send numbers although base64 was requested.
                vectors.append([float(value) for value in each.embedding])
        for vector in vectors:
            if len(vector) != order["dimensions"]:
                raise wrong(SERVICE, f"a vector has {len(vector)} numbers instead of {order['dimensions']}")
            if not all(map(math.isfinite, vector)):
                raise wrong(SERVICE, "a vector contains values that are not numbers")
            if not any(vector):
                raise wrong(SERVICE, "a vector has only zeros and thus no direction")
        return [_of_length_1(vector) for vector in vectors]
    except TooLarge as error:
        raise Trouble("too_large", f"{SERVICE} sent an answer that is too large: {error}.") from error
    except openai.APITimeoutError as error:
        raise away("timed_out", f"{SERVICE} did not answer within {order['read_seconds']:g} s.") from error
    except openai.APIConnectionError as error:
        cause = error.__cause__
        if isinstance(cause, Trouble):
            raise cause from error
        problem = "cannot be reached"
        if isinstance(cause, httpx2.ReadError | httpx2.RemoteProtocolError):
            problem = "closed the connection without an answer"
        raise away("unreachable", f"{SERVICE} {problem} ({reason(error)}).") from error
    except openai.APIStatusError as error:
        raise _trouble_of_answer(error, order) from error
    except (openai.OpenAIError, *_UNREADABLE) as error:
        raise wrong_because(SERVICE, error) from error


def _of_length_1(vector: Vector) -> Vector:
    length = max(math.hypot(*vector), 1e-12)
    return [each / length for each in vector]


def _pack(vector: Vector) -> bytes:
    numbers = array("f", vector)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def _trouble_of_answer(error: openai.APIStatusError, order: Order) -> Trouble:
    status, code = error.status_code, detail(error.code)
    text = error.body.get("message") if isinstance(error.body, dict) else None
    problem = detail(f"{status} {code}".strip(), text)
    if code == "insufficient_quota":
        advice = "Check the plan and the billing of the owner of ADE_OPENAI_KEY."
    elif status == 429:
        message = f"{SERVICE} is busy and asks for a pause ({problem})."
        return away("busy", message, retry_after=pause(error.response.headers))
    elif status in (408, 409) or status >= 500:
        return away("unavailable", f"{SERVICE} cannot make vectors at the moment ({problem}).")
    elif status in (401, 403):
        # The service's message about a key may contain that key.
        problem, advice = f"{status} {code}".strip(), "Check ADE_OPENAI_KEY."
    else:
        advice = (
            f"Check ADE_OPENAI_URL, ADE_OPENAI_MODEL ({order['model']}) "
            f"and ADE_OPENAI_DIMENSIONS ({order['dimensions']})."
        )
    message = f"{SERVICE} rejected the request for vectors ({problem}). {advice}"
    return Trouble("refused", message, permanent=True)
