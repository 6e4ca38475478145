from tests.feeds.servers import server  # noqa: F401  # fixtures are found by their names here
