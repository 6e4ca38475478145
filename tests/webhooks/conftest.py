import pytest

from tests.factories import WebhookFactory
from tests.feeds.servers import server  # noqa: F401  # pytest finds fixtures by their names here
from tests.webhooks.told import NETWORK


@pytest.fixture(autouse=True)
def reachable(settings):
    settings.ADE_WEBHOOK_NETWORKS = [NETWORK]


@pytest.fixture
def webhook(server, workspace):  # noqa: F811  # the fixture above
    """A webhook of Aster to a receiver on this machine; each test sets its answer."""
    return WebhookFactory(workspace=workspace, url=server.url("/hook"))
