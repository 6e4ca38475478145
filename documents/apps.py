from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate

from documents import fulltext


class DocumentsConfig(AppConfig):
    name = "documents"

    def ready(self) -> None:
        post_migrate.connect(make_fulltext, sender=self)


def make_fulltext(**_: Any) -> None:
    fulltext.make()
