"""Sends pages of a document to Azure Document Intelligence in one request and polls until the analysis has finished."""

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests
from azure.ai.documentintelligence import DocumentIntelligenceClient
from azure.ai.documentintelligence.models import AnalyzeResult
from azure.core.credentials import AzureKeyCredential
from azure.core.exceptions import (
    AzureError,
    DecodeError,
    HttpResponseError,
    ServiceRequestError,
    ServiceResponseError,
    ServiceResponseTimeoutError,
)
from azure.core.pipeline import PipelineResponse
from azure.core.pipeline.transport import RequestsTransport
from requests.adapters import HTTPAdapter

from ade_services import DOCUMENT_INTELLIGENCE, PAGES
from ade_services.analysis import pages_of
from ade_services.child import Order
from ade_services.trouble import TooLarge, Trouble, away, detail, pause, reason, up_to, wrong, wrong_because

SERVICE = DOCUMENT_INTELLIGENCE.service
# Limit for one answer. The analysis of 25 dense pages with tables takes a few MB.
MOST_BYTES = 64 << 20
# These models find key-value pairs without being trained.
WITH_PAIRS = ("prebuilt-layout", "prebuilt-document", "prebuilt-invoice")
# Prefixes of the error codes that reject the document or the request for good.
_REFUSALS = ("Invalid", "Unsupported", "NotSupported", "Forbidden", "NotFound")
# What reading an answer may raise if it does not follow its documentation.
_UNREADABLE = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError)


