"""Signing in and out: what is written of it, and what is answered to whoever has failed too often.

django-axes counts the failures, by user name and address together: nobody can lock somebody else out from elsewhere.
"""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render

from api import audit, limits
from api.addresses import origin_of

# In a minute, of one origin: the rest is the same.
MOST_TOLD = 60


def lockout(get_response: Callable[[HttpRequest], HttpResponseBase]) -> Callable[[HttpRequest], HttpResponseBase]:
    """In the place of the middleware of axes, which tells nobody when to come again."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        return _locked(request) if getattr(request, "axes_locked_out", False) else response

    return answer


def _locked(request: HttpRequest) -> HttpResponse:
    seconds = int(settings.AXES_COOLOFF_TIME.total_seconds())
    answer = render(request, "locked.html", {"minutes": seconds // 60}, status=429)
    answer["Retry-After"] = str(seconds)
    answer["Cache-Control"] = "private, no-store"
    return answer


@receiver(user_logged_in, dispatch_uid="api.signins")
def _signed_in(sender: object, request: HttpRequest | None, user: AbstractBaseUser, **_: Any) -> None:
    if request is not None:
        audit.tell(request, "sign_in", user)


@receiver(user_logged_out, dispatch_uid="api.signins")
def _signed_out(sender: object, request: HttpRequest | None, user: AbstractBaseUser | None, **_: Any) -> None:
    # Who is not signed in can sign out too.
    if request is not None and user is not None:
        audit.tell(request, "sign_out", user)


@receiver(user_login_failed, dispatch_uid="api.signins")
def _failed(sender: object, credentials: dict[str, Any], request: HttpRequest | None = None, **_: Any) -> None:
    """Names that nobody has are not kept: into that field people type their passwords too."""
    if request is None or limits.BUCKETS.take("failed sign-ins", origin_of(request), MOST_TOLD):
        return
    people = get_user_model()._default_manager
    audit.tell(request, "sign_in_failed", people.filter(username=_name_in(credentials)).first())


def _name_in(credentials: dict[str, Any]) -> str:
    return str(credentials.get("username", "")).replace("\0", "")
