"""A server that implements the protocol of OpenAI's embeddings. The same text always has the same vector, and texts
with common words have similar ones.
"""

import array
import base64
import hashlib
import json

from tests.services.serving import Service

KEY = "sk-test-0123456789abcdef"


class OpenAI(Service):
    def handle(self, asked):
        if asked.headers.get("authorization") != f"Bearer {KEY}":
            return "refused", lambda: error(401, f"Incorrect key: {KEY}", "invalid_api_key")
        if asked.path != "/v1/embeddings":
            return "lost", lambda: error(404, "Invalid URL", None)
        return "embed", lambda: self._embed(json.loads(asked.body))

    def texts(self):
        """Return the texts of each request."""
        return [json.loads(asked.body)["input"] for asked in self.asked if asked.what == "embed"]

    def _embed(self, wanted):
        texts, number = wanted["input"], wanted.get("dimensions", 1536)
        if not wanted["model"].startswith("text-embedding-3-"):
            return error(404, f"The model `{wanted['model']}` does not exist", "model_not_found")
        data = [
            {"object": "embedding", "index": index, "embedding": encoded(vector_of(text, number), wanted)}
            for index, text in enumerate(texts)
        ]
        return 200, {}, json.dumps(answer(data, wanted["model"])).encode()


def answer(data, model="text-embedding-3-small"):
    return {"object": "list", "data": data, "model": model, "usage": {"prompt_tokens": 1, "total_tokens": 1}}


def vector_of(text, number):
    """Return a vector that is not normalised: ADE has to do that."""
    vector = [0.01] * number
    for word in text.lower().split():
        vector[int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big") % number] += 3.0
    return vector


def encoded(vector, wanted):
    if wanted.get("encoding_format") != "base64":
        return vector
    return base64.b64encode(array.array("f", vector).tobytes()).decode()


def error(status, message, code, **headers):
    body = {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}
    return status, headers, json.dumps(body).encode()


def vectors(*each):
    """Answer with these vectors instead of the right ones."""

    def fault(handler, _answer):
        data = [
            {"object": "embedding", "index": index, "embedding": encoded(vector, {"encoding_format": "base64"})}
            for index, vector in enumerate(each)
        ]
        handler.answer(200, {}, json.dumps(answer(data)).encode())

    return fault
