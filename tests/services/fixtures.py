"""Fixtures for whoever asks a service; `tests/conftest.py` has them for all."""

import pytest

from tests.services import document_intelligence, openai


@pytest.fixture
def azure(settings):
    """A server of Azure Document Intelligence, and settings that lead to it."""
    server = document_intelligence.DocumentIntelligence()
    settings.ADE_EXTRACTOR = "azure"
    settings.ADE_AZURE_DI_ENDPOINT, settings.ADE_AZURE_DI_KEY = server.url, document_intelligence.KEY
    yield server
    server.end()


@pytest.fixture
def open_ai(settings):
    """A server of OpenAI, and settings that lead to it."""
    server = openai.OpenAI()
    settings.ADE_EMBEDDER = "openai"
    settings.ADE_OPENAI_URL, settings.ADE_OPENAI_KEY = f"{server.url}/v1", openai.KEY
    yield server
    server.end()
