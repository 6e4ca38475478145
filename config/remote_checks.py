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
        return ok(f"no feed has been failing for {LONG.days} days")
    named = ", ".join(f"{feed.pk} ({feed})" for feed in found[:MOST_NAMED])
    more = " and more" if len(found) > MOST_NAMED else ""
    advice = (
        "`manage.py feed show ID` shows the reason. Pause or remove feeds that are gone for good. If all feeds fail,"
        " check whether this machine can reach the internet."
    )
    offenders = tuple(("feed", feed.pk) for feed in found[:MOST_NAMED])
    return Finding(Level.WARN, f"no answer for {LONG.days} days or longer from: {named}{more}", advice, offenders)
