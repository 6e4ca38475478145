from tests.feeds.servers import server  # noqa: F401  # pytest finds fixtures by their names here
