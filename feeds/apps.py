from django.apps import AppConfig
from django.core import checks

from feeds.retention import rules


class FeedsConfig(AppConfig):
    name = "feeds"

    def ready(self) -> None:
        checks.register(rules.check_rules, checks.Tags.models)