def work(order: Order) -> dict[str, Any]:
    """Analyse the pages that ADE's own extractor left in the working directory, and replace them with the result."""
    give_up_at = time.monotonic() + order["seconds"]
    document = json.loads(Path(PAGES).read_bytes())
    numbers = [page["number"] for page in document["pages"]]
    try:
        result = _analyse(order, numbers, give_up_at)
    except TooLarge as error:
        raise Trouble("too_large", f"{SERVICE} sent an answer that is too large: {error}.") from error
    except DecodeError as error:
        raise wrong(SERVICE, f"it is cut off or not JSON ({detail(type(error).__name__)})") from error
    except HttpResponseError as error:
        raise _trouble_of_answer(error, order) from error
    except ServiceResponseTimeoutError as error:
        raise away("timed_out", f"{SERVICE} did not answer within {order['read_seconds']:g} s.") from error
    except ServiceResponseError as error:
        message = f"{SERVICE} closed the connection without an answer ({reason(error)})."
        raise away("unreachable", message) from error
    except ServiceRequestError as error:
        raise away("unreachable", f"{SERVICE} cannot be reached ({reason(error)}).") from error
    except (AzureError, *_UNREADABLE) as error:
        raise wrong_because(SERVICE, error) from error
    try:
        # Every page has now been read, so no unread scans are left.
        document["scans"] = 0
        document["pages"] = pages_of(result, document["pages"], f"Azure's model {order['model']}")
        text = json.dumps(document, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except _UNREADABLE as error:
        raise wrong_because(SERVICE, error) from error
    partial_file = Path(f"{PAGES}.part")
    partial_file.write_text(text, encoding="utf-8")
    os.replace(partial_file, PAGES)
    return {"characters": sum(len(page["text"]) for page in document["pages"])}


def _analyse(order: Order, numbers: list[int], give_up_at: float) -> AnalyzeResult:
    session = requests.Session()
    for protocol in ("http://", "https://"):
        session.mount(protocol, _Limited(order["endpoint"]))
    client = DocumentIntelligenceClient(
        order["endpoint"],
        AzureKeyCredential(order["key"]),
        # Passed to the client, these timeouts would not reach the transport.
        transport=RequestsTransport(
            session=session, connection_timeout=order["connect_seconds"], read_timeout=order["read_seconds"]
        ),
        # The job counts the attempts.
        retry_total=0,
        permit_redirects=False,
        # Used when the service does not send a Retry-After.
        polling_interval=order["poll_seconds"],
        raw_response_hook=_check_status,
    )
    with client, Path(order["file"]).open("rb") as file:
        poller = client.begin_analyze_document(
            order["model"],
            file,
            content_type="application/octet-stream",
            # An image has a single page, so a page range cannot be sent.
            pages=f"{numbers[0]}-{numbers[-1]}" if order["has_pages"] else None,
            features=["keyValuePairs"] if order["model"] in WITH_PAIRS else None,
            string_index_type="unicodeCodePoint",
        )
        # The client's own timeout does not end the request: `result(timeout)` returns None and the poller goes on.
        poller.wait(max(0.0, give_up_at - time.monotonic()))
        if not poller.done():
            raise Trouble("timed_out", f"{SERVICE} did not finish within {order['seconds']:.0f} s.")
        result = poller.result()
    if not isinstance(result, AnalyzeResult):
        raise wrong(SERVICE, "it contains no analysis")
    return result


class _Limited(HTTPAdapter):
    """Limits the size of answers, and sends the key only to the origin of the service."""

    def __init__(self, endpoint: str) -> None:
        super().__init__()
        self._origin = urlsplit(endpoint)[:2]

    def send(self, request: requests.PreparedRequest, *args: Any, **options: Any) -> requests.Response:
        if urlsplit(str(request.url))[:2] != self._origin:
            raise wrong(SERVICE, f"it leads to another host, {urlsplit(str(request.url)).netloc}")
        response = super().send(request, *args, **options)
        response.raw.stream = up_to(MOST_BYTES, response.raw.stream)
        return response


def _check_status(response: PipelineResponse[Any, Any]) -> None:
    """Raise for an HTTP error before the client parses it: it expects JSON, but a proxy may answer with HTML."""
    http = response.http_response
    if http.status_code >= 400:
        http.read()
        raise HttpResponseError(response=http)


def _trouble_of_answer(error: HttpResponseError, order: Order) -> Trouble:
    outer: Any = error.error
    inner = getattr(outer, "innererror", None)
    # The error codes from the outermost to the innermost.
    values = [getattr(outer, "code", None)]
    while isinstance(inner, dict) and len(values) < 5:
        values.append(inner.get("code"))
        inner = inner.get("innererror")
    status, codes = error.status_code or 0, [code for code in values if isinstance(code, str)]
    text = error.error.message if error.error else ""
    if status < 300:
        # The analysis has ended without success.
        problem = detail("/".join(codes), text)
        if not codes:
            return wrong(SERVICE, "it does not report the state of the analysis")
        if any(code.startswith(_REFUSALS) for code in codes):
            message = f"{SERVICE} rejected the document ({problem}). Save it again and upload the new file."
            return Trouble("refused", message, permanent=True)
        return Trouble("unavailable", f"{SERVICE} failed to analyse the document ({problem}).")
    code = " ".join(dict.fromkeys([str(status), "/".join(codes)])).strip()
    problem = detail(code, text)
    if status == 429:
        headers: Mapping[str, str] = getattr(error.response, "headers", {})
        message = f"{SERVICE} is busy and asks for a pause ({problem})."
        return away("busy", message, retry_after=pause({name.lower(): value for name, value in headers.items()}))
    if status == 408 or status >= 500:
        return away("unavailable", f"{SERVICE} cannot analyse the document at the moment ({problem}).")
    if status in (401, 403):
        # The service's message about a key may contain that key.
        problem = code
        advice = "Check that ADE_AZURE_DI_KEY and ADE_AZURE_DI_ENDPOINT are of one resource, and check its quota."
    elif status == 404:
        advice = f"Check ADE_AZURE_DI_ENDPOINT and ADE_AZURE_MODEL ({order['model']})."
    else:
        advice = f"Check the document and ADE_AZURE_MODEL ({order['model']})."
    message = f"{SERVICE} rejected the document ({problem}). {advice}"
    return Trouble("refused", message, permanent=True)
