"""Notifies the workers of new work, on databases that can."""

from django.db import connection

from work.sql import statements

CHANNEL = "ade_work"


def ring(topic: str) -> None:
    """Notify workers when this transaction commits. Do nothing without a topic."""
    if topic and connection.vendor == "postgresql":
        statements.run("SELECT pg_notify(%s, %s)", [CHANNEL, topic])
