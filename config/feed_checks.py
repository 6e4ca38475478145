"""The checks of `manage.py doctor` on feeds."""

from datetime import timedelta

from config.findings import Finding, Level, ok
from feeds.models import FeedSource
from work import clock

MOST_NAMED = 10
# A server may be down for a weekend.
LONG = timedelta(days=3)


def feeds_answer() -> Finding:
    found = list(FeedSource.objects.silent_since(clock.now() - LONG).order_by("id")[: MOST_NAMED + 1])
    if not found:
        return ok(f"none has been failing for {LONG.days} days")
    named = ", ".join(f"{feed.pk} ({feed})" for feed in found[:MOST_NAMED])
    more = " and more" if len(found) > MOST_NAMED else ""
    advice = (
        "`manage.py feed show ID` says why. One that is gone for good is paused or removed. If all of them fail, look"
        " whether this machine reaches the internet."
    )
    offenders = tuple(("feed", feed.pk) for feed in found[:MOST_NAMED])
    return Finding(Level.WARN, f"no answer for {LONG.days} days and more of: {named}{more}", advice, offenders)
