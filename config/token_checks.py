"""The checks of `manage.py doctor` on tokens and users."""

from datetime import timedelta

import structlog
from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import DatabaseError

from api.models import ApiToken
from config.findings import Finding, Level, ok, warn
from work import clock

MOST_NAMED = 10
SOON = timedelta(days=7)
# The same name as in config/demo.py.
DEMO_USER = "demo"
DEMO_ADVICE = (
    "Create a superuser of your own (`manage.py createsuperuser`), then deactivate the user `demo` in the admin. Its "
    "password was printed on a terminal."
)

log = structlog.get_logger(__name__)


def tokens_last() -> Finding:
    usable = ApiToken.objects.usable()
    ending = usable.filter(expires_at__lt=clock.now() + SOON).select_related("workspace").order_by("expires_at", "id")
    tokens = list(ending[: MOST_NAMED + 1])
    if not tokens:
        return ok(f"no token expires within {SOON.days} days")
    names = ", ".join(
        f"{token.pk} ({token} of {token.workspace}, {token.expires_at:%Y-%m-%d})" for token in tokens[:MOST_NAMED]
    )
    more = " and more" if len(tokens) > MOST_NAMED else ""
    return warn(
        f"expiring within {SOON.days} days: {names}{more}",
        "Create new ones for the programs, then revoke the old: `manage.py token create`, `manage.py token revoke`.",
        tuple(("token", token.pk) for token in tokens[:MOST_NAMED]),
    )


def demo_user_is_for_trying() -> Finding:
    if settings.DEBUG:
        return ok("DEBUG is true, so a demo user is allowed")
    people = get_user_model()._default_manager.filter(username=DEMO_USER, is_superuser=True, is_active=True)
    if people.exists():
        return warn("the superuser demo can sign in, and DEBUG is false", DEMO_ADVICE)
    return ok("no demo user can sign in as a superuser")


def warn_of_demo_user() -> None:
    """Log a warning about the demo user when a web process starts. Other code reports an unavailable database."""
    try:
        if (finding := demo_user_is_for_trying()).level is Level.WARN:
            log.warning("web.demo_user", found=finding.message, advice=finding.advice)
    except DatabaseError:
        log.info("web.demo_user_not_checked")
