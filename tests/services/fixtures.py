"""Fixtures that start fake services; `tests/conftest.py` imports them for all tests."""

import pytest

from documents.embedding import openai as embedding
from tests.services import document_intelligence, openai


@pytest.fixture
def azure(settings):
    """Start a fake Azure Document Intelligence, and point the settings to it."""
    server = document_intelligence.DocumentIntelligence()
    settings.ADE_EXTRACTOR = "azure"
    settings.ADE_AZURE_DI_ENDPOINT, settings.ADE_AZURE_DI_KEY = server.url, document_intelligence.KEY
    yield server
    server.end()


@pytest.fixture
def open_ai(settings, monkeypatch):
    """Start a fake OpenAI, and point the settings to it."""
    server = openai.OpenAI()
    # Importing the client alone takes longer than a search may wait, if the machine is busy.
    monkeypatch.setattr(embedding, "QUERY_SECONDS", 300.0)
    settings.ADE_EMBEDDER = "openai"
    settings.ADE_OPENAI_URL, settings.ADE_OPENAI_KEY = f"{server.url}/v1", openai.KEY
    yield server
    server.end()
