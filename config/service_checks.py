"""The check of `manage.py doctor` on external services."""

from config.findings import Finding, ok, warn
from documents import breakers


def services_answer() -> Finding:
    away = breakers.away().values()
    if not away:
        return ok("no service that documents need is known to be unavailable")
    said = "; ".join(
        f"{each.name} unavailable since {each.away_since:%Y-%m-%d %H:%M} UTC: {each.message}" for each in away
    )
    return warn(said, "Documents wait for it, and continue by themselves when it answers. See docs/operations.md.")
