"""Helpers of the feed reader tests: the real child process, as feeds start it."""

from datetime import UTC, datetime

import pytest

from feeds import reading
from feeds.reading import ReadFailed

URL = "https://aster.example/news/feed.xml"


def read(body, content_type="application/rss+xml"):
    return reading.read(body if isinstance(body, bytes) else body.encode(), URL, content_type)


def items_of(body, content_type="application/rss+xml"):
    return list(read(body, content_type).items())


def item_of(body):
    (item,) = items_of(body)
    return item


def failure_of(body):
    with pytest.raises(ReadFailed) as caught:
        read(body)
    return caught.value


def moment(*when):
    return int(datetime(*when, tzinfo=UTC).timestamp())
