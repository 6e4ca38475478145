"""What `manage.py doctor` looks at in tokens."""

from datetime import timedelta

from api.models import ApiToken
from config.findings import Finding, Level, ok
from work import clock

MOST_NAMED = 10
SOON = timedelta(days=7)


def tokens_last() -> Finding:
    usable = ApiToken.objects.usable()
    ending = usable.filter(expires_at__lt=clock.now() + SOON).select_related("workspace").order_by("expires_at", "id")
    found = list(ending[: MOST_NAMED + 1])
    if not found:
        return ok(f"none expires within {SOON.days} days")
    named = ", ".join(
        f"{token.pk} ({token} of {token.workspace}, {token.expires_at:%Y-%m-%d})" for token in found[:MOST_NAMED]
    )
    more = " and more" if len(found) > MOST_NAMED else ""
    advice = "Make new ones, tell the programs, and revoke the old: `manage.py token create`, `manage.py token revoke`."
    offenders = tuple(("token", token.pk) for token in found[:MOST_NAMED])
    return Finding(Level.WARN, f"within {SOON.days} days expire: {named}{more}", advice, offenders)
