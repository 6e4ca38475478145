import re
import time

import pytest

from feeds.fetching import FetchFailed
from feeds.fetching.network import Outside, new_trust
from feeds.fetching.posting import post
from tests.feeds.authority import Authority
from tests.feeds.servers import Server, answering
from webhooks import addresses, hooks
from webhooks.hooks import ActionRefused

pytestmark = pytest.mark.edge


@pytest.fixture
def closed(settings):
    """Allow no private networks."""
    settings.ADE_WEBHOOK_NETWORKS = []


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example.com/",
        "http://8.8.8.8/",
        "https://127.0.0.1/",
        "https://169.254.169.254/latest/meta-data",
        "https://[::1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://10.0.0.1/",
        "https://hooks.example.com:8443/",
        "https://2130706433/",
        "https://0x7f.1/",
        "https://user:secret@hooks.example.com/",
        "ftp://hooks.example.com/",
        "file:///etc/passwd",
        "https://hooks.example.com/a b",
        "https://hooks.example.com\\@10.0.0.1/",
        "hooks.example.com",
        "",
        "https://" + "a" * 3000,
    ],
)
def test_where_no_receiver_may_lie(closed, url):
    with pytest.raises(ActionRefused) as refused:
        hooks.validate({"url": url})

    assert refused.value.code == "invalid_request"
    assert re.search(r"^The (URL|port|host) .+\.$", str(refused.value))


def test_a_receiver_on_the_internet_is_called_with_tls(closed):
    assert addresses.normalize("https://hooks.Example.com") == "https://hooks.example.com/"


def test_without_tls_only_ones_own_networks_are_called(settings):
    settings.ADE_WEBHOOK_NETWORKS = ["10.0.0.0/8"]

    assert addresses.normalize("http://10.1.2.3:8080/x") == "http://10.1.2.3:8080/x"
    for url in ("http://8.8.8.8/", "http://127.0.0.1/"):
        with pytest.raises(FetchFailed):
            addresses.normalize(url)


@pytest.mark.parametrize("address", ["10.0.0.7", "127.0.0.1", "169.254.169.254", "::1", "::ffff:10.0.0.7", "fd00::1"])
@pytest.mark.parametrize("url", ["https://inside.example/", "http://inside.example/"])
def test_a_name_that_leads_inside_is_not_called_and_its_address_not_told(closed, address, url):
    outside = Outside(resolve=lambda host: [address])

    with pytest.raises(FetchFailed) as failed:
        post(url, b"{}", {}, addresses.reach_of(url), outside=outside)

    assert failed.value.code == "refused_address"
    assert address not in str(failed.value)


def test_one_address_inside_among_others_is_enough_to_refuse(closed):
    outside = Outside(resolve=lambda host: ["93.184.215.14", "10.0.0.7"])

    with pytest.raises(FetchFailed, match="inside"):
        post("https://inside.example/", b"{}", {}, addresses.reach_of("https://inside.example/"), outside=outside)


def test_a_name_that_is_public_is_not_called_without_tls(settings):
    settings.ADE_WEBHOOK_NETWORKS = ["10.0.0.0/8"]
    url, outside = "http://hooks.example/", Outside(resolve=lambda host: ["93.184.215.14"])

    with pytest.raises(FetchFailed, match="an address in one of the networks in ADE_WEBHOOK_NETWORKS"):
        post(url, b"{}", {}, addresses.reach_of(url), outside=outside)


def test_a_host_that_swallows_all_calls_is_given_up_in_time(settings):
    settings.ADE_WEBHOOK_NETWORKS = ["192.0.2.0/24"]
    began = time.monotonic()

    with pytest.raises(FetchFailed):
        post("http://192.0.2.1:9/", b"{}", {}, addresses.reach_of("http://192.0.2.1:9/"), connect_seconds=0.2)

    assert time.monotonic() - began < 30


def test_a_receiver_has_to_prove_who_it_is(settings, tmp_path):
    settings.ADE_WEBHOOK_NETWORKS = ["127.0.0.0/8"]
    authority = Authority(tmp_path)
    with Server(context=authority.context("hooks.example")) as server:
        server.on("/", answering())
        url = server.url("/", host="hooks.example")
        known = Outside(lambda host: ["127.0.0.1"], authority.trust)
        unknown = Outside(lambda host: ["127.0.0.1"], new_trust)

        assert post(url, b"{}", {}, addresses.reach_of(url), outside=known).status == 200
        with pytest.raises(FetchFailed) as failed:
            post(url, b"{}", {}, addresses.reach_of(url), outside=unknown)

    assert failed.value.code == "tls"
