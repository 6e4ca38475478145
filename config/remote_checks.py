"""The checks of `manage.py doctor` on feeds and external services."""

from datetime import timedelta

from config.findings import Finding, ok, warn
from documents import breakers
from feeds.models import FeedSource
from work import clock

MOST_NAMED = 10
# How long a feed may fail before it is reported, because a server may be down for a weekend.
LONG = timedelta(days=3)


def feeds_answer() -> Finding:
    feeds = list(FeedSource.objects.silent_since(clock.now() - LONG).order_by("id")[: MOST_NAMED + 1])
    if not feeds:
        return ok(f"no feed has been failing for {LONG.days} days")
    names = ", ".join(f"{feed.pk} ({feed})" for feed in feeds[:MOST_NAMED])
    more = " and more" if len(feeds) > MOST_NAMED else ""
    return warn(
        f"no answer for {LONG.days} days or longer from: {names}{more}",
        "`manage.py feed show ID` shows the reason. Pause or remove feeds that are gone for good. If all feeds fail,"
        " check whether this machine can reach the internet.",
        tuple(("feed", feed.pk) for feed in feeds[:MOST_NAMED]),
    )


def services_answer() -> Finding:
    away = breakers.away().values()
    if not away:
        return ok("no service that documents need is known to be unavailable")
    message = "; ".join(
        f"{each.name} unavailable since {each.away_since:%Y-%m-%d %H:%M} UTC: {each.message}" for each in away
    )
    return warn(message, "Documents wait for it, and continue by themselves when it answers. See docs/operations.md.")
