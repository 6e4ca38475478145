"""Sign-in and sign-out: writes audit entries, ends idle sessions, and answers requests after too many failures.

django-axes counts failures by user name and address together, so that a user can't be locked out from another address.
"""

import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.dispatch import receiver
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render

from api import audit, limits
from api.addresses import origin_of

# The time of the last request is saved at most this many times per idle timeout.
WRITTEN_TIMES = 20
SEEN_AT = "seen_at"
# Audit entries of failed sign-ins per minute and origin. More would add no information.
MOST_FAILURES = 60


def answer_lockout(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Answer requests of locked-out users. Replaces django-axes' middleware, whose response has no Retry-After."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        if not getattr(request, "axes_locked_out", False):
            return response
        seconds = int(settings.AXES_COOLOFF_TIME.total_seconds())
        locked = render(request, "locked.html", {"minutes": seconds // 60}, status=429)
        locked["Retry-After"] = str(seconds)
        locked["Cache-Control"] = "private, no-store"
        return locked

    return answer


def end_idle_sessions(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """End a session ADE_SESSION_IDLE_SECONDS after the user's last request. To save writes, not every request updates
    the session.
    """

    def answer(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        session = request.session
        # Don't touch the session after a server error: the session itself may be the cause.
        if response.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return response
        # An open page polls for updates by itself; that is no activity of the user.
        is_polling = request.path.startswith("/live/") or "HX-Request" in request.headers
        # Check `accessed` first, so that a request that has not used its session causes no query.
        if session.accessed and "_auth_user_id" in session and not is_polling:
            now = int(time.time())
            if now - session.get(SEEN_AT, 0) >= settings.ADE_SESSION_IDLE_SECONDS / WRITTEN_TIMES:
                session[SEEN_AT] = now
        return response

    return answer


@receiver(user_logged_in, dispatch_uid="api.signins")
def on_signed_in(sender: object, request: HttpRequest | None, user: AbstractBaseUser, **_: Any) -> None:
    if request is not None:
        request.session[SEEN_AT] = int(time.time())
        audit.record_sign_in(request, "sign_in", user)


@receiver(user_logged_out, dispatch_uid="api.signins")
def on_signed_out(sender: object, request: HttpRequest | None, user: AbstractBaseUser | None, **_: Any) -> None:
    # People can sign out without being signed in; there is no user then.
    if request is not None and user is not None:
        audit.record_sign_in(request, "sign_out", user)


@receiver(user_login_failed, dispatch_uid="api.signins")
def on_sign_in_failed(
    sender: object, credentials: dict[str, Any], request: HttpRequest | None = None, **_: Any
) -> None:
    """Audit a failed sign-in. The name of an unknown user is not stored, because people sometimes type their password
    into the name field.
    """
    if request is None or limits.BUCKETS.take("failed sign-ins", origin_of(request), MOST_FAILURES):
        return
    name = str(credentials.get("username", "")).replace("\0", "")
    person = get_user_model()._default_manager.filter(username=name).first()
    audit.record_sign_in(request, "sign_in_failed", person)
