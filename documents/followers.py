"""Lets apps that build on documents act on a change of a document's status, in the same transaction.

`settings.DOCUMENT_FOLLOWERS` names their functions, because this app does not import those apps. A follower changes a
limited number of rows and waits for no lock that other work may hold for long.
"""

from django.conf import settings
from django.utils.module_loading import import_string


def notify(document_id: int, status: str) -> None:
    """Call all followers. The caller has changed the document's status in the transaction that it is in."""
    for path in settings.DOCUMENT_FOLLOWERS:
        import_string(path)(document_id, status)
